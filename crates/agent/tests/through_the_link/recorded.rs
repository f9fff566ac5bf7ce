//! Visits whose traffic is recorded, and replayed without the servers.

use std::sync::Arc;

use plumbline_agent::{AgentLocation, Auditor};
use plumbline_browser::Pool;
use plumbline_bundle::{Artifact, Bundle, FailureCode};
use plumbline_catalog::{BUILT_IN, Catalog};
use plumbline_link::Guard;
use plumbline_recording::{ConnectResult, Protocol, Recording};
use plumbline_seam::{AuditOutput, Order, Replay, VisitOptions};
use plumbline_traffic::RootCertStore;
use serde_json::Value;

use crate::rig::{cpu, interception, launcher};
use crate::secure_site::SecureSite;
use crate::site::{Response, Site};

const PAGE: &str = "<!doctype html><html lang=en><title>Recorded</title>\
    <link rel=stylesheet href=style.css><h1>Hello</h1><p>Some words to paint.</p>\
    <script src='script.js'></script>";
/// A script whose request differs in every visit.
const SCRIPT: &str = "fetch('/data.json?time=' + Date.now())\
    .then(response => response.text()).then(text => document.title = text)";

/// Performs audits that record and replay.
struct Rig {
    auditor: Auditor,
}

impl Rig {
    fn new(roots: RootCertStore, allow: Vec<plumbline_link::Target>) -> Self {
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let auditor = Auditor {
            interception: interception(roots),
            browsers: Pool::start(launcher(), 0),
            agent_location: AgentLocation {
                id: catalog.locations()[0].id.clone(),
                is_stated: true,
            },
            max_visits: 1,
            catalog: Arc::new(catalog),
            guard: Arc::new(Guard::new(allow)),
            cpu: cpu(),
        };
        Self { auditor }
    }

    async fn audit(&self, url: &str, options: VisitOptions) -> AuditOutput {
        let order = Order {
            url: url.to_owned(),
            device: "desktop".to_owned(),
            network: "wifi".to_owned(),
            location: self.auditor.agent_location.id.clone(),
            options,
        };
        self.auditor.audit(&order, &|_| {}).await.unwrap()
    }

    /// Records a visit.
    async fn record(&self, url: &str) -> (AuditOutput, Arc<Recording>) {
        let options = VisitOptions {
            record: true,
            ..VisitOptions::default()
        };
        let output = self.audit(url, options).await;
        assert_eq!(output.report.error, None);
        let bundle = Bundle::unpack(output.bundle.as_deref().unwrap()).unwrap();
        let recording = Recording::unpack(&bundle.recording.unwrap()).unwrap();
        let recording = Arc::new(recording);
        (output, recording)
    }

    async fn replay(&self, url: &str, recording: &Arc<Recording>) -> AuditOutput {
        self.auditor.interception.provide("recording", recording);
        self.replay_provided(url).await
    }

    async fn replay_provided(&self, url: &str) -> AuditOutput {
        self.audit(url, replaying(false)).await
    }
}

/// Returns the options of a replay.
pub fn replaying(repeatable: bool) -> VisitOptions {
    let replay = Replay {
        recording: "recording".to_owned(),
        attempt: 1,
        changes: Vec::new(),
        left_out: Vec::new(),
        subject: None,
        repeatable,
    };
    VisitOptions {
        replay: Some(Box::new(replay)),
        ..VisitOptions::default()
    }
}

fn paths(recording: &Recording) -> Vec<&str> {
    let paths = recording.exchanges.iter().map(|it| it.path.as_str());
    let mut paths: Vec<&str> = paths.map(|path| path.split('?').next().unwrap()).collect();
    paths.sort_unstable();
    paths
}

