//! Exports the trace as a file for DevTools' performance panel and other readers of Chromium's
//! traces.
//!
//! A DevTools recording has a `metadata` member, of which readers need only a small part.
//! Chromium's own metadata about the host was left out when the trace was gathered.

use plumbline_bundle::{Artifact, Bundle, Record};
use plumbline_model::report::Conditions;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Serialize)]
struct TraceFile<'a> {
    metadata: Value,
    #[serde(rename = "traceEvents")]
    events: Vec<&'a RawValue>,
}

#[derive(serde::Deserialize)]
struct StoredTrace<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<&'a RawValue>,
}

/// The metadata events that are exported: names and order of processes and threads.
const THREAD_METADATA: [&str; 4] = [
    "thread_name",
    "process_name",
    "thread_sort_index",
    "process_sort_index",
];

/// The artifacts that describe the conditions of the visit.
pub(crate) const ARTIFACTS: &[&str] = &[Conditions::ARTIFACT, PAGE_ARTIFACT];
const PAGE_ARTIFACT: &str = "page";

/// Renders the trace of a bundle: that of its visit, or that of the load with a profiler.
pub(crate) fn render(bundle: &Bundle, trace: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut trace: StoredTrace = serde_json::from_slice(trace)?;
    // Gathered traces do not contain such events; bundles from other sources may.
    trace.events.retain(|event| !names_host(event.get()));
    serde_json::to_vec(&TraceFile {
        metadata: metadata(bundle),
        events: trace.events,
    })
}

/// Whether a metadata event may describe the host.
fn names_host(event: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        name: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow)]
        ph: Option<std::borrow::Cow<'a, str>>,
    }
    // Most events have another phase, and searching is cheaper than parsing.
    event.contains(r#""M""#)
        && serde_json::from_str::<Head>(event).is_ok_and(|head| {
            head.ph.as_deref() == Some("M")
                && !head
                    .name
                    .is_some_and(|name| THREAD_METADATA.contains(&name.as_ref()))
        })
}

fn metadata(bundle: &Bundle) -> Value {
    let mut metadata = json!({ "source": "DevTools", "dataOrigin": "TraceEvents" });
    if let Some(conditions) = Conditions::stored_in(bundle) {
        metadata["cpuThrottling"] = json!(conditions.cpu.rate);
        metadata["networkThrottling"] = json!(conditions.network.name);
    }
    if let Some(Artifact::Gathered(page)) = bundle.artifacts.get(PAGE_ARTIFACT)
        && let Ok(page) = serde_json::from_str::<Value>(page.get())
    {
        metadata["hostDPR"] = page["devicePixelRatio"].clone();
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bundle_with_log;

    #[test]
    fn events_are_unchanged_and_nothing_describes_the_host() {
        let mut bundle = bundle_with_log("[]");
        bundle.trace = br#"{"metadata":{"command_line":"/usr/bin/x --secret"},"traceEvents":[
            {"name":"thread_name","ph":"M","args":{"name":"CrRendererMain"}},
            {"name":"num_cpus","ph":"M","args":{"number":2}},
            {"args":{"ph":"M"},"name":"RunTask","ph":"X","ts":12345678901234.5}]}"#
            .to_vec();
        let text = String::from_utf8(render(&bundle, &bundle.trace).unwrap()).unwrap();
        assert!(
            text.contains("thread_name") && text.contains("12345678901234.5"),
            "{text}"
        );
        assert!(
            !text.contains("num_cpus") && !text.contains("secret"),
            "{text}"
        );
    }

    #[test]
    fn an_invalid_trace_is_an_error() {
        let mut bundle = bundle_with_log("[]");
        bundle.trace = b"nothing".to_vec();
        assert!(render(&bundle, &bundle.trace).is_err());
    }
}
