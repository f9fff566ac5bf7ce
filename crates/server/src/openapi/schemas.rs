//! The JSON schemas of bodies (draft 2020-12, which OpenAPI 3.1 uses).

use plumbline_bundle::FailureCode;
use plumbline_catalog::Catalog;
use plumbline_model::comparison::{MAX_PAIRS, MIN_PAIRS};
use plumbline_model::field::FieldReason;
use plumbline_recording::{MAX_CHANGES, MEASURABLE_CHECKS};
use serde_json::{Value, json};

use super::{report, visit_options};
use crate::{
    api::request_body::{MAX_LABEL_CHARS, MAX_LABELS, MAX_RUNS},
    app::Limits,
    errors::{CODES, CODES_OF_AGENTS_AND_FORMS},
};

pub(super) fn all(catalog: &Catalog, limits: &Limits) -> Value {
    let devices: Vec<_> = catalog.devices().iter().map(|d| &d.id).collect();
    let networks: Vec<_> = catalog.networks().iter().map(|n| &n.id).collect();
    let locations: Vec<_> = catalog.locations().iter().map(|l| &l.id).collect();
    let mut all = json!({
        "Url": {
            "type": "string", "format": "uri", "minLength": 8, "maxLength": limits.url_chars,
            "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#@\\\\]",
            "description": "An absolute http or https URL without user name or password.",
        },
        "DeviceId": { "type": "string", "enum": devices },
        "NetworkId": { "type": "string", "enum": networks },
        "LocationId": { "type": "string", "enum": locations },
        "Runs": {
            "type": "integer", "minimum": 1, "maximum": MAX_RUNS, "default": 1,
            "description": "The number of runs. The report is that of the run closest to the median; an \
                            audit costs one credit per run.",
        },
        "AllowErrorStatus": {
            "type": "boolean", "default": false,
            "description": "Whether a main document with status 400 or above is measured. Otherwise the audit \
                            ends with the error `HTTP_ERROR`.",
        },
        "Quick": {
            "type": "boolean", "default": false,
            "description": "Whether each run has exactly one visit. Otherwise the page is visited up to three times \
                            if the machine was busy or the score is uncertain.",
        },
        "Record": {
            "type": "boolean", "default": false,
            "description": "Whether the traffic of the reported visit is kept, so that it can be exported, changed and replayed \
                            (`/v1/audits/{id}/recording`, `/experiments`, `/matrix`).",
        },
        "Webhook": {
            "$ref": "#/components/schemas/Url",
            "description": "Receives a request when the audit is completed; see Webhooks.",
        },
        "Label": {
            "type": "string", "minLength": 1, "maxLength": MAX_LABEL_CHARS,
            "pattern": r"^[^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])?$",
        },
        "Labels": {
            "type": "array", "maxItems": MAX_LABELS, "items": reference("Label"),
            "description": "Labels by which audits are found again, such as a release or a team; repeated ones count once.",
        },
        "Moment": {
            "type": "string", "format": "date-time",
            "description": "ISO 8601, UTC, with milliseconds.",
        },
        "State": { "type": "string", "enum": ["not-started", "in-progress", "completed"] },
        "Failure": object(&[
            ("status", json!({ "const": "FAILURE" })),
            ("message", json!({ "type": "string" })),
            ("code", json!({
                "type": "string", "examples": ["INVALID_DEVICE"],
                "description": format!("The stable name of the failure. {}", failure_codes()),
            })),
        ], &[
            ("field", json!({
                "type": "string", "description": "The invalid member of the body or parameter of the query.",
            })),
            ("index", json!({
                "type": "integer", "minimum": 0,
                "description": "The position of the invalid value, if the member is a list.",
            })),
            ("reason", json!({ "type": "string", "description": "A sentence for people." })),
        ]),
        "AuditRequest": audit_request(),
        "BatchRequest": batch_request(limits),
        "ComparisonRequest": comparison_request(),
        "AuditError": object(&[
            ("code", json!({
                "type": "string", "examples": ["DNS_FAILURE"],
                "description": format!(
                    "One of {}.",
                    FailureCode::ALL.map(|code| format!("`{code}`")).join(", ")
                ),
            })),
            ("message", json!({ "type": "string" })),
        ], &[]),
        "Tracking": tracking(&[]),
        "ComparisonStatus": tracking(&[("comparison", reference("ComparisonResult"))]),
        "Progress": with_description(object(&[
            ("phase", json!({
                "type": "string", "enum": ["waiting", "preparing", "loading", "gathering", "judging"],
            })),
            ("text", json!({ "type": "string", "examples": ["Visit 2 of at most 3: confirming the score"] })),
            ("elapsedSeconds", with_description(count(), "The time since the audit was accepted.")),
        ], &[
            ("visit", object(&[
                ("run", count()), ("number", count()), ("max", count()),
                ("reason", json!({ "type": "string", "enum": ["first", "disturbed", "uncertain"] })),
            ], &[])),
            ("queuePosition", json!({
                "type": "integer", "minimum": 1,
                "description": "The place in the queue, while the audit waits. Accounts take turns.",
            })),
            ("remainingSeconds", json!({
                "type": "integer", "minimum": 1,
                "description": "An estimate from the audits before; absent if the audit takes longer than these.",
            })),
        ]), "The progress of an audit, in the status while it is not completed. While the audit is running, \
             `visit` is the position of the current page load: the run, the visit within the run, the maximum number of visits of a \
             run, and why the page is visited again: the machine was busy (`disturbed`), or the score is `uncertain`."),
        "Audit": object(&[
            ("trackingId", json!({ "type": "string" })),
            ("url", json!({ "type": "string" })),
            ("device", json!({ "type": "string" })),
            ("network", json!({ "type": "string" })),
            ("location", json!({ "type": "string" })),
            ("runs", json!({ "type": "integer" })),
            ("status", reference("State")),
            ("createdAt", reference("Moment")),
        ], &[
            ("completedAt", reference("Moment")),
            ("auditId", json!({ "type": "string" })),
            ("batchId", json!({ "type": "string" })),
            ("error", reference("AuditError")),
            ("labData", reference("LabData")),
            ("finalUrl", final_url()),
            ("labels", reference("Labels")),
        ]),
        "AuditData": object(&[
            ("auditId", json!({ "type": "string" })),
            ("url", json!({ "type": "string" })),
            ("device", json!({ "type": "string" })),
            ("network", json!({ "type": "string" })),
            ("location", json!({ "type": "string" })),
            ("createdAt", reference("Moment")),
            ("labData", reference("LabData")),
            ("fieldData", json!({ "anyOf": [reference("FieldData"), { "type": "null" }] })),
        ], &[
            ("fieldDataSource", reference("FieldDataSource")),
            ("fieldDataReason", reference("FieldDataReason")),
            ("responsiveness", reference("Responsiveness")),
            ("error", reference("AuditError")),
        ]),
        "FieldData": with_description(object(&[
            ("fcp", milliseconds()), ("lcp", milliseconds()), ("fid", milliseconds()),
            ("cls", json!({ "type": ["number", "null"], "minimum": 0 })),
            ("inp", milliseconds()), ("ttfb", milliseconds()),
            ("percentile", json!({ "const": 75 })),
        ], &[]), "What real visitors experienced, from the Chrome UX Report; null if it has no data."),
        "FieldDataSource": with_description(object(&[
            ("record", json!({ "type": "string", "enum": ["url", "origin"] })),
            ("subject", json!({ "type": "string" })),
            ("formFactor", json!({ "type": "string", "enum": ["phone", "tablet", "desktop"] })),
            ("collectionPeriod", json!({ "type": ["object", "null"] })),
        ], &[]), "The source of `fieldData`: the page, or all pages of its origin."),
        "FieldDataReason": {
            "type": "string",
            "description": "The reason why `fieldData` is null; absent if it was not requested.",
            "enum": FieldReason::ALL.map(FieldReason::as_str),
        },
        "Responsiveness": with_description(object(&[
            ("inp", milliseconds()),
            ("rating", json!({ "enum": ["good", "needs-improvement", "poor", null] })),
            ("interactions", count()),
        ], &[]), "Responsiveness in the lab: the longest time from an input to the next paint, and the number of inputs \
                  that were measured. Absent without `interactions`. The whole report has each input with its parts."),
        "LabData": object(&[
            ("performance", score()), ("accessibility", score()), ("seo", score()),
            ("bestPractices", score()), ("pwa", score()),
            ("fcp", milliseconds()), ("lcp", milliseconds()), ("tbt", milliseconds()),
            ("cls", json!({ "type": ["number", "null"], "minimum": 0 })),
            ("si", milliseconds()), ("tti", milliseconds()),
        ], &[("errorStatus", json!({ "type": "integer", "description": "The status of the measured page if it is that of an error." }))]),
        "WholeReport": object(&[
            ("auditId", json!({ "type": "string" })),
            ("trackingId", json!({ "type": "string" })),
            ("createdAt", reference("Moment")),
            ("report", reference("Report")),
        ], &[]),
        "Batch": object(&[
            ("batchId", json!({ "type": "string" })),
            ("createdAt", reference("Moment")),
            ("status", reference("State")),
            ("counts", object(&[
                ("accepted", count()), ("notStarted", count()), ("inProgress", count()),
                ("completed", count()), ("failed", count()), ("deleted", count()),
            ], &[])),
            ("audits", json!({ "type": "array", "items": reference("Audit") })),
        ], &[]),
        "SharedLink": object(&[
            ("auditId", json!({ "type": "string" })),
            ("path", json!({
                "type": "string", "examples": ["/shared/Zk3mW8yQ5tHr1VxNc7JbLs0pDf9GeA2u"],
                "description": "The path of the page on this server.",
            })),
            ("address", with_description(json!({ "type": "string", "format": "uri" }), "The whole address of the page.")),
            ("createdAt", reference("Moment")),
            ("expiresAt", json!({ "anyOf": [reference("Moment"), { "type": "null" }] })),
        ], &[
            ("url", json!({ "type": "string", "description": "The audited URL, in lists." })),
        ]),
        "Device": object(&[
            ("id", json!({ "type": "string" })),
            ("name", json!({ "type": "string" })),
            ("mode", json!({ "type": "string", "enum": ["mobile", "desktop"] })),
        ], &[]),
        "Location": object(&[
            ("id", json!({ "type": "string" })),
            ("name", json!({ "type": "string" })),
        ], &[]),
        "Network": object(&[
            ("id", json!({ "type": "string" })),
            ("name", json!({ "type": "string" })),
            ("downKbps", json!({ "type": "number" })),
            ("upKbps", json!({ "type": "number" })),
            ("rttMs", json!({ "type": "number" })),
        ], &[]),
        "Completed": object(&[
            ("event", json!({ "const": "audit.completed" })),
            ("completedAt", reference("Moment")),
            ("data", reference("Tracking")),
        ], &[]),
        "BatchCompleted": object(&[
            ("event", json!({ "const": "batch.completed" })),
            ("completedAt", reference("Moment")),
            ("data", reference("Batch")),
        ], &[]),
    });
    if let Some(all) = all.as_object_mut() {
        let replays = [
            ("ExperimentRequest", experiment_request()),
            ("PriceListRequest", body(&[], &experiment_conditions())),
            ("MatrixRequest", matrix_request(limits)),
            ("Change", change()),
        ];
        all.extend(replays.map(|(name, schema)| (name.to_owned(), schema)));
        all.extend(report::schemas());
        all.extend(visit_options::schemas());
    }
    all
}

