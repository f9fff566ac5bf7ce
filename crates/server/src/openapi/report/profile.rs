//! The JSON schemas of the functions that a load with a profiler spent its time in.

use serde_json::Value;

use super::{described, integer, list, number, object, text};
use crate::openapi::schemas::reference;

pub(super) fn profile() -> Value {
    let ms = |description: &str| described(number(), description);
    object(
        "The functions that a further load with a sampling profiler spent its time in. The profiler slows \
         scripts down: times differ from those of the report, and have no part in any score.",
        &[
            (
                "tasks",
                described(
                    list(reference("ReportProfiledTask")),
                    "The longest tasks of at least 50 ms on the main thread, up to 20, in the order of their start.",
                ),
            ),
            (
                "taskCount",
                described(integer(), "The number of tasks of at least 50 ms."),
            ),
            (
                "reflows",
                described(
                    list(reference("ReportProfiledReflow")),
                    "The places that forced styles and layout in tasks that spent at least 30 ms on them, the most \
                     expensive first, up to 10.",
                ),
            ),
            (
                "functions",
                described(
                    list(reference("ReportFunctionTime")),
                    "The functions of the whole load with the most time of their own, up to 10.",
                ),
            ),
            (
                "scriptMs",
                ms("The time that scripts ran on the main thread."),
            ),
            (
                "endMs",
                ms("The time of the last sample, since the start of the navigation."),
            ),
        ],
        &[(
            "error",
            described(text(), "The reason why something is missing."),
        )],
    )
}

pub(super) fn task() -> Value {
    object(
        "A long task of the load with a profiler. Times are in milliseconds since the start of the navigation.",
        &[
            ("startMs", number()),
            ("durationMs", number()),
            (
                "functions",
                described(
                    list(reference("ReportFunctionTime")),
                    "The functions with the most time of their own in the task, up to 5.",
                ),
            ),
        ],
        &[(
            "path",
            described(
                list(reference("ReportFunctionTime")),
                "The calls that each took at least half of the task's script time, from the outside to the inside.",
            ),
        )],
    )
}

pub(super) fn function_time() -> Value {
    let ms = |description: &str| described(number(), description);
    object(
        "The time of a function in milliseconds.",
        &[
            ("function", reference("ReportCodePlace")),
            (
                "selfMs",
                ms("Time in the function itself and in functions of the browser that it called."),
            ),
            (
                "totalMs",
                ms("Time in the function and in everything that it called."),
            ),
        ],
        &[("hottest", reference("ReportCodePlace"))],
    )
}

pub(super) fn reflow() -> Value {
    object(
        "A place in a script that forced styles and layout.",
        &[
            ("place", reference("ReportCodePlace")),
            (
                "count",
                described(integer(), "The number of style recalculations and layouts."),
            ),
            ("totalMs", number()),
        ],
        &[],
    )
}

pub(super) fn place() -> Value {
    object(
        "A function, or a place in one. Lines and columns are zero-based.",
        &[
            (
                "function",
                described(
                    text(),
                    "The name of the function in the script that was loaded; empty for one without a name.",
                ),
            ),
            ("url", text()),
            ("line", integer()),
            ("column", integer()),
        ],
        &[("original", reference("ReportOriginalPlace"))],
    )
}

pub(super) fn original_place() -> Value {
    object(
        "The place in the source that the script was built from, if it has a source map.",
        &[
            (
                "source",
                described(text(), "The name of the source in the source map."),
            ),
            ("line", integer()),
            ("column", integer()),
        ],
        &[(
            "function",
            described(
                text(),
                "The name of the function in the source, if the source map has it.",
            ),
        )],
    )
}
