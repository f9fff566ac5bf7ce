//! Chromium's trace of the visit, without information about the host.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::traced_nodes::TracedNodes;
use crate::protocol::{LimitExceeded, ProtocolEvent, Reservation};

/// The categories that Lighthouse 13 records for a navigation, without script sources, which make a
/// trace much larger and are not used here.
const CATEGORIES: [&str; 13] = [
    "-*",
    "disabled-by-default-lighthouse",
    "loading",
    "v8",
    "v8.execute",
    "blink.user_timing",
    "blink.console",
    "blink.webdx_feature_usage",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "disabled-by-default-devtools.timeline.stack",
    "latencyInfo",
];

/// The category of screenshots, which a load with a profiler does without.
const SCREENSHOTS: &str = "disabled-by-default-devtools.screenshot";
/// The category of V8's sampling profiler.
const PROFILER: &str = "disabled-by-default-v8.cpu_profiler";

/// The content of a trace besides [`CATEGORIES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceKind {
    /// A page is measured.
    Visit,
    /// The functions of a page are sampled, which slows it down.
    Profile,
}

const BEGIN: &[u8] = br#"{"traceEvents":["#;
const END: &[u8] = b"]}";

/// Maximum size of a trace. Judging one needs up to five times as much memory as its text, which a
/// trace of nothing but short tasks does. The largest trace of an ordinary page seen has 8 MB.
const MAX_BYTES: usize = 40_000_000;

const TOO_LARGE: LimitExceeded = LimitExceeded::Trace {
    limit_mb: MAX_BYTES / 1_000_000,
};

/// Maximum usage of Chromium's trace buffer (200 MB). A trace of [`MAX_BYTES`] uses less, because
/// its text is always longer than its form in the buffer.
const MAX_BUFFER_USAGE: f64 = 0.2;

/// Usage of the buffer (25 MB as text) below which a trace should arrive in time.
const LARGE_BUFFER_USAGE: f64 = 0.05;

/// Returns the parameters of `Tracing.start`.
pub(super) fn start_params(kind: TraceKind) -> Value {
    let other = match kind {
        TraceKind::Visit => SCREENSHOTS,
        TraceKind::Profile => PROFILER,
    };
    json!({
        "categories": format!("{},{other}", CATEGORIES.join(",")),
        "transferMode": "ReportEvents",
        "bufferUsageReportingInterval": 1000,
    })
}

#[derive(Deserialize)]
struct DataCollected<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TracingComplete {
    #[serde(default)]
    data_loss_occurred: bool,
}

#[derive(Deserialize)]
struct BufferUsage {
    /// Used fraction of the buffer, from 0 to 1.
    #[serde(default)]
    value: f64,
}

/// Collects a trace as it arrives.
pub(crate) struct TraceRecording {
    bytes: Vec<u8>,
    reservation: Reservation,
    is_complete: bool,
    nodes: TracedNodes,
    /// Used fraction of Chromium's buffer when it was last reported.
    buffer_usage: f64,
}

