//! The descriptions of all operations, with one file for each tag.

mod account;
mod audits;
mod batches;
mod catalog;
mod comparisons;
mod recordings;
mod service;
mod shares;

use serde_json::{Value, json};

/// The tracking id in examples. Tests store audits with the ids of the examples and run the
/// examples.
pub(crate) const TRACKING_ID: &str = "trk_2h7KfQ0c9XbVn4Jw8sLtRzYp1mDgEa6U";
/// The audit id in examples.
pub(crate) const AUDIT_ID: &str = "aud_Zk3mW8yQ5tHr1VxNc7JbLs0pDf9GeA2u";
/// The batch id in examples.
pub(crate) const BATCH_ID: &str = "bat_9vTgBq4LxYw2MnRz6KcHs8JdPf1UeA7o";

pub(crate) const INTRODUCTION: &str = "\
Start an audit, request its status until it is `completed`, then request its report.

Operations that require a key expect it in `X-SVC-KEY`. Every response is JSON with `status` `SUCCESS` or `FAILURE`; \
a failure has a `message` and a `code`; \
the schema `Failure` lists all codes. Parameters of the query that an operation does not have are refused with \
`UNKNOWN_PARAMETER`, except by starts, statuses, `/v1/audit/data`, devices and single locations. Every response has an `X-Request-Id`. Responses to requests with a key have \
`X-RateLimit-Limit`, `-Remaining` and `-Reset` (epoch seconds) of the limit that applies to the operation: one for \
starts, one for everything else. A 429 has the number of seconds to wait in `Retry-After`.";

/// The description of an operation.
pub(crate) struct Operation {
    /// The method and path, as in the router.
    pub(crate) route: (&'static str, &'static str),
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: &'static str,
    requires_key: bool,
    parameters: Vec<Value>,
    body: Option<Value>,
    success: Value,
    failures: Vec<u16>,
}

impl Operation {
    /// Returns the OpenAPI description.
    pub(super) fn description(&self) -> Value {
        let mut responses = json!({ "200": self.success });
        if self.requires_key {
            responses["200"]["headers"] = json!({
                "X-RateLimit-Limit": { "$ref": "#/components/headers/RateLimit" },
                "X-RateLimit-Remaining": { "$ref": "#/components/headers/RateRemaining" },
                "X-RateLimit-Reset": { "$ref": "#/components/headers/RateReset" },
            });
        }
        let key_failures: &[u16] = if self.requires_key { &[401] } else { &[] };
        let common = &[429, 431, 500, 503];
        for status in self.failures.iter().chain(key_failures).chain(common) {
            let reference = format!("#/components/responses/{status}");
            responses[status.to_string()] = json!({ "$ref": reference });
        }
        let mut description = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "security": if self.requires_key { json!([{ "key": [] }]) } else { json!([]) },
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
        { "name": "Audits", "description": "Start, follow, cancel, read, list, share and delete audits." },
        { "name": "Batches", "description": "Start, follow and cancel many audits together." },
        { "name": "Comparisons", "description": "Compare two pages by visits in turn." },
        { "name": "Recordings", "description": "Visit the recording of an audit again: with changes, and on other devices and networks." },
        { "name": "Account", "description": "The account of the key." },
        { "name": "Catalog", "description": "Devices, locations and networks. No key required." },
        { "name": "Operation", "description": "For operators of the service." },
    ])
}

/// Returns all operations.
pub(crate) fn all() -> Vec<Operation> {
    [
        audits::single(),
        audits::lists(),
        shares::all(),
        batches::all(),
        comparisons::all(),
        recordings::all(),
        account::all(),
        catalog::all(),
        service::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
