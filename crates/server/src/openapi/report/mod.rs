//! The JSON schemas of a report and its parts.
//!
//! Reports of earlier versions are served as they were stored, so only members that every version
//! has written are required. Members may be added, so none are excluded.

mod comparison;
mod details;
mod document;
mod flow;
mod profile;
mod replays;
mod responsiveness;

use serde_json::{Map, Value, json};

use super::schemas::reference;

/// Returns the schemas by name.
pub(super) fn schemas() -> Map<String, Value> {
    let schemas = [
        ("Report", report()),
        ("ReportConditions", conditions()),
        ("ReportCpu", cpu()),
        ("ReportState", state()),
        ("ReportMetrics", metrics()),
        ("ReportMetric", metric()),
        ("ReportInterval", interval()),
        ("ReportRuns", runs()),
        ("ReportSpread", spread()),
        ("ReportFieldData", field_data()),
        ("ReportFieldMetric", field_metric()),
        ("ReportResponsiveness", responsiveness::responsiveness()),
        ("ReportInteraction", responsiveness::interaction()),
        ("ReportInteractionTiming", responsiveness::timing()),
        ("ReportFlow", flow::flow()),
        ("ReportFlowStep", flow::step()),
        ("ReportProfile", profile::profile()),
        ("ReportProfiledTask", profile::task()),
        ("ReportFunctionTime", profile::function_time()),
        ("ReportProfiledReflow", profile::reflow()),
        ("ReportCodePlace", profile::place()),
        ("ReportOriginalPlace", profile::original_place()),
        ("ReportComparison", comparison::in_report()),
        ("ComparisonResult", comparison::result()),
        ("Experiment", replays::experiment()),
        ("Matrix", replays::matrix()),
    ];
    let named = |(name, schema): (&str, Value)| (name.to_owned(), schema);
    let schemas = schemas.into_iter().chain(details::schemas());
    schemas.map(named).collect()
}

fn report() -> Value {
    let score = || nullable(json!({ "type": "integer", "minimum": 0, "maximum": 100 }));
    let description = "All measurements and results of an audit. Members may be added.";
    object(
        description,
        &[
            ("format", described(integer(), "The version of the format.")),
            ("requestedUrl", text()),
            ("finalUrl", document::final_url()),
            ("conditions", reference("ReportConditions")),
            (
                "scores",
                object(
                    "The scores from 0 to 100; null for a category without a score.",
                    &[
                        ("performance", score()),
                        ("accessibility", score()),
                        ("seo", score()),
                        ("bestPractices", score()),
                        ("pwa", score()),
                    ],
                    &[],
                ),
            ),
            ("metrics", nullable_reference("ReportMetrics")),
            ("error", nullable_reference("AuditError")),
            ("document", document::document()),
            (
                "browser",
                nullable(object(
                    "The browser that made the visit.",
                    &[("product", text()), ("user_agent", text())],
                    &[],
                )),
            ),
        ],
        &[
            ("categories", list(reference("ReportCategory"))),
            ("warnings", list(text())),
            (
                "timings",
                list(object(
                    "The duration of a phase of the visit.",
                    &[
                        (
                            "phase",
                            one_of(&["preparing", "loading", "gathering", "judging"]),
                        ),
                        ("ms", number()),
                    ],
                    &[],
                )),
            ),
            ("documentUrls", document::document_urls()),
            ("cache", cache()),
            ("intervals", intervals()),
            ("runs", reference("ReportRuns")),
            ("fieldData", reference("ReportFieldData")),
            ("fieldDataReason", reference("FieldDataReason")),
            ("responsiveness", reference("ReportResponsiveness")),
            ("flow", reference("ReportFlow")),
            ("profile", reference("ReportProfile")),
            ("comparison", reference("ReportComparison")),
        ],
    )
}

