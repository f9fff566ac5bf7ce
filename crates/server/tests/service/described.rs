//! The description of the API: up to date, correct, and readable offline.

use std::path::Path;
use std::sync::Arc;

use plumbline_model::check::{Cell, Details, Findings, Row, Unit};
use plumbline_model::experiment::Subject;
use plumbline_recording::Change;
use plumbline_report::Format;
use plumbline_seam::Replay;
use plumbline_store::{AuditOptions, FileBlobs, NewAudit, Order, Store, Submission};
use serde_json::{Value, json};

use crate::recordings::recorded_bundle;
use crate::rig::{HttpRequest, NOW, Reply, Rig, get, post, put};

async fn document(rig: &Rig) -> Value {
    let reply = rig.fetch(&get("/openapi.json")).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.json()
}

/// `make bless` updates the file; read the difference before you commit it.
#[tokio::test]
async fn the_description_equals_the_committed_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let reply = Rig::new().await.fetch(&get("/openapi.json")).await;
    let served = format!("{}\n", reply.text());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &served).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == served,
        "docs/openapi.json is out of date: run `make bless`"
    );
}

#[tokio::test]
async fn every_reference_has_a_target_and_every_operation_a_unique_name() {
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

/// Adds the audit of the examples to a service.
async fn with_example_audit(rig: Rig, document: &Value) -> Rig {
    let example = |path: &str| {
        let at = format!("/paths/{path}/get/parameters/0/example");
        document.pointer(&at).unwrap().as_str().unwrap().to_owned()
    };
    let audit = NewAudit {
        account_id: rig.account_id.clone(),
        tracking_id: example("~1v1~1audit~1status~1{id}"),
        audit_id: example("~1v1~1audit~1data~1{id}"),
        order: Order {
            url: "https://example.com/".to_owned(),
            device: "mobile".to_owned(),
            network: "normal4g".to_owned(),
            location: "eu".to_owned(),
            // It is an audit like any other, and an example of a comparison.
            options: plumbline_store::VisitOptions {
                compare_with: Some("https://example.com/next".to_owned()),
                ..plumbline_store::VisitOptions::default()
            },
        },
        options: AuditOptions::default(),
        accepted_at: NOW,
    };
    let submission = Submission {
        batch_id: Some(example("~1v1~1batches~1{id}")),
        ..Submission::single(audit)
    };
    let audit = &submission.audits[0];
    let replays = [
        example_replay(audit, "matrix"),
        example_replay(audit, "experiment"),
    ];
    let credits = 1 + replays.len();
    for submission in replays
        .into_iter()
        .map(Submission::single)
        .chain([submission])
    {
        rig.store.submit(submission).await.unwrap();
        let lease = rig.lease().await;
        rig.finish(&lease, report(), None).await;
    }
    rig.store
        .add_credits(&rig.account_id, credits.try_into().unwrap(), NOW)
        .await
        .unwrap();
    rig
}

/// Returns an audit of the recording of an audit: a cell of a matrix, or an experiment.
fn example_replay(audit: &NewAudit, name: &str) -> NewAudit {
    let replay = Replay {
        recording: audit.audit_id.clone(),
        attempt: 1,
        changes: vec![Change::CompressText { pattern: None }],
        left_out: Vec::new(),
        subject: Some(Subject::Check("document-latency-insight".to_owned())),
        repeatable: false,
    };
    let options = match name {
        "experiment" => plumbline_store::VisitOptions {
            replay_second: Some(Box::new(replay.clone())),
            ..audit.order.options.clone()
        },
        _ => plumbline_store::VisitOptions::default(),
    };
    NewAudit {
        tracking_id: format!("trk_{name}"),
        audit_id: format!("aud_{name}"),
        order: Order {
            options: plumbline_store::VisitOptions {
                replay: Some(Box::new(replay)),
                ..options
            },
            ..audit.order.clone()
        },
        ..audit.clone()
    }
}

fn report() -> Value {
    let party =
        Row::new([Cell::text("Example")]).with([Row::new([Cell::url("https://example.com/")])]);
    let parties = Findings::new([("entity", "Third party", Unit::Text)]).rows([party]);
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
        "categories": [{ "id": "performance", "title": "Performance", "score": 87, "checks": [{
            "id": "third-parties-insight", "title": "Third parties", "verdict": "informative", "weight": 0.0,
            "score": null, "group": "insights", "why": "", "fix": "", "details": Details::from(parties),
        }] }],
        "comparison": {
            "urls": ["https://example.com/", "https://example.com/next"], "pairs": 4,
            "figures": [{
                "name": "lcp", "medians": [2000.0, 2200.0], "shift": 0.1, "isRelative": true,
                "interval": { "low": 0.09, "high": 0.11, "level": 0.98, "basis": "pairs of visits" },
                "answer": "slower",
            }],
            "evidence": [{ "name": "Requests", "unit": "count", "values": [3.0, 4.0] }],
            "requests": [{ "url": "/hero.webp", "bytes": [null, 4000] }],
        },
    })
}

