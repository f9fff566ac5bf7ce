//! The description of the interface: kept, true, and readable offline.

use std::path::Path;

use plumbline_report::Format;
use plumbline_store::{AuditOptions, AuditOrder, NewAudit, Store, Submission};
use serde_json::{Value, json};

use crate::rig::{Ask, NOW, Reply, Rig, get, post};

async fn document(rig: &Rig) -> Value {
    let reply = rig.ask_for_text(&get("/openapi.json")).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.json()
}

/// `BLESS=1 cargo test -p plumbline-server described` writes it anew, to be read before it is kept.
#[tokio::test]
async fn the_description_is_the_one_that_was_read_and_kept() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let reply = Rig::new().await.ask_for_text(&get("/openapi.json")).await;
    let now = format!("{}\n", reply.text());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&kept, &now).unwrap();
    }
    let then = std::fs::read_to_string(&kept).unwrap_or_default();
    assert!(
        then == now,
        "docs/openapi.json is not what is served: see this test's comment"
    );
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
    let document = document(&Rig::new().await).await;
    let mut names = Vec::new();
    walk(&document, &mut |value| {
        if let Some(to) = value["$ref"].as_str() {
            let target = document.pointer(to.strip_prefix('#').unwrap());
            assert!(target.is_some(), "{to}");
        }
        names.extend(value["operationId"].as_str().map(str::to_owned));
    });
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(document["openapi"], "3.1.0");
}

fn walk(value: &Value, visit: &mut dyn FnMut(&Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(members) => members.values().for_each(|member| walk(member, visit)),
        _ => {}
    }
}

/// The audit that the examples are about.
async fn exemplary(document: &Value) -> Rig {
    let rig = Rig::new().await;
    let example = |path: &str| {
        let at = format!("/paths/{path}/get/parameters/0/example");
        document.pointer(&at).unwrap().as_str().unwrap().to_owned()
    };
    let audit = NewAudit {
        account_id: rig.account_id.clone(),
        tracking_id: example("~1v1~1audit~1status~1{id}"),
        audit_id: example("~1v1~1audit~1data~1{id}"),
        order: AuditOrder {
            url: "https://example.com/".to_owned(),
            device: "mobile".to_owned(),
            network: "normal4g".to_owned(),
            location: "eu".to_owned(),
        },
        options: AuditOptions::default(),
        accepted_at: NOW,
    };
    let submission = Submission {
        batch_id: Some(example("~1v1~1batches~1{id}")),
        ..Submission::single(audit)
    };
    rig.store.submit(submission).await.unwrap();
    let lease = rig.lease().await;
    rig.finish(&lease, report(), None).await;
    rig.store
        .add_credits(&rig.account_id, 1, NOW)
        .await
        .unwrap();
    rig
}

fn report() -> Value {
    let metric = |value: f64| json!({ "value": value, "score": 0.5 });
    json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Phone (360x640)", "mode": "mobile" },
            "network": {
                "id": "normal4g", "name": "4G (9 Mbps, 170 ms)",
                "downKbps": 9000.0, "upKbps": 9000.0, "rttMs": 170.0,
            },
            "location": {
                "id": "eu", "name": "Frankfurt, Germany", "mode": "simulated", "addedRttMs": 20.0,
            },
            "cpu": { "rate": 4.0 },
        },
        "scores": {
            "performance": 87, "accessibility": 100, "seo": 92, "bestPractices": 96, "pwa": 30,
        },
        "metrics": {
            "fcp": metric(1234.4), "lcp": metric(2345.6), "tbt": metric(12.5),
            "cls": metric(0.123_456), "si": metric(3000.2), "tti": metric(4000.0),
        },
        "error": null, "document": null, "browser": null,
    })
}

#[tokio::test]
async fn every_example_works_and_is_answered_as_described() {
    let document = document(&Rig::new().await).await;
    let rig = exemplary(&document).await;
    let mut tried = 0;
    for method in ["get", "post", "delete"] {
        for (path, methods) in document["paths"].as_object().unwrap() {
            let operation = &methods[method];
            if operation.is_null() {
                continue;
            }
            let example = operation["parameters"][0]["example"].as_str();
            let path = path.replace("{id}", example.unwrap_or_default());
            for body in bodies(operation) {
                let ask = match &body {
                    Some(body) => post(&path, body.to_string()).json(),
                    None => Ask::new(&method.to_uppercase(), &path),
                };
                let reply = rig.ask_for_text(&ask.key(&rig.key)).await;
                check(&document, operation, &reply, &format!("{method} {path}"));
                tried += 1;
            }
        }
    }
    assert!(tried >= 19, "{tried}");
}

