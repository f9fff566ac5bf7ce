//! Metrics for operators, in Prometheus' text format (exposition format 0.0.4).
//!
//! No metric names an account, a key or a page.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use axum::{
    body::Bytes,
    http::{Method, StatusCode},
};
use parking_lot::Mutex;
use plumbline_model::report::CpuEmulationMethod;
use plumbline_store::{
    DeliveryDepth, LATENCY_BOUNDS_US, LatencyCounts, QueueDepth, StoreLatency, Timestamp,
};

const REQUEST_BOUNDS_S: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0];
const PHASE_BOUNDS_S: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0];
const SHARE_BOUNDS: &[f64] = &[0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8];

/// Counters since the process started.
#[derive(Default)]
pub struct Metrics(Mutex<Counts>);

/// The last rendered metrics, and when they were read.
#[derive(Default)]
pub(crate) struct MetricsCache(pub(crate) tokio::sync::Mutex<Option<(Timestamp, Bytes)>>);

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
    cpu_emulations: BTreeMap<&'static str, u64>,
    run_seconds: Option<Histogram>,
    webhooks: BTreeMap<&'static str, u64>,
}

/// The figures of a finished audit.
#[derive(Debug, Clone, Default)]
pub struct AuditFigures {
    /// `measured`, or the code of the error.
    pub outcome: String,
    /// The duration of each phase, by name.
    pub phases: Vec<(String, Duration)>,
    /// The share of the time in which the page's main thread had to wait for a core, 0 to 1.
    pub contention: Option<f64>,
    /// The way in which the device's processor was emulated.
    pub cpu_emulation: Option<CpuEmulationMethod>,
    /// The number of page loads.
    pub visits: u32,
    /// The duration of one run with all of its visits; `None` if it is not known, or if the page
    /// could not be measured.
    pub run_duration: Option<Duration>,
}

/// The numbers of browsers since the process started.
#[derive(Debug, Clone, Copy, Default)]
pub struct BrowserCounts {
    /// Browsers that were started.
    pub started: u64,
    /// Browsers that failed to start.
    pub failed: u64,
    /// Started browsers that had ended when they were needed.
    pub dead: u64,
    /// Whether each browser has a network namespace of its own.
    pub have_own_network: bool,
}

/// The state of the service at one time.
pub(crate) struct Snapshot {
    pub(crate) depth: QueueDepth,
    pub(crate) waiting_since: Option<Timestamp>,
    pub(crate) deliveries: DeliveryDepth,
    pub(crate) latency: StoreLatency,
    pub(crate) browsers: Option<BrowserCounts>,
    pub(crate) field: Vec<(&'static str, u64)>,
    pub(crate) at: Timestamp,
}

impl Metrics {
    /// Counts a request.
    pub(crate) fn request(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        duration: Duration,
    ) {
        let mut counts = self.0.lock();
        // Clients can send any method, but routes are fixed.
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
            .record(duration.as_secs_f64());
    }

    /// Counts a finished audit.
    pub fn audit_finished(&self, figures: &AuditFigures) {
        let mut counts = self.0.lock();
        *counts.audits.entry(figures.outcome.clone()).or_default() += 1;
        counts.visits += u64::from(figures.visits);
        for (phase, duration) in &figures.phases {
            counts
                .phase_seconds
                .entry(phase.clone())
                .or_insert_with(|| Histogram::new(PHASE_BOUNDS_S))
                .record(duration.as_secs_f64());
        }
        if let Some(duration) = figures.run_duration {
            counts
                .run_seconds
                .get_or_insert_with(|| Histogram::new(PHASE_BOUNDS_S))
                .record(duration.as_secs_f64());
        }
        if let Some(method) = figures.cpu_emulation {
            *counts.cpu_emulations.entry(method.as_str()).or_default() += 1;
        }
        if let Some(share) = figures.contention {
            counts
                .contention
                .get_or_insert_with(|| Histogram::new(SHARE_BOUNDS))
                .record(share);
        }
    }

    /// Returns the mean duration of a run; `None` before the first.
    pub(crate) fn mean_run(&self) -> Option<Duration> {
        let counts = self.0.lock();
        let histogram = counts.run_seconds.as_ref()?;
        Duration::try_from_secs_f64(histogram.sum / histogram.count as f64).ok()
    }

    /// Counts an attempt that failed because of Plumbline itself.
    pub fn audit_faulted(&self) {
        self.0.lock().audit_faults += 1;
    }

    /// Counts an audit that was returned to the queue.
    pub fn audit_handed_back(&self) {
        self.0.lock().audits_handed_back += 1;
    }

    /// Counts an attempt to deliver a webhook.
    pub(crate) fn webhook(&self, outcome: &'static str) {
        *self.0.lock().webhooks.entry(outcome).or_default() += 1;
    }

