use serde_json::{Value, json};

use super::Operation;
use crate::openapi::{
    parts::{data, described, success, text},
    schemas::object,
};

pub(super) fn all() -> Vec<Operation> {
    let one =
        |route, id, summary, description, member: &'static str, schema: Value, example| Operation {
            route,
            id,
            tag: "Account",
            summary,
            description,
            requires_key: true,
            parameters: vec![],
            body: None,
            success: match example {
                Some(example) => success("", data(object(&[(member, schema)], &[])), example),
                None => described("", data(object(&[(member, schema)], &[]))),
            },
            failures: vec![400],
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
            "There is one for each account. Operators of the service can replace it.",
            "secret",
            text(),
            None,
        ),
    ]
}
