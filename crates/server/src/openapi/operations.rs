//! What each route does, takes and answers.

use serde_json::{Value, json};

use super::{
    parts::{data, described, idempotency_key, path_id, query, success, success_word, text},
    schemas::{object, reference},
};
use crate::api::{
    audit::WAIT_AT_MOST_S,
    audits::{FILTER_ID_CHARS, PAGE_AT_MOST, PAGE_DEFAULT},
};

/// Ids in examples; the tests put audits with these ids into a store and run the examples.
pub(crate) const TRACKING_ID: &str = "trk_2h7KfQ0c9XbVn4Jw8sLtRzYp1mDgEa6U";
pub(crate) const AUDIT_ID: &str = "aud_Zk3mW8yQ5tHr1VxNc7JbLs0pDf9GeA2u";
pub(crate) const BATCH_ID: &str = "bat_9vTgBq4LxYw2MnRz6KcHs8JdPf1UeA7o";

pub(crate) const INTRODUCTION: &str = "\
Start an audit, ask for its status until it is `completed`, fetch its report.

Operations that need a key take it in `X-SVC-KEY`. Every answer is JSON with `status` `SUCCESS` or `FAILURE`; a \
failure has a `message`. Every answer carries `X-Request-Id`. Answers to keyed requests carry `X-RateLimit-Limit`, \
`-Remaining` and `-Reset` (epoch seconds) of the limit that the operation counts against: starts, or everything \
else. A 429 says in `Retry-After` how many seconds to wait.";

pub(crate) struct Operation {
    /// Method and path, as the router has them.
    pub(crate) at: (&'static str, &'static str),
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: &'static str,
    is_keyed: bool,
    parameters: Vec<Value>,
    body: Option<Value>,
    success: Value,
    failures: Vec<u16>,
}

impl Operation {
    pub(super) fn description(&self) -> Value {
        let mut responses = json!({ "200": self.success });
        if self.is_keyed {
            responses["200"]["headers"] = json!({
                "X-RateLimit-Limit": { "$ref": "#/components/headers/RateLimit" },
                "X-RateLimit-Remaining": { "$ref": "#/components/headers/RateRemaining" },
                "X-RateLimit-Reset": { "$ref": "#/components/headers/RateReset" },
            });
        }
        let keyed: &[u16] = if self.is_keyed { &[401, 429] } else { &[] };
        for status in self.failures.iter().chain(keyed).chain(&[431, 500, 503]) {
            let shared = format!("#/components/responses/{status}");
            responses[status.to_string()] = json!({ "$ref": shared });
        }
        let mut description = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "security": if self.is_keyed { json!([{ "key": [] }]) } else { json!([]) },
            "responses": responses,
        });
        if !self.description.is_empty() {
            description["description"] = json!(self.description);
        }
        if !self.parameters.is_empty() {
            description["parameters"] = json!(self.parameters);
        }
        if let Some(body) = &self.body {
            description["requestBody"] = json!({
                "required": true, "content": { "application/json": body },
            });
        }
        description
    }
}

pub(super) fn tags() -> Value {
    json!([
        { "name": "Audits", "description": "Start, follow, read, list and delete audits." },
        { "name": "Batches", "description": "Many audits at once." },
        { "name": "Account", "description": "What a key's account has." },
        { "name": "Catalog", "description": "Devices, locations and networks. No key needed." },
        { "name": "Operation", "description": "For those who run the service." },
    ])
}

pub(crate) fn all() -> Vec<Operation> {
    [
        audits(),
        lists(),
        batches(),
        account(),
        catalog(),
        operation(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn audits() -> Vec<Operation> {
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
            description: "",
            is_keyed: true,
            parameters: vec![path_id("The audit id.", AUDIT_ID)],
            body: None,
            success: described("The whole report.", data(reference("WholeReport"))),
            failures: vec![400, 404, 406],
        },
    ]
}

fn lists() -> Vec<Operation> {
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
                "data": [audit_example()],
                "next": null,
            }),
        ),
        failures: vec![400],
    }]
}

fn audit_example() -> Value {
    json!({
        "trackingId": TRACKING_ID, "url": "https://example.com/", "device": "mobile", "network": "normal4g",
        "location": "eu", "runs": 1, "status": "completed", "createdAt": "2027-01-15T08:00:00.000Z",
        "completedAt": "2027-01-15T08:00:00.007Z", "auditId": AUDIT_ID, "batchId": BATCH_ID,
    })
}