fn cache() -> Value {
    let group = |description: &str| {
        object(
            description,
            &[("requests", integer()), ("bytes", integer())],
            &[],
        )
    };
    object(
        "The part that the cache had in a visit with a warm cache.",
        &[
            (
                "cached",
                group("Answered by the cache, without a request to a server."),
            ),
            (
                "revalidated",
                group("Answered by the cache after a server had confirmed the response."),
            ),
            ("transferred", group("Transferred from a server.")),
            (
                "cacheable",
                list(object(
                    "A transferred file that the cache could have answered.",
                    &[("url", text()), ("bytes", integer()), ("reason", text())],
                    &[],
                )),
            ),
        ],
        &[],
    )
}

fn conditions() -> Value {
    object(
        "The conditions under which the page was loaded.",
        &[
            (
                "device",
                object(
                    "",
                    &[
                        ("id", text()),
                        ("name", text()),
                        ("mode", one_of(&["mobile", "desktop"])),
                    ],
                    &[],
                ),
            ),
            (
                "network",
                object(
                    "",
                    &[
                        ("id", text()),
                        ("name", text()),
                        ("downKbps", number()),
                        ("upKbps", number()),
                        (
                            "rttMs",
                            described(
                                number(),
                                "The round trip, including that of a simulated location.",
                            ),
                        ),
                    ],
                    &[("isolation", one_of(&["namespace", "shared"]))],
                ),
            ),
            (
                "location",
                object(
                    "",
                    &[
                        ("id", text()),
                        ("name", text()),
                        (
                            "mode",
                            described(
                                one_of(&["agent", "simulated", "requested"]),
                                "`requested` if there was no visit: all conditions are those that were requested.",
                            ),
                        ),
                        ("addedRttMs", number()),
                    ],
                    &[(
                        "isStated",
                        described(
                            boolean(),
                            "Whether the operator stated where the machine is.",
                        ),
                    )],
                ),
            ),
            ("cpu", reference("ReportCpu")),
        ],
        &[
            ("state", reference("ReportState")),
            (
                "steps",
                described(list(text()), "The titles of the steps before the visit."),
            ),
            (
                "session",
                described(
                    text(),
                    "The name of the saved session that the visit was signed in with.",
                ),
            ),
            (
                "consent",
                object(
                    "The answer to the page's consent dialog.",
                    &[
                        ("choice", one_of(&["none", "accept", "reject"])),
                        ("manager", nullable(text())),
                    ],
                    &[],
                ),
            ),
            ("view", reference("View")),
            ("replay", replays::replay()),
        ],
    )
}

fn cpu() -> Value {
    let index = "On the scale of Lighthouse's BenchmarkIndex.";
    let contention = object(
        "The time that the main thread waited for a core, which the metrics exclude.",
        &[
            ("waitedMs", number()),
            ("share", number()),
            ("untilMs", number()),
        ],
        &[],
    );
    object(
        "The speed of the page's processor, and how it was measured.",
        &[("rate", described(number(), "The slowdown; 1 means none."))],
        &[
            (
                "emulation",
                described(
                    one_of(&["clock", "pacer", "chromium"]),
                    "How the speed of the device was emulated: by the clock of the page, or by \
                     Chromium's throttling. `pacer` is only in reports of earlier versions.",
                ),
            ),
            ("deviceIndex", described(nullable(integer()), index)),
            ("nominalIndex", described(nullable(number()), index)),
            ("hostIndex", described(nullable(number()), index)),
            ("hostIndexAfter", described(nullable(number()), index)),
            (
                "limitedByHost",
                described(boolean(), "Whether the host is slower than the device."),
            ),
            ("contention", nullable(contention)),
            (
                "scoreDoubt",
                described(
                    nullable(number()),
                    "The uncertainty of the performance score in points.",
                ),
            ),
            ("visits", integer()),
        ],
    )
}

fn state() -> Value {
    object(
        "The names of the state that the visit began with, never its values.",
        &[],
        &[
            ("cookies", list(text())),
            ("localStorage", list(text())),
            ("sessionStorage", list(text())),
            ("headers", list(text())),
            ("basicAuth", boolean()),
            ("script", boolean()),
            ("userAgentSuffix", text()),
            ("blockedHosts", list(text())),
        ],
    )
}

