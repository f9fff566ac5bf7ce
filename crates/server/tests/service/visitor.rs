//! Helpers for tests of web pages.

use serde_json::{Value, json};

use crate::rig::{HttpRequest, Reply, Rig, Server, post};

/// Returns a form as sent by a page of the service.
pub fn form(path: &str, body: &str) -> HttpRequest {
    post(path, body)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Sec-Fetch-Site", "same-origin")
}

/// Signs in with a key, and returns the cookie of the session.
pub async fn sign_in(server: &Server, key: &str) -> String {
    let reply = server
        .browse(&form("/sign-in", &format!("key={key}")))
        .await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));
    cookie.split(';').next().unwrap().to_owned()
}

pub fn report() -> Value {
    json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/",
        "conditions": {
            "device": {"id": "mobile", "name": "A phone", "mode": "mobile"},
            "network": {"id": "normal4g", "name": "A line", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0},
            "location": {"id": "eu", "name": "A place", "mode": "agent", "addedRttMs": 0.0},
            "cpu": {"rate": 1.0, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null},
        },
        "scores": {"performance": 91, "accessibility": 80, "seo": 70, "bestPractices": 60, "pwa": 50},
        "metrics": {"fcp": {"value": 900.0, "score": 1.0}, "lcp": null, "tbt": null, "cls": null,
                    "si": null, "tti": null},
        "error": null,
        "document": null,
        "browser": null,
    })
}

/// Completes an audit, and returns its audit id.
pub async fn completed(rig: &Rig) -> String {
    rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, report(), None).await;
    lease.audit_id
}

pub fn assert_is_page(reply: &Reply) {
    assert_eq!(
        reply.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(reply.header("x-request-id").is_some());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
}
