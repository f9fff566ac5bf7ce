//! Chromium's trace of the visit, without what it says about the host.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::named_nodes::NamedNodes;
use crate::protocol::{Event, Excess, Held};

/// What Lighthouse 13 records for a navigation, without script sources and feature counters, which
/// make a trace much larger and are judged by nobody here.
const CATEGORIES: [&str; 13] = [
    "-*",
    "disabled-by-default-lighthouse",
    "loading",
    "v8",
    "v8.execute",
    "blink.user_timing",
    "blink.console",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "disabled-by-default-devtools.timeline.stack",
    "disabled-by-default-devtools.screenshot",
    "latencyInfo",
];

const BEGIN: &[u8] = br#"{"traceEvents":["#;
const END: &[u8] = b"]}";

/// The largest trace that is kept. Judging one takes about twice as much memory as its text.
const MAX_BYTES: usize = 80_000_000;

const TOO_LONG: Excess = Excess::Trace {
    limit_mb: MAX_BYTES / 1_000_000,
};

/// The part of Chromium's buffer for a trace (200 MB) that cannot be filled by one of [`MAX_BYTES`]: what is sent to us is
/// always longer than what is in the buffer.
const TOO_FULL: f64 = 0.4;

/// With less than this in the buffer (25 MB as it is sent to us), a trace that does not arrive is not late for its size.
const MUCH: f64 = 0.05;

pub(super) fn start() -> Value {
    json!({
        "categories": CATEGORIES.join(","),
        "transferMode": "ReportEvents",
        "bufferUsageReportingInterval": 1000,
    })
}

#[derive(Deserialize)]
struct Collected<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complete {
    #[serde(default)]
    data_loss_occurred: bool,
}

#[derive(Deserialize)]
struct Usage {
    /// Of the buffer, from 0 to 1.
    #[serde(default)]
    value: f64,
}

/// Collects a trace as it arrives.
pub(super) struct Trace {
    bytes: Vec<u8>,
    held: Held,
    is_complete: bool,
    nodes: NamedNodes,
    /// How full Chromium's buffer was when it last said so.
    fullness: f64,
}

impl Trace {
    pub(super) fn new(held: Held) -> Self {
        // Address space and not memory, until it is written to: growing would need the old and the new at a time.
        let mut bytes = Vec::with_capacity(MAX_BYTES + BEGIN.len() + END.len());
        bytes.extend_from_slice(BEGIN);
        Self {
            bytes,
            held,
            is_complete: false,
            nodes: NamedNodes::default(),
            fullness: 0.0,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether there is so much of it that it may not arrive in time.
    pub(super) fn is_large(&self) -> bool {
        self.has_begun() || self.fullness >= MUCH
    }

    /// Whether any of it has arrived.
    fn has_begun(&self) -> bool {
        self.bytes.last() != Some(&b'[')
    }

    /// Chromium says how full its buffer is: a page that does too much is known before its trace is asked for.
    pub(super) fn filled(&mut self, event: &Event) -> Result<(), Excess> {
        if let Some(Usage { value }) = event.read() {
            self.fullness = value;
        }
        if self.fullness > TOO_FULL {
            return Err(TOO_LONG);
        }
        Ok(())
    }

    /// A trace from which something is missing is worth nothing: what was painted or waited for may be what is missing.
    pub(super) fn collect(&mut self, event: &Event) -> Result<(), Excess> {
        let collected = serde_json::from_str::<Collected<'_>>(event.params.get());
        let collected = collected.map_err(|_| Excess::LostTrace)?;
        for event in collected.value {
            let text = event.get();
            if self.bytes.len() + text.len() > MAX_BYTES {
                return Err(TOO_LONG);
            }
            if names_host(text) {
                continue;
            }
            self.nodes.see(text);
            self.held.grow(text.len())?;
            if self.has_begun() {
                self.bytes.extend_from_slice(b",\n");
            }
            self.bytes.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }

    /// The elements that it names, by number.
    pub(super) fn named_nodes(&self) -> Vec<i64> {
        self.nodes.all()
    }

    pub(super) fn complete(&mut self, event: &Event) -> Result<(), Excess> {
        self.is_complete = true;
        match event.read() {
            Some(Complete {
                data_loss_occurred: false,
            }) => Ok(()),
            _ => Err(Excess::LostTrace),
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(END);
        self.bytes
    }
}

/// Metadata events say what the host is; only the names of threads and processes are about the page.
fn names_host(event: &str) -> bool {
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        ph: std::borrow::Cow<'a, str>,
    }
    // Most events are not of this phase, and looking is cheaper than reading.
    if !event.contains(r#""ph":"M""#) {
        return false;
    }
    let kept = [
        "thread_name",
        "process_name",
        "thread_sort_index",
        "process_sort_index",
    ];
    serde_json::from_str::<Metadata<'_>>(event)
        .is_ok_and(|event| event.ph == "M" && !kept.contains(&event.name.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(params: Value) -> Event {
        Event::made("Tracing.dataCollected", &params)
    }

    #[test]
    fn a_trace_is_joined_from_its_parts_without_the_host() {
        let mut trace = Trace::new(Held::within(1000));
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
        let text: Value = serde_json::from_slice(&trace.finish()).unwrap();
        let names: Vec<&str> = text["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["thread_name", "RunTask"]);
    }

    #[test]
    fn data_that_chromium_lost_is_noticed() {
        let mut trace = Trace::new(Held::within(1000));
        let complete = event(json!({"dataLossOccurred": true}));
        assert_eq!(trace.complete(&complete), Err(Excess::LostTrace));
    }

    #[test]
    fn a_buffer_that_holds_too_much_is_noticed_before_the_trace_arrives() {
        let mut trace = Trace::new(Held::within(1000));
        let usage = |value: f64| event(json!({"percentFull": value, "value": value}));
        assert_eq!(trace.filled(&usage(0.01)), Ok(()));
        assert!(!trace.is_large());
        assert_eq!(trace.filled(&usage(0.3)), Ok(()));
        assert!(trace.is_large());
        assert_eq!(trace.filled(&usage(0.5)), Err(TOO_LONG));
    }

    #[test]
    fn a_trace_beyond_the_budget_is_not_kept() {
        let mut trace = Trace::new(Held::within(100));
        let part = event(json!({"value": [{"name": "x".repeat(60)}]}));
        assert_eq!(trace.collect(&part), Ok(()));
        assert_eq!(trace.collect(&part), Err(Excess::Held));
        assert!(trace.finish().len() < 150);
    }
}
