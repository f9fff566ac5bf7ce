//! Attributes work to URLs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::WorkSpan;
use super::nesting::{NestedSpan, NestedSpans, timer_of};
use crate::event_kinds::event_kind;
use crate::frames::Frames;

type Urls = Arc<[Arc<str>]>;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args<'a> {
    #[serde(borrow)]
    begin_data: Option<Data<'a>>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(borrow)]
    file_name: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    frame: Option<Cow<'a, str>>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    style_sheet_url: Option<Cow<'a, str>>,
    ready_state: Option<i64>,
    #[serde(borrow)]
    stack_trace: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
}

impl<'a> Args<'a> {
    fn read(args: Option<&'a RawValue>) -> Self {
        args.and_then(|args| serde_json::from_str(args.get()).ok())
            .unwrap_or_default()
    }

    /// Merges the arguments; those of the end event take precedence over those of the begin event.
    fn merged(self) -> (Data<'a>, Option<Cow<'a, str>>) {
        let begin = self.begin_data.unwrap_or_default();
        let end = self.data.unwrap_or_default();
        let data = Data {
            frame: end.frame.or(begin.frame),
            url: end.url.or(begin.url),
            style_sheet_url: end.style_sheet_url.or(begin.style_sheet_url),
            ready_state: end.ready_state.or(begin.ready_state),
            stack_trace: end.stack_trace.or(begin.stack_trace),
        };
        (data, self.file_name)
    }
}

/// Returns the URL of the script that an event evaluates or calls.
pub(super) fn named_url<'a>(args: Option<&'a RawValue>) -> Option<Cow<'a, str>> {
    let (data, _) = Args::read(args).merged();
    data.url.filter(|url| !url.is_empty())
}

/// Returns true if the event's arguments can name a URL. Most cannot, and are not parsed.
fn can_name_url(span: &NestedSpan) -> bool {
    event_kind(span.name).names_url
        || span
            .args
            .is_some_and(|args| args.get().contains("\"stackTrace\""))
}

/// State of the attribution from one span to the next.
struct Attributor<'f> {
    interned: HashSet<Arc<str>>,
    frame_urls: HashMap<&'f str, Arc<str>>,
    timers: HashMap<i64, usize>,
    xhrs: HashMap<String, usize>,
    no_urls: Urls,
    /// URLs of the current top-level span.
    in_tree: Vec<Arc<str>>,
    /// URLs of the previous top-level span.
    last: Urls,
    urls_by_span: Vec<Urls>,
}

pub(super) fn attribute<'s>(
    nested: NestedSpans<'s>,
    frames: &'s Frames,
) -> impl Iterator<Item = WorkSpan> + use<'s> {
    let NestedSpans { spans, timers } = nested;
    let no_urls: Urls = Arc::from([]);
    let mut attribution = Attributor {
        interned: HashSet::new(),
        frame_urls: HashMap::new(),
        xhrs: openers(&spans),
        timers,
        in_tree: Vec::new(),
        last: no_urls.clone(),
        no_urls,
        urls_by_span: Vec::with_capacity(spans.len()),
    };
    for frame in &frames.in_page {
        let url = attribution.intern(&frame.url);
        attribution.frame_urls.insert(&frame.id, url);
    }
    let mut top = 0;
    for (at, span) in spans.iter().enumerate() {
        if span.parent.is_none() {
            attribution.end_tree(top);
            top = at;
        }
        attribution.record(span);
    }
    attribution.end_tree(top);
    spans
        .into_iter()
        .zip(attribution.urls_by_span)
        .map(|(span, urls)| WorkSpan {
            start_us: span.start_us,
            end_us: span.end_us,
            self_us: span.self_us,
            parent: span.parent,
            is_unended: span.is_unended,
            kind: span.kind,
            background: span.background,
            urls,
        })
}

/// Returns the span that opened each XMLHttpRequest, by the request's URL.
fn openers(spans: &[NestedSpan]) -> HashMap<String, usize> {
    let mut openers = HashMap::new();
    for (at, span) in spans.iter().enumerate() {
        if span.name == "XHRReadyStateChange" {
            let data = Args::read(span.args).data.unwrap_or_default();
            if let (Some(url), Some(1)) = (data.url, data.ready_state) {
                openers.insert(url.into_owned(), at);
            }
        }
    }
    openers
}

