//! Reads the options of a visit from the body of a start or batch.

use plumbline_seam::{
    Consent, Expectation, Interactions, InvalidOption, SessionUse, Steps, View, VisitOptions,
    VisitState, is_name, json_error,
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, json};

use super::json_body::text;
use crate::errors::{Failure, InvalidValue};

/// A member that was read, or the reason why it could not be read. The reason contains no value,
/// because the values of a state are secrets: errors of serde would quote them.
#[derive(Debug)]
pub(crate) struct Parsed<T, E = String>(pub(crate) Result<T, E>);

/// The options of a visit as a body contains them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestedOptions {
    #[serde(default)]
    allow_error_status: bool,
    #[serde(default)]
    quick: bool,
    #[serde(default, deserialize_with = "parsed_state")]
    state: Option<Parsed<VisitState>>,
    #[serde(default, deserialize_with = "parsed_expectation")]
    expect: Option<Parsed<Expectation>>,
    #[serde(default, deserialize_with = "parsed_steps")]
    steps: Option<Parsed<Steps, InvalidOption>>,
    #[serde(default, deserialize_with = "parsed_flow")]
    flow: Option<Parsed<Steps, InvalidOption>>,
    #[serde(default, deserialize_with = "text")]
    consent: Option<String>,
    #[serde(default, deserialize_with = "any")]
    view: Option<Value>,
    #[serde(default, deserialize_with = "text")]
    session: Option<String>,
    #[serde(default, deserialize_with = "any")]
    interactions: Option<Value>,
    #[serde(default)]
    profile: bool,
    #[serde(default)]
    record: bool,
}

impl From<VisitOptions> for RequestedOptions {
    fn from(options: VisitOptions) -> Self {
        Self {
            allow_error_status: options.allow_error_status,
            quick: options.quick,
            state: options.state.map(|state| Parsed(Ok(*state))),
            expect: options.expect.map(|expect| Parsed(Ok(*expect))),
            steps: Some(Parsed(Ok(options.steps))),
            flow: Some(Parsed(Ok(options.flow))),
            consent: Some(options.consent.as_str().to_owned()),
            view: serde_json::to_value(&options.view).ok(),
            session: options.session.map(|session| session.name),
            interactions: Some(options.interactions.number().into()),
            profile: options.profile,
            record: options.record,
        }
    }
}

/// The member of the form with the text that describes how a visit is prepared.
pub(crate) const PREPARING_FIELD: &str = "preparing";
/// The members of that text.
const PREPARING: [&str; 4] = ["state", "expect", "steps", "flow"];

impl RequestedOptions {
    /// Reads how a visit is prepared from JSON that somebody has typed: an object with the members
    /// that bodies have for it, a list of steps, or a recording. An empty text prepares nothing.
    pub(crate) fn preparing(text: &str) -> Result<Self, Failure> {
        let invalid =
            |reason: String| Failure::InvalidState(InvalidValue::new(PREPARING_FIELD, reason));
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| invalid(json_error("", &error)))?;
        let is_recording = value.get("title").is_some() && value.get("steps").is_some();
        let value = if is_recording || value.is_array() {
            json!({ "steps": value })
        } else {
            value
        };
        let Some(members) = value.as_object() else {
            return Err(invalid("It is neither an object nor a list.".to_owned()));
        };
        if members
            .keys()
            .any(|name| !PREPARING.contains(&name.as_str()))
        {
            let names = PREPARING.join(", ");
            return Err(invalid(format!("Its members are {names}.")));
        }
        serde_json::from_value(value).map_err(|error| invalid(json_error("", &error)))
    }

    /// Returns these options of a visit that is prepared as others say.
    pub(crate) fn prepared_by(self, preparing: Self) -> Self {
        Self {
            state: preparing.state,
            expect: preparing.expect,
            steps: preparing.steps,
            flow: preparing.flow,
            ..self
        }
    }
}

const NULL: &str = "A member is null. Leave it out instead.";

/// Deserializes an optional member of any type, of which null is one.
fn any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Deserializes steps or a recording, which may be absent but not null.
pub(crate) fn parsed_steps<'de, D>(
    deserializer: D,
) -> Result<Option<Parsed<Steps, InvalidOption>>, D::Error>
where
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    Ok(Some(Parsed(without_null("steps", value, Steps::parse))))
}

/// Deserializes steps that are measured, which may be absent but not null.
fn parsed_flow<'de, D>(deserializer: D) -> Result<Option<Parsed<Steps, InvalidOption>>, D::Error>
where
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    Ok(Some(Parsed(without_null("flow", value, Steps::parse_flow))))
}

/// Parses the steps of a member that contains no null.
fn without_null(
    field: &'static str,
    value: Value,
    parse: fn(Value) -> Result<Steps, InvalidOption>,
) -> Result<Steps, InvalidOption> {
    if has_null(&value) {
        return Err(InvalidOption {
            field,
            index: None,
            reason: NULL.to_owned(),
        });
    }
    parse(value)
}

/// Deserializes the state of a visit, which may be absent but not null.
fn parsed_state<'de, D>(deserializer: D) -> Result<Option<Parsed<VisitState>>, D::Error>
where
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    Ok(Some(Parsed(object("state", value))))
}

/// Deserializes expectations of a page, which may be absent but not null.
pub(crate) fn parsed_expectation<'de, D>(
    deserializer: D,
) -> Result<Option<Parsed<Expectation>>, D::Error>
where
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    Ok(Some(Parsed(object("expect", value))))
}