fn batches() -> Vec<Operation> {
    vec![
        Operation {
            at: ("post", "/v1/batches"),
            id: "startBatch",
            tag: "Batches",
            summary: "Start many audits",
            description: "Every URL on every device, location and network. All are accepted and paid for, or none.",
            is_keyed: true,
            parameters: vec![idempotency_key()],
            body: Some(json!({
                "schema": reference("BatchRequest"),
                "examples": { "four": { "summary": "Two pages on two devices", "value": {
                    "urls": ["https://example.com/", "https://example.com/about"],
                    "devices": ["mobile", "desktop"], "networks": ["cable"], "locations": ["eu"],
                } } },
            })),
            success: success(
                "All are accepted.",
                data(object(
                    &[
                        ("batchId", text()),
                        ("audits", json!({ "type": "integer" })),
                    ],
                    &[],
                )),
                json!({ "status": "SUCCESS", "data": { "batchId": BATCH_ID, "audits": 4 } }),
            ),
            failures: vec![400, 402, 406, 408, 409, 413],
        },
        Operation {
            at: ("get", "/v1/batches/{id}"),
            id: "getBatch",
            tag: "Batches",
            summary: "Get a batch's status and its audits",
            description: "",
            is_keyed: true,
            parameters: vec![path_id("The batch id.", BATCH_ID)],
            body: None,
            success: success(
                "The batch.",
                data(reference("Batch")),
                json!({
                    "status": "SUCCESS", "data": {
                        "batchId": BATCH_ID, "createdAt": "2027-01-15T08:00:00.000Z", "status": "completed",
                        "counts": {
                            "accepted": 1, "notStarted": 0, "inProgress": 0, "completed": 1, "failed": 0, "deleted": 0,
                        },
                        "audits": [audit_example()],
                    },
                }),
            ),
            failures: vec![404],
        },
    ]
}

fn account() -> Vec<Operation> {
    let one =
        |at, id, summary, description, member: &'static str, schema: Value, example| Operation {
            at,
            id,
            tag: "Account",
            summary,
            description,
            is_keyed: true,
            parameters: vec![],
            body: None,
            success: match example {
                Some(example) => success("", data(object(&[(member, schema)], &[])), example),
                None => described("", data(object(&[(member, schema)], &[]))),
            },
            failures: vec![],
        };
    vec![
        one(
            ("get", "/v1/credits"),
            "getCredits",
            "Get the balance",
            "",
            "credits",
            json!({ "type": "integer", "minimum": 0 }),
            Some(json!({ "status": "SUCCESS", "data": { "credits": 100 } })),
        ),
        one(
            ("get", "/v1/webhook-secret"),
            "getWebhookSecret",
            "Get the secret that webhooks are signed with",
            "One per account. Those who run the service can replace it.",
            "secret",
            text(),
            None,
        ),
    ]
}

fn catalog() -> Vec<Operation> {
    let list = |path, id, summary, record| Operation {
        at: ("get", path),
        id,
        tag: "Catalog",
        summary,
        description: "",
        is_keyed: false,
        parameters: vec![],
        body: None,
        success: described(
            "All of them.",
            data(json!({ "type": "array", "items": reference(record) })),
        ),
        failures: vec![],
    };
    let one = |path, id, summary, record, example: &'static str| Operation {
        at: ("get", path),
        id,
        tag: "Catalog",
        summary,
        description: "",
        is_keyed: false,
        parameters: vec![path_id("Its id.", example)],
        body: None,
        success: described("The record.", data(reference(record))),
        failures: vec![404],
    };
    vec![
        list("/v1/devices", "listDevices", "List devices", "Device"),
        one(
            "/v1/devices/{id}",
            "getDevice",
            "Get a device",
            "Device",
            "mobile",
        ),
        list(
            "/v1/locations",
            "listLocations",
            "List locations",
            "Location",
        ),
        one(
            "/v1/locations/{id}",
            "getLocation",
            "Get a location",
            "Location",
            "eu",
        ),
        list("/v1/networks", "listNetworks", "List networks", "Network"),
    ]
}

fn operation() -> Vec<Operation> {
    let probe = |path, id, summary, member: &'static str| Operation {
        at: ("get", path),
        id,
        tag: "Operation",
        summary,
        description: "",
        is_keyed: false,
        parameters: vec![],
        body: None,
        success: success(
            "",
            data(object(&[(member, json!({ "const": true }))], &[])),
            json!({ "status": "SUCCESS", "data": { (member): true } }),
        ),
        failures: vec![],
    };
    vec![
        probe("/healthz", "isAlive", "Whether the process lives", "alive"),
        probe(
            "/readyz",
            "isReady",
            "Whether requests can be served",
            "ready",
        ),
        Operation {
            at: ("get", "/metrics"),
            id: "metrics",
            tag: "Operation",
            summary: "Figures for Prometheus",
            description: "",
            is_keyed: false,
            parameters: vec![],
            body: None,
            success: json!({
                "description": "Text, exposition format 0.0.4.",
                "content": { "text/plain": { "schema": text() } },
            }),
            failures: vec![],
        },
    ]
}
