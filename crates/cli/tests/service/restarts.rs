use crate::client::Client;
use crate::pages;
use crate::server::{Server, completed, create_key, credits};

/// Enough to meet the server before, in and after visits; the stress run in `docs/` uses more.
const KILLS: usize = 4;
const AUDITS: i64 = 5;

#[test]
fn a_killed_server_loses_no_accepted_audit_and_charges_nobody_twice() {
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
                let answer = client.start(&url);
                accepted.push(answer.json["trackingId"].as_str().unwrap().to_owned());
            }
        }
        // Kill while a visit runs: each time the first unfinished audit is seen to be under way.
        let running = |id: &String| {
            let answer = client.get(&format!("/v1/audit/status/{id}"));
            answer.json["data"]["status"] == "in-progress"
        };
        while !accepted.iter().any(running) {
            std::thread::yield_now();
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
