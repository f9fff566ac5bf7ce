//! The events of one request, and the resource built from them.

use serde::Deserialize;

use super::{Redirect, Resource};
use crate::event::{Event, WithData};
use crate::timing::ResourceTiming;

#[derive(Debug, Default)]
pub(super) struct RequestEvents {
    first_us: Option<f64>,
    process_id: Option<i64>,
    will_send_us: Vec<f64>,
    sent: Vec<(f64, Sent)>,
    response: Option<(f64, Response)>,
    finish: Option<(f64, Finish)>,
    priority: Option<(f64, String)>,
    blocking: Option<(f64, String)>,
    is_memory_cached: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    url: String,
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

#[derive(Debug, Deserialize)]
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
struct Response {
    #[serde(default)]
    status_code: i64,
    #[serde(default)]
    mime_type: String,
    protocol: Option<String>,
    #[serde(default)]
    from_cache: bool,
    #[serde(default)]
    from_service_worker: bool,
    headers: Option<Vec<Header>>,
    timing: Option<ResourceTiming>,
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
    #[serde(default)]
    encoded_data_length: f64,
    #[serde(default)]
    decoded_body_length: f64,
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
fn latest<T: for<'a> Deserialize<'a>>(current: &mut Option<(f64, T)>, at_us: f64, event: &Event) {
    if current.as_ref().is_none_or(|(us, _)| *us <= at_us)
        && let Some(args) = event.args::<WithData<T>>()
    {
        *current = Some((at_us, args.data));
    }
}

/// Schemes of resources that are loaded; others, such as `data:`, never leave the page.
const SCHEMES: [&str; 5] = ["blob:", "file:", "filesystem:", "http:", "https:"];

impl RequestEvents {
    pub(super) fn record(&mut self, event: &Event) {
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
            "ResourceFinish" => latest(&mut self.finish, at_us, event),
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

    /// Builds the resource; returns `None` if no request was sent.
    pub(super) fn resolve(mut self, id: String) -> Option<Resource> {
        self.sent.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.will_send_us.sort_by(f64::total_cmp);
        let redirects = self.redirects();
        let first = self
            .sent
            .first()
            .map(|(us, sent)| (*us, sent.url.clone()))?;
        let (last_us, last) = self.sent.pop()?;
        if !SCHEMES.iter().any(|scheme| first.1.starts_with(scheme)) {
            return None;
        }
        let start_us = self.will_send_us.first().copied().unwrap_or(first.0);
        let redirected_us = self.will_send_us.last().copied().unwrap_or(last_us);
        let response = self.response.map(|(_, response)| response);
        let timing = response
            .as_ref()
            .and_then(|response| response.timing)
            .filter(|_| !self.is_memory_cached);
        let end_us = self.finish.as_ref().map_or(redirected_us, |(us, _)| *us);
        let finish = self.finish.map(|(_, finish)| finish);
        let finish_us = finish
            .as_ref()
            .and_then(|finish| finish.finish_time)
            .filter(|seconds| *seconds != 0.0)
            .map_or(end_us, |seconds| seconds * 1e6);
        let transfer_bytes = finish.as_ref().map_or(0.0, |f| f.encoded_data_length);
        let initiator = last.initiator.as_ref();
        let named_url = initiator
            .map(|initiator| initiator.url.clone())
            .filter(|url| !url.is_empty());
        let on_stack = last.stack_trace.first().map(|frame| frame.url.clone());
        let is_script = initiator.is_some_and(|initiator| initiator.kind == "script");
        let mut initiators: Vec<String> = named_url.iter().cloned().collect();
        if initiators.is_empty() && is_script {
            for frame in last.stack_trace {
                if !frame.url.is_empty() && !initiators.contains(&frame.url) {
                    initiators.push(frame.url);
                }
            }
        }
        let initial_priority = last.priority;
        Some(Resource {
            id,
            process_id: self.process_id,
            start_us,
            end_us,
            finish_us,
            send_start_us: timing.map_or(start_us, |timing| {
                timing.request_time_s * 1e6 + timing.send_start_ms * 1e3
            }),
            redirection_us: redirected_us - start_us,
            redirects,
            timing,
            transfer_bytes,
            decoded_bytes: finish.as_ref().map_or(0.0, |f| f.decoded_body_length),
            failed: finish.as_ref().is_some_and(|f| f.did_fail),
            finished: finish.is_some(),
            resource_type: last.resource_type.unwrap_or_else(|| "Other".to_owned()),
            priority: self
                .priority
                .map_or_else(|| initial_priority.clone(), |(_, priority)| priority),
            initial_priority,
            fetch_priority_hint: last
                .fetch_priority_hint
                .unwrap_or_else(|| "auto".to_owned()),
            render_blocking: self
                .blocking
                .map(|(_, blocking)| blocking)
                .or(last.render_blocking)
                .unwrap_or_else(|| "non_blocking".to_owned()),
            is_link_preload: last.is_link_preload,
            initiator_kind: initiator.map_or_else(String::new, |initiator| initiator.kind.clone()),
            fetch_kind: initiator
                .map_or_else(String::new, |initiator| initiator.fetch_type.clone()),
            initiators,
            initiator_url: named_url.or(on_stack).unwrap_or_default(),
            url: last.url,
            frame: last.frame,
            is_memory_cached: self.is_memory_cached,
            ..response_fields(response, transfer_bytes)
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

/// Returns the fields of a resource that come from its response.
fn response_fields(response: Option<Response>, transfer_bytes: f64) -> Resource {
    let Some(response) = response else {
        return Resource {
            protocol: "unknown".to_owned(),
            ..Resource::default()
        };
    };
    Resource {
        status: response.status_code,
        mime_type: response.mime_type,
        protocol: response.protocol.unwrap_or_else(|| "unknown".to_owned()),
        is_disk_cached: response.from_cache
            && !response.from_service_worker
            && transfer_bytes == 0.0,
        from_service_worker: response.from_service_worker,
        headers: response.headers.map(|headers| {
            headers
                .into_iter()
                .map(|header| (header.name, header.value))
                .collect()
        }),
        connection_id: response.connection_id,
        connection_reused: response.connection_reused,
        ..Resource::default()
    }
}
