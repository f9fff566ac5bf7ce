//! The JSON schemas of the steps that are measured after the visits.

use serde_json::Value;

use super::{described, integer, list, number, object, one_of, text};
use crate::openapi::schemas::reference;

pub(super) fn flow() -> Value {
    object(
        "The steps that were performed and measured after the visits. It has no weight in any score.",
        &[("steps", list(reference("ReportFlowStep")))],
        &[(
            "error",
            described(text(), "The reason why steps are missing."),
        )],
    )
}

pub(super) fn step() -> Value {
    let ms = |description: &str| described(number(), description);
    object(
        "One measured step. Times are in milliseconds on the clock of the page, since the beginning of the step.",
        &[
            ("title", text()),
            (
                "kind",
                described(
                    one_of(&["navigation", "softNavigation", "timespan"]),
                    "Whether another document was loaded, the URL has changed within the document, or neither.",
                ),
            ),
            ("url", described(text(), "The URL after the step.")),
            (
                "settledMs",
                ms("The end of the last request, long task and interaction."),
            ),
            ("requests", integer()),
            (
                "transferBytes",
                described(
                    integer(),
                    "The number of transferred bytes, including headers.",
                ),
            ),
            (
                "longTasks",
                described(
                    integer(),
                    "The number of tasks of more than 50 ms on the main thread.",
                ),
            ),
            (
                "tbtMs",
                ms(
                    "The time of long tasks beyond 50 ms each; after a navigation, of those after the first paint.",
                ),
            ),
            (
                "cls",
                described(
                    number(),
                    "Cumulative Layout Shift, without shifts that follow an input within 500 ms.",
                ),
            ),
        ],
        &[
            (
                "fcpMs",
                ms(
                    "First Contentful Paint of a navigation, or of a soft navigation if the browser reports it.",
                ),
            ),
            (
                "lcpMs",
                ms(
                    "Largest Contentful Paint of a navigation, or of a soft navigation if the browser reports it.",
                ),
            ),
            ("interaction", reference("ReportInteractionTiming")),
            (
                "error",
                described(
                    text(),
                    "The reason why the step failed, which ends the flow.",
                ),
            ),
        ],
    )
}
