//! The phases of an exchange.

use serde_json::{Value, json};

use super::rounded;
use crate::network::Exchange;

/// The duration of each phase in milliseconds; `None` if there was no such phase. `ssl` is part of
/// `connect`, as specified.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) blocked: Option<f64>,
    pub(super) dns: Option<f64>,
    pub(super) connect: Option<f64>,
    pub(super) ssl: Option<f64>,
    pub(super) send: f64,
    pub(super) wait: f64,
    pub(super) receive: f64,
}

impl Times {
    pub(super) fn of(exchange: &Exchange) -> Self {
        let Some(response) = &exchange.response else {
            // There was no response.
            let ms = exchange
                .end_s
                .map_or(0.0, |end_s| (end_s - exchange.sent_s) * 1e3);
            return Self {
                blocked: Some(ms.max(0.0)),
                ..Self::default()
            };
        };
        let end_s = exchange.end_s.unwrap_or(response.at_s).max(response.at_s);
        let timing = response.timing.filter(|_| !exchange.from_memory);
        let Some((timing, (send_start, send_end))) =
            timing.and_then(|timing| Some((timing, timing.send?)))
        else {
            return Self {
                wait: ((response.at_s - exchange.sent_s) * 1e3).max(0.0),
                receive: (end_s - response.at_s) * 1e3,
                ..Self::default()
            };
        };
        let length = |phase: Option<(f64, f64)>| phase.map(|(start, end)| end - start);
        let first = [timing.dns, timing.connect, Some((send_start, send_end))]
            .into_iter()
            .flatten()
            .map(|(start, _)| start)
            .fold(f64::INFINITY, f64::min);
        let queued = ((timing.request_time_s - exchange.sent_s) * 1e3).max(0.0);
        // Time between the phases (a proxy, waiting for a connection) counts as blocked.
        let spent = length(timing.dns).unwrap_or(0.0) + length(timing.connect).unwrap_or(0.0);
        let between = (send_start - first - spent).max(0.0);
        let headers_end = timing.headers_end.unwrap_or(send_end).max(send_end);
        let headers_end_s = timing.request_time_s + headers_end / 1e3;
        Self {
            blocked: Some(queued + first + between),
            dns: length(timing.dns),
            connect: length(timing.connect),
            ssl: length(timing.ssl),
            send: send_end - send_start,
            wait: headers_end - send_end,
            receive: ((end_s - headers_end_s) * 1e3).max(0.0),
        }
    }

    /// The sum of the phases. `ssl` is not added, because `connect` contains it.
    pub(super) fn total_ms(&self) -> f64 {
        let optional = [self.blocked, self.dns, self.connect];
        optional.into_iter().flatten().sum::<f64>() + self.send + self.wait + self.receive
    }

    /// Returns the phases as members of the HAR format.
    pub(super) fn members(&self) -> Value {
        let or_absent = |ms: Option<f64>| ms.map_or(-1.0, rounded);
        json!({
            "blocked": or_absent(self.blocked),
            "dns": or_absent(self.dns),
            "connect": or_absent(self.connect),
            "ssl": or_absent(self.ssl),
            "send": rounded(self.send),
            "wait": rounded(self.wait),
            "receive": rounded(self.receive),
        })
    }
}
