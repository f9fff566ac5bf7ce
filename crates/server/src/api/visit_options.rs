//! Reads the options of a visit from the body of a start or batch.

use plumbline_seam::{Expectation, InvalidOption, VisitOptions, VisitState, without_value};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::errors::{Failure, InvalidValue};

/// A member that was read, or the reason why it could not be read. The reason contains no value,
/// because the values of a state are secrets: errors of serde would quote them.
#[derive(Debug)]
pub(crate) struct Parsed<T>(pub(crate) Result<T, String>);

/// Deserializes an optional member, which may be absent but not null.
pub(crate) fn parsed<'de, D, T>(deserializer: D) -> Result<Option<Parsed<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    // The derived implementations would also accept arrays, and null for optional members.
    let result = if has_null(&value) {
        Err("A member is null. Leave it out instead.".to_owned())
    } else if value.is_object() {
        serde_json::from_value(value).map_err(|error| without_value(&error.to_string()))
    } else {
        Err("It must be an object.".to_owned())
    };
    Ok(Some(Parsed(result)))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the options of a visit if they are valid.
pub(crate) fn validated(
    allow_error_status: bool,
    state: Option<Parsed<VisitState>>,
    expect: Option<Parsed<Expectation>>,
) -> Result<VisitOptions, Failure> {
    let state = state.map_or(Ok(VisitState::default()), |state| state.0);
    let state =
        state.map_err(|reason| Failure::InvalidState(InvalidValue::new("state", reason)))?;
    let expect = expect.map_or(Ok(Expectation::default()), |expect| expect.0);
    let expect = expect
        .map_err(|reason| Failure::InvalidExpectation(InvalidValue::new("expect", reason)))?;
    let options = VisitOptions {
        allow_error_status,
        quick: false,
        state: (state != VisitState::default()).then(|| Box::new(state)),
        expect: (expect != Expectation::default()).then(|| Box::new(expect)),
    };
    match options.validate() {
        Ok(()) => Ok(options),
        Err(error) => Err(failure(error)),
    }
}

fn failure(error: InvalidOption) -> Failure {
    let value = InvalidValue {
        field: error.field,
        index: error.index,
        reason: error.reason,
    };
    if value.field.starts_with("expect") {
        Failure::InvalidExpectation(value)
    } else {
        Failure::InvalidState(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_cannot_be_read_is_not_quoted() {
        for state in [
            json!("canary"),
            json!(null),
            json!(["canary"]),
            json!({ "cookies": "canary" }),
            json!({ "cookies": [{ "name": "a", "value": "b", "sameSite": "canary" }] }),
            json!({ "basicAuth": { "username": "canary" } }),
            json!({ "localStorage": { "a": ["canary"] } }),
            json!({ "script": 4_815_162_342_u64 }),
        ] {
            let state: Option<Parsed<VisitState>> = parsed(state).unwrap();
            let failure = validated(false, state, None).unwrap_err();
            let Failure::InvalidState(value) = failure else {
                panic!("{failure:?}");
            };
            let reason = &value.reason;
            assert!(
                !reason.contains("canary") && !reason.contains("4815"),
                "{reason}"
            );
        }
    }

    #[test]
    fn an_empty_state_is_none() {
        let state: Option<Parsed<VisitState>> = parsed(json!({})).unwrap();
        assert!(validated(false, state, None).unwrap().is_default());
    }
}
