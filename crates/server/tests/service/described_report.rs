//! The description of a report covers everything that a report can contain.

use plumbline_bundle::OriginalPlace;
use plumbline_model::check::{
    Cell, CheckResult, ChecklistItem, ConsoleLine, Details, ElementDetail, Figure, Findings, Node,
    Rect, Row, Savings, SourceLocation, Unit, UrlDetail, Verdict,
};
use plumbline_model::report::{
    Contention, CpuEmulationMethod, NetworkIsolation, Report, StateNames,
};
use serde_json::{Value, json};

use crate::described::validate;
use crate::rig::{Rig, get};

#[tokio::test]
async fn every_member_of_a_report_is_described() {
    let rig = Rig::new().await;
    let mut document = rig.fetch(&get("/openapi.json")).await.json();
    let schema = json!({ "$ref": "#/components/schemas/Report" });
    let report = serde_json::to_value(full_report()).unwrap();
    validate(&document, &schema, &report).unwrap();
    // Clients may get members that their description does not have; ours describes all of them.
    exclude_others(&mut document["components"]["schemas"]);
    validate(&document, &schema, &report).unwrap();
    let mut unknown = report;
    unknown["conditions"]["cpu"]["temperature"] = json!(80);
    assert!(validate(&document, &schema, &unknown).is_err());
}

/// Makes every object of a schema refuse members that are not described.
fn exclude_others(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") && members.contains_key("required") {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(exclude_others);
        }
        Value::Array(items) => items.iter_mut().for_each(exclude_others),
        _ => {}
    }
}

/// Returns a report with every optional member, and with details and cells of every kind.
fn full_report() -> Report {
    let metric = json!({ "value": 1.5, "score": 0.5 });
    let place = json!({
        "function": "t", "url": "https://example.com/a.js", "line": 0, "column": 9,
        "original": { "function": "run", "source": "src/a.js", "line": 2, "column": 4 },
    });
    let time = json!({ "function": place, "selfMs": 1.5, "totalMs": 2.5, "hottest": place });
    let task = json!({ "startMs": 1.0, "durationMs": 60.0, "functions": [time], "path": [time] });
    let interval = json!({ "low": 1.0, "high": 2.0, "level": 0.9, "basis": "visits" });
    let report = json!({
        "format": 1, "requestedUrl": "https://example.com/", "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Phone (360x640)", "mode": "mobile" },
            "network": {
                "id": "cable", "name": "Cable", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0,
            },
            "location": {
                "id": "eu", "name": "Frankfurt, Germany", "mode": "simulated", "addedRttMs": 20.0,
                "isStated": false,
            },
            "cpu": { "rate": 4.0, "deviceIndex": 440, "scoreDoubt": 0.5, "visits": 2 },
        },
        "scores": {
            "performance": null, "accessibility": 100, "seo": 92, "bestPractices": 96, "pwa": 30,
        },
        "metrics": {
            "fcp": metric, "lcp": metric, "tbt": metric, "cls": metric, "si": null, "tti": metric,
            "missing": { "si": "the page never changed visually" },
            "asTraced": { "tbtMs": 1.0, "ttiMs": null },
        },
        "intervals": {
            "performance": interval, "fcp": interval, "lcp": interval, "tbt": interval,
            "cls": interval, "si": interval, "tti": interval,
        },
        "error": { "code": "TIMEOUT", "message": "late" },
        "categories": [{
            "id": "agentic-browsing", "title": "Agentic browsing", "score": null,
            "fraction": { "passed": 1, "of": 2 }, "checks": [],
        }],
        "warnings": ["a warning"],
        "document": { "status": 200, "mime_type": "text/html" },
        "browser": { "product": "Chrome/1", "user_agent": "Mozilla" },
        "timings": [{ "phase": "loading", "ms": 1.5 }],
        "fieldData": {
            "record": "origin", "subject": "https://example.com", "formFactor": "phone",
            "percentile": 75, "collectionPeriod": { "firstDate": "2027-01-01", "lastDate": "2027-01-28" },
            "metrics": {
                "fcp": { "p75": 1.0, "shares": { "good": 0.5, "needsImprovement": 0.3, "poor": 0.2 } },
                "lcp": { "p75": 1.0, "shares": null }, "fid": null, "cls": null, "inp": null,
                "ttfb": null,
            },
        },
        "fieldDataReason": "NO_KEY",
        "profile": {
            "tasks": [task], "taskCount": 1, "functions": [time], "scriptMs": 3.0, "endMs": 4.0,
            "reflows": [{ "place": place, "count": 2, "totalMs": 40.0 }], "error": "late",
        },
    });
    let mut report: Report = serde_json::from_value(report).unwrap();
    let conditions = &mut report.conditions;
    conditions.network.isolation = Some(NetworkIsolation::Shared);
    conditions.cpu.emulation = Some(CpuEmulationMethod::Pacer);
    conditions.cpu.contention = Some(Contention {
        waited_ms: 1.0,
        share: 0.1,
        until_ms: 2.0,
    });
    let names = || vec!["name".to_owned()];
    conditions.state = Some(Box::new(StateNames {
        cookies: names(),
        local_storage: names(),
        session_storage: names(),
        headers: names(),
        basic_auth: true,
        script: true,
        user_agent_suffix: Some("Lab".to_owned()),
        blocked_hosts: names(),
    }));
    report.runs = Some(plumbline_model::runs::spread(
        &[report.clone(), report.clone()],
        2,
        0,
    ));
    report.categories[0].checks.push(full_check());
    report
}