fn metrics() -> Value {
    let names = ["fcp", "lcp", "tbt", "cls", "si", "tti"];
    let metrics = names.map(|name| (name, nullable_reference("ReportMetric")));
    let as_traced = object(
        "The metrics that depend on the duration of tasks, including CPU contention.",
        &[],
        &[("tbtMs", nullable(number())), ("ttiMs", nullable(number()))],
    );
    let missing = json!({
        "type": "object", "additionalProperties": { "type": "string" },
        "description": "The reason why a metric is null, by its name.",
    });
    object(
        "The unrounded lab metrics.",
        &metrics,
        &[("missing", missing), ("asTraced", as_traced)],
    )
}

fn metric() -> Value {
    object(
        "",
        &[
            (
                "value",
                described(number(), "Milliseconds; layout shift has no unit."),
            ),
            ("score", share()),
        ],
        &[],
    )
}

fn intervals() -> Value {
    let names = ["performance", "fcp", "lcp", "tbt", "cls", "si", "tti"];
    object(
        "The range in which the mean of 20 further audits is expected, for the performance score \
         and the metrics. The scores of other categories do not vary.",
        &[],
        &names.map(|name| (name, reference("ReportInterval"))),
    )
}

/// Returns the schema of an interval.
fn interval() -> Value {
    let basis = "The data of the interval: `visits` of this audit, `similar pages` if there was \
                 only one, or `pairs of visits` for a comparison.";
    object(
        "A confidence interval.",
        &[
            ("low", number()),
            ("high", number()),
            ("level", described(number(), "The confidence level.")),
            ("basis", described(text(), basis)),
        ],
        &[],
    )
}

fn runs() -> Value {
    let by_name = || json!({ "type": "object", "additionalProperties": reference("ReportSpread") });
    object(
        "The figures of every run, if there were several.",
        &[
            ("count", integer()),
            (
                "chosen",
                described(
                    integer(),
                    "The number of the run that is reported, counted from 1.",
                ),
            ),
            ("metrics", by_name()),
            ("scores", by_name()),
        ],
        &[],
    )
}

fn spread() -> Value {
    let names = ["min", "max", "median", "standardDeviation"];
    let mut members = vec![("values", list(nullable(number())))];
    members.extend(names.map(|name| (name, nullable(number()))));
    object(
        "One figure over all runs; null for a run without it.",
        &members,
        &[],
    )
}

fn field_data() -> Value {
    let period = object("", &[("firstDate", text()), ("lastDate", text())], &[]);
    let names = ["fcp", "lcp", "fid", "cls", "inp", "ttfb"];
    object(
        "What real visitors experienced, from the Chrome UX Report.",
        &[
            ("record", one_of(&["url", "origin"])),
            ("subject", text()),
            ("formFactor", one_of(&["phone", "tablet", "desktop"])),
            ("percentile", integer()),
            ("collectionPeriod", nullable(period)),
            (
                "metrics",
                object(
                    "",
                    &names.map(|name| (name, nullable_reference("ReportFieldMetric"))),
                    &[],
                ),
            ),
        ],
        &[],
    )
}

fn field_metric() -> Value {
    let shares = object(
        "The fractions of all visits by rating.",
        &[
            ("good", number()),
            ("needsImprovement", number()),
            ("poor", number()),
        ],
        &[],
    );
    object("", &[("p75", number()), ("shares", nullable(shares))], &[])
}

/// Returns the schema of an object with these required and optional members, and perhaps others.
fn object(description: &str, required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let mut schema = super::schemas::object(required, optional);
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("additionalProperties");
        if !description.is_empty() {
            schema.insert("description".to_owned(), json!(description));
        }
    }
    schema
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

fn nullable(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

fn nullable_reference(name: &str) -> Value {
    nullable(reference(name))
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn one_of(values: &[&str]) -> Value {
    json!({ "type": "string", "enum": values })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn boolean() -> Value {
    json!({ "type": "boolean" })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn integer() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn share() -> Value {
    json!({ "type": "number", "minimum": 0, "maximum": 1 })
}
