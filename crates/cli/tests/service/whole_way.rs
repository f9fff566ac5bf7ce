use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, credits};

#[test]
fn an_audit_goes_from_start_to_report_and_costs_one_credit() {
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
    let answer = client.get(&format!(
        "/v1/audit/data/{}",
        status["auditId"].as_str().unwrap()
    ));
    let data_of_report = &answer.json["data"];
    assert_eq!(answer.status, 200);
    assert_eq!(data_of_report["device"], "Desktop (1350x940)");
    assert_eq!(data_of_report["location"], "Dallas, Texas, USA");
    for metric in ["performance", "fcp", "lcp", "si", "tbt", "tti", "cls"] {
        assert!(
            data_of_report["labData"][metric].is_number(),
            "{metric}: {answer:?}"
        );
    }
    assert!(data_of_report["labData"]["performance"].as_i64().unwrap() >= 90);
    assert_eq!(credits(data.path(), &key), 2);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_page_that_cannot_be_measured_is_completed_with_its_reason_and_paid_back() {
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
    let answer = client.get(&format!(
        "/v1/audit/data/{}",
        status["auditId"].as_str().unwrap()
    ));
    assert!(
        answer.json["data"]["labData"]["fcp"].is_null(),
        "{answer:?}"
    );
    assert_eq!(answer.json["data"]["error"], status["error"]);
    assert_eq!(credits(data.path(), &key), 1);
}

#[test]
fn a_private_address_is_refused_unless_it_was_allowed() {
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
        let answer = client.start(url);
        assert_eq!(
            (answer.status, &answer.json["message"]),
            (406, &"Invalid Url".into())
        );
    }
}
