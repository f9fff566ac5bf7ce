//! A builder of hand-written visits for the unit tests of the checks.

use std::collections::BTreeMap;

use plumbline_bundle::{Artifact, BrowserIdentity, Bundle, FORMAT, MainDocument};
use plumbline_catalog::Mode;
use plumbline_model::check::Verdict;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Check, Outcome};
use crate::facts::Facts;

pub(crate) const PAGE: &str = "https://example.test/page";

/// A builder of a visit's bundle.
pub(crate) struct Visit {
    requested_url: String,
    url: String,
    status: u16,
    headers: BTreeMap<String, String>,
    more_requests: Vec<serde_json::Value>,
    trace: Vec<u8>,
    artifacts: BTreeMap<String, Artifact>,
    mode: Mode,
}

impl Visit {
    pub(crate) fn new() -> Self {
        Self::to(PAGE)
    }

    pub(crate) fn to(url: &str) -> Self {
        Self {
            requested_url: url.to_owned(),
            url: url.to_owned(),
            status: 200,
            headers: BTreeMap::new(),
            more_requests: Vec::new(),
            trace: Vec::new(),
            artifacts: BTreeMap::new(),
            mode: Mode::Mobile,
        }
    }

    pub(crate) fn requested(mut self, url: &str) -> Self {
        self.requested_url = url.to_owned();
        self
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a response header of the document; multiple values are separated by line breaks.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn desktop(mut self) -> Self {
        self.mode = Mode::Desktop;
        self
    }

    /// Sets Chromium's trace of the visit, as an array of events.
    pub(crate) fn trace(mut self, events: &serde_json::Value) -> Self {
        self.trace = serde_json::to_vec(events).expect("the trace is JSON");
        self
    }

    pub(crate) fn with(mut self, artifact: &str, json: &str) -> Self {
        let raw = RawValue::from_string(json.to_owned()).expect("the artifact is JSON");
        self.artifacts
            .insert(artifact.to_owned(), Artifact::Gathered(raw));
        self
    }

    pub(crate) fn without(mut self, artifact: &str, reason: &str) -> Self {
        self.artifacts
            .insert(artifact.to_owned(), Artifact::Missing(reason.to_owned()));
        self
    }

    /// Adds a finished request, besides the document's, with status 200.
    pub(crate) fn requests(mut self, url: &str, resource_type: &str, mime_type: &str) -> Self {
        let id = format!("request-{}", self.more_requests.len());
        self.more_requests.extend([
            json!({"method": "Network.requestWillBeSent", "params": {"requestId": id,
                "type": resource_type, "request": {"url": url, "isSameSite": true}}}),
            json!({"method": "Network.responseReceived", "params": {"requestId": id,
                "type": resource_type,
                "response": {"url": url, "status": 200, "mimeType": mime_type}}}),
            json!({"method": "Network.loadingFinished", "params": {"requestId": id}}),
        ]);
        self
    }

    /// Replaces the message that ends the last request.
    pub(crate) fn ended_by(mut self, method: &str) -> Self {
        if let Some(message) = self.more_requests.last_mut() {
            message["method"] = json!(method);
        }
        self
    }

    pub(crate) fn bundle(self) -> Bundle {
        let mut log = vec![
            json!({"method": "Network.requestWillBeSent", "params": {"requestId": "main",
                "type": "Document", "frameId": "main-frame", "wallTime": 1_700_000_000.0,
                "request": {"url": self.url, "isSameSite": true}}}),
            json!({"method": "Network.responseReceived", "params": {"requestId": "main",
                "type": "Document", "response": {"url": self.url, "status": self.status,
                "mimeType": "text/html", "headers": self.headers}}}),
            json!({"method": "Network.loadingFinished", "params": {"requestId": "main"}}),
        ];
        log.extend(self.more_requests);
        Bundle {
            recording: None,
            profile_trace: None,
            format: FORMAT,
            requested_url: self.requested_url,
            final_url: self.url,
            document: MainDocument::default(),
            browser: BrowserIdentity::default(),
            trace: self.trace,
            log: serde_json::to_vec(&log).expect("the log is JSON"),
            screenshot: None,
            artifacts: self.artifacts,
            warnings: Vec::new(),
            timings: Vec::new(),
        }
    }

    pub(crate) fn judge(self, check: Check) -> Outcome {
        let mode = self.mode;
        let bundle = self.bundle();
        (check.run)(&Facts::new(&bundle, mode))
            .unwrap_or_else(|missing| Outcome::could_not_measure(missing.to_string()))
    }

    pub(crate) fn verdict(self, check: Check) -> Verdict {
        self.judge(check).verdict
    }
}

/// Returns the verdict on a visit that has neither the artifacts that the check needs nor a log.
pub(crate) fn verdict_without_evidence(check: Check) -> Verdict {
    let mut bundle = Visit::new().bundle();
    bundle.log = b"lost".to_vec();
    let facts = Facts::new(&bundle, Mode::Mobile);
    (check.run)(&facts).map_or(Verdict::CouldNotMeasure, |outcome| outcome.verdict)
}
