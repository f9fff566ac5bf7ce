//! What went over the network during a visit, exchange by exchange, from the bundle's protocol log.
//!
//! Request ids are unique over all sessions of a visit: a frame in a process of its own is announced
//! by its parent's session and answered in its own, under one id. The rules by which events become
//! exchanges are those of Lighthouse's network records (core/lib/network-recorder.js,
//! network-request.js).

mod told;

use std::collections::{BTreeMap, HashMap};

use plumbline_bundle::Bundle;
use serde_json::value::RawValue;
use url::Url;

use told::{
    Created, Data, Ended, Failed, Handshake, HandshakeAnswered, HandshakeSent, Message, MoreAsked,
    MoreReceived, Received, Sent, Served, Stopped, read,
};

/// Header names and values as they were sent; a name that came twice is two entries.
pub(crate) type Headers = Vec<(String, String)>;

/// All exchanges in the order in which they began; a redirect ends one and begins the next.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) exchanges: Vec<Exchange>,
    /// The exchange that news under a request id is about: after a redirect, the new one.
    current: HashMap<String, usize>,
    /// Headers as they went over the wire arrive apart from the rest, in order per id.
    more_asked: BTreeMap<String, Vec<Headers>>,
    more_received: BTreeMap<String, Vec<Headers>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) method: String,
    pub(crate) request_headers: Headers,
    pub(crate) post_data: Option<String>,
    /// As the protocol names it; empty for what was redirected.
    pub(crate) resource_type: String,
    pub(crate) priority: String,
    pub(crate) target_type: String,
    /// Whether Chromium counts it to the same site as the page.
    pub(crate) is_same_site: Option<bool>,
    /// When it was asked for: seconds since 1970, and on Chromium's monotonic clock.
    pub(crate) wall_time_s: Option<f64>,
    pub(crate) sent_s: f64,
    pub(crate) answer: Option<Answer>,
    pub(crate) end_s: Option<f64>,
    /// Of the body, as the page sees it.
    pub(crate) resource_bytes: u64,
    /// Over the wire, headers included.
    pub(crate) transfer_bytes: u64,
    pub(crate) failure: Option<String>,
    pub(crate) from_memory: bool,
    pub(crate) redirected_to: Option<String>,
    /// Whether the wire's own headers were announced for it.
    has_more: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) at_s: f64,
    pub(crate) status: i64,
    pub(crate) status_text: String,
    pub(crate) headers: Headers,
    pub(crate) mime_type: String,
    pub(crate) protocol: String,
    pub(crate) connection_id: Option<u64>,
    pub(crate) header_bytes: u64,
    pub(crate) from_disk: bool,
    pub(crate) from_service_worker: bool,
    pub(crate) timing: Option<Timing>,
}

/// Milliseconds since `request_time_s`; none where there was no such phase.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    pub(crate) request_time_s: f64,
    pub(crate) dns: Option<(f64, f64)>,
    pub(crate) connect: Option<(f64, f64)>,
    pub(crate) ssl: Option<(f64, f64)>,
    pub(crate) send: Option<(f64, f64)>,
    pub(crate) headers_end: Option<f64>,
}

impl Network {
    /// An unreadable log is an empty one: the judge has already said so in the report.
    pub(crate) fn of(bundle: &Bundle) -> Self {
        let messages: Vec<Message> = serde_json::from_slice(&bundle.log).unwrap_or_default();
        let mut network = Self::default();
        for message in &messages {
            if let Some(params) = message.params {
                network.hear(message, params);
            }
        }
        network.give_out_wire_headers();
        network
    }