impl<'f> Attributor<'f> {
    fn intern(&mut self, url: &str) -> Arc<str> {
        if let Some(interned) = self.interned.get(url) {
            return interned.clone();
        }
        let new: Arc<str> = Arc::from(url);
        self.interned.insert(new.clone());
        new
    }

    fn record(&mut self, span: &NestedSpan<'f>) {
        let inherited = match span.parent {
            Some(parent) => self.urls_by_span[parent].clone(),
            None => self.no_urls.clone(),
        };
        if !can_name_url(span) {
            self.urls_by_span.push(inherited);
            return;
        }
        let own = self.own_urls(span);
        let mut urls: Option<Vec<Arc<str>>> = None;
        for url in own {
            if url.is_empty() {
                continue;
            }
            if !self.in_tree.contains(&url) {
                self.in_tree.push(url.clone());
            }
            let present = urls.as_deref().unwrap_or(&inherited);
            if !present.contains(&url) {
                urls.get_or_insert_with(|| inherited.to_vec()).push(url);
            }
        }
        self.urls_by_span
            .push(urls.map_or(inherited, |urls| Arc::from(urls.as_slice())));
    }

    /// Returns the URLs that the event itself names, then those of the scripts on the stack.
    fn own_urls(&mut self, span: &NestedSpan<'f>) -> Vec<Arc<str>> {
        let (data, file_name) = Args::read(span.args).merged();
        let calls: Vec<Arc<str>> = data
            .stack_trace
            .unwrap_or_default()
            .iter()
            .map(|call| self.intern(call.url.as_deref().unwrap_or_default()))
            .collect();
        let frame_url = self.frame_url(data.frame.as_deref(), calls.first());
        let mut intern = |url: Option<Cow<'f, str>>| url.map(|url| self.intern(&url));
        let mut urls: Vec<Arc<str>> = match span.name {
            "v8.compile" | "EvaluateScript" | "FunctionCall" | "ParseHTML" => {
                intern(data.url).into_iter().chain(frame_url).collect()
            }
            "v8.compileModule" => intern(file_name).into_iter().collect(),
            "ParseAuthorStyleSheet" => intern(data.style_sheet_url)
                .into_iter()
                .chain(frame_url)
                .collect(),
            "TimerFire" => {
                let timer = timer_of(span.args);
                self.urls_of(timer.and_then(|timer| self.timers.get(&timer)))
            }
            "UpdateLayoutTree" | "Layout" | "Paint" => match frame_url {
                Some(url) => vec![url],
                // Deferred work is attributed like the work before it.
                None if self.in_tree.is_empty() => self.last.to_vec(),
                None => Vec::new(),
            },
            "XHRReadyStateChange" | "XHRLoad" => {
                let is_done = data.ready_state.is_none_or(|state| state == 4);
                let url = data.url.filter(|_| is_done);
                self.urls_of(url.and_then(|url| self.xhrs.get(url.as_ref())))
            }
            _ => Vec::new(),
        };
        urls.extend(calls);
        urls
    }

    fn urls_of(&self, at: Option<&usize>) -> Vec<Arc<str>> {
        at.and_then(|at| self.urls_by_span.get(*at))
            .map_or_else(Vec::new, |urls| urls.to_vec())
    }

    /// Returns the URL of a frame. A frame without its own URL gets that of the first script that
    /// ran in it.
    fn frame_url(&mut self, frame: Option<&str>, script: Option<&Arc<str>>) -> Option<Arc<str>> {
        let url = self.frame_urls.get_mut(frame?)?;
        if url.starts_with("about:")
            && let Some(script) = script
            && !script.is_empty()
        {
            *url = script.clone();
        }
        Some(url.clone())
    }

    /// Ends a top-level span: its unattributed work is attributed to all URLs in it.
    fn end_tree(&mut self, top: usize) {
        if top < self.urls_by_span.len() {
            if self.urls_by_span[top].is_empty() && !self.in_tree.is_empty() {
                let all: Urls = Arc::from(self.in_tree.as_slice());
                for urls in &mut self.urls_by_span[top..] {
                    if urls.is_empty() {
                        *urls = all.clone();
                    }
                }
            }
            self.last = self.urls_by_span[top].clone();
        }
        self.in_tree.clear();
    }
}
