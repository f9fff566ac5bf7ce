//! Tests of a server that is killed repeatedly.

use std::time::Duration;

use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, credits};

/// Enough kills to hit the server before, during and after visits; the stress test in `docs/` uses
/// more.
const KILLS: usize = 3;
const AUDITS: i64 = 3;

#[test]
fn a_killed_server_loses_no_audit_and_charges_none_twice() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 100);
    let url = format!("http://{}/", pages::serve());
    let mut accepted = Vec::new();
    for kill in 0..KILLS {
        let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
        let client = Client {
            address: server.address,
            key: key.clone(),
        };
        if kill == 0 {
            for _ in 0..AUDITS {
                let response = client.start(&url);
                accepted.push(response.json["trackingId"].as_str().unwrap().to_owned());
            }
        }
        // The server is killed during a visit: as soon as an audit is in progress.
        let running = |id: &String| {
            let response = client.get(&format!("/v1/audit/status/{id}"));
            response.json["data"]["status"] == "in-progress"
        };
        while !accepted.iter().any(running) {
            std::thread::sleep(Duration::from_millis(20));
        }
        server.kill();
    }
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let client = Client {
        address: server.address,
        key: key.clone(),
    };
    for id in &accepted {
        let status = completed(&client, id);
        assert!(status["error"].is_null(), "{status}");
    }
    assert_eq!(credits(data.path(), &key), 100 - AUDITS);
    assert_eq!(server.stop(), Some(0));
}
