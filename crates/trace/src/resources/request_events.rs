//! The events of one request, and the exchanges and the resource built from them.

use std::sync::Arc;

use serde::Deserialize;

use super::{Redirect, Resource};
use crate::event::{TraceEvent, WithData};
use crate::exchanges::{Exchange, LoadFailure, NO_REFERRER, Response, count};
use crate::timing::ResourceTiming;

#[derive(Debug, Default)]
pub(super) struct RequestEvents {
    first_us: Option<f64>,
    process_id: Option<i64>,
    will_send_us: Vec<f64>,
    sent: Vec<(f64, Sent)>,
    response: Option<(f64, Received)>,
    finishes: Vec<(f64, Finish)>,
    priority: Option<(f64, String)>,
    blocking: Option<(f64, String)>,
    is_memory_cached: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    url: String,
    #[serde(default)]
    request_method: String,
    #[serde(default)]
    frame: String,
    #[serde(default)]
    priority: String,
    resource_type: Option<String>,
    render_blocking: Option<String>,
    fetch_priority_hint: Option<String>,
    #[serde(default)]
    is_link_preload: bool,
    initiator: Option<Initiator>,
    #[serde(default)]
    stack_trace: Vec<CallFrame>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initiator {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    fetch_type: String,
}

#[derive(Debug, Deserialize)]
struct CallFrame {
    #[serde(default)]
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Received {
    status_code: Option<i64>,
    #[serde(default)]
    mime_type: String,
    protocol: Option<String>,
    #[serde(default)]
    from_cache: bool,
    #[serde(default)]
    from_service_worker: bool,
    headers: Option<Vec<Header>>,
    timing: Option<ResourceTiming>,
    /// The size of the response headers.
    encoded_data_length: Option<f64>,
    connection_id: Option<f64>,
    #[serde(default)]
    connection_reused: bool,
}

#[derive(Debug, Deserialize)]
struct Header {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finish {
    encoded_data_length: Option<f64>,
    decoded_body_length: Option<f64>,
    #[serde(default)]
    did_fail: bool,
    finish_time: Option<f64>,
}

#[derive(Deserialize)]
struct PriorityChange {
    priority: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blocking {
    render_blocking: String,
}

/// Replaces `current` by the event's data unless `current` is later.
fn latest<T: for<'a> Deserialize<'a>>(
    current: &mut Option<(f64, T)>,
    at_us: f64,
    event: &TraceEvent,
) {
    if current.as_ref().is_none_or(|(us, _)| *us <= at_us)
        && let Some(args) = event.args::<WithData<T>>()
    {
        *current = Some((at_us, args.data));
    }
}

/// Schemes of resources that are loaded; others, such as `data:`, never leave the page.
const SCHEMES: [&str; 5] = ["blob:", "file:", "filesystem:", "http:", "https:"];

impl RequestEvents {
    pub(super) fn record(&mut self, event: &TraceEvent) {
        let at_us = event.ts_us;
        self.first_us = Some(self.first_us.map_or(at_us, |first_us| first_us.min(at_us)));
        match event.name.as_ref() {
            "ResourceWillSendRequest" => self.will_send_us.push(at_us),
            "ResourceSendRequest" => {
                let sent = event.args::<WithData<Sent>>();
                self.process_id = Some(event.process);
                self.sent.extend(sent.map(|args| (at_us, args.data)));
            }
            "ResourceReceiveResponse" => latest(&mut self.response, at_us, event),
            "ResourceFinish" => {
                let finish = event.args::<WithData<Finish>>();
                self.finishes.extend(finish.map(|args| (at_us, args.data)));
            }
            "ResourceMarkAsCached" => self.is_memory_cached = true,
            "ResourceChangePriority" => {
                let mut changed: Option<(f64, PriorityChange)> = None;
                latest(&mut changed, at_us, event);
                if self.priority.as_ref().is_none_or(|(us, _)| *us <= at_us) {
                    self.priority = changed.map(|(us, data)| (us, data.priority));
                }
            }
            _ => {
                let mut changed: Option<(f64, Blocking)> = None;
                latest(&mut changed, at_us, event);
                if self.blocking.as_ref().is_none_or(|(us, _)| *us <= at_us) {
                    self.blocking = changed.map(|(us, data)| (us, data.render_blocking));
                }
            }
        }
    }

    pub(super) fn first_us(&self) -> f64 {
        self.first_us.unwrap_or(0.0)
    }

    /// Builds the exchanges of the request and its redirects, in order, and the resource. There is
    /// no resource if the URL is not one that is loaded, and nothing if no request was sent.
    pub(super) fn resolve(mut self, id: &str) -> (Vec<Arc<Exchange>>, Option<Resource>) {
        self.sent.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.will_send_us.sort_by(f64::total_cmp);
        self.finishes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut exchanges: Vec<Exchange> = self
            .sent
            .iter()
            .map(|(sent_us, sent)| sent.exchange(id, *sent_us))
            .collect();
        for at in 1..exchanges.len() {
            exchanges[at - 1].end_us = Some(exchanges[at].sent_us);
        }
        if let Some(last) = exchanges.last_mut() {
            self.complete(last);
        }
        let exchanges: Vec<Arc<Exchange>> = exchanges.into_iter().map(Arc::new).collect();
        let resource = self.resource(&exchanges);
        (exchanges, resource)
    }

