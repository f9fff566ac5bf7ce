//! Parameters that an operation does not have.

use serde_json::json;

use crate::rig::{HttpRequest, Rig, failure, get, order, post};

#[tokio::test]
async fn operations_beyond_the_contract_refuse_unknown_parameters() {
    let rig = Rig::new().await;
    for request in [
        get("/v1/audits?device=mobile&labels=x"),
        get("/v1/batches/x?labels=1"),
        get("/v1/credits?labels"),
        get("/v1/webhook-secret?labels=1"),
        get("/v1/locations?labels=1"),
        get("/v1/networks?labels=1"),
        get("/v1/audit/report/x?labels=1&format=csv"),
        post("/v1/audit/cancel/x?labels=1", ""),
        post("/v1/batches/x/cancel?labels=1", ""),
        post("/v1/batches?labels=1", "{}").json(),
        HttpRequest::new("DELETE", "/v1/audit/data/x?labels=1"),
    ] {
        let request = request.key(&rig.key);
        let reply = rig.check(request, 400, failure("Unknown Parameter")).await;
        let body = reply.whole_json();
        assert_eq!(body["code"], "UNKNOWN_PARAMETER");
        assert_eq!(body["field"], "labels");
        assert!(body["reason"].is_string());
    }
}

#[tokio::test]
async fn a_refused_parameter_is_named_with_its_rule() {
    let rig = Rig::new().await;
    for (path, field, reason) in [
        (
            "/v1/audits?limit=0",
            "limit",
            "a whole number between 1 and 100",
        ),
        ("/v1/audits?cursor=zz", "cursor", "an earlier page"),
        ("/v1/audits?from=zz", "from", "a time in UTC"),
        (
            "/v1/audits?state=zz",
            "state",
            "not-started, in-progress or completed",
        ),
        ("/v1/audits?label=", "label", "at most 40 characters"),
        (
            "/v1/audits?device=",
            "device",
            "between 1 and 50 characters",
        ),
        ("/v1/audit/status/x?wait=999", "wait", "between 0 and 30"),
    ] {
        let reply = rig.send(&get(path).key(&rig.key)).await;
        let body = reply.whole_json();
        assert_eq!(
            (reply.status, &body["code"]),
            (400, &json!("INVALID_PARAMETER"))
        );
        assert_eq!(body["field"], field);
        let text = body["reason"].as_str().unwrap();
        assert!(text.contains(reason) && text.contains(field), "{text}");
    }
}

#[tokio::test]
async fn a_refused_key_and_missing_credits_have_reasons() {
    let rig = Rig::new().await;
    let reason = async |request: HttpRequest| {
        let body = rig.send(&request).await.whole_json();
        body["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason(get("/v1/credits")).await.contains("X-SVC-KEY"));
    let wrong = get("/v1/credits").key("wrong");
    assert!(reason(wrong).await.contains("mistyped"));
    let poor = rig.new_key(&rig.new_account(3).await, None).await;
    let mut body = order();
    body["runs"] = json!(5);
    let refused = reason(crate::rig::start(&poor, &body)).await;
    assert_eq!(refused, "This costs 5 credits, and the account has 3.");
}

#[tokio::test]
async fn operations_of_the_contract_ignore_unknown_parameters() {
    let rig = Rig::new().await;
    let request = post("/v1/audit/start?labels=1", order().to_string());
    let started = rig.send(&request.key(&rig.key).json()).await;
    assert_eq!(started.status, 200);
    let id = started.json()["trackingId"].as_str().unwrap().to_owned();
    let lease = rig.lease().await;
    rig.finish(&lease, crate::visitor::report(), None).await;
    for path in [
        format!("/v1/audit/status/{id}?labels=1"),
        format!("/v1/audit/data/{}?labels=1", lease.audit_id),
        "/v1/devices?labels=1".to_owned(),
        "/v1/devices/mobile?labels=1".to_owned(),
        "/v1/locations/eu?labels=1".to_owned(),
    ] {
        let reply = rig.send(&get(&path).key(&rig.key)).await;
        assert_eq!(reply.status, 200, "{path}");
    }
}

#[tokio::test]
async fn the_reference_page_lists_the_codes_of_failures() {
    let rig = Rig::new().await;
    let page = rig.fetch(&get("/docs")).await;
    for code in [
        "UNKNOWN_PARAMETER",
        "INVALID_LABELS",
        "TOO_MANY_FAILED_KEYS",
        "CANCELLED",
    ] {
        assert!(page.text().contains(code), "{code}");
    }
    let document = rig.fetch(&get("/openapi.json")).await.json();
    let code = &document["components"]["schemas"]["Failure"]["properties"]["code"];
    assert_eq!(code["examples"], json!(["INVALID_DEVICE"]));
}
