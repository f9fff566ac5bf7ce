use serde_json::{Value, json};

use super::{AUDIT_ID, BATCH_ID, Operation, TRACKING_ID};
use crate::{
    api::recordings::FORMATS,
    openapi::{
        parts::{data, described, idempotency_key, path_id, query, success, success_status, text},
        schemas::{object, reference},
    },
};

pub(super) fn all() -> Vec<Operation> {
    let audit_id = || {
        path_id(
            "The id of an audit that was started with `record`.",
            AUDIT_ID,
        )
    };
    vec![
        Operation {
            route: ("get", "/v1/audits/{id}/recording"),
            id: "getRecording",
            tag: "Recordings",
            summary: "Get the recording of an audit",
            description: "The traffic of the reported visit of an audit that was started with `record`: which servers were connected \
                          to, and every request with its response and its times. It can be replayed with `plumbline audit --recording`. \
                          It is kept as long as the other evidence of the audit. Values of `state`, steps and secrets are never in it; \
                          with `redact`, neither are cookies, tokens and authorization.",
            requires_key: true,
            parameters: vec![
                audit_id(),
                query(
                    "format",
                    "The format of the file.",
                    json!({ "type": "string", "enum": FORMATS, "default": FORMATS[0] }),
                ),
                query(
                    "redact",
                    "Whether the values of cookies, tokens and the like are removed, also from bodies.",
                    json!({ "type": "boolean", "default": false }),
                ),
            ],
            body: None,
            success: file(),
            failures: vec![400, 404, 406],
        },
        Operation {
            route: ("post", "/v1/audits/{id}/experiments"),
            id: "startExperiment",
            tag: "Recordings",
            summary: "Measure whether a change helps",
            description: "Compares the recording of an audit with a changed one, as a comparison of two pages does: both are visited in \
                          turn, and no server is connected to. The changes are listed, or those that follow the advice of a `check`, or \
                          that leave out a `thirdParty`. The result is that of `GET /v1/comparisons/{id}`, where \
                          *faster* means that the changes make the page faster. A change that affects nothing in the recording is \
                          refused. Costs one credit for each pair of visits that it may make (`maxPairs`).",
            requires_key: true,
            parameters: vec![audit_id(), idempotency_key()],
            body: Some(json!({
                "schema": reference("ExperimentRequest"),
                "examples": { "header": { "summary": "Another lifetime in the cache", "value": {
                    "changes": [{
                        "type": "setHeader", "pattern": "example.com/*", "name": "cache-control",
                        "value": "max-age=31536000",
                    }],
                    "maxPairs": 4,
                } } },
            })),
            success: success(
                "The experiment is accepted.",
                object(&[("status", success_status()), ("trackingId", text())], &[]),
                json!({ "status": "SUCCESS", "trackingId": TRACKING_ID }),
            ),
            failures: vec![400, 402, 404, 406, 408, 409, 413],
        },
        Operation {
            route: ("get", "/v1/audits/{id}/experiments"),
            id: "getExperiments",
            tag: "Recordings",
            summary: "List the experiments of an audit",
            description: "The experiments with the recording of an audit, the newest first, with the differences that were measured.",
            requires_key: true,
            parameters: vec![audit_id()],
            body: None,
            success: success(
                "The experiments.",
                data(json!({ "type": "array", "items": reference("Experiment") })),
                json!({ "status": "SUCCESS", "data": [{
                    "trackingId": TRACKING_ID, "auditId": AUDIT_ID,
                    "subject": { "check": "document-latency-insight" }, "changes": ["compressText"],
                    "comparison": { "pairs": 4, "figures": [{
                        "name": "lcp", "medians": [2000.0, 2200.0], "shift": 0.1, "isRelative": true,
                        "interval": { "low": 0.09, "high": 0.11, "level": 0.98, "basis": "pairs of visits" },
                        "answer": "slower",
                    }] },
                }] }),
            ),
            failures: vec![400, 404],
        },
        Operation {
            route: ("post", "/v1/audits/{id}/third-parties"),
            id: "startPriceList",
            tag: "Recordings",
            summary: "Measure the price of each third party",
            description: "Starts a batch of experiments, each of which leaves out one third party of the recorded page. \
                          `GET /v1/audits/{id}/experiments` has the results. Each costs one credit for each pair of visits \
                          that it may make (`maxPairs`).",
            requires_key: true,
            parameters: vec![audit_id(), idempotency_key()],
            body: Some(json!({
                "schema": reference("PriceListRequest"),
                "examples": { "few": { "summary": "At most four pairs of visits", "value": { "maxPairs": 4 } } },
            })),
            success: batch_accepted("The experiments are accepted.", 1),
            failures: vec![400, 402, 404, 406, 408, 409, 413],
        },
        Operation {
            route: ("post", "/v1/audits/{id}/matrix"),
            id: "startMatrix",
            tag: "Recordings",
            summary: "Audit a recording on devices and networks",
            description: "Starts a batch of quick audits of the recording, one for every device and network. No server is connected to. \
                          Costs one credit for each; `GET /v1/batches/{id}` has the scores and metrics.",
            requires_key: true,
            parameters: vec![audit_id(), idempotency_key()],
            body: Some(json!({
                "schema": reference("MatrixRequest"),
                "examples": { "four": { "summary": "Two devices on two networks", "value": {
                    "devices": ["mobile", "desktop"], "networks": ["cable", "normal4g"],
                } } },
            })),
            success: batch_accepted("The audits are accepted.", 4),
            failures: vec![400, 402, 404, 406, 408, 409, 413],
        },
        Operation {
            route: ("get", "/v1/audits/{id}/matrix"),
            id: "getMatrix",
            tag: "Recordings",
            summary: "Get the results on devices and networks",
            description: "The newest results of the recording of an audit for every device and network on which it was audited.",
            requires_key: true,
            parameters: vec![audit_id()],
            body: None,
            success: success(
                "The results.",
                data(reference("Matrix")),
                json!({ "status": "SUCCESS", "data": {
                    "url": "https://example.com/",
                    "devices": [{ "id": "mobile", "name": "Mobile, Moto G Power 2022 (412x823)" }],
                    "networks": [{ "id": "normal4g", "name": "4G (9 Mbps down / 9 Mbps up, 170 ms RTT)" }],
                    "cells": [{
                        "device": "mobile", "network": "normal4g", "performance": 87, "fcpMs": 1234.4, "lcpMs": 2345.6,
                        "tbtMs": 12.5, "siMs": 3000.2, "cls": 0.123_456, "auditId": AUDIT_ID,
                    }],
                } }),
            ),
            failures: vec![400, 404],
        },
    ]
}

fn batch_accepted(description: &str, audits: u32) -> Value {
    success(
        description,
        data(object(
            &[
                ("batchId", text()),
                ("audits", json!({ "type": "integer" })),
            ],
            &[],
        )),
        json!({ "status": "SUCCESS", "data": { "batchId": BATCH_ID, "audits": audits } }),
    )
}

/// Describes a recording in its formats.
fn file() -> Value {
    let mut response = described(
        "The recording.",
        json!({ "type": "object", "description": "A HAR file." }),
    );
    response["content"]["application/octet-stream"] =
        json!({ "schema": { "type": "string", "format": "binary" } });
    response
}
