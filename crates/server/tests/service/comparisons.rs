//! Comparisons of two pages.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::rig::{Reply, Rig, get, order, post};

fn body() -> Value {
    let mut body = order();
    let members = body.as_object_mut().unwrap();
    members.remove("url");
    let urls = json!(["https://example.com/", "https://example.com/next"]);
    members.insert("urls".to_owned(), urls);
    body
}

async fn start(rig: &Rig, body: &Value) -> Reply {
    let request = post("/v1/comparisons", body.to_string());
    rig.send(&request.key(&rig.key).json()).await
}

async fn lease(rig: &Rig, agent: &Agent, compares: bool) -> Value {
    let request = json!({
        "agent": agent.announcement(), "slot": 0, "waitMs": 0, "compares": compares,
    });
    agent.exchange(rig, "lease", &request).await["job"].clone()
}

fn report(comparison: Option<Value>) -> Value {
    let mut report = json!({
        "format": 1, "requestedUrl": "https://example.com/", "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Mobile", "mode": "mobile" },
            "network": { "id": "cable", "name": "Cable", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
            "location": { "id": "eu", "name": "Frankfurt", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 1.0 },
        },
        "scores": { "performance": 97 }, "metrics": null, "error": null, "document": null, "browser": null,
    });
    if let Some(comparison) = comparison {
        report["comparison"] = comparison;
    }
    report
}

fn comparison() -> Value {
    json!({
        "urls": ["https://example.com/", "https://example.com/next"], "pairs": 6,
        "figures": [{
            "name": "lcp", "medians": [2000.0, 2200.0], "shift": 0.1, "isRelative": true,
            "interval": { "low": 0.09, "high": 0.11, "level": 0.9, "basis": "pairs of visits" },
            "answer": "slower",
        }],
        "evidence": [{ "name": "Requests", "unit": "count", "values": [3.0, 4.0] }],
        "requests": [{ "url": "/hero.webp", "bytes": [null, 4000] }],
    })
}

async fn read(rig: &Rig, id: &str, query: &str) -> Reply {
    let path = format!("/v1/comparisons/{id}{query}");
    rig.fetch(&get(&path).key(&rig.key)).await
}

#[tokio::test]
async fn a_comparison_is_started_followed_and_read_in_every_format() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    let mut body = body();
    body["maxPairs"] = json!(6);
    let started = start(&rig, &body).await;
    assert_eq!(started.status, 200, "{}", started.text());
    let id = started.json()["trackingId"].as_str().unwrap().to_owned();

    let unfinished = read(&rig, &id, "").await;
    assert_eq!(unfinished.json()["data"]["status"], "not-started");
    assert_eq!(read(&rig, &id, "?format=junit").await.status, 404);

    let job = lease(&rig, &agent, true).await;
    assert_eq!(job["url"], "https://example.com/", "{job}");
    assert_eq!(job["options"]["compareWith"], "https://example.com/next");
    assert_eq!(job["runs"], 6);
    let more = json!({ "report": report(Some(comparison())) });
    assert_eq!(agent.post_step(&rig, "finish", &job, more).await, "held");

    let reply = read(&rig, &id, "?wait=5").await;
    let data = &reply.json()["data"];
    assert_eq!(data["status"], "completed");
    let result = &data["comparison"];
    assert_eq!(result["figures"][0]["answer"], "slower", "{data}");
    assert_eq!(result["requests"][0]["bytes"], json!([null, 4000]));
    assert_eq!(result["conditions"], "Mobile, Cable, Frankfurt");

    for (format, content_type, text) in [
        (
            "markdown",
            "text/markdown; charset=utf-8",
            "**The second page is slower: LCP.**",
        ),
        ("junit", "application/xml", "failures=\"1\""),
        (
            "text",
            "text/plain; charset=utf-8",
            "The second page is slower",
        ),
        ("json", "application/json", "\"slower\""),
    ] {
        let reply = read(&rig, &id, &format!("?format={format}")).await;
        assert_eq!(reply.header("content-type"), Some(content_type));
        assert!(reply.text().contains(text), "{}", reply.text());
    }
    assert_eq!(read(&rig, &id, "?format=pdf").await.status, 406);
    assert_eq!(read(&rig, &id, "?formats=json").await.status, 400);
}

#[tokio::test]
async fn a_comparison_costs_a_credit_for_each_pair() {
    let rig = Rig::new().await;
    let credits = async || {
        let reply = rig.send(&get("/v1/credits").key(&rig.key)).await;
        reply.json()["data"]["credits"].as_i64().unwrap()
    };
    let before = credits().await;
    let mut body = body();
    body["maxPairs"] = json!(4);
    assert_eq!(start(&rig, &body).await.status, 200);
    assert_eq!(credits().await, before - 4);
}

#[tokio::test]
async fn an_audit_is_no_comparison() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    let id = rig.start_with(&order()).await;
    let job = lease(&rig, &agent, true).await;
    let more = json!({ "report": report(None) });
    assert_eq!(agent.post_step(&rig, "finish", &job, more).await, "held");
    assert_eq!(read(&rig, &id, "").await.status, 404);
}

#[tokio::test]
async fn an_agent_that_does_not_know_comparisons_gets_none() {
    let rig = Rig::new().await;
    let agent = Agent::new(&rig, "agent", "eu").await;
    assert_eq!(start(&rig, &body()).await.status, 200);
    // After three faults, an agent reports the failure without a visit.
    assert_eq!(lease(&rig, &agent, false).await["exhausted"], true);
}

#[tokio::test]
async fn invalid_values_are_named() {
    let rig = Rig::new().await;
    for (member, value, field, index) in [
        ("urls", json!(["https://example.com/"]), "urls", None),
        (
            "urls",
            json!(["https://example.com/", "ftp://example.com/"]),
            "urls",
            Some(1),
        ),
        ("maxPairs", json!(3), "maxPairs", None),
        ("maxPairs", json!(11), "maxPairs", None),
        ("device", json!("toaster"), "device", None),
        ("interactions", json!(true), "interactions", None),
    ] {
        let mut body = body();
        body[member] = value;
        let reply = start(&rig, &body).await;
        assert_eq!(reply.status, 406, "{}", reply.text());
        let failure = reply.whole_json();
        assert_eq!(failure["field"], field, "{failure}");
        assert_eq!(failure["index"].as_u64(), index, "{failure}");
    }
    let mut body = body();
    body["urls"] = json!("https://example.com/");
    assert_eq!(start(&rig, &body).await.status, 400);
}
