//! A builder of hand-written traces for the unit tests of the checks that read resources.

use serde_json::{Value, json};

use crate::checks::testing::{PAGE, Visit};
use crate::checks::{Check, Outcome};

/// A trace whose document starts at 1 ms of the trace's clock and ends at 100 ms; the first paint
/// is at one second.
pub(crate) struct Traced(Vec<Value>);

impl Traced {
    pub(crate) fn new() -> Self {
        Self::with_document(json!({}), json!({}))
    }

    pub(super) fn with_document(response: Value, finish: Value) -> Self {
        let mark = |name: &str, ts: u64, data: Value| {
            json!({"name": name, "cat": "blink.user_timing,loading", "ph": "R", "ts": ts, "pid": 2, "tid": 3,
                   "args": {"frame": "F", "data": data}})
        };
        let traced = Self(vec![
            json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": 2, "tid": 3,
                   "args": {"name": "CrRendererMain"}}),
            json!({"name": "TracingStartedInBrowser", "cat": "devtools.timeline", "ph": "I", "ts": 1, "pid": 2,
                   "tid": 3, "args": {"data": {"frames": [{"frame": "F", "url": PAGE, "processId": 2}]}}}),
            mark(
                "navigationStart",
                1000,
                json!({"documentLoaderURL": PAGE, "navigationId": "N", "isLoadingMainFrame": true}),
            ),
            mark("firstPaint", 1_000_000, json!({})),
            mark("firstContentfulPaint", 1_000_000, json!({})),
        ]);
        let response = merged(json!({"mimeType": "text/html"}), response);
        traced.loads(
            "N",
            PAGE,
            1,
            100,
            json!({"resourceType": "Document"}),
            response,
            finish,
        )
    }

    /// Adds a resource that is requested at 150 ms and finished at 500 ms. The given members
    /// replace the defaults.
    pub(super) fn resource(self, id: &str, url: &str, sent: Value, response: Value) -> Self {
        self.loads(id, url, 150, 500, sent, response, json!({}))
    }

    #[expect(clippy::too_many_arguments, reason = "a test names what matters in it")]
    pub(super) fn loads(
        mut self,
        id: &str,
        url: &str,
        from_ms: u64,
        to_ms: u64,
        sent: Value,
        response: Value,
        finish: Value,
    ) -> Self {
        let event = |name: &str, ms: u64, data: Value| {
            json!({"name": name, "cat": "devtools.timeline", "ph": "I", "ts": ms * 1000, "pid": 2, "tid": 3,
                   "args": {"data": data}})
        };
        let sent = merged(
            json!({"requestId": id, "url": url, "frame": "F", "priority": "High",
                   "initiator": {"type": "parser", "url": PAGE}}),
            sent,
        );
        let response = merged(
            json!({"requestId": id, "statusCode": 200, "protocol": "http/1.1", "headers": [],
                   "timing": {"requestTime": from_ms as f64 / 1000.0, "sendEnd": 1.0, "receiveHeadersEnd": 20.0,
                              "dnsStart": -1, "dnsEnd": -1, "connectStart": -1, "connectEnd": -1}}),
            response,
        );
        let finish = merged(
            json!({"requestId": id, "encodedDataLength": 20_000, "decodedBodyLength": 19_800,
                   "finishTime": to_ms as f64 / 1000.0}),
            finish,
        );
        self.0.extend([
            event("ResourceSendRequest", from_ms, sent),
            event("ResourceReceiveResponse", to_ms - 1, response),
            event("ResourceFinish", to_ms, finish),
        ]);
        self
    }

    /// Moves the last resource to a frame in another process.
    pub(super) fn in_another_process(mut self) -> Self {
        for event in self.0.iter_mut().rev().take(3) {
            event["pid"] = json!(9);
        }
        self
    }

    pub(crate) fn event(mut self, name: &str, args: Value) -> Self {
        self.0.push(
            json!({"name": name, "cat": "devtools.timeline", "ph": "I", "ts": 600_000, "pid": 2, "tid": 3,
                   "args": args}),
        );
        self
    }

    pub(crate) fn visit(self) -> Visit {
        Visit::new().trace(&Value::Array(self.0))
    }

    /// Runs the check under network conditions of 150 ms and 1.6 Mbit/s.
    pub(super) fn judge_on_slow_network(self, check: Check) -> Outcome {
        let conditions = conditions_slowed_by(1.0);
        self.visit()
            .with("conditions", &conditions.to_string())
            .judge(check)
    }

    pub(super) fn judge(self, check: Check) -> Outcome {
        self.visit().judge(check)
    }

    /// Runs the check and returns the first text or URL cell of each row.
    pub(super) fn listed(self, check: Check) -> Vec<String> {
        rows(&self.judge(check))
    }
}

/// Returns conditions with a network of 150 ms and 1.6 Mbit/s and the CPU slowdown rate.
pub(super) fn conditions_slowed_by(rate: f64) -> Value {
    json!({
        "device": {"id": "mobile", "name": "", "mode": "mobile"},
        "network": {"id": "slow", "name": "", "downKbps": 1638.4, "upKbps": 750.0, "rttMs": 150.0},
        "location": {"id": "here", "name": "", "mode": "agent", "addedRttMs": 0.0},
        "cpu": {"rate": rate, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null, "limitedByHost": false,
                "contention": null, "visits": 0},
    })
}

pub(super) fn rows(outcome: &Outcome) -> Vec<String> {
    use plumbline_model::check::{Cell, Details};
    let Some(Details::Findings(findings)) = &outcome.details else {
        return Vec::new();
    };
    let named = |cell: &Cell| match cell {
        Cell::Url(text) | Cell::Text(text) => Some(text.clone()),
        _ => None,
    };
    findings
        .rows
        .iter()
        .filter_map(|row| row.cells.iter().find_map(named))
        .collect()
}

fn merged(mut defaults: Value, overrides: Value) -> Value {
    if let (Some(defaults), Value::Object(overrides)) = (defaults.as_object_mut(), overrides) {
        defaults.extend(overrides);
    }
    defaults
}
