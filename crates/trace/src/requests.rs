//! Network requests in one form for both sources, the trace and the protocol log.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::{Event, WithData};
use crate::exchanges::Exchange;
use crate::frames::Frames;
use crate::timing::ResourceTiming;

/// One request; a redirect is a request of its own. Times are milliseconds of Chromium's monotonic
/// clock, the same as the trace's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    pub id: String,
    pub url: String,
    pub method: String,
    pub frame: Option<String>,
    pub resource_type: Option<String>,
    /// Protocol as the network stack names it: `http/1.1`, `h2`, `data`, `blob` …
    pub protocol: String,
    pub status: Option<i64>,
    /// Time at which the network stack started the request, or else at which the page made it.
    pub start_ms: f64,
    /// Time of the last byte, the redirect or the failure; `None` while in flight.
    pub end_ms: Option<f64>,
    pub failed: bool,
}

impl Request {
    /// Converts an exchange of a protocol log.
    pub(crate) fn of(exchange: &Exchange) -> Self {
        let mut request = Self {
            id: exchange.id.clone(),
            url: exchange.url.clone(),
            method: exchange.method.clone(),
            frame: exchange.frame.clone(),
            resource_type: exchange.requested_type.clone(),
            start_ms: exchange.sent_s * 1000.0,
            end_ms: exchange.end_s.map(|seconds| seconds * 1000.0),
            failed: exchange.failure.is_some(),
            ..Self::default()
        };
        if let Some(response) = &exchange.response {
            let response = ReceivedResponse {
                at_ms: response.at_s * 1000.0,
                status: response.status,
                protocol: Some(response.protocol.clone()),
                timing: response.timing,
            };
            request.apply_response(response, exchange.from_memory);
        }
        request
    }

    fn apply_response(&mut self, response: ReceivedResponse, from_memory: bool) {
        self.status = response.status;
        if let Some(protocol) = response.protocol.filter(|name| !name.is_empty()) {
            self.protocol = protocol;
        }
        // A response from the memory cache did not use the network; its timing is that of the first
        // load.
        let timing = response.timing.filter(|_| !from_memory);
        let network_times = timing.and_then(|timing| timing.network_start_and_headers_ms());
        if let Some((start_ms, headers_end_ms)) = network_times {
            self.start_ms = start_ms;
            let headers_end_ms = headers_end_ms.min(response.at_ms).max(start_ms);
            self.end_ms = self.end_ms.map(|end_ms| end_ms.max(headers_end_ms));
        }
    }
}

#[derive(Debug)]
pub(crate) struct ReceivedResponse {
    pub(crate) at_ms: f64,
    pub(crate) status: Option<i64>,
    pub(crate) protocol: Option<String>,
    pub(crate) timing: Option<ResourceTiming>,
}

/// Requests of a trace by id, updated event by event. The rules are those of Lighthouse's network
/// records (core/lib/network-recorder.js, network-request.js), so that both detect network idle at
/// the same time.
#[derive(Debug, Default)]
pub(crate) struct RequestRecorder {
    requests: Vec<Entry>,
    /// Index of the latest request of an id; after a redirect, events refer to the new one.
    current: HashMap<String, usize>,
}

#[derive(Debug)]
struct Entry {
    request: Request,
    from_memory_cache: bool,
}

impl RequestRecorder {
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.current.contains_key(id)
    }

    pub(crate) fn start(&mut self, request: Request) {
        self.current.insert(request.id.clone(), self.requests.len());
        self.requests.push(Entry {
            request,
            from_memory_cache: false,
        });
    }

    pub(crate) fn redirect(&mut self, next: Request) {
        let at_ms = next.start_ms;
        if let Some(entry) = self.entry(&next.id) {
            entry.request.end_ms = Some(at_ms);
        }
        self.start(next);
    }

    pub(crate) fn serve_from_memory(&mut self, id: &str) {
        if let Some(entry) = self.entry(id) {
            entry.from_memory_cache = true;
        }
    }

    pub(crate) fn respond(&mut self, id: &str, response: ReceivedResponse) {
        let Some(entry) = self.entry(id) else {
            return;
        };
        entry
            .request
            .apply_response(response, entry.from_memory_cache);
    }

    /// Ends a request. Chromium sometimes reports this twice; the first event is the more accurate
    /// one.
    pub(crate) fn end(&mut self, id: &str, at_ms: f64, failed: bool) {
        if let Some(entry) = self.entry(id)
            && entry.request.end_ms.is_none()
        {
            entry.request.end_ms = Some(at_ms);
            entry.request.failed = failed;
        }
    }

    pub(crate) fn into_requests(self) -> Vec<Request> {
        self.requests
            .into_iter()
            .map(|entry| entry.request)
            .collect()
    }

    fn entry(&mut self, id: &str) -> Option<&mut Entry> {
        self.requests.get_mut(*self.current.get(id)?)
    }
}

