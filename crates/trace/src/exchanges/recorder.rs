//! Builds exchanges from protocol messages.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::messages::{
    DataReceived, Handshake, HandshakeRequest, HandshakeResponse, LoadingEnded, PriorityChange,
    RequestId, RequestSent, ResponseData, ResponseReceived, SocketClosed, SocketCreated,
    WireHeaders, count, split_values,
};
use super::{Exchange, Headers};

/// Exchanges in order of their start, updated message by message.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    all: Vec<Exchange>,
    /// Index of the exchange that messages with a request id refer to; after a redirect, the new
    /// one.
    current: HashMap<String, usize>,
    /// Request headers as sent over the wire. They arrive in separate messages, in order per id.
    wire_request_headers: HashMap<String, Vec<Headers>>,
    wire_response_headers: HashMap<String, Vec<Headers>>,
}

impl Exchanges {
    /// Applies a message. Unknown messages and messages with missing fields are ignored.
    pub(crate) fn apply(&mut self, method: &str, params: &RawValue, target_type: &str) {
        match method {
            "Network.requestWillBeSent" => self.with(params, |all, sent: RequestSent| {
                all.start_request(sent, target_type);
            }),
            "Network.requestWillBeSentExtraInfo" => self.with(params, |all, wire: WireHeaders| {
                let headers = all.wire_request_headers.entry(wire.request_id).or_default();
                headers.push(split_values(wire.headers));
            }),
            "Network.requestServedFromCache" => self.with(params, |all, served: RequestId| {
                all.update(&served.request_id, |exchange| exchange.from_memory = true);
            }),
            "Network.resourceChangedPriority" => {
                self.with(params, |all, change: PriorityChange| {
                    all.update(&change.request_id, |exchange| {
                        exchange.priority = change.new_priority;
                    });
                })
            }
            "Network.responseReceived" => self.with(params, |all, received: ResponseReceived| {
                let (at_us, kind) = (received.timestamp_us, received.kind);
                let (response, has_more) = (received.response, received.has_extra_info);
                all.update(&received.request_id, |exchange| {
                    exchange.set_response(response, at_us, kind, has_more);
                });
            }),
            "Network.responseReceivedExtraInfo" => self.with(params, |all, wire: WireHeaders| {
                let headers = all
                    .wire_response_headers
                    .entry(wire.request_id)
                    .or_default();
                headers.push(split_values(wire.headers));
            }),
            "Network.dataReceived" => self.with(params, |all, data: DataReceived| {
                all.update(&data.request_id, |exchange| {
                    exchange.resource_bytes += count(data.data_length).unwrap_or_default();
                    exchange.received_bytes += count(data.encoded_data_length).unwrap_or_default();
                });
            }),
            "Network.loadingFinished" => self.end(params, false),
            "Network.loadingFailed" => self.end(params, true),
            other => self.apply_socket(other, params),
        }
    }

    fn apply_socket(&mut self, method: &str, params: &RawValue) {
        match method {
            "Network.webSocketCreated" => self.with(params, |all, created: SocketCreated| {
                all.begin(Exchange {
                    id: created.request_id,
                    url: created.url,
                    method: "GET".to_owned(),
                    requested_type: Some("WebSocket".to_owned()),
                    is_web_socket: true,
                    ..Exchange::default()
                });
            }),
            "Network.webSocketWillSendHandshakeRequest" => {
                self.with(params, |all, sent: Handshake<HandshakeRequest>| {
                    all.update(&sent.request_id, |exchange| {
                        exchange.sent_us = sent.timestamp_us;
                        exchange.wall_time_s = sent.wall_time;
                        exchange.request_headers = split_values(sent.message.headers);
                    });
                });
            }
            "Network.webSocketHandshakeResponseReceived" => {
                self.with(params, |all, response: Handshake<HandshakeResponse>| {
                    all.update(&response.request_id, |exchange| {
                        exchange.response =
                            Some(response.message.into_response(response.timestamp_us));
                    });
                });
            }
            "Network.webSocketClosed" => self.with(params, |all, closed: SocketClosed| {
                all.update(&closed.request_id, |exchange| {
                    exchange.end_us.get_or_insert(closed.timestamp_us);
                });
            }),
            _ => {}
        }
    }

