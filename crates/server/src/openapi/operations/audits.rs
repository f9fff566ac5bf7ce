use plumbline_report::Format;
use serde_json::{Value, json};

use super::{AUDIT_ID, BATCH_ID, Operation, TRACKING_ID};
use crate::{
    api::{
        audit::WAIT_AT_MOST_S,
        audits::{FILTER_ID_CHARS, PAGE_AT_MOST, PAGE_DEFAULT},
    },
    openapi::{
        parts::{data, described, idempotency_key, path_id, query, success, success_word, text},
        schemas::{object, reference},
    },
};

pub(super) fn single() -> Vec<Operation> {
    let started = json!({ "status": "SUCCESS", "trackingId": TRACKING_ID });
    let tracking = json!({ "status": "SUCCESS", "data": {
        "trackingId": TRACKING_ID, "url": "https://example.com/", "status": "completed",
        "auditId": AUDIT_ID,
    } });
    vec![
        Operation {
            at: ("post", "/v1/audit/start"),
            id: "startAudit",
            tag: "Audits",
            summary: "Start an audit",
            description: "Costs a credit for every run, given back when the page cannot be measured.",
            is_keyed: true,
            parameters: vec![idempotency_key()],
            body: Some(json!({
                "schema": reference("AuditRequest"),
                "examples": {
                    "once": { "summary": "One visit", "value": {
                        "url": "https://example.com/", "device": "mobile",
                        "network": "mobileSlow4g", "location": "us-tx",
                    } },
                    "median": { "summary": "The median of five, and a webhook", "value": {
                        "url": "https://example.com/", "device": "desktop", "network": "cable",
                        "location": "eu", "runs": 5, "webhook": "https://example.com/hooks/audits",
                    } },
                },
            })),
            success: success(
                "The audit is accepted.",
                object(&[("status", success_word()), ("trackingId", text())], &[]),
                started,
            ),
            failures: vec![400, 402, 406, 408, 409, 413],
        },
        Operation {
            at: ("get", "/v1/audit/status/{id}"),
            id: "auditStatus",
            tag: "Audits",
            summary: "Get an audit's status",
            description: "With `wait` the answer comes when the audit is completed, at the latest after so many \
                          seconds.",
            is_keyed: true,
            parameters: vec![
                path_id("The tracking id.", TRACKING_ID),
                query(
                    "wait",
                    "Seconds to wait for the audit to be completed.",
                    json!({ "type": "integer", "minimum": 0, "maximum": WAIT_AT_MOST_S, "default": 0 }),
                ),
            ],
            body: None,
            success: success("How far it is.", data(reference("Tracking")), tracking),
            failures: vec![400, 404],
        },
        Operation {
            at: ("get", "/v1/audit/data/{id}"),
            id: "auditData",
            tag: "Audits",
            summary: "Get an audit's scores and lab metrics",
            description: "",
            is_keyed: true,
            parameters: vec![path_id("The audit id, of a completed status.", AUDIT_ID)],
            body: None,
            success: success(
                "The report.",
                data(reference("AuditData")),
                json!({
                    "status": "SUCCESS", "data": {
                        "auditId": AUDIT_ID, "url": "https://example.com/", "device": "Phone (360x640)",
                        "network": "4G (9 Mbps, 170 ms)", "location": "Frankfurt, Germany",
                        "createdAt": "2027-01-15T08:00:00.007Z",
                        "labData": {
                            "performance": 87, "accessibility": 100, "seo": 92, "bestPractices": 96, "pwa": 30,
                            "fcp": 1234, "lcp": 2346, "tbt": 13, "cls": 0.1235, "si": 3000, "tti": 4000,
                        },
                        "fieldData": null,
                    },
                }),
            ),
            failures: vec![404],
        },
        Operation {
            at: ("delete", "/v1/audit/data/{id}"),
            id: "deleteAudit",
            tag: "Audits",
            summary: "Delete a completed audit",
            description: "The report, its evidence and its place in lists are gone; what it cost is not given back.",
            is_keyed: true,
            parameters: vec![path_id("The audit id.", AUDIT_ID)],
            body: None,
            success: success(
                "It is gone.",
                data(object(&[("auditId", text())], &[])),
                json!({ "status": "SUCCESS", "data": { "auditId": AUDIT_ID } }),
            ),
            failures: vec![404],
        },
        Operation {
            at: ("get", "/v1/audit/report/{id}"),
            id: "auditReport",
            tag: "Audits",
            summary: "Get everything that was measured and judged",
            description: "With `format` as a file in that form, for other tools. `har` and `trace` are made of the \
                          audit's evidence: 404 once that is no longer kept.",
            is_keyed: true,
            parameters: vec![
                path_id("The audit id.", AUDIT_ID),
                query(
                    "format",
                    "Which file; without it the report is in an envelope, like every answer.",
                    json!({ "type": "string", "enum": Format::ALL.map(Format::name) }),
                ),
            ],
            body: None,
            success: whole_report(),
            failures: vec![400, 404, 406],
        },
    ]
}

