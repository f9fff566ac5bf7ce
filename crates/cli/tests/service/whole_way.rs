//! Tests of whole audits, from start to report.

use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, credits};

#[test]
fn an_audit_is_started_completed_and_read_for_one_credit() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 3);
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    let url = format!("http://{}/", pages::serve());
    let started = client.start(&url);
    assert_eq!(started.status, 200, "{started:?}");
    let status = completed(&client, started.json["trackingId"].as_str().unwrap());
    assert_eq!(status["url"], url.as_str());
    let response = client.get(&format!(
        "/v1/audit/data/{}",
        status["auditId"].as_str().unwrap()
    ));
    let audit_data = &response.json["data"];
    assert_eq!(response.status, 200);
    assert_eq!(audit_data["device"], "Desktop (1350x940)");
    assert_eq!(audit_data["location"], "Dallas, Texas, USA");
    for metric in ["performance", "fcp", "lcp", "si", "tbt", "tti", "cls"] {
        assert!(
            audit_data["labData"][metric].is_number(),
            "{metric}: {response:?}"
        );
    }
    assert!(audit_data["labData"]["performance"].as_i64().unwrap() >= 90);
    assert_eq!(credits(data.path(), &key), 2);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_page_that_cannot_be_measured_is_completed_with_an_error_and_refunded() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 1);
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    let url = format!("http://{}/", pages::unused_address());
    let started = client.start(&url);
    let status = completed(&client, started.json["trackingId"].as_str().unwrap());
    assert_eq!(status["error"]["code"], "CONNECTION_FAILED", "{status}");
    let response = client.get(&format!(
        "/v1/audit/data/{}",
        status["auditId"].as_str().unwrap()
    ));
    assert!(
        response.json["data"]["labData"]["fcp"].is_null(),
        "{response:?}"
    );
    assert_eq!(response.json["data"]["error"], status["error"]);
    assert_eq!(credits(data.path(), &key), 1);
}

#[test]
fn a_private_address_is_refused_unless_it_is_allowed() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 1);
    let server = Server::start(data.path(), &["--slots", "0"]);
    let client = Client {
        address: server.address,
        key,
    };
    for url in [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://10.1.2.3/",
    ] {
        let response = client.start(url);
        assert_eq!(
            (response.status, &response.json["message"]),
            (406, &"Invalid Url".into())
        );
    }
}
