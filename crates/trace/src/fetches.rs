//! What the trace alone says of requests: who asked for them, with what urgency, and when.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::Event;

/// One request with its redirects, as DevTools' performance panel sees it (trace_engine,
/// handlers/NetworkRequestsHandler.js). Times are microseconds of the trace's clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fetch {
    pub id: String,
    pub url: String,
    /// The addresses that redirected to it.
    pub redirected_from: Vec<String>,
    pub resource_type: String,
    pub mime_type: String,
    /// When it was first asked for.
    pub start_us: f64,
    /// When the page was told that it had ended; its start where it never was.
    pub end_us: f64,
    /// When the network stack had its last byte.
    pub finish_us: f64,
    /// When the first byte of the answer came, for what went over the network.
    pub first_byte_us: Option<f64>,
    pub is_preload: bool,
    /// `high`, `low` or `auto`: what the page wrote.
    pub priority_hint: String,
    /// Who asked for it: `parser`, `script` … and where.
    pub initiator_type: String,
    pub initiator_url: String,
}

#[derive(Debug, Default)]
struct Told {
    will_send_us: Vec<f64>,
    sent: Vec<(f64, SendData)>,
    response: Option<(f64, ResponseData)>,
    finish: Option<(f64, Option<f64>)>,
    is_cached: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FetchEvents {
    in_order: Vec<(String, Told)>,
    by_id: HashMap<String, usize>,
}

#[derive(Deserialize)]
struct Args<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Id {
    request_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendData {
    url: String,
    resource_type: Option<String>,
    is_link_preload: Option<bool>,
    fetch_priority_hint: Option<String>,
    initiator: Option<Initiator>,
}

#[derive(Debug, Deserialize)]
struct Initiator {
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseData {
    mime_type: Option<String>,
    timing: Option<Timing>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timing {
    request_time: f64,
    receive_headers_start: Option<f64>,
    receive_headers_end: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FinishData {
    finish_time: Option<f64>,
}

impl FetchEvents {
    pub(crate) fn see(&mut self, event: &Event) {
        let ts_us = event.ts_us;
        match event.name.as_ref() {
            "ResourceWillSendRequest" => {
                if let Some(told) = self.told(event) {
                    told.will_send_us.push(ts_us);
                }
            }
            "ResourceSendRequest" => {
                if let Some(Args { data }) = event.args()
                    && let Some(told) = self.told(event)
                {
                    told.sent.push((ts_us, data));
                }
            }
            "ResourceReceiveResponse" => {
                if let Some(Args { data }) = event.args()
                    && let Some(told) = self.told(event)
                {
                    told.response = Some((ts_us, data));
                }
            }
            "ResourceFinish" => {
                let finish: Option<Args<FinishData>> = event.args();
                if let Some(told) = self.told(event) {
                    told.finish = Some((ts_us, finish.and_then(|args| args.data.finish_time)));
                }
            }
            "ResourceMarkAsCached" => {
                if let Some(told) = self.told(event) {
                    told.is_cached = true;
                }
            }
            _ => {}
        }
    }

    fn told(&mut self, event: &Event) -> Option<&mut Told> {
        let id = event.args::<Args<Id>>()?.data.request_id;
        let at = *self.by_id.entry(id).or_insert_with_key(|id| {
            self.in_order.push((id.clone(), Told::default()));
            self.in_order.len() - 1
        });
        self.in_order.get_mut(at).map(|(_, told)| told)
    }

    /// In the order in which the trace first tells of them.
    pub(crate) fn all(self) -> Vec<Fetch> {
        self.in_order
            .into_iter()
            .filter_map(|(id, told)| told.fetch(id))
            .collect()
    }
}

impl Told {
    fn fetch(mut self, id: String) -> Option<Fetch> {
        let first_us = self.sent.first()?.0;
        let (last_us, last) = self.sent.pop()?;
        let redirected_from = self.sent.into_iter().map(|(_, data)| data.url).collect();
        let start_us = self.will_send_us.first().copied().unwrap_or(first_us);
        let end_redirect_us = self.will_send_us.last().copied().unwrap_or(last_us);
        let end_us = self.finish.map_or(end_redirect_us, |(ts_us, _)| ts_us);
        let finish_s = self.finish.and_then(|(_, finish_s)| finish_s);
        let response = self.response.map(|(_, response)| response);
        let (mime_type, timing) = response.map_or((None, None), |response| {
            (response.mime_type, response.timing)
        });
        let initiator = last.initiator.unwrap_or(Initiator {
            kind: None,
            url: None,
        });
        Some(Fetch {
            id,
            url: last.url,
            redirected_from,
            resource_type: last.resource_type.unwrap_or_else(|| "Other".to_owned()),
            mime_type: mime_type.unwrap_or_default(),
            start_us,
            end_us,
            finish_us: finish_s
                .filter(|seconds| *seconds != 0.0)
                .map_or(end_us, |seconds| seconds * 1e6),
            first_byte_us: timing
                .filter(|_| !self.is_cached)
                .and_then(Timing::first_byte_us),
            is_preload: last.is_link_preload == Some(true),
            priority_hint: last
                .fetch_priority_hint
                .unwrap_or_else(|| "auto".to_owned()),
            initiator_type: initiator.kind.unwrap_or_default(),
            initiator_url: initiator.url.unwrap_or_default(),
        })
    }
}

impl Timing {
    fn first_byte_us(self) -> Option<f64> {
        let headers_ms = self.receive_headers_start.or(self.receive_headers_end)?;
        Some(self.request_time * 1e6 + headers_ms * 1e3)
    }
}
