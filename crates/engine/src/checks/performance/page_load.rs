//! A builder of hand-written traces for the unit tests of the checks. Times are milliseconds since
//! the navigation started.

use serde_json::{Value, json};

use super::traced::conditions_slowed_by;
use crate::checks::testing::Visit;
use crate::checks::{Check, Outcome};

const PAGE: &str = "https://example.test/page";
const PROCESS: i64 = 2;
const THREAD: i64 = 3;
/// The start of the navigation on the trace's clock.
const ORIGIN_US: i64 = 1_000_000;

pub(super) struct PageLoad {
    events: Vec<Value>,
    elements: Vec<Value>,
    scripts: Vec<String>,
    candidates: i64,
    slowed_by: f64,
    /// The rate in the scheduler samples, if the work of threads was sampled.
    sampled_rate: Option<f64>,
    /// Scheduler samples of the main thread: time, CPU time and time spent waiting for a core, in
    /// milliseconds.
    samples: Vec<[i64; 3]>,
}

fn at(ms: i64) -> i64 {
    ORIGIN_US + ms * 1000
}

impl PageLoad {
    /// Creates the trace of a navigation without any further events.
    pub(super) fn new() -> Self {
        let page = Self {
            events: Vec::new(),
            elements: Vec::new(),
            scripts: Vec::new(),
            candidates: 0,
            slowed_by: 1.0,
            sampled_rate: None,
            samples: Vec::new(),
        };
        page.event(
            "TracingStartedInBrowser",
            -1,
            json!({"data": {"frames": [{"frame": "F", "url": PAGE, "processId": PROCESS}]}}),
        )
        .and(json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": PROCESS,
            "tid": THREAD, "args": {"name": "CrRendererMain"}}))
        .and(
            json!({"name": "navigationStart", "cat": "blink.user_timing", "ph": "R", "ts": ORIGIN_US,
            "pid": PROCESS, "tid": THREAD, "args": {"frame": "F", "data": {"documentLoaderURL": PAGE,
            "navigationId": "main", "isLoadingMainFrame": true}}}),
        )
    }

    fn and(mut self, event: Value) -> Self {
        self.events.push(event);
        self
    }

    fn event(self, name: &str, ms: i64, args: Value) -> Self {
        self.and(json!({"name": name, "cat": "devtools.timeline", "ph": "I", "ts": at(ms), "pid": PROCESS,
            "tid": THREAD, "args": args}))
    }

    fn span(self, name: &str, from_ms: i64, dur_ms: i64, args: Value) -> Self {
        self.and(
            json!({"name": name, "cat": "devtools.timeline", "ph": "X", "ts": at(from_ms),
            "dur": dur_ms * 1000, "pid": PROCESS, "tid": THREAD, "args": args}),
        )
    }

    fn fetched(self, id: &str, sent: Value, mime: &str, from_ms: i64, until_ms: i64) -> Self {
        let mut data = sent;
        data["requestId"] = json!(id);
        let finish_s = at(until_ms) as f64 / 1e6;
        self.event("ResourceSendRequest", from_ms, json!({"data": data}))
            .event(
                "ResourceReceiveResponse",
                until_ms,
                json!({"data": {"requestId": id, "mimeType": mime, "timing": {
                    "requestTime": at(0) as f64 / 1e6, "receiveHeadersStart": until_ms,
                    "receiveHeadersEnd": until_ms}}}),
            )
            .event(
                "ResourceFinish",
                until_ms,
                json!({"data": {"requestId": id, "finishTime": finish_s}}),
            )
    }

    /// Adds the document request with the time of its first byte.
    pub(super) fn document(self, first_byte_ms: i64) -> Self {
        let sent = json!({"url": PAGE, "resourceType": "Document"});
        self.fetched("main", sent, "text/html", 1, first_byte_ms)
    }

    pub(super) fn image(self, url: &str, from_ms: i64, until_ms: i64) -> Self {
        self.image_requested_by(url, from_ms, until_ms, "auto", "parser")
    }

    pub(super) fn image_requested_by(
        self,
        url: &str,
        from_ms: i64,
        until_ms: i64,
        hint: &str,
        initiator: &str,
    ) -> Self {
        let sent = json!({"url": url, "resourceType": "Image", "fetchPriorityHint": hint,
            "initiator": {"type": initiator, "url": PAGE}});
        self.fetched(url, sent, "image/png", from_ms, until_ms)
    }

    pub(super) fn font(self, url: &str, from_ms: i64, until_ms: i64) -> Self {
        let sent = json!({"url": url, "resourceType": "Font"});
        self.fetched(url, sent, "font/woff2", from_ms, until_ms)
    }

    pub(super) fn largest_text(self, node: i64, ms: i64) -> Self {
        self.largest(node, ms, "eager")
    }

    pub(super) fn largest_image(self, node: i64, url: &str, ms: i64) -> Self {
        self.largest_image_loading(node, url, ms, "eager")
    }

    pub(super) fn largest_image_loading(
        self,
        node: i64,
        url: &str,
        ms: i64,
        loading: &str,
    ) -> Self {
        let args = json!({"frame": "F", "data": {"DOMNodeId": node, "imageUrl": url}});
        self.event("LargestImagePaint::Candidate", ms, args)
            .largest(node, ms, loading)
    }

    fn largest(mut self, node: i64, ms: i64, loading: &str) -> Self {
        self.candidates += 1;
        let data = json!({"candidateIndex": self.candidates, "navigationId": "main", "nodeId": node,
            "size": 1000, "loadingAttr": loading});
        self.event(
            "largestContentfulPaint::Candidate",
            ms,
            json!({"frame": "F", "data": data}),
        )
    }

    pub(super) fn shift(self, ms: i64, score: f64, node: i64) -> Self {
        let moved =
            json!([{"node_id": node, "old_rect": [0, 0, 10, 10], "new_rect": [0, 20, 10, 10]}]);
        self.event(
            "LayoutShift",
            ms,
            json!({"frame": "F", "data": {"is_main_frame": true, "weighted_score_delta": score,
                "had_recent_input": false, "impacted_nodes": moved}}),
        )
    }

    pub(super) fn pre_paint(self, ms: i64, dur_ms: i64) -> Self {
        self.span("PrePaint", ms, dur_ms, json!({}))
    }

    pub(super) fn unsized_image(self, node: i64, ms: i64) -> Self {
        self.event("LayoutImageUnsized", ms, json!({"data": {"nodeId": node}}))
    }

    pub(super) fn painted_image(self, node: i64, ms: i64) -> Self {
        self.span("PaintImage", ms, 1, json!({"data": {"nodeId": node}}))
    }

    pub(super) fn dom_size(self, ms: i64, elements: i64) -> Self {
        self.event(
            "DOMStats",
            ms,
            json!({"data": {"frame": "F", "totalElements": elements,
                "maxChildren": {"nodeId": 1, "numChildren": 30}, "maxDepth": {"nodeId": 2, "depth": 12}}}),
        )
    }

    pub(super) fn layout(self, ms: i64, dur_ms: i64, boxes: i64) -> Self {
        let args = json!({"beginData": {"frame": "F", "dirtyObjects": boxes}});
        self.span("Layout", ms, dur_ms, args)
    }

    /// Adds a script that forces one layout, and a task after it.
    pub(super) fn forced_layout(self, ms: i64, dur_ms: i64, script: &str) -> Self {
        self.forced_layout_of(ms, dur_ms, dur_ms, script)
    }

    /// Adds a script that forces one layout of which the thread spent only `cpu_ms` on a core.
    pub(super) fn forced_layout_of(self, ms: i64, dur_ms: i64, cpu_ms: i64, script: &str) -> Self {
        let stack = json!([{"url": script, "scriptId": "1", "functionName": "read", "lineNumber": 3,
            "columnNumber": 5}]);
        let args = json!({"beginData": {"frame": "F", "dirtyObjects": 1, "stackTrace": stack}});
        let call = json!({"data": {"frame": "F", "url": script, "scriptId": "1",
            "functionName": "start", "lineNumber": 1, "columnNumber": 1}});
        self.span("FunctionCall", ms, dur_ms + 10, call)
            .and(json!({"name": "Layout", "cat": "devtools.timeline", "ph": "X", "ts": at(ms + 1),
                "dur": dur_ms * 1000, "tdur": cpu_ms * 1000, "pid": PROCESS, "tid": THREAD, "args": args}))
            .span("RunTask", ms + dur_ms + 100, 1, json!({}))
    }

    pub(super) fn click(self, ms: i64, dur_ms: i64) -> Self {
        let id = format!("0x{ms}");
        let event = |phase: &str, ms: i64, args: Value| {
            json!({"name": "EventTiming", "cat": "devtools.timeline", "ph": phase, "id": id, "ts": at(ms),
                "pid": PROCESS, "tid": THREAD, "args": args})
        };
        let data = json!({"type": "click", "duration": dur_ms, "interactionId": ms, "timeStamp": ms,
            "processingStart": ms + 10, "processingEnd": ms + 20, "nodeId": 5});
        self.and(event("b", ms, json!({"data": data})))
            .and(event("e", ms + dur_ms, json!({})))
    }

    pub(super) fn viewport(self, node: i64, ms: i64) -> Self {
        let args = json!({"data": {"frame": "F", "node_id": node, "content": ""}});
        self.event("ParseMetaViewport", ms, args)
    }

    pub(super) fn drawn(self, ms: i64, fits: bool) -> Self {
        let args = json!({"frame": "F", "is_mobile_optimized": fits});
        self.event("BeginCommitCompositorFrame", ms, args)
    }

    /// Adds a task that consists of running a script.
    pub(super) fn task(self, ms: i64, dur_ms: i64, script: &str) -> Self {
        let args = json!({"data": {"frame": "F", "url": script}});
        self.span("RunTask", ms, dur_ms, json!({}))
            .span("EvaluateScript", ms, dur_ms, args)
    }

    /// Adds a request for a script.
    pub(super) fn script(mut self, url: &str) -> Self {
        self.scripts.push(url.to_owned());
        self
    }

    pub(super) fn animation(self, node: i64, name: &str, mask: i64, properties: &[&str]) -> Self {
        let event = |phase: &str, data: Value| {
            json!({"name": "Animation", "cat": "devtools.timeline", "ph": phase, "id2": {"local": "0x1"},
                "ts": at(100), "pid": PROCESS, "tid": THREAD, "args": {"data": data}})
        };
        let begun = json!({"id": "1", "nodeId": node, "displayName": name});
        let failure = json!({"compositeFailed": mask, "unsupportedProperties": properties});
        self.and(event("b", begun)).and(event("n", failure))
    }

    fn user_timing(self, name: &str, phase: &str, ms: i64) -> Self {
        self.and(
            json!({"name": name, "cat": "blink.user_timing", "ph": phase, "ts": at(ms),
            "pid": PROCESS, "tid": THREAD, "args": {}}),
        )
    }

    pub(super) fn mark(self, name: &str, ms: i64) -> Self {
        self.user_timing(name, "R", ms)
    }

    pub(super) fn measure(self, name: &str, from_ms: i64, until_ms: i64) -> Self {
        self.user_timing(name, "b", from_ms)
            .user_timing(name, "e", until_ms)
    }

    /// Adds the element of a node id in the trace.
    pub(super) fn element(mut self, node: i64, selector: &str) -> Self {
        self.elements
            .push(json!({"nodeId": node, "node": {"selector": selector}}));
        self
    }

    /// Sets the CPU slowdown rate relative to the host.
    pub(super) fn slowed_by(mut self, rate: f64) -> Self {
        self.slowed_by = rate;
        self
    }

    /// Makes the slowdown one by the pacer of earlier versions.
    pub(super) fn paced(mut self) -> Self {
        self.sampled_rate = Some(self.slowed_by);
        self
    }

    /// Makes the slowdown one by a page clock or by Chromium, which counters contain.
    pub(super) fn with_page_clock(mut self) -> Self {
        self.sampled_rate = Some(1.0);
        self
    }

    /// Makes the main thread run all the time except between the two times, when it waits for a
    /// core.
    pub(super) fn with_contention(mut self, from_ms: i64, until_ms: i64) -> Self {
        let waited_ms = until_ms - from_ms;
        self.samples.extend([
            [0, 0, 0],
            [from_ms, from_ms, 0],
            [until_ms, from_ms, waited_ms],
            [until_ms + 60_000, from_ms + 60_000, waited_ms],
        ]);
        self
    }

    /// Returns the scheduler artifact as the visit writes it; samples of work have two more
    /// counters.
    fn scheduler(&self) -> Value {
        let samples: Vec<Value> = self
            .samples
            .iter()
            .map(|[ms, ran_ms, waited_ms]| {
                if self.sampled_rate.is_some() {
                    json!([at(*ms), ran_ms * 1000, waited_ms * 1000, ran_ms * 1000, 0])
                } else {
                    json!([at(*ms), ran_ms * 1000, waited_ms * 1000])
                }
            })
            .collect();
        json!({"rate": self.sampled_rate, "threads": [{"processId": PROCESS, "samples": samples}]})
    }

    pub(super) fn judge(self, check: Check) -> Outcome {
        self.visit().judge(check)
    }

    pub(super) fn visit(self) -> Visit {
        let conditions = conditions_slowed_by(self.slowed_by);
        let scheduler = self.scheduler();
        let mut visit = Visit::to(PAGE).trace(&Value::Array(self.events));
        for url in &self.scripts {
            visit = visit.requests(url, "Script", "text/javascript");
        }
        if !self.elements.is_empty() {
            let elements = Value::Array(self.elements).to_string();
            visit = visit.with("trace-elements", &elements);
        }
        if self.sampled_rate.is_some() || !self.samples.is_empty() {
            visit = visit.with("scheduler", &scheduler.to_string());
        }
        visit.with("conditions", &conditions.to_string())
    }
}
