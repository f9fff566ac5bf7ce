//! The log of requests.

use std::{cell::RefCell, io, sync::Once};

use serde_json::{Value, json};

use crate::{
    rig::{HttpRequest, Rig, get, order, start},
    visitor,
};

thread_local! {
    /// The log of one test: a test and its service run on one thread.
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

/// Captures the log of the whole process: a subscriber of one thread can miss events that another
/// thread, which has none, registers first.
pub fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::fmt().json().with_writer(|| Log).init());
}

/// Returns the log of this test's service.
pub fn text() -> String {
    LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap())
}

fn lines() -> Vec<Value> {
    let text = LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap());
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn a_log_line_names_the_audit_if_it_exists() {
    let rig = Rig::new().await;
    LOG.take();
    let tracking_id = rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, visitor::report(), None).await;
    let deleted = HttpRequest::new("DELETE", &format!("/v1/audit/data/{}", lease.audit_id));
    for request in [
        get(&format!("/v1/audit/status/{tracking_id}")),
        get("/v1/audit/status/of-another-account"),
        deleted,
    ] {
        rig.send(&request.key(&rig.key)).await;
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
async fn successful_probes_are_not_logged() {
    let rig = Rig::new().await;
    LOG.take();
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(rig.fetch(&get(path)).await.status, 200, "{path}");
    }
    assert_eq!(lines(), Vec::<Value>::new());
    rig.send(&HttpRequest::new("DELETE", "/healthz")).await;
    assert_eq!(lines().len(), 1, "{:?}", lines());
}

#[tokio::test]
async fn each_request_has_one_log_line_and_a_server_error_one_more_with_the_request_id_but_never_the_key()
 {
    let rig = Rig::new().await;
    // Threads may be reused for another test.
    LOG.take();

    rig.send(
        &get("/v1/audit/status/secret-id")
            .key(&rig.key)
            .header("X-Request-Id", "a"),
    )
    .await;
    rig.send(&get("/nowhere/secret-path").header("X-Request-Id", "b"))
        .await;
    let mut body = order();
    body["url"] = json!("https://panic.example/");
    rig.send(&start(&rig.key, &body).header("X-Request-Id", "c"))
        .await;

    let lines = lines();
    let logged: Vec<_> = lines
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
        logged,
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
            .contains("deliberate panic")
    );
    assert!(lines[0]["fields"]["duration_us"].is_u64());
    let text = json!(lines).to_string();
    let secret = rig.key.rsplit('_').next().unwrap();
    assert!(!text.contains(secret) && !text.contains("secret-id") && !text.contains("secret-path"));
}
