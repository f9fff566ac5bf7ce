use serde_json::json;

use super::{BATCH_ID, Operation, audits};
use crate::openapi::{
    parts::{data, idempotency_key, path_id, success, text},
    schemas::{object, reference},
};

pub(super) fn all() -> Vec<Operation> {
    let batch = json!({
        "status": "SUCCESS", "data": {
            "batchId": BATCH_ID, "createdAt": "2027-01-15T08:00:00.000Z", "status": "completed",
            "counts": {
                "accepted": 1, "notStarted": 0, "inProgress": 0, "completed": 1, "failed": 0, "deleted": 0,
            },
            "audits": [audits::example()],
        },
    });
    vec![
        Operation {
            route: ("post", "/v1/batches"),
            id: "startBatch",
            tag: "Batches",
            summary: "Start many audits",
            description: "Starts an audit of every URL on every device, location and network. All are accepted and charged, or none.",
            requires_key: true,
            parameters: vec![idempotency_key()],
            body: Some(json!({
                "schema": reference("BatchRequest"),
                "examples": { "four": { "summary": "Two pages on two devices", "value": {
                    "urls": ["https://example.com/", "https://example.com/about"],
                    "devices": ["mobile", "desktop"], "networks": ["cable"], "locations": ["eu"],
                } } },
            })),
            success: success(
                "The audits are accepted.",
                data(object(
                    &[
                        ("batchId", text()),
                        ("audits", json!({ "type": "integer" })),
                    ],
                    &[],
                )),
                json!({ "status": "SUCCESS", "data": { "batchId": BATCH_ID, "audits": 4 } }),
            ),
            failures: vec![400, 402, 406, 408, 409, 413],
        },
        Operation {
            route: ("get", "/v1/batches/{id}"),
            id: "getBatch",
            tag: "Batches",
            summary: "Get a batch's status and its audits",
            description: "",
            requires_key: true,
            parameters: vec![path_id("The batch id.", BATCH_ID)],
            body: None,
            success: success("The batch.", data(reference("Batch")), batch.clone()),
            failures: vec![400, 404],
        },
        Operation {
            route: ("post", "/v1/batches/{id}/cancel"),
            id: "cancelBatch",
            tag: "Batches",
            summary: "Cancel the unfinished audits of a batch",
            description: "Cancels every audit of the batch that is not completed, like `cancelAudit`. The request can be repeated; \
                          the response is the batch.",
            requires_key: true,
            parameters: vec![path_id("The batch id.", BATCH_ID)],
            body: None,
            success: success("The batch.", data(reference("Batch")), batch),
            failures: vec![400, 404],
        },
    ]
}