    fn hear(&mut self, message: &Message, params: &RawValue) {
        match message.method.as_ref() {
            "Network.requestWillBeSent" => self.with(params, |n, sent: Sent| {
                n.sent(sent, message.target_type.as_deref().unwrap_or_default());
            }),
            "Network.requestWillBeSentExtraInfo" => self.with(params, |n, more: MoreAsked| {
                n.more_asked
                    .entry(more.request_id)
                    .or_default()
                    .push(split(more.headers));
            }),
            "Network.requestServedFromCache" => self.with(params, |n, served: Served| {
                n.about(&served.request_id, |exchange| exchange.from_memory = true);
            }),
            "Network.responseReceived" => self.with(params, |n, received: Received| {
                n.received(received);
            }),
            "Network.responseReceivedExtraInfo" => self.with(params, |n, more: MoreReceived| {
                n.more_received
                    .entry(more.request_id)
                    .or_default()
                    .push(split(more.headers));
            }),
            "Network.dataReceived" => self.with(params, |n, data: Data| {
                n.about(&data.request_id, |exchange| {
                    exchange.resource_bytes += data.data_length;
                    exchange.transfer_bytes += data.encoded_data_length;
                });
            }),
            "Network.loadingFinished" => self.with(params, |n, ended: Ended| {
                n.about(&ended.request_id, |exchange| exchange.finish(&ended));
            }),
            "Network.loadingFailed" => self.with(params, |n, failed: Failed| {
                n.about(&failed.request_id, |exchange| exchange.fail(&failed));
            }),
            other => self.hear_socket(other, params),
        }
    }

    fn hear_socket(&mut self, method: &str, params: &RawValue) {
        match method {
            "Network.webSocketCreated" => self.with(params, |n, created: Created| {
                n.begin(Exchange {
                    id: created.request_id,
                    url: created.url,
                    method: "GET".to_owned(),
                    resource_type: "WebSocket".to_owned(),
                    ..Exchange::default()
                });
            }),
            "Network.webSocketWillSendHandshakeRequest" => {
                self.with(params, |n, sent: Handshake<HandshakeSent>| {
                    n.about(&sent.request_id, |exchange| {
                        exchange.sent_s = sent.timestamp;
                        exchange.wall_time_s = sent.wall_time;
                        exchange.request_headers = split(sent.message.headers);
                    });
                });
            }
            "Network.webSocketHandshakeResponseReceived" => {
                self.with(params, |n, got: Handshake<HandshakeAnswered>| {
                    n.about(&got.request_id, |exchange| {
                        exchange.answer = Some(got.message.at(got.timestamp));
                    });
                });
            }
            "Network.webSocketClosed" => self.with(params, |n, stopped: Stopped| {
                n.about(&stopped.request_id, |exchange| {
                    exchange.end_s.get_or_insert(stopped.timestamp);
                });
            }),
            _ => {}
        }
    }

    /// Messages that lack what is needed are passed over.
    fn with<'a, T: serde::Deserialize<'a>>(
        &mut self,
        params: &'a RawValue,
        hear: impl FnOnce(&mut Self, T),
    ) {
        if let Some(told) = read(params) {
            hear(self, told);
        }
    }

    fn about(&mut self, id: &str, tell: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self
            .current
            .get(id)
            .and_then(|at| self.exchanges.get_mut(*at))
        {
            tell(exchange);
        }
    }

    fn begin(&mut self, exchange: Exchange) {
        self.current
            .insert(exchange.id.clone(), self.exchanges.len());
        self.exchanges.push(exchange);
    }

    fn sent(&mut self, sent: Sent, target_type: &str) {
        if self.current.contains_key(&sent.request_id) {
            // The same request announced again tells nothing new.
            let Some(response) = sent.redirect_response else {
                return;
            };
            let to = sent.request.url.clone();
            self.about(&sent.request_id, |exchange| {
                exchange.transfer_bytes = response.header_bytes();
                exchange.answer = Some(response.at(sent.timestamp));
                exchange.has_more = sent.redirect_has_extra_info;
                exchange.end_s = Some(sent.timestamp);
                exchange.resource_type.clear();
                exchange.redirected_to = Some(to);
            });
        }
        self.begin(Exchange {
            id: sent.request_id,
            url: sent.request.url,
            method: sent.request.method,
            request_headers: split(sent.request.headers),
            post_data: sent.request.post_data,
            priority: sent.request.initial_priority,
            is_same_site: sent.request.is_same_site,
            resource_type: sent.kind.unwrap_or_default(),
            target_type: target_type.to_owned(),
            wall_time_s: sent.wall_time,
            sent_s: sent.timestamp,
            ..Exchange::default()
        });
    }