/// Reads a member that is an object without null.
fn object<T: DeserializeOwned>(field: &str, value: Value) -> Result<T, String> {
    // The derived implementations would also accept arrays, and null for optional members.
    if has_null(&value) {
        return Err(NULL.to_owned());
    }
    if !value.is_object() {
        return Err(format!("`{field}` must be an object."));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = format!("{field}.{}", error.path());
        json_error(path.trim_end_matches('.'), error.inner())
    })
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
pub(crate) fn validated(requested: RequestedOptions) -> Result<VisitOptions, Failure> {
    let state = requested
        .state
        .map_or(Ok(VisitState::default()), |state| state.0);
    let state =
        state.map_err(|reason| Failure::InvalidState(InvalidValue::new("state", reason)))?;
    let expect = requested
        .expect
        .map_or(Ok(Expectation::default()), |expect| expect.0);
    let expect = expect
        .map_err(|reason| Failure::InvalidExpectation(InvalidValue::new("expect", reason)))?;
    let steps = requested
        .steps
        .map_or(Ok(Steps::default()), |steps| steps.0);
    let flow = requested.flow.map_or(Ok(Steps::default()), |flow| flow.0);
    let options = VisitOptions {
        allow_error_status: requested.allow_error_status,
        quick: requested.quick,
        state: (state != VisitState::default()).then(|| Box::new(state)),
        expect: (expect != Expectation::default()).then(|| Box::new(expect)),
        steps: steps.map_err(invalid_option)?,
        flow: flow.map_err(invalid_option)?,
        consent: parse_consent(requested.consent.as_deref())?,
        view: parse_view(requested.view)?,
        session: parse_session(requested.session)?,
        interactions: parse_interactions(requested.interactions.as_ref())?,
        profile: requested.profile,
        record: requested.record,
        ..VisitOptions::default()
    };
    match options.validate() {
        Ok(()) => Ok(options),
        Err(error) => Err(invalid_option(error)),
    }
}

fn parse_session(name: Option<String>) -> Result<Option<SessionUse>, Failure> {
    match name {
        Some(name) if !is_name(&name) => {
            let reason = "The session is the name of one that POST /v1/sessions has defined.";
            Err(Failure::UnknownSession(InvalidValue::new(
                "session", reason,
            )))
        }
        name => Ok(name.map(|name| SessionUse {
            name,
            sign_in: None,
        })),
    }
}

fn parse_consent(name: Option<&str>) -> Result<Consent, Failure> {
    let consent = name.map_or(Some(Consent::None), Consent::from_name);
    consent.ok_or_else(|| {
        let reason = "The consent is none, accept or reject.";
        Failure::InvalidConsent(InvalidValue::new("consent", reason))
    })
}

fn parse_interactions(value: Option<&Value>) -> Result<Interactions, Failure> {
    let interactions = value.map_or(Some(Interactions::default()), Interactions::from_json);
    interactions.ok_or_else(|| {
        let value = InvalidValue::new("interactions", Interactions::RULE);
        Failure::InvalidInteractions(value)
    })
}

fn parse_view(value: Option<Value>) -> Result<View, Failure> {
    let view = value.map_or(Ok(View::First), serde_json::from_value);
    view.map_err(|_| {
        let reason = "The view is \"first\", \"repeat\", or an object {\"after\": URL}.";
        Failure::InvalidView(InvalidValue::new("view", reason))
    })
}

/// Returns the failure of a start whose options are not valid.
pub(crate) fn invalid_option(error: InvalidOption) -> Failure {
    let value = InvalidValue {
        field: error.field,
        index: error.index,
        reason: error.reason,
    };
    match value.field {
        "steps" | "flow" => Failure::InvalidSteps(value),
        "view" => Failure::InvalidView(value),
        field if field.starts_with("expect") => Failure::InvalidExpectation(value),
        _ => Failure::InvalidState(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_state(state: Option<Parsed<VisitState>>) -> RequestedOptions {
        RequestedOptions {
            state,
            ..RequestedOptions::default()
        }
    }

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
            let state = parsed_state(state).unwrap();
            let failure = validated(with_state(state)).unwrap_err();
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
    fn the_path_of_a_value_that_cannot_be_read_is_named() {
        for (state, reason) in [
            (
                json!({ "cookies": [{ "name": "a" }] }),
                "`state.cookies[0].value` is missing.",
            ),
            (
                json!({ "basicAuth": { "username": "a" } }),
                "`state.basicAuth.password` is missing.",
            ),
            (json!({ "headers": {} }), "`state.headers` must be a list."),
            (json!([]), "`state` must be an object."),
        ] {
            let state = parsed_state(state).unwrap();
            let failure = validated(with_state(state)).unwrap_err();
            let Failure::InvalidState(value) = failure else {
                panic!("{failure:?}");
            };
            assert_eq!(value.reason, reason);
        }
    }

    #[test]
    fn a_text_that_is_not_json_is_no_fault_of_the_state() {
        let failure = RequestedOptions::preparing("{state: 1}").unwrap_err();
        let Failure::InvalidState(value) = failure else {
            panic!("{failure:?}");
        };
        let reason = "The text is not valid JSON: see line 1, column 2.";
        assert_eq!((value.field, &*value.reason), ("preparing", reason));
    }

    #[test]
    fn an_empty_state_is_none() {
        let state = parsed_state(json!({})).unwrap();
        assert!(validated(with_state(state)).unwrap().is_default());
    }
}