#[tokio::test]
async fn a_page_is_replayed_without_its_server_and_missing_requests_are_counted() {
    let site = Site::serve([
        ("/", Response::html(PAGE)),
        ("/style.css", Response::new("text/css", "h1 { color: red }")),
        ("/script.js", Response::new("text/javascript", SCRIPT)),
        ("/data.json", Response::new("application/json", "Fetched")),
    ])
    .await;
    let rig = Rig::new(RootCertStore::empty(), vec!["127.0.0.0/8".parse().unwrap()]);
    let url = site.url("/");
    let (recorded, recording) = rig.record(&url).await;
    assert_eq!(recorded.report.conditions.replay, None);
    for path in ["/", "/style.css", "/script.js", "/data.json"] {
        assert!(paths(&recording).contains(&path), "{recording:?}");
    }
    let requested = site.requested_paths().len();

    let replayed = rig.replay(&url, &recording).await;
    assert_eq!(replayed.report.error, None);
    let replay = replayed.report.conditions.replay.as_ref().unwrap();
    assert_eq!(replay.recorded_at, recording.recorded_at);
    assert_eq!(replay.missing, Vec::<String>::new());
    assert_eq!(site.requested_paths().len(), requested);
    assert_eq!(
        replayed.report.scores.accessibility,
        recorded.report.scores.accessibility
    );

    let mut shorter = (*recording).clone();
    shorter.exchanges.retain(|it| it.path != "/style.css");
    let replayed = rig.replay(&url, &Arc::new(shorter)).await;
    let replay = replayed.report.conditions.replay.as_ref().unwrap();
    assert_eq!(replay.missing, [site.url("/style.css")]);
    assert!(replay.missing_requests > 0);
    assert_eq!(site.requested_paths().len(), requested);
}

#[tokio::test]
async fn a_recording_of_localhost_is_replayed_where_localhost_is_not_allowed() {
    let site = Site::serve([("/", Response::html(PAGE))]).await;
    let url = site.url("/").replace("127.0.0.1", "localhost");
    let allowed = Rig::new(RootCertStore::empty(), vec!["localhost".parse().unwrap()]);
    let (_, recording) = allowed.record(&url).await;
    let replayed = Rig::new(RootCertStore::empty(), Vec::new());
    let replayed = replayed.replay(&url, &recording).await;
    assert_eq!(replayed.report.error, None);
}

#[tokio::test]
async fn https_is_recorded_and_replayed_with_its_protocol() {
    let site = SecureSite::serve(&[
        ("/", "text/html; charset=utf-8", PAGE),
        ("/style.css", "text/css", "h1 { color: red }"),
        ("/script.js", "text/javascript", SCRIPT),
        ("/data.json", "application/json", "Fetched"),
    ])
    .await;
    let rig = Rig::new(site.roots(), vec!["127.0.0.0/8".parse().unwrap()]);
    let (_, recording) = rig.record(&site.url("/")).await;
    let endpoint = &recording.endpoints[0];
    assert!(endpoint.endpoint.is_secure, "{endpoint:?}");
    let ConnectResult::Connected { protocol, .. } = endpoint.result else {
        panic!("{endpoint:?}");
    };
    assert_eq!(protocol, Protocol::Http2);
    let requested = site.requests();

    let replayed = rig.replay(&site.url("/"), &recording).await;
    assert_eq!(replayed.report.error, None);
    let replay = replayed.report.conditions.replay.as_ref().unwrap();
    assert_eq!(replay.missing, Vec::<String>::new());
    assert_eq!(site.requests(), requested);
    let bundle = Bundle::unpack(replayed.bundle.as_deref().unwrap()).unwrap();
    let log = String::from_utf8(bundle.log).unwrap();
    assert!(log.contains("\"protocol\":\"h2\""));
}

#[tokio::test]
async fn a_certificate_that_is_not_valid_fails_as_without_a_recorder() {
    let site = SecureSite::serve(&[("/", "text/html", PAGE)]).await;
    // The recorder does not trust the site's certificate, and no browser does.
    let rig = Rig::new(RootCertStore::empty(), vec!["127.0.0.0/8".parse().unwrap()]);
    let live = rig.audit(&site.url("/"), VisitOptions::default()).await;
    let options = VisitOptions {
        record: true,
        ..VisitOptions::default()
    };
    let recorded = rig.audit(&site.url("/"), options).await;
    let (live, recorded) = (live.report.error.unwrap(), recorded.report.error.unwrap());
    assert_eq!(live.code, recorded.code);
    assert_eq!(live.message, recorded.message);
    assert_eq!(site.requests(), 0);
}

#[tokio::test]
async fn a_recording_that_does_not_exist_is_an_error_of_the_report() {
    let rig = Rig::new(RootCertStore::empty(), Vec::new());
    let output = rig.replay_provided("http://127.0.0.1:9/").await;
    let failure = output.report.error.unwrap();
    assert_eq!(failure.code, FailureCode::PreconditionFailed);
}

