use plumbline_report::Format;
use serde_json::{Value, json};

use super::{AUDIT_ID, BATCH_ID, Operation, TRACKING_ID};
use crate::{
    api::{
        audit::MAX_WAIT_S,
        audits::{DEFAULT_PAGE_SIZE, FILTER_ID_CHARS, MAX_PAGE_SIZE},
    },
    openapi::{
        parts::{data, described, idempotency_key, path_id, query, success, success_status, text},
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
            route: ("post", "/v1/audit/start"),
            id: "startAudit",
            tag: "Audits",
            summary: "Start an audit",
            description: "Costs one credit per run, refunded if the page cannot be measured.",
            requires_key: true,
            parameters: vec![idempotency_key()],
            body: Some(json!({
                "schema": reference("AuditRequest"),
                "examples": {
                    "once": { "summary": "One visit", "value": {
                        "url": "https://example.com/", "device": "mobile",
                        "network": "mobileSlow4g", "location": "us-tx",
                    } },
                    "median": { "summary": "The median of five runs, and a webhook", "value": {
                        "url": "https://example.com/", "device": "desktop", "network": "cable",
                        "location": "eu", "runs": 5, "webhook": "https://example.com/hooks/audits",
                        "labels": ["release 2.1"],
                    } },
                },
            })),
            success: success(
                "The audit is accepted.",
                object(&[("status", success_status()), ("trackingId", text())], &[]),
                started,
            ),
            failures: vec![400, 402, 406, 408, 409, 413],
        },
        Operation {
            route: ("get", "/v1/audit/status/{id}"),
            id: "auditStatus",
            tag: "Audits",
            summary: "Get an audit's status",
            description: "With `wait`, the response is sent when the audit is completed, at the latest after so many \
                          seconds.",
            requires_key: true,
            parameters: vec![
                path_id("The tracking id.", TRACKING_ID),
                query(
                    "wait",
                    "Seconds to wait for the audit to be completed.",
                    json!({ "type": "integer", "minimum": 0, "maximum": MAX_WAIT_S, "default": 0 }),
                ),
            ],
            body: None,
            success: success("The status.", data(reference("Tracking")), tracking.clone()),
            failures: vec![400, 404],
        },
        Operation {
            route: ("post", "/v1/audit/cancel/{id}"),
            id: "cancelAudit",
            tag: "Audits",
            summary: "Cancel an audit",
            description: "A waiting audit is never started; a running one is ended within seconds. The audit is `completed` with the \
                          error `CANCELLED`, its credits are refunded, and its webhook is sent. A completed audit does not \
                          change, so the request can be repeated; the response is the status. Audits that were running count \
                          as failed ones for the limit of failed audits.",
            requires_key: true,
            parameters: vec![path_id("The tracking id.", TRACKING_ID)],
            body: None,
            success: success("The status.", data(reference("Tracking")), tracking.clone()),
            failures: vec![400, 404],
        },
        Operation {
            route: ("get", "/v1/audit/data/{id}"),
            id: "auditData",
            tag: "Audits",
            summary: "Get an audit's scores and lab metrics",
            description: "",
            requires_key: true,
            parameters: vec![path_id(
                "The audit id, from the status of a completed audit.",
                AUDIT_ID,
            )],
            body: None,
            success: success(
                "The scores and metrics.",
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
            route: ("delete", "/v1/audit/data/{id}"),
            id: "deleteAudit",
            tag: "Audits",
            summary: "Delete a completed audit",
            description: "Deletes the report and its evidence, and removes the audit from lists. Credits are not refunded.",
            requires_key: true,
            parameters: vec![path_id("The audit id.", AUDIT_ID)],
            body: None,
            success: success(
                "The audit is deleted.",
                data(object(&[("auditId", text())], &[])),
                json!({ "status": "SUCCESS", "data": { "auditId": AUDIT_ID } }),
            ),
            failures: vec![400, 404],
        },
        Operation {
            route: ("get", "/v1/audit/report/{id}"),
            id: "auditReport",
            tag: "Audits",
            summary: "Get the whole report",
            description: "With `format`, the report is a file for other tools. `har` and `trace` are made from the \
                          audit's evidence; the status is 404 if that is no longer stored. `video` is an animated PNG of \
                          the load, with fewer pictures if the evidence is no longer stored, and 404 if there are none.",
            requires_key: true,
            parameters: vec![
                path_id("The audit id.", AUDIT_ID),
                query(
                    "format",
                    "The format of the file; without it, the report is in an envelope, like every response.",
                    json!({ "type": "string", "enum": Format::ALL.map(Format::name) }),
                ),
            ],
            body: None,
            success: whole_report(),
            failures: vec![400, 404, 406],
        },
    ]
}

/// Describes the whole report, in its envelope or as a file of any format.
fn whole_report() -> Value {
    let enveloped = data(reference("WholeReport"));
    let mut response = described(
        "The whole report.",
        json!({ "anyOf": [enveloped, { "type": "object", "description": "A file." }] }),
    );
    for format in Format::ALL {
        let media_type = format.content_type().split(';').next().unwrap_or_default();
        if response["content"].get(media_type).is_none() {
            let schema = if format.is_text() {
                text()
            } else {
                json!({ "type": "string", "contentMediaType": media_type })
            };
            response["content"][media_type] = json!({ "schema": schema });
        }
    }
    response
}

pub(super) fn lists() -> Vec<Operation> {
    let id = |name, description| {
        query(
            name,
            description,
            json!({ "type": "string", "minLength": 1, "maxLength": FILTER_ID_CHARS }),
        )
    };
    let mut page = data(json!({ "type": "array", "items": reference("Audit") }));
    page["required"] = json!(["status", "data", "next"]);
    page["properties"]["next"] = json!({
        "type": ["string", "null"], "description": "The cursor of the next page; null on the last.",
    });
    vec![Operation {
        route: ("get", "/v1/audits"),
        id: "listAudits",
        tag: "Audits",
        summary: "List past audits, newest first",
        description: "Filters match exactly, and all must match. A page with several filters may be shorter than `limit` \
                      and still have a `next`: continue until it is null.",
        requires_key: true,
        parameters: vec![
            query(
                "url",
                "Audits of this URL, as it was requested.",
                json!({ "type": "string", "minLength": 1, "maxLength": 2048 }),
            ),
            id("device", "Audits on this device."),
            id("network", "Audits on this network."),
            id("location", "Audits from this location."),
            query("state", "Audits in this state.", reference("State")),
            query(
                "label",
                "Audits with exactly this label, in the same case.",
                reference("Label"),
            ),
            query(
                "from",
                "Audits accepted at this time or later.",
                reference("Moment"),
            ),
            query(
                "to",
                "Audits accepted before this time.",
                reference("Moment"),
            ),
            query(
                "limit",
                "The number of audits on a page.",
                json!({
                    "type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE,
                }),
            ),
            query(
                "cursor",
                "The `next` of the previous page.",
                json!({
                    "type": "string", "pattern": "^a[0-9a-z]{1,12}-[0-9a-z]{1,12}$",
                }),
            ),
        ],
        body: None,
        success: success(
            "A page of audits.",
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

/// Returns an audit of a list.
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