#[tokio::test]
async fn every_form_of_a_report_is_described_and_answered_so() {
    let document = document(&Rig::new().await).await;
    let rig = exemplary(&document).await;
    let operation = &document["paths"]["/v1/audit/report/{id}"]["get"];
    let [id, form] = [0, 1].map(|at| &operation["parameters"][at]);
    assert_eq!(form["name"], "format");
    assert_eq!(form["schema"]["enum"], json!(Format::ALL.map(Format::name)));
    let path = format!("/v1/audit/report/{}", id["example"].as_str().unwrap());
    for format in Format::ALL {
        let ask = get(&format!("{path}?format={}", format.name())).key(&rig.key);
        let reply = rig.ask_for_text(&ask).await;
        match format.needs_evidence() {
            true => assert_eq!(reply.status, 404, "{format:?}: no evidence was kept"),
            false => check(&document, operation, &reply, format.name()),
        }
    }
}

fn bodies(operation: &Value) -> Vec<Option<Value>> {
    let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
    match examples.as_object() {
        Some(examples) => examples
            .values()
            .map(|example| Some(example["value"].clone()))
            .collect(),
        None => vec![None],
    }
}

#[track_caller]
fn check(document: &Value, operation: &Value, reply: &Reply, what: &str) {
    assert_eq!(reply.status, 200, "{what}: {}", reply.text());
    let content = &operation["responses"]["200"]["content"];
    let kind = reply.header("content-type").unwrap();
    let kind = kind.split(';').next().unwrap();
    let described = &content[kind];
    assert!(described.is_object(), "{what} is {kind}");
    if kind != "application/json" {
        return;
    }
    let body = reply.json();
    if let Err(problem) = fits(document, &described["schema"], &body) {
        panic!("{what}: {problem} in {body}");
    }
    let example = &described["example"];
    if !example.is_null() {
        let same = without_new_ids(&body) == without_new_ids(example);
        assert!(same, "{what}: {body} is not as in {example}");
    }
}

/// What is drawn at random when something is started.
fn without_new_ids(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if answer.get("trackingId").is_some() {
        answer["trackingId"] = json!("drawn");
    }
    if answer["data"]["audits"].is_number() {
        answer["data"]["batchId"] = json!("drawn");
    }
    answer
}

/// As much of JSON Schema as the description uses.
fn fits(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(to) = schema["$ref"].as_str() {
        let target = document.pointer(&to[1..]).unwrap();
        return fits(document, target, value);
    }
    let wrong = |why: &str| Err(format!("{value} is {why}"));
    if let Some(either) = schema["anyOf"].as_array() {
        let fitting = either.iter().any(|one| fits(document, one, value).is_ok());
        return if fitting {
            Ok(())
        } else {
            wrong("none of these")
        };
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return wrong("another constant");
    }
    let listed = schema["enum"].as_array();
    if listed.is_some_and(|listed| !listed.contains(value)) {
        return wrong("none of the listed");
    }
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let is = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    };
    if !kinds.is_empty() && !kinds.iter().any(is) {
        return wrong("of another type");
    }
    let below = |bound: &str| Some(value.as_f64()? < schema[bound].as_f64()?);
    if below("minimum") == Some(true) {
        return wrong("too small");
    }
    if let (Some(number), Some(most)) = (value.as_f64(), schema["maximum"].as_f64())
        && number > most
    {
        return wrong("too large");
    }
    for item in value.as_array().into_iter().flatten() {
        fits(document, &schema["items"], item)?;
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if value.get(required.as_str().unwrap()).is_none() {
            return Err(format!("{required} is missing"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(schema) => fits(document, schema, member)?,
            None if schema["additionalProperties"] == json!(false) => {
                return Err(format!("{name} is not described"));
            }
            None => {}
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_reference_page_needs_nothing_from_elsewhere_and_runs_nothing() {
    let rig = Rig::new().await;
    let page = rig.ask_for_text(&get("/docs")).await;
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("style-src 'self'"));
    let html = page.text();
    for operation in ["startAudit", "listAudits", "startBatch", "getCredits"] {
        assert!(html.contains(&format!("id=\"{operation}\"")), "{operation}");
    }
    assert!(html.contains("X-Plumbline-Signature"));
    let loaded = ["<script", "src=", "@import", "url("];
    assert!(loaded.iter().all(|sign| !html.contains(sign)));
    let linked = html
        .match_indices("href=\"")
        .map(|(at, sign)| &html[at + sign.len()..]);
    for target in linked {
        assert!(target.starts_with(['#', '/']), "{}", &target[..40]);
    }
    let style = rig.ask_for_text(&get("/docs/style.css")).await;
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
}