/// Returns the URL's scheme as the protocol of a request that does not use the network: traces of
/// older Chromium name no protocol.
fn local_protocol(url: &str) -> &str {
    match url.split_once(':') {
        Some(("http" | "https", _)) | None => "",
        Some((scheme, _)) => scheme,
    }
}

/// The trace's network events, applied in order of time at the end of the trace.
#[derive(Debug, Default)]
pub(crate) struct RequestEvents {
    events: Vec<(f64, NetworkEvent)>,
}

#[derive(Debug)]
enum NetworkEvent {
    Sent(Request),
    Cached(String),
    Responded(String, ReceivedResponse),
    Ended(String, f64, bool),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendData {
    request_id: String,
    url: String,
    #[serde(default)]
    request_method: String,
    frame: Option<String>,
    resource_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CachedData {
    request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseData {
    request_id: String,
    status_code: Option<i64>,
    protocol: Option<String>,
    timing: Option<ResourceTiming>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FinishData {
    request_id: String,
    finish_time: Option<f64>,
    #[serde(default)]
    did_fail: bool,
}

impl RequestEvents {
    pub(crate) fn record(&mut self, event: &Event) {
        let at_ms = event.ts_us / 1000.0;
        let network_event = match event.name.as_ref() {
            "ResourceSendRequest" => event.args::<WithData<SendData>>().map(|args| {
                NetworkEvent::Sent(Request {
                    id: args.data.request_id,
                    protocol: local_protocol(&args.data.url).to_owned(),
                    url: args.data.url,
                    method: args.data.request_method,
                    frame: args.data.frame.filter(|frame| !frame.is_empty()),
                    resource_type: args.data.resource_type,
                    start_ms: at_ms,
                    ..Request::default()
                })
            }),
            "ResourceMarkAsCached" => event
                .args::<WithData<CachedData>>()
                .map(|args| NetworkEvent::Cached(args.data.request_id)),
            "ResourceReceiveResponse" => event.args::<WithData<ResponseData>>().map(|args| {
                let data = args.data;
                let response = ReceivedResponse {
                    at_ms,
                    status: data.status_code,
                    protocol: data.protocol,
                    timing: data.timing,
                };
                NetworkEvent::Responded(data.request_id, response)
            }),
            "ResourceFinish" => event.args::<WithData<FinishData>>().map(|args| {
                let measured_ms = args.data.finish_time.filter(|s| *s > 0.0);
                let end_ms = measured_ms.map_or(at_ms, |seconds| seconds * 1000.0);
                NetworkEvent::Ended(args.data.request_id, end_ms, args.data.did_fail)
            }),
            _ => None,
        };
        self.events
            .extend(network_event.map(|network_event| (event.ts_us, network_event)));
    }

    /// Returns the page's requests, without those of other tabs. Requests of workers name no frame
    /// of the page's tree.
    pub(crate) fn of_page(mut self, frames: &Frames) -> Vec<Request> {
        self.events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut recorder = RequestRecorder::default();
        for (_, network_event) in self.events {
            match network_event {
                NetworkEvent::Sent(request) if recorder.contains(&request.id) => {
                    recorder.redirect(request)
                }
                NetworkEvent::Sent(request) => recorder.start(request),
                NetworkEvent::Cached(id) => recorder.serve_from_memory(&id),
                NetworkEvent::Responded(id, response) => recorder.respond(&id, response),
                NetworkEvent::Ended(id, at_ms, failed) => recorder.end(&id, at_ms, failed),
            }
        }
        let mut requests = recorder.into_requests();
        requests.retain(|request| {
            request
                .frame
                .as_deref()
                .is_none_or(|frame| frames.contains(frame))
        });
        requests
    }
}
