//! What an operator reads.

use std::{cell::RefCell, io, sync::Once};

use serde_json::{Value, json};

use crate::rig::{Ask, Rig, get, order, start};

thread_local! {
    /// A test and its service run on one thread, so each thread's log is one test's.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// For the whole process: a subscriber of one thread can miss events that another thread, which
/// has none, met first.
pub fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::fmt().json().with_writer(|| Log).init());
}

/// All that this test's service has said.
pub fn said() -> String {
    LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap())
}

fn lines() -> Vec<Value> {
    let text = LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap());
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn a_line_names_the_audit_it_is_about_once_that_is_known_to_be_one() {
    let rig = Rig::new().await;
    LOG.take();
    let tracking_id = rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, json!({}), None).await;
    let deleted = Ask::new("DELETE", &format!("/v1/audit/data/{}", lease.audit_id));
    for ask in [
        get(&format!("/v1/audit/status/{tracking_id}")),
        get("/v1/audit/status/somebody-elses"),
        deleted,
    ] {
        rig.ask(&ask.key(&rig.key)).await;
    }
    let named: Vec<_> = lines()
        .iter()
        .map(|line| line["fields"]["audit"].clone())
        .collect();
    assert_eq!(
        named,
        [
            json!(tracking_id),
            json!(tracking_id),
            Value::Null,
            json!(lease.audit_id)
        ]
    );
}

#[tokio::test]
async fn each_request_leaves_one_line_and_a_fault_one_more_with_its_id_and_never_the_key() {
    let rig = Rig::new().await;
    // Threads may be used again, for another test.
    LOG.take();

    rig.ask(
        &get("/v1/audit/status/secret-id")
            .key(&rig.key)
            .header("X-Request-Id", "a"),
    )
    .await;
    rig.ask(&get("/nowhere/secret-path").header("X-Request-Id", "b"))
        .await;
    let mut body = order();
    body["url"] = json!("https://panic.example/");
    rig.ask(&start(&rig.key, &body).header("X-Request-Id", "c"))
        .await;

    let lines = lines();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| &line["fields"])
        .map(|fields| {
            json!([
                fields["request_id"],
                fields["method"],
                fields["route"],
                fields["status"]
            ])
        })
        .collect();
    assert_eq!(
        seen,
        [
            json!(["a", "GET", "/v1/audit/status/{id}", 404]),
            json!(["b", "GET", "none", 404]),
            json!(["c", null, null, null]),
            json!(["c", "POST", "/v1/audit/start", 500]),
        ]
    );
    assert_eq!(lines[2]["level"], "ERROR");
    assert!(
        lines[2]["fields"]["error"]
            .as_str()
            .unwrap()
            .contains("a defect, on purpose")
    );
    assert!(lines[0]["fields"]["duration_us"].is_u64());
    let text = json!(lines).to_string();
    let secret = rig.key.rsplit('_').next().unwrap();
    assert!(!text.contains(secret) && !text.contains("secret-id") && !text.contains("secret-path"));
}
