//! Paths, ids in them, and methods.

use plumbline_store::{AuditOptions, NewAudit, Store, Submission};
use serde_json::json;

use crate::rig::{HttpRequest, NOW, Rig, failure, get, post};

#[tokio::test]
async fn an_unknown_id_is_not_found_however_it_is_written() {
    let rig = Rig::new().await;
    let ids = [
        "x".to_owned(),
        "x".repeat(50),
        "x".repeat(51),
        "x".repeat(5000),
        "%78".repeat(51),
        "%C3%BC".repeat(50),
        "%C3%BC".repeat(51),
        "%00".to_owned(),
        "mobile%00".to_owned(),
        "%ff".to_owned(),
        "%C3".to_owned(),
        "%zz".to_owned(),
        "%".to_owned(),
        "%2F".to_owned(),
        "..%2F..%2Fetc%2Fpasswd".to_owned(),
        "%0d%0aX-Evil:%20yes".to_owned(),
        "Mobile".to_owned(),
        "mobile%20".to_owned(),
        "+".to_owned(),
        "EU".to_owned(),
        "'%20OR%20''='".to_owned(),
        "%F0%9F%92%A9".to_owned(),
    ];
    for resource in [
        "/v1/audit/status",
        "/v1/audit/data",
        "/v1/devices",
        "/v1/locations",
    ] {
        for id in &ids {
            let request = get(&format!("{resource}/{id}")).key(&rig.key);
            let reply = rig.check(request, 404, failure("Resource Not Found")).await;
            assert_eq!(reply.header("x-evil"), None);
        }
    }
}

#[tokio::test]
async fn an_id_of_50_characters_is_found_and_one_of_51_never() {
    let rig = Rig::new().await;
    rig.start().await;
    let order = rig.lease().await.order;
    for letter in ["x", "ü"] {
        for (length, status) in [(50, 200), (51, 404)] {
            let audit = NewAudit {
                account_id: rig.account_id.clone(),
                tracking_id: letter.repeat(length),
                audit_id: format!("{letter}{length}"),
                order: order.clone(),
                options: AuditOptions::default(),
                accepted_at: NOW,
            };
            rig.store.submit(Submission::single(audit)).await.unwrap();
            let id = letter.replace('ü', "%C3%BC").repeat(length);
            let reply = rig
                .send(&get(&format!("/v1/audit/status/{id}")).key(&rig.key))
                .await;
            assert_eq!(reply.status, status, "{length} times {letter}");
        }
    }
}

#[tokio::test]
async fn a_percent_encoded_id_is_the_id() {
    let rig = Rig::new().await;
    let plain = rig.send(&get("/v1/devices/mobile")).await.json();
    rig.check(get("/v1/devices/%6D%6f%62ile"), 200, plain.clone())
        .await;
    rig.check(get("/v1/devices/mobile?x=1&y"), 200, plain.clone())
        .await;
    rig.check(get("http://plumbline.test/v1/devices/mobile"), 200, plain)
        .await;
}

#[tokio::test]
async fn any_other_path_is_not_found() {
    let rig = Rig::new().await;
    for path in [
        "/",
        "//",
        "/v1",
        "/v1/",
        "/v2/devices",
        "/v1/device",
        "/V1/devices",
        "/v1/devices/",
        "/v1/devices/mobile/",
        "/v1/devices/mobile/x",
        "/v1//devices",
        "//v1/devices",
        "/v1/./devices",
        "/v1/x/../devices",
        "/v1/%64evices",
        "/v1%2Fdevices",
        "/v1/locations/",
        "/v1/audit",
        "/v1/audit/status",
        "/v1/audit/status/",
        "/v1/audit/data/",
        "/v1/audit/start/",
        "/v1/networks/",
        "/v1/audits/",
        "/v1/batches/",
        "/healthz/",
        "/index.html",
        "/%00",
        "/%ff",
        "/%",
        "/favicon.ico",
        "/.env",
        "/v1/devices;x",
        "/?/v1/devices",
    ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let request = HttpRequest::new(method, path).key(&rig.key);
            rig.check(request, 404, failure("Resource Not Found")).await;
        }
    }
}