/// In its envelope, or as a file of whatever kind.
fn whole_report() -> Value {
    let enveloped = data(reference("WholeReport"));
    let mut answer = described(
        "The whole report.",
        json!({ "anyOf": [enveloped, { "type": "object", "description": "A file." }] }),
    );
    for format in Format::ALL {
        let kind = format.content_type().split(';').next().unwrap_or_default();
        if answer["content"].get(kind).is_none() {
            answer["content"][kind] = json!({ "schema": text() });
        }
    }
    answer
}

pub(super) fn lists() -> Vec<Operation> {
    let id = |name, what| {
        query(
            name,
            what,
            json!({ "type": "string", "minLength": 1, "maxLength": FILTER_ID_CHARS }),
        )
    };
    let mut page = data(json!({ "type": "array", "items": reference("Audit") }));
    page["required"] = json!(["status", "data", "next"]);
    page["properties"]["next"] = json!({
        "type": ["string", "null"], "description": "The cursor of the next page; null on the last.",
    });
    vec![Operation {
        at: ("get", "/v1/audits"),
        id: "listAudits",
        tag: "Audits",
        summary: "List past audits, newest first",
        description: "Filters are exact and all must fit. A page with several filters may be shorter than `limit` \
                      and still have a `next`: go on until it is null.",
        is_keyed: true,
        parameters: vec![
            query(
                "url",
                "Audits of this URL, as it was sent.",
                json!({ "type": "string", "minLength": 1, "maxLength": 2048 }),
            ),
            id("device", "Audits on this device."),
            id("network", "Audits on this network."),
            id("location", "Audits from this location."),
            query("state", "Audits in this state.", reference("State")),
            query(
                "from",
                "Accepted at this moment or later.",
                reference("Moment"),
            ),
            query("to", "Accepted before this moment.", reference("Moment")),
            query(
                "limit",
                "Audits on a page.",
                json!({
                    "type": "integer", "minimum": 1, "maximum": PAGE_AT_MOST, "default": PAGE_DEFAULT,
                }),
            ),
            query(
                "cursor",
                "The `next` of the page before.",
                json!({
                    "type": "string", "pattern": "^a[0-9a-z]{1,12}-[0-9a-z]{1,12}$",
                }),
            ),
        ],
        body: None,
        success: success(
            "A page.",
            page,
            json!({
                "status": "SUCCESS",
                "data": [example()],
                "next": null,
            }),
        ),
        failures: vec![400],
    }]
}

/// One of a list.
pub(super) fn example() -> Value {
    json!({
        "trackingId": TRACKING_ID, "url": "https://example.com/", "device": "mobile", "network": "normal4g",
        "location": "eu", "runs": 1, "status": "completed", "createdAt": "2027-01-15T08:00:00.000Z",
        "completedAt": "2027-01-15T08:00:00.007Z", "auditId": AUDIT_ID, "batchId": BATCH_ID,
        "labData": {
            "performance": 87, "accessibility": 100, "seo": 92, "bestPractices": 96, "pwa": 30,
            "fcp": 1234, "lcp": 2346, "tbt": 13, "cls": 0.1235, "si": 3000, "tti": 4000, },
    })
}
