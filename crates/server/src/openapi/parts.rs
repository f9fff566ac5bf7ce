//! Parts that several descriptions of operations share.

use serde_json::{Value, json};

use super::schemas::{object, reference};
use crate::api::idempotency;

pub(super) fn webhooks() -> Value {
    let webhook = |id: &str, summary: &str, description: &str, schema: &str| {
        json!({ "post": {
            "operationId": id,
            "summary": summary,
            "description": description,
            "parameters": [
                { "name": "X-Plumbline-Timestamp", "in": "header", "required": true, "schema": { "type": "string" } },
                { "name": "X-Plumbline-Signature", "in": "header", "required": true, "schema": { "type": "string" } },
                { "name": "X-Plumbline-Attempt", "in": "header", "required": true, "schema": { "type": "string" } },
            ],
            "requestBody": { "content": { "application/json": { "schema": reference(schema) } } },
            "responses": { "2XX": { "description": "Received." } },
        } })
    };
    json!({
        "auditCompleted": webhook(
            "auditCompleted",
            "An audit is completed",
            "Sent to the `webhook` of a start, and for every audit of a batch to the `webhook` of the batch. Any 2xx response whose \
             head arrives within 5 s counts as delivered; otherwise the request is repeated 10 s, 1 min, 5 min, 30 min, 2 h and \
             6 h after the previous attempt, seven attempts in all. It may arrive more than once. Redirects are not followed. At \
             most two are sent concurrently for an account, and at most two to a host and port.\n\nTo verify it, compute the hex \
             HMAC-SHA256, with the account's webhook secret, of `X-Plumbline-Timestamp`, a dot, and the body as received; \
             `X-Plumbline-Signature` is `v1=` followed by it. Refuse time stamps (epoch seconds) older than five minutes.",
            "Completed",
        ),
        "batchCompleted": webhook(
            "batchCompleted",
            "A batch is completed",
            "Sent once to the `webhook` of a batch when its last audit has ended, after the webhook of that audit. `data` is the \
             batch as in `getBatch`. Signature and repetitions are those of `auditCompleted`.",
            "BatchCompleted",
        ),
    })
}

pub(super) fn shared_responses() -> Value {
    let failures = [
        (
            400,
            "The body or a parameter is invalid, or a required one is missing.",
            "Invalid Request body or missing required parameters",
        ),
        (
            401,
            "The key or the token is missing, unknown, revoked or expired.",
            "Unauthorized",
        ),
        (
            402,
            "The account has too few credits.",
            "Insufficient Credits",
        ),
        (
            404,
            "The resource does not exist, or belongs to another account.",
            "Resource Not Found",
        ),
        (406, "A value is invalid.", "Invalid Url"),
        (408, "The body took too long to arrive.", "Request Timeout"),
        (
            409,
            "The idempotency key was used for another request.",
            "Idempotency Key Reused",
        ),
        (413, "The body is too large.", "Request Body Too Large"),
        (
            429,
            "Too many requests within a minute, or too many concurrent ones; `Retry-After` is the number of seconds to wait.",
            "Rate Limit Exceeded",
        ),
        (
            431,
            "The URL and the headers together exceed 16 KiB.",
            "Request Header Fields Too Large",
        ),
        (500, "The server failed.", "Internal Server Error"),
        (
            503,
            "The service is temporarily unavailable.",
            "Service Unavailable",
        ),
    ];
    let mut responses = json!({});
    for (status, description, message) in failures {
        responses[status.to_string()] = json!({
            "description": description,
            "content": { "application/json": {
                "schema": reference("Failure"),
                "example": { "status": "FAILURE", "message": message },
            } },
        });
    }
    responses["429"]["headers"] = json!({
        "Retry-After": { "schema": { "type": "integer", "minimum": 1 } },
    });
    responses
}

pub(super) fn shared_headers() -> Value {
    let header =
        |description| json!({ "description": description, "schema": { "type": "integer" } });
    json!({
        "RateLimit": header("The number of requests per minute, and of the largest burst."),
        "RateRemaining": header("The number of requests that are left."),
        "RateReset": header("The time at which the limit is fully restored, in epoch seconds."),
    })
}

pub(super) fn success(description: &str, schema: Value, example: Value) -> Value {
    let description = if description.is_empty() {
        "The response."
    } else {
        description
    };
    json!({
        "description": description,
        "content": { "application/json": { "schema": schema, "example": example } },
    })
}

pub(super) fn described(description: &str, schema: Value) -> Value {
    let description = if description.is_empty() {
        "The response."
    } else {
        description
    };
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

pub(super) fn data(schema: Value) -> Value {
    object(&[("status", success_status()), ("data", schema)], &[])
}

pub(super) fn success_status() -> Value {
    json!({ "const": "SUCCESS" })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn path_id(description: &str, example: &str) -> Value {
    json!({
        "name": "id", "in": "path", "required": true, "description": description, "example": example,
        "schema": { "type": "string", "minLength": 1, "maxLength": 50 },
    })
}

pub(super) fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

pub(super) fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "required": false,
        "description": "Makes a start safe to repeat: for 24 hours, the same key and body return the first response and \
                        cost nothing; another body is refused with 409. A refused start is not remembered.",
        "schema": {
            "type": "string", "minLength": 1, "maxLength": idempotency::MAX_LENGTH, "pattern": "^[!-~]+$",
        },
    })
}
