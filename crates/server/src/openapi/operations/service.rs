use serde_json::json;

use super::Operation;
use crate::openapi::{
    parts::{data, success, text},
    schemas::object,
};

pub(super) fn all() -> Vec<Operation> {
    let probe = |path, id, summary, member: &'static str| Operation {
        route: ("get", path),
        id,
        tag: "Operation",
        summary,
        description: "",
        requires_key: false,
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
        probe("/healthz", "isAlive", "Liveness", "alive"),
        probe(
            "/readyz",
            "isReady",
            "Readiness: whether requests can be served",
            "ready",
        ),
        Operation {
            route: ("get", "/metrics"),
            id: "metrics",
            tag: "Operation",
            summary: "Metrics for Prometheus",
            description: "Updated once a second. If the operator has set a token, it is required as \
                          `Authorization: Bearer TOKEN`.",
            requires_key: false,
            parameters: vec![],
            body: None,
            success: json!({
                "description": "Text, exposition format 0.0.4.",
                "content": { "text/plain": { "schema": text() } },
            }),
            failures: vec![401],
        },
    ]
}