#[tokio::test]
async fn blocked_requests_are_blocked_by_the_browser() {
    let site = Site::serve([
        ("/", Response::html(PAGE)),
        ("/style.css", Response::new("text/css", "h1 { color: red }")),
        ("/script.js", Response::new("text/javascript", SCRIPT)),
        ("/data.json", Response::new("application/json", "Fetched")),
    ])
    .await;
    let rig = Rig::new(RootCertStore::empty(), vec!["127.0.0.0/8".parse().unwrap()]);
    let url = site.url("/");
    let (_, recording) = rig.record(&url).await;
    rig.auditor.interception.provide("recording", &recording);
    let mut options = replaying(false);
    let block = serde_json::json!({ "type": "block", "pattern": "/script.js" });
    let changes = &mut options.replay.as_mut().unwrap().changes;
    changes.push(serde_json::from_value(block).unwrap());
    let output = rig.audit(&url, options).await;
    assert_eq!(output.report.error, None);
    let bundle = Bundle::unpack(output.bundle.as_deref().unwrap()).unwrap();
    let log: Vec<Value> = serde_json::from_slice(&bundle.log).unwrap();
    let failures = log
        .iter()
        .filter(|it| it["method"] == "Network.loadingFailed");
    let reasons: Vec<_> = failures.map(|it| &it["params"]["blockedReason"]).collect();
    assert_eq!(reasons, ["inspector"]);
    let replay = output.report.conditions.replay.as_ref().unwrap();
    assert_eq!(replay.missing, Vec::<String>::new());
}

/// A page that writes random numbers and dates to its console, and whether dates work.
const CHANCE: &str = "<!doctype html><title>Chance</title><h1>Words</h1><script>
    const date = new Date();
    const earlier = Date.now();
    const works = {
        utc: Date.UTC(1970, 0) === 0 && Date.parse('1970-01-01T00:00:00Z') === 0,
        values: new Date(5).getTime() === 5 && new Date(2020, 1).getMonth() === 1,
        class: date instanceof Date && date.constructor === Date && Date.name === 'Date',
        subclass: new (class Day extends Date {})() instanceof Date,
        text: typeof Date() === 'string' && Date().includes(String(date.getFullYear())),
        native: [Date, Date.now, Math.random].every((it) => /native code/.test(it.toString())),
        random: Math.random() !== Math.random(),
        origin: performance.timeOrigin + performance.now() + 1 >= earlier,
        navigation: Date.now() >= performance.timing.navigationStart,
        quota: (() => {
            try { crypto.getRandomValues(new Float32Array(1)); } catch { return true; }
        })(),
    };
    const random = [Math.random(), ...crypto.getRandomValues(new Uint32Array(3))];
    const uuid = crypto.randomUUID();
    console.error(JSON.stringify({ random, uuid, date: date.toISOString(), works }));
    </script>";

#[tokio::test]
async fn dates_and_random_numbers_repeat_if_that_is_wanted() {
    let site = Site::serve([("/", Response::html(CHANCE))]).await;
    let rig = Rig::new(RootCertStore::empty(), vec!["127.0.0.0/8".parse().unwrap()]);
    let url = site.url("/");
    let (_, recording) = rig.record(&url).await;
    let mut recording = (*recording).clone();
    recording.recorded_at = "2020-02-03T04:05:06Z".to_owned();
    let recording = Arc::new(recording);
    rig.auditor.interception.provide("recording", &recording);

    let mut pages = Vec::new();
    for repeatable in [true, true, false] {
        let output = rig.audit(&url, replaying(repeatable)).await;
        assert_eq!(output.report.error, None);
        let bundle = Bundle::unpack(output.bundle.as_deref().unwrap()).unwrap();
        let Artifact::Gathered(console) = &bundle.artifacts["console"] else {
            panic!("{:?}", bundle.artifacts["console"]);
        };
        let console: Vec<Value> = serde_json::from_str(console.get()).unwrap();
        let mut texts = console.iter().filter_map(|it| it["text"].as_str());
        let text = texts.find(|it| it.starts_with('{')).unwrap();
        pages.push(serde_json::from_str::<Value>(text).unwrap());
    }
    for page in &pages {
        for (name, works) in page["works"].as_object().unwrap() {
            assert_eq!(works, true, "{name}: {page}");
        }
        assert_eq!(page["uuid"].as_str().unwrap().len(), 36, "{page}");
        assert_eq!(&page["uuid"].as_str().unwrap()[14..15], "4", "{page}");
    }
    assert_eq!(pages[0]["random"], pages[1]["random"]);
    assert_eq!(pages[0]["uuid"], pages[1]["uuid"]);
    assert_ne!(pages[0]["random"], pages[2]["random"]);
    let is_old = |page: &Value| page["date"].as_str().unwrap().starts_with("2020-02-03T04:");
    assert!(
        pages[..2].iter().all(is_old) && !is_old(&pages[2]),
        "{pages:?}"
    );
}
