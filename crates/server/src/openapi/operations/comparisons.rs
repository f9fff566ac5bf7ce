use plumbline_report::comparison::ComparisonFormat;
use serde_json::{Value, json};

use super::{Operation, TRACKING_ID};
use crate::{
    api::audit::MAX_WAIT_S,
    openapi::{
        parts::{data, described, idempotency_key, path_id, query, success, success_status, text},
        schemas::{object, reference},
    },
};

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation {
            route: ("post", "/v1/comparisons"),
            id: "startComparison",
            tag: "Comparisons",
            summary: "Compare two pages",
            description: "Visits two pages in turn, as often as needed to tell whether they differ. A comparison is an audit of the first \
                          page: it has a tracking id, appears in lists, can be cancelled and sends a webhook. Costs one credit for \
                          each pair of visits that it may make (`maxPairs`), refunded if a page cannot be measured.",
            requires_key: true,
            parameters: vec![idempotency_key()],
            body: Some(json!({
                "schema": reference("ComparisonRequest"),
                "examples": { "release": { "summary": "The next release against the current one", "value": {
                    "urls": ["https://example.com/", "https://next.example.com/"], "device": "mobile",
                    "network": "mobileSlow4g", "location": "us-tx", "maxPairs": 6,
                } } },
            })),
            success: success(
                "The comparison is accepted.",
                object(&[("status", success_status()), ("trackingId", text())], &[]),
                json!({ "status": "SUCCESS", "trackingId": TRACKING_ID }),
            ),
            failures: vec![400, 402, 406, 408, 409, 413],
        },
        Operation {
            route: ("get", "/v1/comparisons/{id}"),
            id: "getComparison",
            tag: "Comparisons",
            summary: "Get a comparison's status and result",
            description: "With `wait`, the response is sent when the comparison is completed, at the latest after so many seconds. \
                          With `format`, the result of a completed comparison is a file.",
            requires_key: true,
            parameters: vec![
                path_id("The tracking id of the comparison.", TRACKING_ID),
                query(
                    "wait",
                    "Seconds to wait for the comparison to be completed.",
                    json!({ "type": "integer", "minimum": 0, "maximum": MAX_WAIT_S, "default": 0 }),
                ),
                query(
                    "format",
                    "The format of the file; without it, the result is in an envelope, like every response.",
                    json!({ "type": "string", "enum": ComparisonFormat::ALL.map(ComparisonFormat::name) }),
                ),
            ],
            body: None,
            success: result(),
            failures: vec![400, 404, 406],
        },
    ]
}

/// Describes the result of a comparison, in its envelope or as a file of any format.
fn result() -> Value {
    let enveloped = data(reference("ComparisonStatus"));
    let mut response = described(
        "The status and the result.",
        json!({ "anyOf": [enveloped, { "type": "object", "description": "A file." }] }),
    );
    for format in ComparisonFormat::ALL {
        let media_type = format.content_type().split(';').next().unwrap_or_default();
        if response["content"].get(media_type).is_none() {
            response["content"][media_type] = json!({ "schema": text() });
        }
    }
    response
}