    /// Renders all metrics.
    pub(crate) fn text(&self, snapshot: &Snapshot) -> String {
        let counts = self.0.lock();
        let mut text = Text::default();
        text.head(
            "plumbline_requests_total",
            "counter",
            "Responses by method, route and status.",
        );
        for ((method, route, status), count) in &counts.requests {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            text.line("plumbline_requests_total", &labels, *count as f64);
        }
        let help = "Response time by route.";
        text.head("plumbline_request_seconds", "histogram", help);
        for (route, histogram) in &counts.request_seconds {
            let label = format!("route=\"{route}\"");
            text.histogram("plumbline_request_seconds", &label, histogram);
        }
        text.audits(&counts);
        text.queue(snapshot);
        let help = "Attempts to deliver webhooks, by outcome.";
        text.head("plumbline_webhook_attempts_total", "counter", help);
        for (outcome, count) in &counts.webhooks {
            let label = format!("outcome=\"{outcome}\"");
            text.line("plumbline_webhook_attempts_total", &label, *count as f64);
        }
        let help = "Queries for field data, by outcome.";
        text.head("plumbline_field_questions_total", "counter", help);
        for (outcome, count) in &snapshot.field {
            let label = format!("outcome=\"{}\"", outcome.to_ascii_lowercase());
            text.line("plumbline_field_questions_total", &label, *count as f64);
        }
        text.head(
            "plumbline_store_seconds",
            "histogram",
            "Latency of the store, by kind.",
        );
        for (kind, latency) in [
            ("read", &snapshot.latency.reads),
            ("write", &snapshot.latency.writes),
        ] {
            let label = format!("kind=\"{kind}\"");
            text.histogram("plumbline_store_seconds", &label, &latency.into());
        }
        text.0
    }
}

/// Lines in the text format, those of each metric after its head.
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
        let help = "Attempts that failed because of Plumbline itself.";
        let faults = counts.audit_faults as f64;
        self.one("plumbline_audit_faults_total", "counter", help, faults);
        let help = "Audits returned to the queue because an agent stopped.";
        let handed_back = counts.audits_handed_back as f64;
        self.one(
            "plumbline_audits_handed_back_total",
            "counter",
            help,
            handed_back,
        );
        let help = "Page loads; more than audits where a visit was repeated.";
        self.one(
            "plumbline_visits_total",
            "counter",
            help,
            counts.visits as f64,
        );
        let help = "Duration of audits, by phase.";
        self.head("plumbline_audit_phase_seconds", "histogram", help);
        for (phase, histogram) in &counts.phase_seconds {
            let label = format!("phase=\"{phase}\"");
            self.histogram("plumbline_audit_phase_seconds", &label, histogram);
        }
        let help = "Duration of a run of measured audits, with all of its visits.";
        self.head("plumbline_audit_run_seconds", "histogram", help);
        if let Some(histogram) = &counts.run_seconds {
            self.histogram("plumbline_audit_run_seconds", "", histogram);
        }
        let help = "Measured audits by the way in which the device's processor was emulated.";
        self.head("plumbline_cpu_emulations_total", "counter", help);
        for (method, count) in &counts.cpu_emulations {
            let label = format!("method=\"{method}\"");
            self.line("plumbline_cpu_emulations_total", &label, *count as f64);
        }
        let help = "Share of a visit in which the page's main thread waited for a core.";
        self.head("plumbline_contention_share", "histogram", help);
        if let Some(histogram) = &counts.contention {
            self.histogram("plumbline_contention_share", "", histogram);
        }
    }

    fn queue(&mut self, snapshot: &Snapshot) {
        self.head(
            "plumbline_queue_audits",
            "gauge",
            "Unfinished audits by state.",
        );
        self.line(
            "plumbline_queue_audits",
            "state=\"waiting\"",
            snapshot.depth.waiting as f64,
        );
        self.line(
            "plumbline_queue_audits",
            "state=\"running\"",
            snapshot.depth.running as f64,
        );
        let age_ms = snapshot
            .waiting_since
            .map_or(0, |since| (snapshot.at.0 - since.0).max(0));
        let help = "Waiting time of the oldest waiting audit.";
        let age_s = age_ms as f64 / 1000.0;
        self.one("plumbline_queue_age_seconds", "gauge", help, age_s);
        self.head("plumbline_webhooks", "gauge", "Webhooks by state.");
        self.line(
            "plumbline_webhooks",
            "state=\"pending\"",
            snapshot.deliveries.pending as f64,
        );
        self.line(
            "plumbline_webhooks",
            "state=\"given-up\"",
            snapshot.deliveries.given_up as f64,
        );
        if let Some(browsers) = snapshot.browsers {
            self.head(
                "plumbline_browsers_total",
                "counter",
                "Browsers by outcome.",
            );
            for (outcome, count) in [
                ("started", browsers.started),
                ("failed", browsers.failed),
                ("dead", browsers.dead),
            ] {
                let label = format!("what=\"{outcome}\"");
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
    /// The number of values up to each bound.
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

    fn record(&mut self, value: f64) {
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
    fn a_value_counts_in_every_bucket_whose_bound_is_not_smaller() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 9.0] {
            histogram.record(value);
        }
        let mut text = Text::default();
        text.histogram("h", "a=\"b\"", &histogram);
        let expected = "h_bucket{a=\"b\",le=\"1\"} 2\nh_bucket{a=\"b\",le=\"2\"} 3\n\
                        h_bucket{a=\"b\",le=\"+Inf\"} 4\nh_sum{a=\"b\"} 12\nh_count{a=\"b\"} 4\n";
        assert_eq!(text.0, expected);
    }
}
