//! Audits of the service's own pages, which must fail no check of accessibility, best practices and
//! SEO, and whose content must not shift.

use std::thread;

use serde_json::Value;

/// The layout shift score below which nobody notices a shift.
const NEGLIGIBLE_SHIFT: f64 = 0.005;

use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, plumbline};

/// A page of the service, and an element by which it is recognised.
struct OwnPage {
    path: String,
    element: &'static str,
    is_signed_in: bool,
    /// Whether search engines may show it.
    is_for_everyone: bool,
}

impl OwnPage {
    fn new(path: impl Into<String>, element: &'static str) -> Self {
        Self {
            path: path.into(),
            element,
            is_signed_in: true,
            is_for_everyone: true,
        }
    }

    fn public(path: impl Into<String>, element: &'static str) -> Self {
        Self {
            is_signed_in: false,
            ..Self::new(path, element)
        }
    }

    /// Returns what fails on the page with these options, with its score.
    fn faults(&self, client: &Client, cookie: &str, options: &[&str]) -> Vec<String> {
        let mut command = plumbline();
        command
            .args(["audit", "--quick", "--json", "--expect-selector"])
            .arg(self.element)
            .args(options)
            .arg(format!("http://{}{}", client.address, self.path));
        if self.is_signed_in {
            command.args(["--cookie", cookie]);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}: {output:?}", self.path);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut faults = Vec::new();
        let shift = report["metrics"]["cls"]["value"].as_f64().unwrap();
        if shift > NEGLIGIBLE_SHIFT {
            faults.push(format!("{} {options:?}: shifts by {shift}", self.path));
        }
        for category in report["categories"].as_array().unwrap() {
            let id = category["id"].as_str().unwrap();
            let must_be_perfect = matches!(id, "accessibility" | "best-practices")
                || (id == "seo" && self.is_for_everyone);
            if !must_be_perfect {
                continue;
            }
            let checks = category["checks"].as_array().unwrap();
            let weighs = |check: &&Value| check["weight"].as_f64() > Some(0.0);
            let failed = checks
                .iter()
                .filter(weighs)
                .filter(|check| check["verdict"] == "fail");
            let failed: Vec<_> = failed
                .map(|check| format!("{}: {}", check["id"], check["summary"]))
                .collect();
            let score = &category["score"];
            // The score is null if a check could not be measured, which the page does not decide.
            let is_perfect = *score == 100 || score.is_null();
            if !is_perfect || !failed.is_empty() {
                faults.push(format!(
                    "{} {options:?}: {id} {score}, {failed:?}",
                    self.path
                ));
            }
        }
        faults
    }
}

#[test]
fn our_own_pages_have_100_in_accessibility_best_practices_and_seo_and_do_not_shift() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 20);
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let client = Client {
        address: server.address,
        key,
    };
    let site = pages::serve();
    let audits = [1, 2].map(|_| {
        let started = client.start(&format!("http://{site}/rich"));
        let tracking_id = started.json["trackingId"].as_str().unwrap();
        let audit_id = &completed(&client, tracking_id)["auditId"];
        audit_id.as_str().unwrap().to_owned()
    });
    let shared = client.post(
        &format!("/v1/audit/share/{}", audits[0]),
        &serde_json::json!({}),
    );
    let shared = shared.json["data"]["path"].as_str().unwrap().to_owned();
    // The last of these waits for the others, whose site does not respond.
    let hanging = pages::serve_after(thread::park);
    let unfinished = [1, 2, 3, 4].map(|_| client.start(&format!("http://{hanging}/")));
    let unfinished = unfinished[3].json["trackingId"].as_str().unwrap();

    let [before, after] = &audits;
    let own_pages = [
        OwnPage::new(format!("/audits/{unfinished}"), ".js-phases"),
        OwnPage::public("/", "form[action='/sign-in']"),
        OwnPage::public("/docs", "h1"),
        OwnPage {
            is_for_everyone: false,
            ..OwnPage::public(shared, ".rings")
        },
        OwnPage::new("/", ".order"),
        OwnPage::new("/audits", "table.past"),
        OwnPage::new(format!("/reports/{before}"), ".rings"),
        OwnPage::new(format!("/history?audit={before}"), ".trend"),
        OwnPage::new(format!("/compare?before={before}&after={after}"), ".film"),
    ];
    let cookie = client.sign_in();
    let report = OwnPage::new(format!("/reports/{before}"), ".rings");
    let on_mobile = own_pages
        .iter()
        .flat_map(|page| page.faults(&client, &cookie, &["--network", "wifiFast"]));
    // Its network is so slow that the page is painted before its script has come.
    let on_desktop = report.faults(&client, &cookie, &["--device", "desktop"]);
    let faults: Vec<String> = on_mobile.chain(on_desktop).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