fn full_check() -> CheckResult {
    let mut check: CheckResult = serde_json::from_value(json!({
        "id": "a", "title": "A", "verdict": "fail", "score": 0.5, "weight": 1.0,
        "group": "insights", "why": "w", "fix": "f",
    }))
    .unwrap();
    check.verdict = Verdict::CouldNotMeasure;
    check.summary = Some("summary".to_owned());
    check.learn_more = Some("https://example.com/learn".to_owned());
    check.savings = Some(Savings {
        wasted_bytes: Some(1.0),
        fcp_ms: Some(1.0),
        lcp_ms: Some(1.0),
        tbt_ms: Some(1.0),
        inp_ms: Some(1.0),
        cls: Some(0.1),
    });
    check.figure = Some(Figure {
        value: 1.0,
        unit: Unit::Ms,
    });
    check.warnings = vec!["a warning".to_owned()];
    check.details = Some(Details::parts(all_details()));
    check
}

fn all_details() -> [Details; 7] {
    let rect = Rect {
        left: 1.0,
        top: 2.0,
        width: 3.0,
        height: 4.0,
    };
    let node = Node {
        path: "1,HTML".to_owned(),
        rect: Some(rect),
        visible_rect: Some(rect),
        ..Node::default()
    };
    let note = Some("note".to_owned());
    let original = Some(OriginalPlace {
        function: Some("f".to_owned()),
        ..OriginalPlace::default()
    });
    let source = SourceLocation {
        function: "f".to_owned(),
        original: original.clone(),
        ..SourceLocation::default()
    };
    let cells = || {
        [
            Cell::text("text"),
            Cell::url("https://example.com/a.js"),
            Cell::element(&node),
            Cell::Source(source.clone()),
            Cell::Bytes(1.0),
            Cell::Ms(1.5),
            Cell::Number(2.0),
            Cell::Nothing,
        ]
    };
    let row = Row::new(cells()).with([Row::new(cells())]);
    [
        Details::elements([ElementDetail {
            node: node.clone(),
            note: note.clone(),
            related: vec![node.clone()],
        }]),
        Details::urls([UrlDetail {
            url: "https://example.com/".to_owned(),
            note,
        }]),
        Details::Console {
            items: vec![ConsoleLine {
                line: Some(1),
                original,
                ..ConsoleLine::default()
            }],
        },
        Details::values([("name", "value")]),
        Details::table(["a"], [["b".to_owned()]]),
        Findings::new([("url", "URL", Unit::Url)])
            .rows([row])
            .into(),
        Details::Checklist {
            items: vec![ChecklistItem::default()],
        },
    ]
}
