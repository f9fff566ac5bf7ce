use serde_json::json;

use super::{AUDIT_ID, Operation};
use crate::{
    api::shares::MAX_LISTED,
    openapi::{
        parts::{data, described, path_id, success, text},
        schemas::{object, reference},
    },
    share::MAX_SHARED_DAYS,
};

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation {
            route: ("post", "/v1/audit/share/{id}"),
            id: "shareReport",
            tag: "Audits",
            summary: "Share a report by a link",
            description: "Anyone with the link can read the report. It replaces an earlier link to the same report.",
            requires_key: true,
            parameters: vec![path_id("The audit id.", AUDIT_ID)],
            body: Some(json!({
                "schema": {
                    "type": "object",
                    "properties": { "days": {
                        "type": "integer", "minimum": 1, "maximum": MAX_SHARED_DAYS,
                        "description": "The number of days after which the link expires; without it, the link does not expire.",
                    } },
                },
                "examples": { "month": { "summary": "For 30 days", "value": { "days": 30 } } },
            })),
            success: described("The link.", data(reference("SharedLink"))),
            failures: vec![400, 404, 406, 408, 413],
        },
        Operation {
            route: ("delete", "/v1/audit/share/{id}"),
            id: "stopSharing",
            tag: "Audits",
            summary: "Stop sharing a report",
            description: "The link is no longer valid. The request can be repeated.",
            requires_key: true,
            parameters: vec![path_id("The audit id.", AUDIT_ID)],
            body: None,
            success: success(
                "The report is not shared.",
                data(object(&[("auditId", text())], &[])),
                json!({ "status": "SUCCESS", "data": { "auditId": AUDIT_ID } }),
            ),
            failures: vec![400, 404],
        },
        Operation {
            route: ("get", "/v1/shares"),
            id: "listShares",
            tag: "Audits",
            summary: "List shared reports",
            description: "The valid links of the account, newest first.",
            requires_key: true,
            parameters: vec![],
            body: None,
            success: described(
                "The links.",
                data(json!({
                    "type": "array", "maxItems": MAX_LISTED, "items": reference("SharedLink"),
                })),
            ),
            failures: vec![400, 404],
        },
    ]
}