impl TraceRecording {
    pub(super) fn new(reservation: Reservation) -> Self {
        // This reserves address space, and no memory until it is written to. Growing would need the
        // old and the new memory at the same time.
        let mut bytes = Vec::with_capacity(MAX_BYTES + BEGIN.len() + END.len());
        bytes.extend_from_slice(BEGIN);
        Self {
            bytes,
            reservation,
            is_complete: false,
            nodes: TracedNodes::default(),
            buffer_usage: 0.0,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns whether the trace is so large that it may not arrive in time.
    pub(crate) fn is_large(&self) -> bool {
        self.has_begun() || self.buffer_usage >= LARGE_BUFFER_USAGE
    }

    /// Returns whether a part of the trace has arrived.
    fn has_begun(&self) -> bool {
        self.bytes.last() != Some(&b'[')
    }

    /// Handles a report of Chromium's buffer usage, which shows that a trace will be too large
    /// before it is requested.
    pub(super) fn update_buffer_usage(
        &mut self,
        event: &ProtocolEvent,
    ) -> Result<(), LimitExceeded> {
        if let Some(BufferUsage { value }) = event.read() {
            self.buffer_usage = value;
        }
        if self.buffer_usage > MAX_BUFFER_USAGE {
            return Err(TOO_LARGE);
        }
        Ok(())
    }

    /// Adds a part of the trace. An incomplete trace is an error, because the missing events may be
    /// those that metrics depend on.
    pub(super) fn collect(&mut self, event: &ProtocolEvent) -> Result<(), LimitExceeded> {
        let data = serde_json::from_str::<DataCollected<'_>>(event.params.get());
        let data = data.map_err(|_| LimitExceeded::LostTrace)?;
        for event in data.value {
            let text = event.get();
            if self.bytes.len() + text.len() > MAX_BYTES {
                return Err(TOO_LARGE);
            }
            if describes_host(text) {
                continue;
            }
            self.nodes.add_event(text);
            self.reservation.grow(text.len())?;
            if self.has_begun() {
                self.bytes.extend_from_slice(b",\n");
            }
            self.bytes.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }

    /// Returns the ids of the elements that the trace refers to.
    pub(super) fn traced_nodes(&self) -> Vec<i64> {
        self.nodes.all()
    }

    pub(super) fn complete(&mut self, event: &ProtocolEvent) -> Result<(), LimitExceeded> {
        self.is_complete = true;
        match event.read() {
            Some(TracingComplete {
                data_loss_occurred: false,
            }) => Ok(()),
            _ => Err(LimitExceeded::LostTrace),
        }
    }

    /// Returns the trace and leaves nothing of it.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.extend_from_slice(END);
        bytes
    }
}

/// Returns whether an event describes the host: metadata other than the names of threads and
/// processes.
fn describes_host(event: &str) -> bool {
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        ph: std::borrow::Cow<'a, str>,
    }
    // Most events are not of this phase, and searching is cheaper than parsing.
    if !event.contains(r#""ph":"M""#) {
        return false;
    }
    let page_metadata = [
        "thread_name",
        "process_name",
        "thread_sort_index",
        "process_sort_index",
    ];
    serde_json::from_str::<Metadata<'_>>(event)
        .is_ok_and(|event| event.ph == "M" && !page_metadata.contains(&event.name.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(params: Value) -> ProtocolEvent {
        ProtocolEvent::for_test("Tracing.dataCollected", &params)
    }

    #[test]
    fn a_trace_is_joined_from_its_parts_without_host_metadata() {
        let mut trace = TraceRecording::new(Reservation::within(1000));
        assert!(!trace.has_begun());
        let first = event(json!({"value": [
            {"name": "thread_name", "ph": "M", "args": {"name": "CrRendererMain"}},
            {"name": "num_cpus", "ph": "M", "args": {"number": 2}},
        ]}));
        trace.collect(&first).unwrap();
        let second = json!({"value": [{"name": "RunTask", "ph": "X", "args": {"ph": "M"}}]});
        trace.collect(&event(second)).unwrap();
        let complete = event(json!({"dataLossOccurred": false}));
        assert_eq!(trace.complete(&complete), Ok(()));
        assert!(trace.is_complete() && trace.has_begun());
        let text: Value = serde_json::from_slice(&trace.take()).unwrap();
        let names: Vec<&str> = text["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["thread_name", "RunTask"]);
    }

    #[test]
    fn data_that_chromium_lost_is_an_error() {
        let mut trace = TraceRecording::new(Reservation::within(1000));
        let complete = event(json!({"dataLossOccurred": true}));
        assert_eq!(trace.complete(&complete), Err(LimitExceeded::LostTrace));
    }

    #[test]
    fn a_buffer_that_is_too_full_is_an_error_before_the_trace_arrives() {
        let mut trace = TraceRecording::new(Reservation::within(1000));
        let usage = |value: f64| event(json!({"percentFull": value, "value": value}));
        assert_eq!(trace.update_buffer_usage(&usage(0.01)), Ok(()));
        assert!(!trace.is_large());
        assert_eq!(trace.update_buffer_usage(&usage(0.1)), Ok(()));
        assert!(trace.is_large());
        assert_eq!(trace.update_buffer_usage(&usage(0.3)), Err(TOO_LARGE));
    }

    #[test]
    fn events_beyond_the_budget_are_not_collected() {
        let mut trace = TraceRecording::new(Reservation::within(100));
        let part = event(json!({"value": [{"name": "x".repeat(60)}]}));
        assert_eq!(trace.collect(&part), Ok(()));
        assert_eq!(trace.collect(&part), Err(LimitExceeded::Held));
        assert!(trace.take().len() < 150);
    }
}
