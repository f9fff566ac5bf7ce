//! The JSON schemas of the inputs after the visits.

use serde_json::Value;

use super::{described, integer, list, nullable, number, object, one_of, text};
use crate::openapi::schemas::reference;

/// The kinds of controls.
const KINDS: [&str; 11] = [
    "consent",
    "menu",
    "search",
    "tab",
    "accordion",
    "dialog",
    "button",
    "select",
    "toggle",
    "field",
    "anchor",
];

pub(super) fn responsiveness() -> Value {
    object(
        "The inputs that were made on controls of the page after the visits. It has no weight in any score.",
        &[
            (
                "inpMs",
                described(
                    nullable(number()),
                    "Interaction to Next Paint: the longest interaction; null if none was measured.",
                ),
            ),
            (
                "rating",
                nullable(one_of(&["good", "needs-improvement", "poor"])),
            ),
            (
                "controls",
                described(
                    integer(),
                    "The number of visible controls that inputs could be made on.",
                ),
            ),
            ("interactions", list(reference("ReportInteraction"))),
        ],
        &[(
            "error",
            described(text(), "The reason why interactions are missing."),
        )],
    )
}

pub(super) fn interaction() -> Value {
    object(
        "The input on one control.",
        &[
            ("kind", one_of(&KINDS)),
            ("name", text()),
            ("selector", text()),
            ("snippet", text()),
        ],
        &[
            ("timing", reference("ReportInteractionTiming")),
            (
                "notMeasured",
                described(
                    text(),
                    "The reason why the input was not measured, such as `leaves the page`.",
                ),
            ),
        ],
    )
}

pub(super) fn timing() -> Value {
    let script = object(
        "A script that ran during the interaction.",
        &[
            ("url", text()),
            ("function", text()),
            ("invoker", text()),
            ("durationMs", number()),
            ("forcedLayoutMs", number()),
        ],
        &[(
            "position",
            described(
                integer(),
                "The position of the function in characters from the beginning of the script.",
            ),
        )],
    );
    object(
        "The slowest interaction of the input; its three parts add up to its duration.",
        &[
            ("input", one_of(&["click", "tap", "key"])),
            ("event", text()),
            ("durationMs", number()),
            ("inputDelayMs", number()),
            ("processingMs", number()),
            ("presentationDelayMs", number()),
            ("scripts", list(script)),
        ],
        &[(
            "target",
            described(
                text(),
                "The selector of the event's target, which may be inside the control.",
            ),
        )],
    )
}