    fn received(&mut self, received: Received) {
        let Received {
            request_id,
            timestamp,
            kind,
            response,
            has_extra_info,
        } = received;
        self.about(&request_id, |exchange| {
            if let Some(kind) = kind {
                exchange.resource_type = kind;
            }
            if let Some(headers) = response.request_headers.clone() {
                exchange.request_headers = split(headers);
            }
            exchange.has_more = has_extra_info;
            exchange.transfer_bytes += response.header_bytes();
            exchange.answer = Some(response.at(timestamp));
        });
    }

    /// The nth exchange under an id that was announced to have them gets the nth of each.
    fn give_out_wire_headers(&mut self) {
        let mut asked = take_turns(std::mem::take(&mut self.more_asked));
        let mut received = take_turns(std::mem::take(&mut self.more_received));
        for exchange in &mut self.exchanges {
            let unanswered = exchange.answer.is_none();
            if !exchange.has_more && !unanswered {
                continue;
            }
            if let Some(headers) = asked.get_mut(&exchange.id).and_then(Iterator::next) {
                exchange.request_headers = headers;
            }
            let headers = received.get_mut(&exchange.id).and_then(Iterator::next);
            if let (Some(answer), Some(headers)) = (&mut exchange.answer, headers) {
                answer.headers = headers;
            }
        }
    }
}

/// When the visit's first request was made, in milliseconds since 1970.
pub fn visited_at_ms(bundle: &Bundle) -> Option<i64> {
    let network = Network::of(bundle);
    let wall_time_s = network
        .exchanges
        .iter()
        .find_map(|exchange| exchange.wall_time_s)?;
    Some((wall_time_s * 1e3) as i64)
}

type Turns = BTreeMap<String, std::vec::IntoIter<Headers>>;

fn take_turns(by_id: BTreeMap<String, Vec<Headers>>) -> Turns {
    by_id
        .into_iter()
        .map(|(id, all)| (id, all.into_iter()))
        .collect()
}

/// The protocol joins the values of a name that came more than once by line breaks.
fn split(headers: BTreeMap<String, String>) -> Headers {
    headers
        .into_iter()
        .flat_map(|(name, values)| {
            let values: Vec<String> = values.split('\n').map(str::to_owned).collect();
            values.into_iter().map(move |value| (name.clone(), value))
        })
        .collect()
}

impl Exchange {
    fn finish(&mut self, ended: &Ended) {
        if self.end_s.is_some() {
            return;
        }
        self.end_s = Some(ended.timestamp);
        // Chromium's own count; it says -1 where it does not know.
        if let Ok(bytes) = u64::try_from(ended.encoded_data_length as i64)
            && ended.encoded_data_length >= 0.0
        {
            self.transfer_bytes = bytes;
        }
    }

    fn fail(&mut self, failed: &Failed) {
        if self.end_s.is_none() {
            self.end_s = Some(failed.timestamp);
            self.failure = Some(match &failed.blocked_reason {
                Some(reason) => format!("{} ({reason})", failed.error_text),
                None => failed.error_text.clone(),
            });
        }
    }

    /// Whether anything of it could have gone over a network.
    pub(crate) fn is_on_network(&self) -> bool {
        let scheme = self.url.split(':').next().unwrap_or_default();
        matches!(scheme, "http" | "https" | "ws" | "wss")
    }

    pub(crate) fn is_cached(&self) -> bool {
        self.from_memory || self.answer.as_ref().is_some_and(|answer| answer.from_disk)
    }

    pub(crate) fn is_first_party(&self, page: Option<&Url>) -> bool {
        let host = Url::parse(&self.url).ok();
        let host = host.as_ref().and_then(Url::host_str);
        self.is_same_site == Some(true) || host.is_some() && host == page.and_then(Url::host_str)
    }

    /// Lighthouse's names for what a budget counts (core/computed/resource-summary.js).
    pub(crate) fn budget_type(&self) -> &'static str {
        match self.resource_type.as_str() {
            "Stylesheet" => "stylesheet",
            "Image" => "image",
            "Media" => "media",
            "Font" => "font",
            "Script" => "script",
            "Document" => "document",
            _ => "other",
        }
    }
}

impl Answer {
    pub(crate) fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests;