/// Returns the schema of the status of an audit, with more members.
fn tracking(more: &[(&str, Value)]) -> Value {
    let required = [
        ("trackingId", json!({ "type": "string" })),
        ("url", json!({ "type": "string" })),
        ("status", reference("State")),
    ];
    let mut optional = vec![
        (
            "auditId",
            json!({
                "type": "string", "description": "The id of the report; present when the audit is completed.",
            }),
        ),
        ("error", reference("AuditError")),
        ("labData", reference("LabData")),
        ("finalUrl", final_url()),
        ("labels", reference("Labels")),
        ("progress", reference("Progress")),
    ];
    optional.extend_from_slice(more);
    object(&required, &optional)
}

fn audit_request() -> Value {
    let own = [
        ("url", reference("Url")),
        ("device", reference("DeviceId")),
        ("location", reference("LocationId")),
        ("network", reference("NetworkId")),
    ];
    request(&own, ("runs", reference("Runs")))
}

fn comparison_request() -> Value {
    let own = [
        (
            "urls",
            json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": reference("Url") }),
        ),
        ("device", reference("DeviceId")),
        ("location", reference("LocationId")),
        ("network", reference("NetworkId")),
    ];
    let pairs = json!({
        "type": "integer", "minimum": MIN_PAIRS, "maximum": MAX_PAIRS, "default": MAX_PAIRS,
        "description": "The most pairs of visits; fewer are made if the answer is clear before.",
    });
    let mut request = request(&own, ("maxPairs", pairs));
    if let Some(members) = request["properties"].as_object_mut() {
        members.remove("interactions");
        members.remove("flow");
        members.remove("profile");
    }
    request
}

