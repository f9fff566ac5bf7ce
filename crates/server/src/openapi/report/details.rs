//! The JSON schemas of categories, checks and their details.

use serde_json::{Value, json};

use super::{
    boolean, described, integer, list, nullable, nullable_reference, number, object, one_of, share,
    text,
};
use crate::openapi::schemas::reference;

/// Returns the schemas by name.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("ReportCategory", category()),
        ("ReportCheck", check()),
        ("ReportSavings", savings()),
        ("ReportDetails", details()),
        ("ReportRow", row()),
        ("ReportCell", cell()),
        ("ReportNode", node()),
        ("ReportRect", rect()),
    ]
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
        &[("original", reference("ReportOriginalPlace"))],
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
        &[
            ("function", text()),
            ("original", reference("ReportOriginalPlace")),
        ],
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
            ("rect", nullable_reference("ReportRect")),
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

fn unit() -> Value {
    one_of(&["text", "url", "element", "source", "bytes", "ms", "number"])
}
