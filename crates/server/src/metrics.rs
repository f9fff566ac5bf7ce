//! Figures for operators, in Prometheus' text format (exposition format 0.0.4).
//!
//! Nothing in them names an account, a key or a page.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::{Method, StatusCode};
use plumbline_store::{
    DeliveryDepth, LATENCY_BOUNDS_US, LatencyCounts, QueueDepth, StoreLatency, Timestamp,
};

const REQUEST_BOUNDS_S: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0];
const PHASE_BOUNDS_S: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0];
const SHARE_BOUNDS: &[f64] = &[0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8];

/// Counts since the process began.
#[derive(Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    requests: BTreeMap<(String, String, u16), u64>,
    request_seconds: BTreeMap<String, Histogram>,
    audits: BTreeMap<String, u64>,
    audit_faults: u64,
    audits_handed_back: u64,
    visits: u64,
    phase_seconds: BTreeMap<String, Histogram>,
    contention: Option<Histogram>,
    webhooks: BTreeMap<&'static str, u64>,
}

/// What an agent says about an audit that it finished.
#[derive(Debug, Clone, Default)]
pub struct AuditFigures {
    /// `measured`, or the code of the error.
    pub outcome: String,
    pub phases: Vec<(String, Duration)>,
    /// The part of its time in which the page's main thread had no core, 0 to 1.
    pub contention: Option<f64>,
    pub visits: u32,
}

/// Browsers since the process began.
#[derive(Debug, Clone, Copy, Default)]
pub struct BrowserCounts {
    pub started: u64,
    pub failed: u64,
    /// Found dead when they were needed.
    pub dead: u64,
    /// Whether each has a network namespace of its own.
    pub have_own_network: bool,
}

/// How things stand at the moment.
pub(crate) struct Now {
    pub(crate) depth: QueueDepth,
    pub(crate) waiting_since: Option<Timestamp>,
    pub(crate) deliveries: DeliveryDepth,
    pub(crate) latency: StoreLatency,
    pub(crate) browsers: Option<BrowserCounts>,
    pub(crate) field: Vec<(&'static str, u64)>,
    pub(crate) at: Timestamp,
}

impl Metrics {
    pub(crate) fn request(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let mut counts = self.lock();
        // Methods are anybody's to invent; routes are ours.
        let method = match *method {
            Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::DELETE => {
                method.as_str()
            }
            _ => "other",
        };
        let key = (method.to_owned(), route.to_owned(), status.as_u16());
        *counts.requests.entry(key).or_default() += 1;
        counts
            .request_seconds
            .entry(route.to_owned())
            .or_insert_with(|| Histogram::new(REQUEST_BOUNDS_S))
            .note(took.as_secs_f64());
    }

    pub fn audit_finished(&self, figures: &AuditFigures) {
        let mut counts = self.lock();
        *counts.audits.entry(figures.outcome.clone()).or_default() += 1;
        counts.visits += u64::from(figures.visits);
        for (phase, took) in &figures.phases {
            counts
                .phase_seconds
                .entry(phase.clone())
                .or_insert_with(|| Histogram::new(PHASE_BOUNDS_S))
                .note(took.as_secs_f64());
        }
        if let Some(share) = figures.contention {
            counts
                .contention
                .get_or_insert_with(|| Histogram::new(SHARE_BOUNDS))
                .note(share);
        }
    }

    pub fn audit_faulted(&self) {
        self.lock().audit_faults += 1;
    }

    pub fn audit_handed_back(&self) {
        self.lock().audits_handed_back += 1;
    }

    pub(crate) fn webhook(&self, outcome: &'static str) {
        *self.lock().webhooks.entry(outcome).or_default() += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn text(&self, now: &Now) -> String {
        let counts = self.lock();
        let mut text = Text::default();
        text.head(
            "plumbline_requests_total",
            "counter",
            "Answers by method, route and status.",
        );
        for ((method, route, status), count) in &counts.requests {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            text.line("plumbline_requests_total", &labels, *count as f64);
        }
        let help = "How long answers took, by route.";
        text.head("plumbline_request_seconds", "histogram", help);
        for (route, histogram) in &counts.request_seconds {
            let label = format!("route=\"{route}\"");
            text.histogram("plumbline_request_seconds", &label, histogram);
        }
        text.audits(&counts);
        text.queue(now);
        let help = "Webhooks by what became of an attempt.";
        text.head("plumbline_webhook_attempts_total", "counter", help);
        for (outcome, count) in &counts.webhooks {
            let label = format!("outcome=\"{outcome}\"");
            text.line("plumbline_webhook_attempts_total", &label, *count as f64);
        }
        let help = "Questions for field data, by what became of them.";
        text.head("plumbline_field_questions_total", "counter", help);
        for (outcome, count) in &now.field {
            let label = format!("outcome=\"{}\"", outcome.to_ascii_lowercase());
            text.line("plumbline_field_questions_total", &label, *count as f64);
        }
        text.head(
            "plumbline_store_seconds",
            "histogram",
            "How long the store took, by kind.",
        );
        for (kind, latency) in [("read", &now.latency.reads), ("write", &now.latency.writes)] {
            let label = format!("kind=\"{kind}\"");
            text.histogram("plumbline_store_seconds", &label, &latency.into());
        }
        text.0
    }
}

/// `plumbline_`-prefixed lines, each metric's under its head.
#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            _ => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    fn histogram(&mut self, name: &str, label: &str, histogram: &Histogram) {
        let separator = if label.is_empty() { "" } else { "," };
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.bounds.iter().zip(&histogram.up_to) {
            let labels = format!("{label}{separator}le=\"{bound}\"");
            self.line(&bucket, &labels, *count as f64);
        }
        let labels = format!("{label}{separator}le=\"+Inf\"");
        self.line(&bucket, &labels, histogram.count as f64);
        self.line(&format!("{name}_sum"), label, histogram.sum);
        self.line(&format!("{name}_count"), label, histogram.count as f64);
    }

