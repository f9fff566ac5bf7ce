//! Chromium's trace of the visit, without information about the host.

use std::ops::Range;

use plumbline_trace::MAX_SCREENSHOTS;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::later_frames::LaterFrame;
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
    screenshots: Screenshots,
    /// Pictures to add if the trace has no screenshots of these frames.
    later_frames: Vec<LaterFrame>,
}

/// The events with screenshots.
#[derive(Default)]
struct Screenshots {
    count: usize,
    last_us: f64,
    /// The place of the last one in the trace.
    last: Range<usize>,
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
            screenshots: Screenshots::default(),
            later_frames: Vec::new(),
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
            self.add(text)?;
            if let Some(ts_us) = screenshot_us(text) {
                self.screenshots.count += 1;
                if ts_us >= self.screenshots.last_us {
                    self.screenshots.last_us = ts_us;
                    self.screenshots.last = self.bytes.len() - text.len()..self.bytes.len();
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, event: &str) -> Result<(), LimitExceeded> {
        self.reservation.grow(event.len())?;
        if self.has_begun() {
            self.bytes.extend_from_slice(b",\n");
        }
        self.bytes.extend_from_slice(event.as_bytes());
        Ok(())
    }

    /// Sets the pictures of frames that are added to a trace in which Chromium recorded as many
    /// screenshots as it can.
    pub(super) fn set_later_frames(
        &mut self,
        frames: Vec<LaterFrame>,
    ) -> Result<(), LimitExceeded> {
        let bytes = frames.iter().map(|frame| frame.encoded.len()).sum();
        self.later_frames = frames;
        self.reservation.grow(bytes)
    }

    /// Adds the pictures of frames after the last screenshot, in the form of a screenshot.
    fn add_later_frames(&mut self) -> Result<(), LimitExceeded> {
        let frames = std::mem::take(&mut self.later_frames);
        if self.screenshots.count < MAX_SCREENSHOTS {
            return Ok(());
        }
        let last = &self.bytes[self.screenshots.last.clone()];
        let mut event: Value =
            serde_json::from_slice(last).map_err(|_| LimitExceeded::LostTrace)?;
        for frame in frames {
            if frame.ts_us > self.screenshots.last_us {
                event["ts"] = json!(frame.ts_us);
                event["args"]["snapshot"] = json!(frame.encoded);
                let text = event.to_string();
                // Without the last one, the trace is known to have no picture of the end.
                if self.bytes.len() + text.len() > MAX_BYTES {
                    break;
                }
                self.add(&text)?;
            }
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
            }) => self.add_later_frames(),
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

/// Returns the time of an event with a screenshot.
fn screenshot_us(event: &str) -> Option<f64> {
    #[derive(Deserialize)]
    struct Screenshot<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
        ts: f64,
    }
    // Searching is cheaper than parsing.
    if !event.contains(r#""Screenshot""#) {
        return None;
    }
    let event = serde_json::from_str::<Screenshot<'_>>(event).ok()?;
    (event.name == "Screenshot").then_some(event.ts)
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

    /// Returns the times of the screenshots in a trace with so many of them, one each millisecond,
    /// and with pictures of frames before and after the last one.
    fn screenshots_with_later_frames(count: usize) -> Vec<f64> {
        let mut trace = TraceRecording::new(Reservation::within(1_000_000));
        let screenshot = |at: usize| json!({"name": "Screenshot", "ph": "O", "pid": 3, "ts": at * 1000, "args": {"snapshot": "A"}});
        let screenshots: Vec<Value> = (1..=count).map(screenshot).collect();
        trace
            .collect(&event(json!({"value": screenshots})))
            .unwrap();
        let frame = |after_us: usize| LaterFrame {
            ts_us: (count * 1000 + after_us) as f64 - 500.0,
            encoded: "B".to_owned(),
        };
        trace
            .set_later_frames([0, 1000, 2000].map(frame).into())
            .unwrap();
        let complete = event(json!({"dataLossOccurred": false}));
        trace.complete(&complete).unwrap();
        let text: Value = serde_json::from_slice(&trace.take()).unwrap();
        let events = text["traceEvents"].as_array().unwrap();
        assert!(events.iter().all(|event| event["pid"] == 3));
        let later = events
            .iter()
            .filter(|event| event["args"]["snapshot"] == "B");
        later.map(|event| event["ts"].as_f64().unwrap()).collect()
    }

    #[test]
    fn a_trace_with_all_possible_screenshots_gets_pictures_of_later_frames() {
        assert_eq!(
            screenshots_with_later_frames(MAX_SCREENSHOTS),
            [450_500.0, 451_500.0]
        );
        assert!(screenshots_with_later_frames(MAX_SCREENSHOTS - 1).is_empty());
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