#[tokio::test]
async fn every_example_works_and_its_response_is_as_described() {
    let document = document(&Rig::new().await).await;
    let dir = tempfile::tempdir().unwrap();
    let bundles = FileBlobs::open(dir.path()).unwrap();
    let app_bundles = bundles.clone();
    let rig = Rig::with_pages_and(|app| app.bundles = Some(Arc::new(app_bundles))).await;
    let rig = with_example_audit(rig, &document).await;
    let audit_id = &document["paths"]["/v1/audit/data/{id}"]["get"]["parameters"][0]["example"];
    let blob = format!("{}-1", audit_id.as_str().unwrap());
    bundles.put(&blob, &recorded_bundle()).unwrap();
    let mut count = 0;
    for method in ["put", "get", "post", "delete"] {
        // In reverse, so that the report is deleted after its link.
        for (path, methods) in document["paths"].as_object().unwrap().iter().rev() {
            let operation = &methods[method];
            if operation.is_null() {
                continue;
            }
            let example = operation["parameters"][0]["example"].as_str();
            let example = example.unwrap_or_default();
            let path = path.replace("{id}", example).replace("{name}", example);
            for body in bodies(operation) {
                let request = match &body {
                    Some(body) if method == "put" => put(&path, body.to_string()).json(),
                    Some(body) => post(&path, body.to_string()).json(),
                    None => HttpRequest::new(&method.to_uppercase(), &path),
                };
                let reply = rig.fetch(&request.key(&rig.key)).await;
                check(&document, operation, &reply, &format!("{method} {path}"));
                count += 1;
            }
        }
    }
    assert!(count >= 25, "{count}");
}

#[tokio::test]
async fn every_format_of_a_report_is_described_and_served_as_described() {
    let document = document(&Rig::new().await).await;
    let rig = with_example_audit(Rig::new().await, &document).await;
    let operation = &document["paths"]["/v1/audit/report/{id}"]["get"];
    let [id, format_parameter] = [0, 1].map(|at| &operation["parameters"][at]);
    assert_eq!(format_parameter["name"], "format");
    assert_eq!(
        format_parameter["schema"]["enum"],
        json!(Format::ALL.map(Format::name))
    );
    let path = format!("/v1/audit/report/{}", id["example"].as_str().unwrap());
    for format in Format::ALL {
        let request = get(&format!("{path}?format={}", format.name())).key(&rig.key);
        let reply = rig.fetch(&request).await;
        if format.needs_evidence() {
            assert_eq!(reply.status, 404, "{format:?}: no evidence is stored");
        } else {
            check(&document, operation, &reply, format.name());
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
fn check(document: &Value, operation: &Value, reply: &Reply, name: &str) {
    assert_eq!(reply.status, 200, "{name}: {}", reply.text());
    let content = &operation["responses"]["200"]["content"];
    let media_type = reply.header("content-type").unwrap();
    let media_type = media_type.split(';').next().unwrap();
    let described = &content[media_type];
    assert!(described.is_object(), "{name} is {media_type}");
    if media_type != "application/json" {
        return;
    }
    let body = reply.json();
    if let Err(problem) = validate(document, &described["schema"], &body) {
        panic!("{name}: {problem} in {body}");
    }
    let example = &described["example"];
    if !example.is_null() {
        let is_equal = without_new_ids(&body) == without_new_ids(example);
        assert!(is_equal, "{name}: {body} differs from {example}");
    }
}

/// Replaces ids that are generated when something is started.
fn without_new_ids(response: &Value) -> Value {
    let mut response = response.clone();
    if response.get("trackingId").is_some() {
        response["trackingId"] = json!("generated");
    }
    if response["data"]["audits"].is_number() {
        response["data"]["batchId"] = json!("generated");
    }
    // The examples of lists have one item, and the audits of a recording have other ids.
    if let Some(items) = response["data"].as_array_mut() {
        items.truncate(1);
    }
    for at in ["/data/cells/0", "/data/0"] {
        let replay = response.pointer_mut(at).and_then(Value::as_object_mut);
        for (_, id) in replay
            .into_iter()
            .flatten()
            .filter(|(key, _)| key.ends_with("Id"))
        {
            *id = json!("generated");
        }
    }
    response
}

/// Validates a value against a schema, as far as the description uses JSON Schema.
pub fn validate(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(to) = schema["$ref"].as_str() {
        let target = document.pointer(&to[1..]).unwrap();
        return validate(document, target, value);
    }
    let wrong = |reason: &str| Err(format!("{value} is {reason}"));
    if let Some(schemas) = schema["anyOf"].as_array() {
        let is_valid = |schema: &Value| validate(document, schema, value).is_ok();
        return if schemas.iter().any(is_valid) {
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
    if let (Some(number), Some(maximum)) = (value.as_f64(), schema["maximum"].as_f64())
        && number > maximum
    {
        return wrong("too large");
    }
    for item in value.as_array().into_iter().flatten() {
        validate(document, &schema["items"], item)?;
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if value.get(required.as_str().unwrap()).is_none() {
            return Err(format!("{required} is missing"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(schema) => validate(document, schema, member)?,
            None if schema["additionalProperties"] == json!(false) => {
                return Err(format!("{name} is not described"));
            }
            None => {}
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_reference_page_shows_every_operation_and_lists_it() {
    let rig = Rig::new().await;
    let page = rig.fetch(&get("/docs")).await.text().to_owned();
    let document = document(&rig).await;
    let mut count = 0;
    walk(&document["paths"], &mut |value| {
        if let Some(id) = value["operationId"].as_str() {
            assert!(page.contains(&format!("<h3 id=\"{id}\">")), "{id}");
            assert!(page.contains(&format!("<a href=\"#{id}\"")), "{id}");
            count += 1;
        }
    });
    assert!(count > 30, "{count}");
}

#[tokio::test]
async fn the_reference_page_is_self_contained_and_runs_no_scripts() {
    let rig = Rig::new().await;
    let page = rig.fetch(&get("/docs")).await;
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
    let forbidden = ["<script", "src=", "@import", "url("];
    assert!(forbidden.iter().all(|sign| !html.contains(sign)));
    let linked = html
        .match_indices("href=\"")
        .map(|(at, sign)| &html[at + sign.len()..]);
    for target in linked {
        assert!(target.starts_with(['#', '/']), "{}", &target[..40]);
    }
    let style = rig.fetch(&get("/docs/style.css")).await;
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
}