    fn audits(&mut self, counts: &Counts) {
        let help = "Audits finished through this server, by outcome.";
        self.head("plumbline_audits_finished_total", "counter", help);
        for (outcome, count) in &counts.audits {
            let label = format!("outcome=\"{outcome}\"");
            self.line("plumbline_audits_finished_total", &label, *count as f64);
        }
        let help = "Attempts that ended by a fault of ours.";
        let faults = counts.audit_faults as f64;
        self.one("plumbline_audit_faults_total", "counter", help, faults);
        let help = "Audits handed back because an agent was stopped.";
        let back = counts.audits_handed_back as f64;
        self.one("plumbline_audits_handed_back_total", "counter", help, back);
        let help = "Page loads; more than audits where a visit was repeated.";
        self.one(
            "plumbline_visits_total",
            "counter",
            help,
            counts.visits as f64,
        );
        let help = "How long audits took, by phase.";
        self.head("plumbline_audit_phase_seconds", "histogram", help);
        for (phase, histogram) in &counts.phase_seconds {
            let label = format!("phase=\"{phase}\"");
            self.histogram("plumbline_audit_phase_seconds", &label, histogram);
        }
        let help = "The part of a visit in which the page stood ready and had no core.";
        self.head("plumbline_contention_share", "histogram", help);
        if let Some(histogram) = &counts.contention {
            self.histogram("plumbline_contention_share", "", histogram);
        }
    }

    fn queue(&mut self, now: &Now) {
        self.head(
            "plumbline_queue_audits",
            "gauge",
            "Unfinished audits by state.",
        );
        self.line(
            "plumbline_queue_audits",
            "state=\"waiting\"",
            now.depth.waiting as f64,
        );
        self.line(
            "plumbline_queue_audits",
            "state=\"running\"",
            now.depth.running as f64,
        );
        let age_ms = now
            .waiting_since
            .map_or(0, |since| (now.at.0 - since.0).max(0));
        let help = "How long the oldest waiting audit has waited.";
        let age_s = age_ms as f64 / 1000.0;
        self.one("plumbline_queue_age_seconds", "gauge", help, age_s);
        self.head("plumbline_webhooks", "gauge", "Webhooks by state.");
        self.line(
            "plumbline_webhooks",
            "state=\"pending\"",
            now.deliveries.pending as f64,
        );
        self.line(
            "plumbline_webhooks",
            "state=\"given-up\"",
            now.deliveries.given_up as f64,
        );
        if let Some(browsers) = now.browsers {
            self.head(
                "plumbline_browsers_total",
                "counter",
                "Browsers by what became of them.",
            );
            for (what, count) in [
                ("started", browsers.started),
                ("failed", browsers.failed),
                ("dead", browsers.dead),
            ] {
                let label = format!("what=\"{what}\"");
                self.line("plumbline_browsers_total", &label, count as f64);
            }
            self.one(
                "plumbline_browser_network_isolated",
                "gauge",
                "Whether each browser has a network namespace of its own (1) or shares the \
                 machine's network (0).",
                f64::from(u8::from(browsers.have_own_network)),
            );
        }
    }
}

struct Histogram {
    bounds: Vec<f64>,
    /// Values up to each bound, smaller ones included.
    up_to: Vec<u64>,
    count: u64,
    sum: f64,
}

impl Histogram {
    fn new(bounds: &[f64]) -> Self {
        Self {
            bounds: bounds.to_vec(),
            up_to: vec![0; bounds.len()],
            count: 0,
            sum: 0.0,
        }
    }

    fn note(&mut self, value: f64) {
        for (bound, count) in self.bounds.iter().zip(&mut self.up_to) {
            *count += u64::from(value <= *bound);
        }
        self.count += 1;
        self.sum += value;
    }
}

impl From<&LatencyCounts> for Histogram {
    fn from(counts: &LatencyCounts) -> Self {
        Self {
            bounds: LATENCY_BOUNDS_US.map(|us| us as f64 / 1e6).to_vec(),
            up_to: counts.up_to.to_vec(),
            count: counts.count,
            sum: counts.sum_us as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_every_bucket_that_holds_it() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 9.0] {
            histogram.note(value);
        }
        let mut text = Text::default();
        text.histogram("h", "a=\"b\"", &histogram);
        let expected = "h_bucket{a=\"b\",le=\"1\"} 2\nh_bucket{a=\"b\",le=\"2\"} 3\n\
                        h_bucket{a=\"b\",le=\"+Inf\"} 4\nh_sum{a=\"b\"} 12\nh_count{a=\"b\"} 4\n";
        assert_eq!(text.0, expected);
    }
}