/// Returns the members that experiments have besides what they try.
fn experiment_conditions() -> [(&'static str, Value); 6] {
    let pairs = json!({
        "type": "integer", "minimum": MIN_PAIRS, "maximum": MAX_PAIRS, "default": MAX_PAIRS,
        "description": "The most pairs of visits; fewer are made if the answer is clear before.",
    });
    [
        ("device", reference("DeviceId")),
        ("network", reference("NetworkId")),
        ("maxPairs", pairs),
        ("repeatable", repeatable()),
        ("webhook", reference("Webhook")),
        ("labels", reference("Labels")),
    ]
}

fn experiment_request() -> Value {
    let changes = json!({
        "type": "array", "minItems": 1, "maxItems": MAX_CHANGES, "items": reference("Change"),
    });
    let check = json!({
        "type": "string", "enum": MEASURABLE_CHECKS,
        "description": "The id of a failed check of the report, whose advice is followed.",
    });
    let third_party = json!({
        "type": "string",
        "description": "A third party that `third-parties-insight` names, which is left out.",
    });
    let recording = json!({
        "type": "string",
        "description": "The id of another audit, whose recording is compared with this one.",
    });
    let own = [
        ("changes", changes),
        ("check", check),
        ("thirdParty", third_party),
        ("recording", recording),
    ];
    let members = own.clone().into_iter().chain(experiment_conditions());
    let mut schema = body(&[], &members.collect::<Vec<_>>());
    schema["oneOf"] = own
        .iter()
        .map(|(name, _)| json!({ "required": [name] }))
        .collect();
    schema
}

fn change() -> Value {
    json!({
        "type": "object", "required": ["type"],
        "description": "A change of a recording. Each type has its own members, which docs/experiments.md lists; others are \
                        refused. A `pattern` is a part of a URL in which `*` stands for any text, or `{\"url\": …}` for a \
                        whole URL, or `{\"host\": …}`, or `{\"hosts\": […]}`.",
        "properties": { "type": { "type": "string", "examples": ["block", "delay", "setAttribute"] } },
    })
}

fn repeatable() -> Value {
    json!({
        "type": "boolean", "default": false,
        "description": "Whether dates begin at the time of the recording and random numbers are the same in every visit.",
    })
}

fn matrix_request(limits: &Limits) -> Value {
    let list = |name| list_of(name, limits.batch_audits);
    body(
        &[
            ("devices", list("DeviceId")),
            ("networks", list("NetworkId")),
        ],
        &[
            ("repeatable", repeatable()),
            ("webhook", reference("Webhook")),
            ("labels", reference("Labels")),
        ],
    )
}

fn batch_request(limits: &Limits) -> Value {
    let list = |name| list_of(name, limits.batch_audits);
    let own = [
        ("urls", list("Url")),
        ("devices", list("DeviceId")),
        ("locations", list("LocationId")),
        ("networks", list("NetworkId")),
    ];
    let request = request(&own, ("runs", reference("Runs")));
    let description = format!(
        "Every URL is audited on every device, location and network: at most {} audits.",
        limits.batch_audits
    );
    with_description(request, &description)
}

/// Returns the schema of a start: its own members, the number of its runs, and the options that all
/// starts have.
fn request(own: &[(&str, Value)], runs: (&str, Value)) -> Value {
    let options = [
        ("quick", "Quick"),
        ("allowErrorStatus", "AllowErrorStatus"),
        ("state", "VisitState"),
        ("expect", "Expectation"),
        ("steps", "Steps"),
        ("consent", "Consent"),
        ("view", "View"),
        ("session", "SessionName"),
        ("interactions", "Interactions"),
        ("flow", "Flow"),
        ("profile", "Profile"),
        ("record", "Record"),
        ("webhook", "Webhook"),
        ("labels", "Labels"),
    ]
    .map(|(member, schema)| (member, reference(schema)));
    let options: Vec<_> = std::iter::once(runs).chain(options).collect();
    body(own, &options)
}

/// Returns the schema of the body of a request. Members that are not named are ignored.
pub(super) fn body(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let mut schema = object(required, optional);
    if let Some(members) = schema.as_object_mut() {
        members.remove("additionalProperties");
    }
    schema
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn with_description(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

/// Returns a sentence for each status with the codes that failures with this status have.
fn failure_codes() -> String {
    let sentence = |(status, codes): &(u16, &[&str])| {
        let codes: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
        format!("{status}: {}.", codes.join(", "))
    };
    let sentences = |codes: &[(u16, &[&str])]| -> String {
        let sentences: Vec<_> = codes.iter().map(sentence).collect();
        sentences.join(" ")
    };
    format!(
        "{} To agents and to forms of the pages only: {}",
        sentences(CODES),
        sentences(CODES_OF_AGENTS_AND_FORMS)
    )
}

/// Returns the schema of the URL that a request was redirected to.
fn final_url() -> Value {
    json!({
        "type": "string",
        "description": "The URL of the measured document, if the request was redirected to another host or path.",
    })
}

/// Returns the schema of an object with these required and optional members, and no others.
pub(super) fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let names: Vec<_> = required.iter().map(|(name, _)| name).collect();
    let members: serde_json::Map<_, _> = required
        .iter()
        .chain(optional)
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({
        "type": "object", "required": names, "properties": members, "additionalProperties": false,
    })
}

fn list_of(name: &str, max_items: usize) -> Value {
    json!({ "type": "array", "minItems": 1, "maxItems": max_items, "items": reference(name) })
}

fn score() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 100 })
}

fn milliseconds() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0, "description": "Milliseconds." })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}
