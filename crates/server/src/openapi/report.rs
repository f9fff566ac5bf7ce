//! The JSON schemas of a report and its parts.
//!
//! Reports of earlier versions are served as they were stored, so only members that every version
//! has written are required. Members may be added, so none are excluded.

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
        ("ReportCategory", category()),
        ("ReportCheck", check()),
        ("ReportSavings", savings()),
        ("ReportDetails", details()),
        ("ReportRow", row()),
        ("ReportCell", cell()),
        ("ReportNode", node()),
        ("ReportRect", rect()),
        ("ReportRuns", runs()),
        ("ReportSpread", spread()),
        ("ReportFieldData", field_data()),
        ("ReportFieldMetric", field_metric()),
    ];
    let named = |(name, schema): (&str, Value)| (name.to_owned(), schema);
    schemas.into_iter().map(named).collect()
}

fn report() -> Value {
    let score = || nullable(json!({ "type": "integer", "minimum": 0, "maximum": 100 }));
    let description = "All measurements and results of an audit. Members may be added.";
    object(
        description,
        &[
            ("format", described(integer(), "The version of the format.")),
            ("requestedUrl", text()),
            (
                "finalUrl",
                described(
                    nullable(text()),
                    "The URL of the measured document after redirects.",
                ),
            ),
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
            ("metrics", any_or_null("ReportMetrics")),
            ("error", any_or_null("AuditError")),
            (
                "document",
                nullable(object(
                    "The response with the main document.",
                    &[("status", integer()), ("mime_type", text())],
                    &[],
                )),
            ),
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
            ("runs", reference("ReportRuns")),
            ("fieldData", reference("ReportFieldData")),
            ("fieldDataReason", reference("FieldDataReason")),
        ],
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
                        ("mode", one_of(&["agent", "simulated"])),
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
        &[("state", reference("ReportState"))],
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
            ("emulation", one_of(&["clock", "pacer", "chromium"])),
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
    let metrics = names.map(|name| (name, any_or_null("ReportMetric")));
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

fn category() -> Value {
    object(
        "The score and the checks of a category.",
        &[
            (
                "id",
                one_of(&[
                    "performance",
                    "accessibility",
                    "best-practices",
                    "seo",
                    "pwa",
                    "agentic-browsing",
                ]),
            ),
            ("title", text()),
            (
                "score",
                nullable(json!({ "type": "integer", "minimum": 0, "maximum": 100 })),
            ),
            ("checks", list(reference("ReportCheck"))),
        ],
        &[(
            "fraction",
            object(
                "The passed checks of a category that has no score.",
                &[("passed", integer()), ("of", integer())],
                &[],
            ),
        )],
    )
}

fn check() -> Value {
    let verdicts = [
        "pass",
        "fail",
        "notApplicable",
        "informative",
        "couldNotMeasure",
    ];
    let figure = object(
        "The number that the verdict is based on.",
        &[("value", number()), ("unit", unit())],
        &[],
    );
    object(
        "The result of one check. Ids are Lighthouse's where it has the same check.",
        &[
            ("id", text()),
            ("title", text()),
            ("verdict", one_of(&verdicts)),
            ("score", nullable(share())),
            ("weight", number()),
            (
                "group",
                described(text(), "The section in which the check is shown."),
            ),
            ("why", text()),
            ("fix", text()),
        ],
        &[
            ("summary", text()),
            ("learnMore", text()),
            ("details", reference("ReportDetails")),
            ("savings", reference("ReportSavings")),
            ("figure", figure),
            ("warnings", list(text())),
        ],
    )
}

fn savings() -> Value {
    let names = ["wastedBytes", "fcpMs", "lcpMs", "tbtMs", "inpMs", "cls"];
    object(
        "The estimated savings from following the advice.",
        &[],
        &names.map(|name| (name, number())),
    )
}

fn details() -> Value {
    let kind = |kind: &str, members: &[(&str, Value)]| {
        let mut required = vec![("kind", json!({ "const": kind }))];
        required.extend_from_slice(members);
        object("", &required, &[])
    };
    let items = |kind_name: &str, item: Value| kind(kind_name, &[("items", list(item))]);
    let element = object(
        "",
        &[("node", reference("ReportNode"))],
        &[("note", text()), ("related", list(reference("ReportNode")))],
    );
    let url = object("", &[("url", text())], &[("note", text())]);
    let line = object(
        "Line and column are counted from 0.",
        &[
            ("text", text()),
            ("source", text()),
            ("url", text()),
            ("line", nullable(integer())),
            ("column", nullable(integer())),
        ],
        &[],
    );
    let value = object("", &[("name", text()), ("value", text())], &[]);
    let condition = object(
        "",
        &[("id", text()), ("label", text()), ("is_met", boolean())],
        &[],
    );
    json!({
        "description": "The evidence behind a verdict, by its `kind`.",
        "anyOf": [
            items("elements", element),
            items("urls", url),
            items("console", line),
            items("values", value),
            kind("table", &[("columns", list(text())), ("rows", list(list(text())))]),
            kind("findings", &findings_members()),
            items("checklist", condition),
            items("parts", reference("ReportDetails")),
        ],
    })
}

/// Returns the members of a table with typed cells: every row has a cell for every column.
fn findings_members() -> [(&'static str, Value); 2] {
    let column = object(
        "",
        &[("key", text()), ("label", text()), ("unit", unit())],
        &[],
    );
    [
        ("columns", list(column)),
        ("rows", list(reference("ReportRow"))),
    ]
}

fn row() -> Value {
    object(
        "",
        &[("cells", list(reference("ReportCell")))],
        &[("subRows", list(reference("ReportRow")))],
    )
}

fn cell() -> Value {
    let source = object(
        "A position in a file; line and column are counted from 0.",
        &[("url", text()), ("line", integer()), ("column", integer())],
        &[("function", text())],
    );
    let cell = |name: &str, value: Value| object("", &[(name, value)], &[]);
    json!({
        "description": "A cell has one member, named after its type; a cell without a value is \"nothing\".",
        "anyOf": [
            cell("text", text()),
            cell("url", text()),
            cell("element", reference("ReportNode")),
            cell("source", source),
            cell("bytes", number()),
            cell("ms", number()),
            cell("number", number()),
            { "const": "nothing" },
        ],
    })
}

fn node() -> Value {
    object(
        "An element of the page.",
        &[
            ("selector", text()),
            ("snippet", text()),
            ("label", text()),
            ("rect", any_or_null("ReportRect")),
        ],
        &[
            ("path", text()),
            (
                "seen",
                json!({
                    "$ref": "#/components/schemas/ReportRect",
                    "description": "The visible part of `rect`, if not all of it is visible.",
                }),
            ),
        ],
    )
}

fn rect() -> Value {
    let sides = ["left", "top", "width", "height"];
    object(
        "In CSS pixels from the top left of the viewport.",
        &sides.map(|side| (side, number())),
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
                    &names.map(|name| (name, any_or_null("ReportFieldMetric"))),
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

fn any_or_null(name: &str) -> Value {
    nullable(reference(name))
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn one_of(values: &[&str]) -> Value {
    json!({ "type": "string", "enum": values })
}

fn unit() -> Value {
    one_of(&["text", "url", "element", "source", "bytes", "ms", "number"])
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
