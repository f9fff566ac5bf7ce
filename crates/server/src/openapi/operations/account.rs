use plumbline_seam::{MAX_NAME_BYTES, MAX_SECRET_BYTES, MIN_MASKED_BYTES};
use serde_json::{Value, json};

use super::Operation;
use crate::{
    openapi::{
        parts::{data, described, success, text},
        schemas::object,
    },
    vault::MAX_SECRETS,
};

/// The name of a secret in examples.
const SECRET_NAME: &str = "shop-password";

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
    let mut operations = vec![
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
    ];
    operations.extend(secrets());
    operations
}

fn secrets() -> Vec<Operation> {
    let name = || {
        json!({
            "name": "name", "in": "path", "required": true, "description": "The name of the secret.",
            "example": SECRET_NAME,
            "schema": {
                "type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES, "pattern": "^[A-Za-z0-9_.-]+$",
            },
        })
    };
    let named = || {
        success(
            "The name.",
            data(object(&[("name", text())], &[])),
            json!({ "status": "SUCCESS", "data": { "name": SECRET_NAME } }),
        )
    };
    let entry = object(
        &[
            ("name", text()),
            ("createdAt", text()),
            ("updatedAt", text()),
        ],
        &[],
    );
    vec![
        Operation {
            route: ("get", "/v1/secrets"),
            id: "listSecrets",
            tag: "Account",
            summary: "List the names of secrets",
            description: "Values are never returned.",
            requires_key: true,
            parameters: vec![],
            body: None,
            success: described(
                "The secrets by name.",
                data(json!({ "type": "array", "maxItems": MAX_SECRETS, "items": entry })),
            ),
            failures: vec![400],
        },
        Operation {
            route: ("put", "/v1/secrets/{name}"),
            id: "storeSecret",
            tag: "Account",
            summary: "Store a secret",
            description: "Replaces an earlier secret with this name. In the values of `state` and of steps that fill in \
                          a value, `{{secret.NAME}}` stands for it. It is encrypted with a key outside the database, \
                          given only to the agent that performs an audit, and removed from everything that the audit \
                          leaves.",
            requires_key: true,
            parameters: vec![name()],
            body: Some(json!({
                "schema": object(&[(
                    "value",
                    json!({
                        "type": "string", "minLength": MIN_MASKED_BYTES, "maxLength": MAX_SECRET_BYTES,
                        "description": "At most 16 KiB of UTF-8.",
                    }),
                )], &[]),
                "examples": { "password": {
                    "summary": "A password", "value": { "value": "correct horse battery staple" },
                } },
            })),
            success: named(),
            failures: vec![400, 404, 406, 408, 413],
        },
        Operation {
            route: ("delete", "/v1/secrets/{name}"),
            id: "deleteSecret",
            tag: "Account",
            summary: "Delete a secret",
            description: "Audits that use it and have not begun end with the error `PRECONDITION_FAILED`.",
            requires_key: true,
            parameters: vec![name()],
            body: None,
            success: named(),
            failures: vec![400, 404],
        },
    ]
}
