//! Says why an audit was not started.

use std::borrow::Cow;

use crate::{
    api::visit_options::PREPARING_FIELD,
    errors::{Failure, InvalidValue},
};

/// Returns the sentences for people about a start that was refused.
pub(in crate::pages) fn problem_text(failure: &Failure) -> Cow<'static, str> {
    let text = match failure {
        Failure::InvalidState(value)
        | Failure::InvalidExpectation(value)
        | Failure::InvalidSteps(value) => return preparing_problem(value).into(),
        Failure::InvalidUrl(value) => return url_problem(value).into(),
        Failure::InvalidDevice(_) => "Choose a device of the list.",
        Failure::InvalidNetwork(_) => "Choose a network of the list.",
        Failure::InvalidLocation(_) => "Choose a location of the list.",
        Failure::UnknownSession(_) => "There is no session with this name.",
        Failure::UnknownSecret(_) => "A secret that is used has not been stored.",
        Failure::NoEvidence => "The recording is no longer kept.",
        Failure::InvalidInteractions(_) => "No controls are pressed in a comparison.",
        Failure::InvalidProfile(_) => "No functions are profiled in a comparison.",
        Failure::TooManyUnfinished => {
            "Too many of your audits are waiting. Try again when some of them have finished."
        }
        Failure::TooManyFailedAudits(_) => {
            "Too many of your audits failed within the last hour. Try again later."
        }
        Failure::RateLimited => "Too many audits within a minute. Wait a moment and try again.",
        Failure::InsufficientCredits { .. } => {
            let reason = failure.reason().unwrap_or_default();
            return format!("{reason} Ask the operator of this service for more.").into();
        }
        failure => {
            let reason = failure.reason();
            return reason.unwrap_or_else(|| failure.to_string()).into();
        }
    };
    text.into()
}

/// Names the URL that cannot be audited, and says why.
fn url_problem(value: &InvalidValue) -> String {
    let which = match value.index {
        Some(1) => "The page to compare with",
        _ => "This page",
    };
    format!("{which} cannot be audited. {}", value.reason)
}

/// Names the part of the text about what to do before the visit that is not valid.
fn preparing_problem(value: &InvalidValue) -> String {
    let reason = &value.reason;
    let place = match (value.field, value.index) {
        (PREPARING_FIELD, _) => String::new(),
        (field, Some(index)) => format!(", `{field}[{index}]`"),
        (field, None) => format!(", `{field}`"),
    };
    format!("The text about what to do before the visit{place}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_what_is_wrong() {
        let value = |field, index, reason: &str| InvalidValue {
            field,
            index,
            reason: reason.to_owned(),
        };
        for (failure, text) in [
            (
                Failure::InvalidUrl(value("urls", Some(1), "The URL has no valid host.")),
                "The page to compare with cannot be audited. The URL has no valid host.",
            ),
            (
                Failure::InvalidDevice(value("device", None, "Unknown device.")),
                "Choose a device of the list.",
            ),
            (
                Failure::InvalidState(value("preparing", None, "It is empty.")),
                "The text about what to do before the visit: It is empty.",
            ),
            (
                Failure::InvalidSteps(value("steps", Some(0), "`selector` is missing.")),
                "The text about what to do before the visit, `steps[0]`: `selector` is missing.",
            ),
            (
                Failure::InsufficientCredits {
                    needed: 10,
                    left: 3,
                },
                "This costs 10 credits, and the account has 3. \
                 Ask the operator of this service for more.",
            ),
            (
                Failure::InvalidRuns(value("runs", None, "The number of runs is too large.")),
                "The number of runs is too large.",
            ),
        ] {
            assert_eq!(problem_text(&failure), text);
        }
    }
}
