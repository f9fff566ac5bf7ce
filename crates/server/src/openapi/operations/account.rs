use plumbline_seam::{MAX_NAME_BYTES, MAX_SECRET_BYTES, MIN_MASKED_BYTES};
use serde_json::{Value, json};

use super::Operation;
use crate::{
    openapi::{
        parts::{data, described, success, text},
        schemas::{body, object, reference},
    },
    vault::{MAX_SECRETS, MAX_SESSIONS},
};

/// The name of a secret in examples.
const SECRET_NAME: &str = "shop-password";
/// The name of a session in examples.
const SESSION_NAME: &str = "shop";

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
    operations.extend(sessions());
    operations
}

/// Returns the parameter of a path with a name that the client chose.
fn path_name(description: &str, example: &str) -> Value {
    json!({
        "name": "name", "in": "path", "required": true, "description": description, "example": example,
        "schema": {
            "type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES, "pattern": "^[A-Za-z0-9_.-]+$",
        },
    })
}

/// Returns the response of an operation that repeats the name.
fn named(name: &str) -> Value {
    success(
        "The name.",
        data(object(&[("name", text())], &[])),
        json!({ "status": "SUCCESS", "data": { "name": name } }),
    )
}

fn sessions() -> Vec<Operation> {
    let entry = object(
        &[
            ("name", text()),
            ("createdAt", text()),
            ("updatedAt", text()),
        ],
        &[("madeAt", text())],
    );
    vec![
        Operation {
            route: ("post", "/v1/sessions"),
            id: "defineSession",
            tag: "Account",
            summary: "Define a session",
            description: "A session is a login that many audits use. The first audit that names it performs the steps, and its \
                          cookies and storage are kept, encrypted like secrets. Replaces an earlier session with this name.",
            requires_key: true,
            parameters: vec![],
            body: Some(json!({
                "schema": body(
                    &[
                        ("name", reference("SessionName")),
                        ("steps", reference("Steps")),
                        ("expect", reference("Expectation")),
                    ],
                    &[("url", reference("Url"))],
                ),
                "examples": { "form": { "summary": "A login form", "value": {
                    "name": SESSION_NAME, "url": "https://example.com/login",
                    "steps": [
                        { "type": "fill", "selector": "#name", "value": "ada" },
                        { "type": "fill", "selector": "#password", "value": format!("{{{{secret.{SECRET_NAME}}}}}") },
                        { "type": "press", "key": "Enter" },
                        { "type": "waitFor", "selector": "#account" },
                    ],
                    "expect": { "selector": "#account" },
                } } },
            })),
            success: named(SESSION_NAME),
            failures: vec![400, 406, 408, 413],
        },
        Operation {
            route: ("get", "/v1/sessions"),
            id: "listSessions",
            tag: "Account",
            summary: "List sessions",
            description: "`madeAt` is when an audit last signed in. Steps and states are never returned.",
            requires_key: true,
            parameters: vec![],
            body: None,
            success: described(
                "The sessions by name.",
                data(json!({ "type": "array", "maxItems": MAX_SESSIONS, "items": entry })),
            ),
            failures: vec![400],
        },
        Operation {
            route: ("delete", "/v1/sessions/{name}"),
            id: "deleteSession",
            tag: "Account",
            summary: "Delete a session",
            description: "Audits that use it and have not begun end with the error `PRECONDITION_FAILED`.",
            requires_key: true,
            parameters: vec![path_name("The name of the session.", SESSION_NAME)],
            body: None,
            success: named(SESSION_NAME),
            failures: vec![400, 404],
        },
    ]
}

fn secrets() -> Vec<Operation> {
    let name = || path_name("The name of the secret.", SECRET_NAME);
    let named = || named(SECRET_NAME);
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
                "schema": body(&[(
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
