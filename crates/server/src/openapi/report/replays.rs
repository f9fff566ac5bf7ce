//! The JSON schemas of what was measured with a recording.

use serde_json::{Value, json};

use super::{comparison, described, integer, list, nullable, number, object, text};

/// Returns the schema of a recording that was visited in place of the servers of a page.
pub(super) fn replay() -> Value {
    object(
        "A recording that was visited in place of the servers of a page.",
        &[
            (
                "recordedAt",
                described(text(), "The time at which the recording was made."),
            ),
            (
                "missingRequests",
                described(
                    integer(),
                    "The number of requests and connections that are not in the recording.",
                ),
            ),
        ],
        &[(
            "missing",
            described(list(text()), "The URLs of some of them, or their hosts."),
        )],
    )
}

/// Returns the schema of an experiment.
pub(super) fn experiment() -> Value {
    let subject = described(
        json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "properties": {
            "check": { "type": "string" }, "thirdParty": { "type": "string" },
        } }),
        "The advice that was followed, unless the changes were chosen by hand.",
    );
    let result = object(
        "The difference that the changes made.",
        &[
            (
                "pairs",
                described(integer(), "The number of visits of each."),
            ),
            ("figures", list(comparison::figure())),
        ],
        &[],
    );
    object(
        "An experiment with the recording of an audit.",
        &[
            ("trackingId", text()),
            (
                "changes",
                described(list(text()), "The changes, each in a few words."),
            ),
        ],
        &[
            (
                "auditId",
                described(text(), "The id of its audit, when it is completed."),
            ),
            ("subject", subject),
            (
                "leftOut",
                described(
                    list(text()),
                    "Sentences about what the advice names and no change can follow.",
                ),
            ),
            ("comparison", result),
            (
                "error",
                described(text(), "The reason why nothing was measured."),
            ),
        ],
    )
}

/// Returns the schema of the results of a recording on devices and networks.
pub(super) fn matrix() -> Value {
    let condition = |description: &str| {
        let members = [("id", text()), ("name", text())];
        list(object(description, &members, &[]))
    };
    let metric = || nullable(number());
    let cell = object(
        "The result for one device and network; null where it is not known yet.",
        &[
            ("device", text()),
            ("network", text()),
            ("performance", nullable(integer())),
            ("fcpMs", metric()),
            ("lcpMs", metric()),
            ("tbtMs", metric()),
            ("siMs", metric()),
            ("cls", metric()),
        ],
        &[
            ("intervals", super::intervals()),
            (
                "missingRequests",
                described(
                    integer(),
                    "The number of requests that were not in the recording.",
                ),
            ),
            ("auditId", text()),
            ("error", text()),
        ],
    );
    object(
        "The newest results of a recording for every device and network.",
        &[
            ("url", text()),
            ("devices", condition("A device.")),
            ("networks", condition("A network.")),
            (
                "cells",
                described(
                    list(cell),
                    "The cells of the first network, then those of the second, and so on.",
                ),
            ),
        ],
        &[],
    )
}
