//! Everything the trace tells about what was loaded: priorities, what blocked rendering, who asked, how long
//! each step took, how many bytes came. One resource per request, its redirects within it; the shape and the
//! rules are those of DevTools' trace engine (models/trace/handlers/NetworkRequestsHandler), so that insights
//! start from the same figures.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::Event;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resource {
    /// The loader's id for a document, else `process.number`.
    pub id: String,
    pub url: String,
    pub frame: String,
    /// When it was first asked for; redirects come after this.
    pub start_us: f64,
    /// When the renderer was told of the end.
    pub end_us: f64,
    /// When the network stack had the last byte.
    pub finish_us: f64,
    /// When the request left; `start_us` where the network stack gives no figures.
    pub send_start_us: f64,
    /// From the first request to the last of a chain of redirects.
    pub redirection_us: f64,
    pub redirects: Vec<Redirect>,
    /// None where memory answered, or nobody did.
    pub timing: Option<ResourceTiming>,
    /// Headers included.
    pub transfer_bytes: f64,
    pub decoded_bytes: f64,
    pub mime_type: String,
    pub resource_type: String,
    pub status: i64,
    /// As the network stack names it: `http/1.1`, `h2` …; `unknown` without an answer.
    pub protocol: String,
    pub priority: String,
    pub initial_priority: String,
    pub fetch_priority_hint: String,
    /// Chromium's word for it: `blocking`, `non_blocking`, `in_body_parser_blocking` …
    pub render_blocking: String,
    pub is_link_preload: bool,
    /// None without an answer. Names as the server wrote them.
    pub headers: Option<Vec<(String, String)>>,
    /// Who asked for it, as far as Chromium says: a document, a style sheet, or else the script on top of the
    /// stack. Empty where nobody is named.
    pub initiator_url: String,
    /// Of every script on the stack that asked, the innermost first.
    pub stack_urls: Vec<String>,
    /// `parser`, `script`, `preload` …
    pub initiator_kind: String,
    pub failed: bool,
    pub finished: bool,
    pub from_service_worker: bool,
    pub is_memory_cached: bool,
    pub is_disk_cached: bool,
    pub connection_id: Option<f64>,
    pub connection_reused: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Redirect {
    pub url: String,
    pub start_us: f64,
    pub dur_us: f64,
}

/// In milliseconds after `request_time_s`; -1 is Chromium's own word for what did not take place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceTiming {
    #[serde(rename = "requestTime")]
    pub request_time_s: f64,
    #[serde(rename = "dnsStart")]
    pub dns_start_ms: f64,
    #[serde(rename = "dnsEnd")]
    pub dns_end_ms: f64,
    #[serde(rename = "connectStart")]
    pub connect_start_ms: f64,
    #[serde(rename = "connectEnd")]
    pub connect_end_ms: f64,
    #[serde(rename = "sslStart")]
    pub ssl_start_ms: f64,
    #[serde(rename = "sslEnd")]
    pub ssl_end_ms: f64,
    #[serde(rename = "sendStart")]
    pub send_start_ms: f64,
    #[serde(rename = "sendEnd")]
    pub send_end_ms: f64,
    #[serde(rename = "receiveHeadersStart")]
    pub receive_headers_start_ms: Option<f64>,
    #[serde(rename = "receiveHeadersEnd")]
    pub receive_headers_end_ms: f64,
}

impl ResourceTiming {
    /// From the last byte of the request to the first of the answer.
    pub fn server_response_ms(&self) -> f64 {
        self.receive_headers_start_ms
            .unwrap_or(self.receive_headers_end_ms)
            - self.send_end_ms
    }

    pub fn first_byte_us(&self) -> f64 {
        let headers_ms = self
            .receive_headers_start_ms
            .unwrap_or(self.receive_headers_end_ms);
        self.request_time_s * 1e6 + headers_ms * 1e3
    }
}

impl Resource {
    /// All values of a header, whatever the case of its name.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .flatten()
            .filter(move |(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// An image as it was painted, in device pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImagePaint {
    pub ts_us: f64,
    pub dur_us: f64,
    pub url: String,
    pub frame: String,
    pub node_id: Option<i64>,
    pub width_px: f64,
    pub height_px: f64,
    /// Of the file.
    pub natural_width_px: f64,
    pub natural_height_px: f64,
    pub is_css: bool,
    pub is_picture: bool,
    pub has_srcset: bool,
}

/// A font that a style sheet asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteFont {
    pub ts_us: f64,
    /// The id of its resource.
    pub resource_id: String,
    pub url: String,
    /// The value of `font-display`.
    pub display: String,
}

/// An origin that an element asked to connect to early.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preconnect {
    pub ts_us: f64,
    pub url: String,
    pub node_id: Option<i64>,
}

