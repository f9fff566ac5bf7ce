//! How messages become exchanges.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::told::{
    Answered, Data, Ended, Handshake, HandshakeAnswered, HandshakeSent, Named, OnTheWire,
    Prioritised, Received, Sent, SocketClosed, SocketCreated, count, split,
};
use super::{Exchange, Headers};

/// Exchanges in the order in which they began, as their story unfolds.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    all: Vec<Exchange>,
    /// The exchange that news under a request id is about: after a redirect, the new one.
    current: HashMap<String, usize>,
    /// Headers as they went over the wire arrive apart from the rest, in order per id.
    asked_on_wire: HashMap<String, Vec<Headers>>,
    answered_on_wire: HashMap<String, Vec<Headers>>,
}

impl Exchanges {
    /// Messages that it does not know, or that lack what is needed, are passed over.
    pub(crate) fn hear(&mut self, method: &str, params: &RawValue, target_type: &str) {
        match method {
            "Network.requestWillBeSent" => self.with(params, |all, sent: Sent| {
                all.sent(sent, target_type);
            }),
            "Network.requestWillBeSentExtraInfo" => self.with(params, |all, wire: OnTheWire| {
                let headers = all.asked_on_wire.entry(wire.request_id).or_default();
                headers.push(split(wire.headers));
            }),
            "Network.requestServedFromCache" => self.with(params, |all, served: Named| {
                all.about(&served.request_id, |exchange| exchange.from_memory = true);
            }),
            "Network.resourceChangedPriority" => self.with(params, |all, news: Prioritised| {
                all.about(&news.request_id, |exchange| {
                    exchange.priority = news.new_priority;
                });
            }),
            "Network.responseReceived" => self.with(params, |all, received: Received| {
                let (at_s, kind) = (received.timestamp, received.kind);
                let (response, has_more) = (received.response, received.has_extra_info);
                all.about(&received.request_id, |exchange| {
                    exchange.answered(response, at_s, kind, has_more);
                });
            }),
            "Network.responseReceivedExtraInfo" => self.with(params, |all, wire: OnTheWire| {
                let headers = all.answered_on_wire.entry(wire.request_id).or_default();
                headers.push(split(wire.headers));
            }),
            "Network.dataReceived" => self.with(params, |all, data: Data| {
                all.about(&data.request_id, |exchange| {
                    exchange.resource_bytes += count(data.data_length).unwrap_or_default();
                    exchange.received_bytes += count(data.encoded_data_length).unwrap_or_default();
                });
            }),
            "Network.loadingFinished" => self.ended(params, false),
            "Network.loadingFailed" => self.ended(params, true),
            other => self.hear_socket(other, params),
        }
    }

    fn hear_socket(&mut self, method: &str, params: &RawValue) {
        match method {
            "Network.webSocketCreated" => self.with(params, |all, created: SocketCreated| {
                all.begin(Exchange {
                    id: created.request_id,
                    url: created.url,
                    method: "GET".to_owned(),
                    asked_type: Some("WebSocket".to_owned()),
                    is_web_socket: true,
                    ..Exchange::default()
                });
            }),
            "Network.webSocketWillSendHandshakeRequest" => {
                self.with(params, |all, sent: Handshake<HandshakeSent>| {
                    all.about(&sent.request_id, |exchange| {
                        exchange.sent_s = sent.timestamp;
                        exchange.wall_time_s = sent.wall_time;
                        exchange.request_headers = split(sent.message.headers);
                    });
                });
            }
            "Network.webSocketHandshakeResponseReceived" => {
                self.with(params, |all, got: Handshake<HandshakeAnswered>| {
                    all.about(&got.request_id, |exchange| {
                        exchange.answer = Some(got.message.at(got.timestamp));
                    });
                });
            }
            "Network.webSocketClosed" => self.with(params, |all, closed: SocketClosed| {
                all.about(&closed.request_id, |exchange| {
                    exchange.end_s.get_or_insert(closed.timestamp);
                });
            }),
            _ => {}
        }
    }