#[tokio::test]
async fn other_methods_are_refused_with_a_list_of_the_allowed_ones() {
    let rig = Rig::new().await;
    let routes = [
        ("/v1/audit/start", "POST"),
        ("/v1/audit/status/x", "GET,HEAD"),
        ("/v1/audit/data/x", "GET,HEAD,DELETE"),
        ("/v1/audits", "GET,HEAD"),
        ("/v1/batches", "POST"),
        ("/v1/batches/x", "GET,HEAD"),
        ("/v1/credits", "GET,HEAD"),
        ("/v1/locations", "GET,HEAD"),
        ("/v1/networks", "GET,HEAD"),
        ("/metrics", "GET,HEAD"),
        ("/openapi.json", "GET,HEAD"),
        ("/docs", "GET,HEAD"),
        ("/v1/devices", "GET,HEAD"),
        ("/v1/devices/mobile", "GET,HEAD"),
        ("/v1/locations/eu", "GET,HEAD"),
        ("/healthz", "GET,HEAD"),
        ("/readyz", "GET,HEAD"),
    ];
    for (path, allowed) in routes {
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get",
        ] {
            if allowed.split(',').any(|allowed| allowed == method) {
                continue;
            }
            let request = HttpRequest::new(method, path).key(&rig.key);
            let reply = rig.check(request, 405, failure("Method Not Allowed")).await;
            assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn head_responds_like_get_without_the_body() {
    let rig = Rig::new().await;
    let status = format!("/v1/audit/status/{}", rig.start().await);
    for path in [
        "/v1/devices",
        "/v1/devices/mobile",
        "/v1/devices/none",
        "/v1/locations/eu",
        "/healthz",
        "/readyz",
        "/none",
        &status,
        "/v1/audit/data/none",
    ] {
        let get_reply = rig.send(&get(path).key(&rig.key)).await;
        let mut connection = rig.connect().await;
        let head = HttpRequest::new("HEAD", path)
            .key(&rig.key)
            .header("Connection", "close");
        connection.write(&head.bytes()).await;
        let head = connection.reply_to("HEAD").await;
        assert_eq!(head.status, get_reply.status, "{path}");
        assert_eq!(
            head.header("content-length"),
            get_reply.header("content-length"),
            "{path}"
        );
        assert!(connection.is_closed().await, "{path}: a body after HEAD");
    }
    let unauthorized = rig.send(&HttpRequest::new("HEAD", &status)).await;
    assert_eq!(unauthorized.status, 401);
}

#[tokio::test]
async fn the_probes_need_no_key() {
    let rig = Rig::new().await;
    let probes = [("/healthz", "alive"), ("/readyz", "ready")];
    for (path, member) in probes {
        let expected = json!({ "status": "SUCCESS", "data": { (member): true } });
        rig.check(get(path), 200, expected).await;
    }
}

#[tokio::test]
async fn a_request_id_is_generated_or_taken_from_the_client_if_short_and_plain() {
    let rig = Rig::new().await;
    let id_for = async |client_id: Option<&str>| {
        let request = match client_id {
            Some(client_id) => get("/healthz").header("X-Request-Id", client_id),
            None => get("/healthz"),
        };
        rig.send(&request)
            .await
            .header("x-request-id")
            .unwrap()
            .to_owned()
    };
    assert_ne!(id_for(None).await, id_for(None).await);
    for accepted in ["a", "4bf92f35-77b3.4da6_a3ce", &"x".repeat(64)] {
        assert_eq!(id_for(Some(accepted)).await, accepted);
    }
    for replaced in ["", "a b", "a\"b", "\u{e9}", "{}", "a;b", &"x".repeat(65)] {
        assert_ne!(id_for(Some(replaced)).await, replaced);
    }
}

#[tokio::test]
async fn a_path_that_does_not_exist_needs_no_key_to_be_not_found() {
    let rig = Rig::new().await;
    rig.check(get("/v1/audit/nothing"), 404, failure("Resource Not Found"))
        .await;
    rig.check(
        post("/v1/audit/nothing", "x"),
        404,
        failure("Resource Not Found"),
    )
    .await;
}