    fn with<'a, T: Deserialize<'a>>(
        &mut self,
        params: &'a RawValue,
        apply: impl FnOnce(&mut Self, T),
    ) {
        if let Ok(message) = serde_json::from_str(params.get()) {
            apply(self, message);
        }
    }

    fn update(&mut self, id: &str, change: impl FnOnce(&mut Exchange)) {
        let index = self.current.get(id);
        if let Some(exchange) = index.and_then(|index| self.all.get_mut(*index)) {
            change(exchange);
        }
    }

    fn begin(&mut self, exchange: Exchange) {
        self.current.insert(exchange.id.clone(), self.all.len());
        self.all.push(exchange);
    }

    fn start_request(&mut self, sent: RequestSent, target_type: &str) {
        let (at_us, next) = (sent.timestamp_us, self.all.len());
        if self.current.contains_key(&sent.request_id) {
            // A repeated announcement of the same request has no new information.
            let Some(response) = sent.redirect_response else {
                return;
            };
            self.update(&sent.request_id, |exchange| {
                exchange.set_response(response, at_us, None, sent.redirect_has_extra_info);
                exchange.end_us = Some(at_us);
                exchange.redirected_to = Some(next);
            });
        }
        let initiator_kind = sent
            .initiator
            .as_ref()
            .map(|initiator| initiator.kind.clone());
        self.begin(Exchange {
            id: sent.request_id,
            url: sent.request.url,
            method: sent.request.method,
            request_headers: split_values(sent.request.headers),
            post_data: sent.request.post_data,
            frame: sent.frame_id,
            document_url: sent.document_url.unwrap_or_default(),
            target_type: target_type.to_owned(),
            requested_type: sent.kind,
            priority: sent.request.initial_priority.clone(),
            initial_priority: sent.request.initial_priority,
            is_same_site: sent.request.is_same_site,
            initiator_kind: initiator_kind.unwrap_or_default(),
            initiator_url: sent
                .initiator
                .and_then(|initiator| initiator.initiator_url()),
            wall_time_s: sent.wall_time,
            sent_us: at_us,
            ..Exchange::default()
        });
    }

    /// Ends an exchange. Chromium sometimes sends this twice; the first message is the more
    /// accurate one.
    fn end(&mut self, params: &RawValue, failed: bool) {
        self.with(params, |all, ended: LoadingEnded| {
            let id = ended.request_id.clone();
            all.update(&id, |exchange| {
                if exchange.end_us.is_none() {
                    exchange.end_us = Some(ended.timestamp_us);
                    exchange.wire_bytes = count(ended.encoded_data_length);
                    exchange.failure = failed
                        .then(|| ended.into_failure())
                        .filter(|failure| !exchange.has_unwanted_body(failure));
                }
            });
        });
    }

    /// Assigns wire headers and returns the exchanges. The nth exchange of an id for which wire
    /// headers were announced gets the nth set of each.
    pub(crate) fn finish(mut self) -> Vec<Exchange> {
        let mut request_headers = iterators(self.wire_request_headers);
        let mut response_headers = iterators(self.wire_response_headers);
        for exchange in &mut self.all {
            if !exchange.has_wire_headers && exchange.response.is_some() {
                continue;
            }
            if let Some(headers) = request_headers
                .get_mut(&exchange.id)
                .and_then(Iterator::next)
            {
                exchange.request_headers = headers;
            }
            let headers = response_headers
                .get_mut(&exchange.id)
                .and_then(Iterator::next);
            if let Some(response) = &mut exchange.response {
                response.wire_headers = headers;
            }
        }
        self.all
    }
}

impl Exchange {
    fn set_response(
        &mut self,
        mut response: ResponseData,
        at_us: f64,
        resource_type: Option<String>,
        has_wire_headers: bool,
    ) {
        if let Some(headers) = response.request_headers.take() {
            self.request_headers = split_values(Some(headers));
        }
        self.has_wire_headers = has_wire_headers;
        self.response = Some(response.into_response(at_us, resource_type));
    }
}

fn iterators(
    by_id: HashMap<String, Vec<Headers>>,
) -> HashMap<String, impl Iterator<Item = Headers>> {
    by_id
        .into_iter()
        .map(|(id, all)| (id, all.into_iter()))
        .collect()
}
