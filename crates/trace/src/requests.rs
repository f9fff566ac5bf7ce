//! Network requests, from the trace or from a protocol log: both tell the same story in different words.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::{Event, WithData};
use crate::exchanges::Exchange;
use crate::frames::Frames;
use crate::timing::ResourceTiming;

/// One request, a redirect being two. Times are milliseconds of Chromium's monotonic clock, the trace's own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    pub id: String,
    pub url: String,
    pub method: String,
    pub frame: Option<String>,
    pub resource_type: Option<String>,
    /// As the network stack names it: `http/1.1`, `h2`, `data`, `blob` …
    pub protocol: String,
    pub status: Option<i64>,
    /// When the network stack took it up; when the page asked for it, if no better is known.
    pub start_ms: f64,
    /// When the last byte came, or the redirect, or the failure; nothing while it was still in flight.
    pub end_ms: Option<f64>,
    pub failed: bool,
}

impl Request {
    /// What a protocol log tells of it.
    pub(crate) fn of(exchange: &Exchange) -> Self {
        let mut request = Self {
            id: exchange.id.clone(),
            url: exchange.url.clone(),
            method: exchange.method.clone(),
            frame: exchange.frame.clone(),
            resource_type: exchange.asked_type.clone(),
            start_ms: exchange.sent_s * 1000.0,
            end_ms: exchange.end_s.map(|seconds| seconds * 1000.0),
            failed: exchange.failure.is_some(),
            ..Self::default()
        };
        if let Some(answer) = &exchange.answer {
            let response = Response {
                at_ms: answer.at_s * 1000.0,
                status: answer.status,
                protocol: Some(answer.protocol.clone()),
                timing: answer.timing,
            };
            request.answer(response, exchange.from_memory);
        }
        request
    }

    fn answer(&mut self, response: Response, from_memory: bool) {
        self.status = response.status;
        if let Some(protocol) = response.protocol.filter(|name| !name.is_empty()) {
            self.protocol = protocol;
        }
        // What memory answered never saw the network; its figures are those of the first load.
        let timing = response.timing.filter(|_| !from_memory);
        let taken_up = timing.and_then(|timing| timing.taken_up_ms());
        if let Some((start_ms, headers_end_ms)) = taken_up {
            self.start_ms = start_ms;
            let headers_end_ms = headers_end_ms.min(response.at_ms).max(start_ms);
            self.end_ms = self.end_ms.map(|end_ms| end_ms.max(headers_end_ms));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) at_ms: f64,
    pub(crate) status: Option<i64>,
    pub(crate) protocol: Option<String>,
    pub(crate) timing: Option<ResourceTiming>,
}

/// Requests of a trace by id as their story unfolds. The rules are those of Lighthouse's network records
/// (core/lib/network-recorder.js, network-request.js), so that both find the network quiet at the same time.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    requests: Vec<Entry>,
    /// The latest request under an id: after a redirect all news is about the new one.
    current: HashMap<String, usize>,
}

#[derive(Debug)]
struct Entry {
    request: Request,
    from_memory_cache: bool,
}

impl Ledger {
    pub(crate) fn knows(&self, id: &str) -> bool {
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

    pub(crate) fn respond(&mut self, id: &str, response: Response) {
        let Some(entry) = self.entry(id) else {
            return;
        };
        entry.request.answer(response, entry.from_memory_cache);
    }

    /// Chromium sometimes says it twice; the first time is the better one.
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

/// What never goes over the network names itself in its address: older Chromium's traces name no protocol.
fn own_scheme(url: &str) -> &str {
    match url.split_once(':') {
        Some(("http" | "https", _)) | None => "",
        Some((scheme, _)) => scheme,
    }
}

/// The trace's network events, played in order of time once all are known.
#[derive(Debug, Default)]
pub(crate) struct RequestEvents {
    played_later: Vec<(f64, Told)>,
}

#[derive(Debug)]
enum Told {
    Sent(Request),
    Cached(String),
    Responded(String, Response),
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
    pub(crate) fn see(&mut self, event: &Event) {
        let at_ms = event.ts_us / 1000.0;
        let told = match event.name.as_ref() {
            "ResourceSendRequest" => event.args::<WithData<SendData>>().map(|args| {
                Told::Sent(Request {
                    id: args.data.request_id,
                    protocol: own_scheme(&args.data.url).to_owned(),
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
                .map(|args| Told::Cached(args.data.request_id)),
            "ResourceReceiveResponse" => event.args::<WithData<ResponseData>>().map(|args| {
                let data = args.data;
                let response = Response {
                    at_ms,
                    status: data.status_code,
                    protocol: data.protocol,
                    timing: data.timing,
                };
                Told::Responded(data.request_id, response)
            }),
            "ResourceFinish" => event.args::<WithData<FinishData>>().map(|args| {
                let measured_ms = args.data.finish_time.filter(|s| *s > 0.0);
                let end_ms = measured_ms.map_or(at_ms, |seconds| seconds * 1000.0);
                Told::Ended(args.data.request_id, end_ms, args.data.did_fail)
            }),
            _ => None,
        };
        self.played_later
            .extend(told.map(|told| (event.ts_us, told)));
    }

    /// Requests of other tabs are not the page's. Those of workers name no frame of the page's tree.
    pub(crate) fn of_page(mut self, frames: &Frames) -> Vec<Request> {
        self.played_later.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ledger = Ledger::default();
        for (_, told) in self.played_later {
            match told {
                Told::Sent(request) if ledger.knows(&request.id) => ledger.redirect(request),
                Told::Sent(request) => ledger.start(request),
                Told::Cached(id) => ledger.serve_from_memory(&id),
                Told::Responded(id, response) => ledger.respond(&id, response),
                Told::Ended(id, at_ms, failed) => ledger.end(&id, at_ms, failed),
            }
        }
        let mut requests = ledger.into_requests();
        requests.retain(|request| {
            request
                .frame
                .as_deref()
                .is_none_or(|frame| frames.contains(frame))
        });
        requests
    }
}
