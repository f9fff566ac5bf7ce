//! The JSON schema of the comparison of two pages.

use serde_json::{Value, json};

use super::{boolean, described, integer, list, nullable, number, object, one_of, text};

/// Returns the schema of a list of two items, one for each page.
fn pair(items: Value) -> Value {
    let mut pair = list(items);
    pair["minItems"] = json!(2);
    pair["maxItems"] = json!(2);
    pair
}

/// Returns the schema of one compared figure.
pub(super) fn figure() -> Value {
    let interval = described(
        super::interval(),
        "The confidence interval of the shift. It excludes 0 if a difference is shown.",
    );
    object(
        "A figure of both pages.",
        &[
            (
                "name",
                described(text(), "`performance`, or the short name of a metric."),
            ),
            ("medians", pair(number())),
            (
                "shift",
                described(
                    number(),
                    "The second page minus the first: a fraction of the first if `isRelative`, else in units of the figure.",
                ),
            ),
            ("isRelative", boolean()),
            ("interval", interval),
            (
                "answer",
                described(
                    one_of(&["faster", "slower", "noDifferenceShown"]),
                    "The second page relative to the first.",
                ),
            ),
        ],
        &[],
    )
}

/// Returns the members of a comparison.
fn members() -> [(&'static str, Value); 5] {
    let figure = figure();
    let row = object(
        "A number that describes the load of both pages.",
        &[
            ("name", text()),
            ("unit", one_of(&["count", "bytes", "milliseconds"])),
            ("values", pair(number())),
        ],
        &[],
    );
    let request = object(
        "A URL that only one page requested, or whose responses differ in size.",
        &[
            ("url", text()),
            (
                "bytes",
                described(
                    pair(nullable(integer())),
                    "The transferred bytes; null for a page that did not request it.",
                ),
            ),
        ],
        &[],
    );
    [
        ("urls", pair(text())),
        (
            "pairs",
            described(integer(), "The number of visits of each page."),
        ),
        ("figures", list(figure)),
        ("evidence", list(row)),
        ("requests", list(request)),
    ]
}

/// Returns the members that only some comparisons have.
fn optional_members() -> [(&'static str, Value); 4] {
    let description =
        "The changes of an experiment, which make the second page, each in a few words.";
    let left_out =
        "Sentences about what the advice of an experiment names and no change can follow.";
    [
        ("changes", described(list(text()), description)),
        ("leftOut", described(list(text()), left_out)),
        (
            "replays",
            described(
                pair(nullable(super::replays::replay())),
                "The recordings that were visited in place of the servers of each page.",
            ),
        ),
        (
            "redirectedTo",
            described(
                pair(nullable(text())),
                "The URLs of the measured documents; null for a page that does not redirect to another one.",
            ),
        ),
    ]
}

/// Returns the schema of the comparison in a report.
pub(super) fn in_report() -> Value {
    let description = "The comparison with a second page, if the audit is one.";
    object(description, &members(), &optional_members())
}

/// Returns the schema of the result of a comparison.
pub(super) fn result() -> Value {
    let mut required = members().to_vec();
    required.push((
        "conditions",
        described(text(), "The device, network and location of all visits."),
    ));
    required.push(("madeAt", text()));
    object(
        "The result of a comparison.",
        &required,
        &optional_members(),
    )
}