    fn with<'a, T: Deserialize<'a>>(
        &mut self,
        params: &'a RawValue,
        hear: impl FnOnce(&mut Self, T),
    ) {
        if let Ok(told) = serde_json::from_str(params.get()) {
            hear(self, told);
        }
    }

    fn about(&mut self, id: &str, tell: impl FnOnce(&mut Exchange)) {
        let at = self.current.get(id);
        if let Some(exchange) = at.and_then(|at| self.all.get_mut(*at)) {
            tell(exchange);
        }
    }

    fn begin(&mut self, exchange: Exchange) {
        self.current.insert(exchange.id.clone(), self.all.len());
        self.all.push(exchange);
    }

    fn sent(&mut self, sent: Sent, target_type: &str) {
        let (at_s, next) = (sent.timestamp, self.all.len());
        if self.current.contains_key(&sent.request_id) {
            // The same request announced again tells nothing new.
            let Some(response) = sent.redirect_response else {
                return;
            };
            self.about(&sent.request_id, |exchange| {
                exchange.answered(response, at_s, None, sent.redirect_has_extra_info);
                exchange.end_s = Some(at_s);
                exchange.redirected_to = Some(next);
            });
        }
        self.begin(Exchange {
            id: sent.request_id,
            url: sent.request.url,
            method: sent.request.method,
            request_headers: split(sent.request.headers),
            post_data: sent.request.post_data,
            frame: sent.frame_id,
            document_url: sent.document_url.unwrap_or_default(),
            target_type: target_type.to_owned(),
            asked_type: sent.kind,
            priority: sent.request.initial_priority.clone(),
            initial_priority: sent.request.initial_priority,
            is_same_site: sent.request.is_same_site,
            initiator_url: sent.initiator.and_then(|initiator| initiator.address()),
            wall_time_s: sent.wall_time,
            sent_s: at_s,
            ..Exchange::default()
        });
    }

    /// Chromium sometimes says it twice; the first time is the better one.
    fn ended(&mut self, params: &RawValue, failed: bool) {
        self.with(params, |all, ended: Ended| {
            let id = ended.request_id.clone();
            all.about(&id, |exchange| {
                if exchange.end_s.is_none() {
                    exchange.end_s = Some(ended.timestamp);
                    exchange.wire_bytes = count(ended.encoded_data_length);
                    exchange.failure = failed.then(|| ended.failure());
                }
            });
        });
    }

    /// The nth exchange under an id that was announced to have headers of the wire gets the nth of each.
    pub(crate) fn finish(mut self) -> Vec<Exchange> {
        let mut asked = take_turns(self.asked_on_wire);
        let mut answered = take_turns(self.answered_on_wire);
        for exchange in &mut self.all {
            if !exchange.has_wire_headers && exchange.answer.is_some() {
                continue;
            }
            if let Some(headers) = asked.get_mut(&exchange.id).and_then(Iterator::next) {
                exchange.request_headers = headers;
            }
            let headers = answered.get_mut(&exchange.id).and_then(Iterator::next);
            if let Some(answer) = &mut exchange.answer {
                answer.wire_headers = headers;
            }
        }
        self.all
    }
}

impl Exchange {
    fn answered(
        &mut self,
        mut response: Answered,
        at_s: f64,
        resource_type: Option<String>,
        has_wire_headers: bool,
    ) {
        if let Some(headers) = response.request_headers.take() {
            self.request_headers = split(Some(headers));
        }
        self.has_wire_headers = has_wire_headers;
        self.answer = Some(response.at(at_s, resource_type));
    }
}

fn take_turns(
    by_id: HashMap<String, Vec<Headers>>,
) -> HashMap<String, impl Iterator<Item = Headers>> {
    by_id
        .into_iter()
        .map(|(id, all)| (id, all.into_iter()))
        .collect()
}
