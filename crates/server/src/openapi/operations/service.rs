use serde_json::json;

use super::Operation;
use crate::openapi::{
    parts::{data, success, text},
    schemas::object,
};

pub(super) fn all() -> Vec<Operation> {
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
            description: "Read anew once a second. Where the operator has set a token, it is needed as \
                          `Authorization: Bearer TOKEN`.",
            is_keyed: false,
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