    /// Adds the response and the end to the last exchange. Chromium sometimes reports the end
    /// twice: the first event has the more accurate time, the last one the sizes.
    fn complete(&mut self, exchange: &mut Exchange) {
        exchange.from_memory = self.is_memory_cached;
        if let Some((_, priority)) = self.priority.take() {
            exchange.priority = priority;
        }
        if let Some((first_us, first)) = self.finishes.first() {
            let finish_s = first.finish_time.filter(|seconds| *seconds > 0.0);
            exchange.end_us = Some(finish_s.map_or(*first_us, |seconds| seconds * 1e6));
        }
        exchange.response = self
            .response
            .as_mut()
            .map(|(at_us, received)| received.take_response(*at_us));
        if let Some((_, last)) = self.finishes.last() {
            // A failed request has no total; then the response headers count, as in the protocol.
            let total = count(last.encoded_data_length);
            exchange.wire_bytes = total.filter(|bytes| !last.did_fail || *bytes > 0);
            exchange.resource_bytes = count(last.decoded_body_length).unwrap_or_default();
            exchange.failure = last
                .did_fail
                .then(LoadFailure::default)
                .filter(|failure| !exchange.has_unwanted_body(failure));
        }
    }

    fn resource(self, exchanges: &[Arc<Exchange>]) -> Option<Resource> {
        let (first, last) = (exchanges.first()?, exchanges.last()?);
        if !SCHEMES.iter().any(|scheme| first.url.starts_with(scheme)) {
            return None;
        }
        let redirects = self.redirects();
        let start_us = self.will_send_us.first().copied().unwrap_or(first.sent_us);
        let redirected_us = self.will_send_us.last().copied().unwrap_or(last.sent_us);
        let finish = self.finishes.last();
        let notified_us = finish.map_or(redirected_us, |(us, _)| *us);
        let finish_us = finish
            .and_then(|(_, finish)| finish.finish_time)
            .filter(|seconds| *seconds != 0.0)
            .map_or(notified_us, |seconds| seconds * 1e6);
        let (_, sent) = self.sent.into_iter().next_back()?;
        let initiators = sent.initiators();
        let initiator = sent.initiator.unwrap_or_default();
        Some(Resource {
            exchange: Arc::clone(last),
            process_id: self.process_id,
            start_us,
            notified_us,
            finish_us,
            send_start_us: last.timing().map_or(start_us, |timing| {
                timing.request_time_us + timing.send_start_us
            }),
            redirection_us: redirected_us - start_us,
            redirects,
            fetch_priority_hint: sent
                .fetch_priority_hint
                .unwrap_or_else(|| "auto".to_owned()),
            render_blocking: self
                .blocking
                .map(|(_, blocking)| blocking)
                .or(sent.render_blocking)
                .unwrap_or_else(|| "non_blocking".to_owned()),
            is_link_preload: sent.is_link_preload,
            initiator_kind: initiator.kind,
            fetch_kind: initiator.fetch_type,
            initiators,
            connection_reused: self
                .response
                .is_some_and(|(_, received)| received.connection_reused),
        })
    }

    fn redirects(&self) -> Vec<Redirect> {
        self.sent
            .windows(2)
            .enumerate()
            .map(|(at, pair)| {
                let sent_us = self.will_send_us.get(at..at + 2);
                let (from_us, to_us) = sent_us.map_or((pair[0].0, pair[1].0), |us| (us[0], us[1]));
                Redirect {
                    url: pair[0].1.url.clone(),
                    start_us: from_us,
                    dur_us: to_us - from_us,
                }
            })
            .collect()
    }
}

impl Sent {
    fn exchange(&self, id: &str, sent_us: f64) -> Exchange {
        let on_stack = self.stack_trace.first().map(|frame| frame.url.clone());
        Exchange {
            id: id.to_owned(),
            url: self.url.clone(),
            method: self.request_method.clone(),
            frame: Some(self.frame.clone()).filter(|frame| !frame.is_empty()),
            requested_type: self.resource_type.clone(),
            initial_priority: self.priority.clone(),
            priority: self.priority.clone(),
            initiator_url: self.named_initiator().map(str::to_owned).or(on_stack),
            sent_us,
            ..Exchange::default()
        }
    }

    fn named_initiator(&self) -> Option<&str> {
        let url = self.initiator.as_ref()?.url.as_str();
        (!url.is_empty() && url != NO_REFERRER).then_some(url)
    }

    /// Returns the named initiator, or else every script on the stack, innermost first.
    fn initiators(&self) -> Vec<String> {
        let mut urls: Vec<String> = self
            .named_initiator()
            .map(str::to_owned)
            .into_iter()
            .collect();
        let is_script = self
            .initiator
            .as_ref()
            .is_some_and(|by| by.kind == "script");
        if urls.is_empty() && is_script {
            for frame in &self.stack_trace {
                if !frame.url.is_empty() && !urls.contains(&frame.url) {
                    urls.push(frame.url.clone());
                }
            }
        }
        urls
    }
}

impl Received {
    /// Returns the response, and takes its text out of `self`.
    fn take_response(&mut self, at_us: f64) -> Response {
        let headers = self.headers.take().into_iter().flatten();
        Response {
            at_us,
            status: self.status_code,
            mime_type: std::mem::take(&mut self.mime_type),
            protocol: self.protocol.take().unwrap_or_default(),
            headers: headers.map(|header| (header.name, header.value)).collect(),
            header_bytes: count(self.encoded_data_length).unwrap_or_default(),
            connection_id: count(self.connection_id),
            from_disk: self.from_cache,
            from_service_worker: self.from_service_worker,
            timing: self.timing,
            ..Response::default()
        }
    }
}
