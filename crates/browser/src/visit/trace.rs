//! Chromium's trace of the visit, without what it says about the host.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::named_nodes::NamedNodes;
use crate::protocol::Event;

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

/// Beyond this a trace would cost more memory than a visit is worth.
const MAX_BYTES: usize = 512 << 20;

pub(super) fn start() -> Value {
    json!({"categories": CATEGORIES.join(","), "transferMode": "ReportEvents"})
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

/// Collects a trace as it arrives.
pub(super) struct Trace {
    bytes: Vec<u8>,
    is_complete: bool,
    lost_events: bool,
    nodes: NamedNodes,
}

impl Trace {
    pub(super) fn new() -> Self {
        Self {
            bytes: br#"{"traceEvents":["#.to_vec(),
            is_complete: false,
            lost_events: false,
            nodes: NamedNodes::default(),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether events are missing, because Chromium or we ran out of room.
    pub(super) fn lost_events(&self) -> bool {
        self.lost_events
    }

    pub(super) fn collect(&mut self, event: &Event) {
        let Ok(collected) = serde_json::from_str::<Collected<'_>>(event.params.get()) else {
            self.lost_events = true;
            return;
        };
        for event in collected.value {
            let text = event.get();
            if self.bytes.len() + text.len() > MAX_BYTES {
                self.lost_events = true;
                return;
            }
            if names_host(text) {
                continue;
            }
            self.nodes.see(text);
            if self.bytes.last() != Some(&b'[') {
                self.bytes.extend_from_slice(b",\n");
            }
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    /// The elements that it names, by number.
    pub(super) fn named_nodes(&self) -> Vec<i64> {
        self.nodes.all()
    }

    pub(super) fn complete(&mut self, event: &Event) {
        let complete: Option<Complete> = event.read();
        self.lost_events |= complete.is_none_or(|complete| complete.data_loss_occurred);
        self.is_complete = true;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(b"]}");
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
        Event {
            session: None,
            method: String::new(),
            params: serde_json::value::to_raw_value(&params).unwrap(),
        }
    }

    #[test]
    fn a_trace_is_joined_from_its_parts_without_the_host() {
        let mut trace = Trace::new();
        trace.collect(&event(json!({"value": [
            {"name": "thread_name", "ph": "M", "args": {"name": "CrRendererMain"}},
            {"name": "num_cpus", "ph": "M", "args": {"number": 2}},
        ]})));
        trace.collect(&event(
            json!({"value": [{"name": "RunTask", "ph": "X", "args": {"ph": "M"}}]}),
        ));
        trace.complete(&event(json!({"dataLossOccurred": false})));
        assert!(trace.is_complete() && !trace.lost_events());
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
        let mut trace = Trace::new();
        trace.complete(&event(json!({"dataLossOccurred": true})));
        assert!(trace.lost_events());
    }
}
