//! The phases of an exchange.

use plumbline_trace::ResourceTiming;
use serde_json::{Value, json};

use super::rounded;
use crate::network::LoggedExchange;

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
    pub(super) fn of(exchange: &LoggedExchange) -> Self {
        let Some(response) = &exchange.response else {
            // There was no response.
            let us = exchange
                .end_us
                .map_or(0.0, |end_us| end_us - exchange.sent_us);
            return Self {
                blocked: Some(us.max(0.0) / 1e3),
                ..Self::default()
            };
        };
        let end_us = exchange
            .end_us
            .unwrap_or(response.at_us)
            .max(response.at_us);
        let phases = exchange.timing().and_then(RequestTimings::of);
        let Some(phases) = phases else {
            return Self {
                wait: ((response.at_us - exchange.sent_us) / 1e3).max(0.0),
                receive: (end_us - response.at_us) / 1e3,
                ..Self::default()
            };
        };
        let (send_start_us, send_end_us) = phases.send;
        let length_ms =
            |phase: Option<(f64, f64)>| phase.map(|(start_us, end_us)| (end_us - start_us) / 1e3);
        let first_us = [phases.dns, phases.connect, Some(phases.send)]
            .into_iter()
            .flatten()
            .map(|(start_us, _)| start_us)
            .fold(f64::INFINITY, f64::min);
        let queued_ms = ((phases.request_time_us - exchange.sent_us) / 1e3).max(0.0);
        // Time between the phases (a proxy, waiting for a connection) counts as blocked.
        let spent_ms =
            length_ms(phases.dns).unwrap_or(0.0) + length_ms(phases.connect).unwrap_or(0.0);
        let between_ms = ((send_start_us - first_us) / 1e3 - spent_ms).max(0.0);
        let headers_end_us = phases
            .headers_end_us
            .unwrap_or(send_end_us)
            .max(send_end_us);
        let received_us = end_us - (phases.request_time_us + headers_end_us);
        Self {
            blocked: Some(queued_ms + first_us / 1e3 + between_ms),
            dns: length_ms(phases.dns),
            connect: length_ms(phases.connect),
            ssl: length_ms(phases.ssl),
            send: (send_end_us - send_start_us) / 1e3,
            wait: (headers_end_us - send_end_us) / 1e3,
            receive: (received_us / 1e3).max(0.0),
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

/// The start and end of each phase in microseconds since `request_time_us`; `None` if there was no
/// such phase.
struct RequestTimings {
    request_time_us: f64,
    dns: Option<(f64, f64)>,
    connect: Option<(f64, f64)>,
    ssl: Option<(f64, f64)>,
    send: (f64, f64),
    headers_end_us: Option<f64>,
}

impl RequestTimings {
    /// Returns the phases; `None` if the request was not sent.
    fn of(timing: &ResourceTiming) -> Option<Self> {
        let phase = |start_us: f64, end_us: f64| {
            (start_us >= 0.0 && end_us >= start_us).then_some((start_us, end_us))
        };
        let send = phase(timing.send_start_us, timing.send_end_us)?;
        let headers_end_us = timing.receive_headers_end_us;
        (timing.request_time_us > 0.0).then(|| Self {
            request_time_us: timing.request_time_us,
            dns: phase(timing.dns_start_us, timing.dns_end_us),
            connect: phase(timing.connect_start_us, timing.connect_end_us),
            ssl: phase(timing.ssl_start_us, timing.ssl_end_us),
            send,
            headers_end_us: (headers_end_us >= 0.0).then_some(headers_end_us),
        })
    }
}