/// All in order of time.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    pub all: Vec<Resource>,
    pub image_paints: Vec<ImagePaint>,
    pub remote_fonts: Vec<RemoteFont>,
    pub preconnects: Vec<Preconnect>,
}

impl Resources {
    pub fn by_id(&self, id: &str) -> Option<&Resource> {
        self.all.iter().find(|resource| resource.id == id)
    }
}

#[derive(Debug, Default)]
pub(crate) struct ResourceEvents {
    by_id: HashMap<String, Story>,
    image_paints: Vec<ImagePaint>,
    remote_fonts: Vec<RemoteFont>,
    preconnects: Vec<Preconnect>,
}

#[derive(Debug, Default)]
struct Story {
    first_us: Option<f64>,
    will_send_us: Vec<f64>,
    sent: Vec<(f64, Sent)>,
    response: Option<(f64, Answer)>,
    finish: Option<(f64, Finish)>,
    priority: Option<(f64, String)>,
    blocking: Option<(f64, String)>,
    is_memory_cached: bool,
}

#[derive(Deserialize)]
struct Args<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    request_id: String,
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
struct Initiator {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    url: String,
}

#[derive(Debug, Deserialize)]
struct CallFrame {
    #[serde(default)]
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
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
struct Prioritised {
    priority: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blocking {
    render_blocking: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Painted {
    #[serde(default)]
    url: String,
    #[serde(default)]
    frame: String,
    node_id: Option<i64>,
    #[serde(default)]
    width: f64,
    #[serde(default)]
    height: f64,
    #[serde(default)]
    src_width: f64,
    #[serde(default)]
    src_height: f64,
    #[serde(default, rename = "isCSS")]
    is_css: bool,
    #[serde(default)]
    is_picture: bool,
    #[serde(default)]
    srcset_attribute: String,
}

#[derive(Deserialize)]
struct FontArgs {
    id: serde_json::Value,
    #[serde(default)]
    url: String,
    #[serde(default)]
    display: String,
}

#[derive(Deserialize)]
struct Connecting {
    url: String,
    node_id: Option<i64>,
}

impl ResourceEvents {
    pub(crate) fn see(&mut self, event: &Event) {
        match event.name.as_ref() {
            "ResourceWillSendRequest"
            | "ResourceSendRequest"
            | "ResourceReceiveResponse"
            | "ResourceFinish"
            | "ResourceMarkAsCached"
            | "ResourceChangePriority"
            | "PreloadRenderBlockingStatusChange" => self.see_story(event),
            "PaintImage" => self.see_image(event),
            "BeginRemoteFontLoad" => {
                if let Some(args) = event.args::<FontArgs>() {
                    let number = args.id.to_string().replace('"', "");
                    self.remote_fonts.push(RemoteFont {
                        ts_us: event.ts_us,
                        resource_id: format!("{}.{number}", event.process),
                        url: args.url,
                        display: args.display,
                    });
                }
            }
            "LinkPreconnect" => {
                if let Some(args) = event.args::<Args<Connecting>>() {
                    self.preconnects.push(Preconnect {
                        ts_us: event.ts_us,
                        url: args.data.url,
                        node_id: args.data.node_id,
                    });
                }
            }
            _ => {}
        }
    }

    fn see_story(&mut self, event: &Event) {
        let Some(named) = event.args::<Args<Named>>() else {
            return;
        };
        let story = self.by_id.entry(named.data.request_id).or_default();
        let at_us = event.ts_us;
        story.first_us = Some(story.first_us.map_or(at_us, |first_us| first_us.min(at_us)));
        match event.name.as_ref() {
            "ResourceWillSendRequest" => story.will_send_us.push(at_us),
            "ResourceSendRequest" => {
                let sent = event.args::<Args<Sent>>();
                story.sent.extend(sent.map(|args| (at_us, args.data)));
            }
            "ResourceReceiveResponse" => latest(&mut story.response, at_us, event),
            "ResourceFinish" => latest(&mut story.finish, at_us, event),
            "ResourceMarkAsCached" => story.is_memory_cached = true,
            "ResourceChangePriority" => {
                let mut changed: Option<(f64, Prioritised)> = None;
                latest(&mut changed, at_us, event);
                if story.priority.as_ref().is_none_or(|(us, _)| *us <= at_us) {
                    story.priority = changed.map(|(us, data)| (us, data.priority));
                }
            }
            _ => {
                let mut changed: Option<(f64, Blocking)> = None;
                latest(&mut changed, at_us, event);
                if story.blocking.as_ref().is_none_or(|(us, _)| *us <= at_us) {
                    story.blocking = changed.map(|(us, data)| (us, data.render_blocking));
                }
            }
        }
    }

    fn see_image(&mut self, event: &Event) {
        let Some(Args { data }) = event.args::<Args<Painted>>() else {
            return;
        };
        self.image_paints.push(ImagePaint {
            ts_us: event.ts_us,
            dur_us: event.dur_us.unwrap_or(0.0),
            url: data.url,
            frame: data.frame,
            node_id: data.node_id,
            width_px: data.width,
            height_px: data.height,
            natural_width_px: data.src_width,
            natural_height_px: data.src_height,
            is_css: data.is_css,
            is_picture: data.is_picture,
            has_srcset: !data.srcset_attribute.is_empty(),
        });
    }

    pub(crate) fn resolve(self) -> Resources {
        let mut stories: Vec<(String, Story)> = self.by_id.into_iter().collect();
        // Ids break ties, so that the same trace always gives the same order.
        stories.sort_by(|(id_a, a), (id_b, b)| {
            let (a_us, b_us) = (a.first_us.unwrap_or(0.0), b.first_us.unwrap_or(0.0));
            a_us.total_cmp(&b_us).then_with(|| id_a.cmp(id_b))
        });
        let mut resources = Resources {
            all: stories
                .into_iter()
                .filter_map(|(id, story)| story.resolve(id))
                .collect(),
            image_paints: self.image_paints,
            remote_fonts: self.remote_fonts,
            preconnects: self.preconnects,
        };
        let by_time = |a: &f64, b: &f64| a.total_cmp(b);
        resources
            .image_paints
            .sort_by(|a, b| by_time(&a.ts_us, &b.ts_us));
        resources
            .remote_fonts
            .sort_by(|a, b| by_time(&a.ts_us, &b.ts_us));
        resources
            .preconnects
            .sort_by(|a, b| by_time(&a.ts_us, &b.ts_us));
        resources
    }
}

/// Keeps what the later event says.
fn latest<T: for<'a> Deserialize<'a>>(kept: &mut Option<(f64, T)>, at_us: f64, event: &Event) {
    if kept.as_ref().is_none_or(|(us, _)| *us <= at_us)
        && let Some(args) = event.args::<Args<T>>()
    {
        *kept = Some((at_us, args.data));
    }
}

/// Schemes of what goes over a network or could; the others never left the page.
const SCHEMES: [&str; 5] = ["blob:", "file:", "filesystem:", "http:", "https:"];

impl Story {
    fn resolve(mut self, id: String) -> Option<Resource> {
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
        let answer = self.response.map(|(_, answer)| answer);
        let timing = answer
            .as_ref()
            .and_then(|answer| answer.timing)
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
        let named = initiator
            .map(|who| who.url.clone())
            .filter(|url| !url.is_empty());
        let mut stack_urls: Vec<String> = Vec::new();
        let on_stack = last.stack_trace.first().map(|frame| frame.url.clone());
        for frame in last.stack_trace {
            if !frame.url.is_empty() && !stack_urls.contains(&frame.url) {
                stack_urls.push(frame.url);
            }
        }
        let initial_priority = last.priority;
        Some(Resource {
            id,
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
            initiator_kind: initiator.map_or_else(String::new, |who| who.kind.clone()),
            stack_urls,
            initiator_url: named.or(on_stack).unwrap_or_default(),
            url: last.url,
            frame: last.frame,
            is_memory_cached: self.is_memory_cached,
            ..answered(answer, transfer_bytes)
        })
    }

    fn redirects(&self) -> Vec<Redirect> {
        self.sent
            .windows(2)
            .enumerate()
            .map(|(at, pair)| {
                let told = self.will_send_us.get(at..at + 2);
                let (from_us, to_us) = told.map_or((pair[0].0, pair[1].0), |us| (us[0], us[1]));
                Redirect {
                    url: pair[0].1.url.clone(),
                    start_us: from_us,
                    dur_us: to_us - from_us,
                }
            })
            .collect()
    }
}

/// The answer's share of a resource.
fn answered(answer: Option<Answer>, transfer_bytes: f64) -> Resource {
    let Some(answer) = answer else {
        return Resource {
            protocol: "unknown".to_owned(),
            ..Resource::default()
        };
    };
    Resource {
        status: answer.status_code,
        mime_type: answer.mime_type,
        protocol: answer.protocol.unwrap_or_else(|| "unknown".to_owned()),
        is_disk_cached: answer.from_cache && !answer.from_service_worker && transfer_bytes == 0.0,
        from_service_worker: answer.from_service_worker,
        headers: answer.headers.map(|headers| {
            headers
                .into_iter()
                .map(|header| (header.name, header.value))
                .collect()
        }),
        connection_id: answer.connection_id,
        connection_reused: answer.connection_reused,
        ..Resource::default()
    }
}
