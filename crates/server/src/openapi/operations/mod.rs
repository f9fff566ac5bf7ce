//! What each route does, takes and answers: a file for each tag.

mod account;
mod audits;
mod batches;
mod catalog;
mod service;

use serde_json::{Value, json};

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
        let keyed: &[u16] = if self.is_keyed { &[401] } else { &[] };
        let any = &[429, 431, 500, 503];
        for status in self.failures.iter().chain(keyed).chain(any) {
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
        audits::single(),
        audits::lists(),
        batches::all(),
        account::all(),
        catalog::all(),
        service::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
