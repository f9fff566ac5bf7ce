//! Placeholders of stored secrets in the values of a state and of steps: `{{secret.NAME}}`.
//!
//! An order is stored with its placeholders. They are replaced when its job is handed to an agent.

use std::collections::{BTreeMap, BTreeSet};

use crate::{InvalidOption, Secret, Step, VisitOptions, VisitState};

const BEGIN: &str = "{{secret.";
const END: &str = "}}";

/// The shortest text that is searched for in evidence. Shorter ones occur in unrelated texts, so
/// that a stored secret has at least this length.
pub const MIN_MASKED_BYTES: usize = 8;
/// The largest size of the value of a stored secret.
pub const MAX_SECRET_BYTES: usize = 16 * 1024;
/// The longest name of a stored secret, or of a saved session.
pub const MAX_NAME_BYTES: usize = 64;

/// Returns whether a text can be the name of a stored secret, or of a saved session.
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Checks the size of the value of a stored secret. The reason does not contain the value.
pub fn check_secret_value(value: &str) -> Result<(), String> {
    if value.chars().count() >= MIN_MASKED_BYTES && value.len() <= MAX_SECRET_BYTES {
        return Ok(());
    }
    Err(format!(
        "The value of a secret has at least {MIN_MASKED_BYTES} characters and at most \
         {MAX_SECRET_BYTES} bytes: a shorter one could not be told from other texts when it is removed \
         from evidence."
    ))
}

/// The reason why placeholders could not be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplacementError {
    /// There is no secret with this name.
    #[error("there is no secret with the name `{0}`")]
    Unknown(String),
    /// A value is not valid where its placeholder is, for instance a line break in a header.
    #[error("{0}")]
    Invalid(InvalidOption),
}

impl VisitOptions {
    /// Returns the names of the stored secrets whose placeholders the options contain.
    pub fn secret_names(&self) -> BTreeSet<String> {
        let texts = self.texts_with_placeholders();
        texts
            .iter()
            .flat_map(|(_, _, text)| pieces(text))
            .filter_map(|piece| match piece {
                Piece::Name(name) => Some(name.to_owned()),
                Piece::Text(_) | Piece::Malformed => None,
            })
            .collect()
    }

    /// Returns the options with the values in place of their placeholders. The values are also
    /// listed in [`VisitOptions::secrets`], so that an agent finds them in evidence.
    pub fn with_secrets(
        &self,
        values: &BTreeMap<String, Secret>,
    ) -> Result<Self, ReplacementError> {
        let mut options = self.clone();
        if let Some(state) = &mut options.state {
            for value in state.values_mut() {
                *value = Secret::from(replace(value.expose(), values)?);
            }
            if let Some(credentials) = &mut state.basic_auth {
                credentials.username = replace(&credentials.username, values)?;
            }
        }
        let steps = options.steps.values_mut();
        for value in steps.chain(options.flow.values_mut()) {
            *value = Secret::from(replace(value.expose(), values)?);
        }
        let names = self.secret_names();
        let used = names.iter().filter_map(|name| values.get(name)).cloned();
        options.secrets = used.collect();
        options.check_values().map_err(ReplacementError::Invalid)?;
        Ok(options)
    }

    /// Checks that every placeholder is well-formed, and that none is where it is not replaced:
    /// everything besides values is shown in reports.
    pub(crate) fn check_placeholders(&self) -> Result<(), InvalidOption> {
        for (field, index, text) in self.texts_with_placeholders() {
            if pieces(text).contains(&Piece::Malformed) {
                let reason = "The placeholder of a secret has the form {{secret.NAME}}; a name consists of \
                              up to 64 letters, digits, dots, underscores and hyphens.";
                return Err(at(InvalidOption::new(field, reason), index));
            }
        }
        let names_only = self.without_values();
        let state = serde_json::to_string(&names_only.state).unwrap_or_default();
        let expect = serde_json::to_string(&names_only.expect).unwrap_or_default();
        let steps = names_only.all_steps().map(|(field, index, step)| {
            let text = serde_json::to_string(step).unwrap_or_default();
            (field, Some(index), text)
        });
        let others = [("state", None, state), ("expect", None, expect)];
        for (field, index, text) in others.into_iter().chain(steps) {
            if text.contains(BEGIN) {
                let reason = "Secrets can only be used in the values of cookies, storage, headers, basic \
                              authentication, the script, and steps that fill in or select a value.";
                return Err(at(InvalidOption::new(field, reason), index));
            }
        }
        Ok(())
    }

    /// Returns all texts in which placeholders are replaced, each with its member and its position.
    fn texts_with_placeholders(&self) -> Vec<(&'static str, Option<usize>, &str)> {
        let state = self.state.as_deref();
        let values = state.into_iter().flat_map(VisitState::values);
        let username = state.and_then(|state| state.basic_auth.as_ref());
        let state = values
            .map(Secret::expose)
            .chain(username.map(|credentials| credentials.username.as_str()))
            .map(|text| ("state", None, text));
        let steps = self.all_steps().filter_map(|(field, index, step)| {
            let value = step.value()?;
            Some((field, Some(index), value.expose()))
        });
        state.chain(steps).collect()
    }

    /// Returns all steps, each with its member and its position.
    fn all_steps(&self) -> impl Iterator<Item = (&'static str, usize, &Step)> {
        let lists = [("steps", &self.steps), ("flow", &self.flow)];
        lists.into_iter().flat_map(|(field, steps)| {
            let steps = steps.0.iter().enumerate();
            steps.map(move |(index, step)| (field, index, step))
        })
    }
}

fn at(error: InvalidOption, index: Option<usize>) -> InvalidOption {
    match index {
        Some(index) => error.at(index),
        None => error,
    }
}

fn replace(text: &str, values: &BTreeMap<String, Secret>) -> Result<String, ReplacementError> {
    let mut replaced = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => replaced.push_str(text),
            Piece::Name(name) => {
                let value = values.get(name);
                let unknown = || ReplacementError::Unknown(name.to_owned());
                replaced.push_str(value.ok_or_else(unknown)?.expose());
            }
            // Orders with malformed placeholders are refused.
            Piece::Malformed => replaced.push_str(BEGIN),
        }
    }
    Ok(replaced)
}

/// A part of a text with placeholders.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    /// The name in a placeholder.
    Name(&'t str),
    /// The beginning of a placeholder without a name or without an end.
    Malformed,
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        pieces.push(Piece::Text(before));
        match after.split_once(END) {
            Some((name, after)) if is_name(name) => {
                pieces.push(Piece::Name(name));
                rest = after;
            }
            _ => {
                pieces.push(Piece::Malformed);
                rest = after;
            }
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options() -> VisitOptions {
        let options = json!({
            "state": {
                "cookies": [{ "name": "session", "value": "a{{secret.cookie}}b{{secret.cookie}}" }],
                "localStorage": { "token": "{\"t\":\"{{secret.local}}\"}" },
                "sessionStorage": { "tab": "{{secret.tab}}" },
                "headers": [{ "name": "X-Token", "value": "Bearer {{secret.header}}" }],
                "basicAuth": { "username": "{{secret.user}}", "password": "{{secret.pass-word.1}}" },
                "script": "window.key = '{{secret.script}}'",
            },
            "steps": [
                { "type": "goto", "url": "/login" },
                { "type": "fill", "selector": "#a", "value": "{{secret.fill}}" },
                { "type": "select", "selector": "#b", "value": "{{secret.fill}}" },
            ],
            "flow": [{ "type": "fill", "selector": "#c", "value": "{{secret.flow}}" }],
        });
        serde_json::from_value(options).unwrap()
    }

    fn values() -> BTreeMap<String, Secret> {
        let names = options().secret_names();
        let value = |name: &String| Secret::from(format!("value-of-{name}"));
        names
            .iter()
            .map(|name| (name.clone(), value(name)))
            .collect()
    }

    #[test]
    fn all_values_are_replaced_and_listed() {
        let names = [
            "cookie",
            "fill",
            "flow",
            "header",
            "local",
            "pass-word.1",
            "script",
            "tab",
            "user",
        ];
        assert_eq!(options().secret_names(), names.map(str::to_owned).into());
        options().validate().unwrap();
        let replaced = options().with_secrets(&values()).unwrap();
        let state = replaced.state.as_ref().unwrap();
        assert_eq!(
            state.cookies[0].value.expose(),
            "avalue-of-cookiebvalue-of-cookie"
        );
        assert_eq!(
            state.local_storage["token"].expose(),
            r#"{"t":"value-of-local"}"#
        );
        assert_eq!(state.headers[0].value.expose(), "Bearer value-of-header");
        let credentials = state.basic_auth.as_ref().unwrap();
        assert_eq!(credentials.username, "value-of-user");
        assert_eq!(credentials.password.expose(), "value-of-pass-word.1");
        let filled: Vec<_> = replaced.steps.secrets().map(Secret::expose).collect();
        assert_eq!(filled, ["value-of-fill", "value-of-fill"]);
        let filled: Vec<_> = replaced.flow.secrets().map(Secret::expose).collect();
        assert_eq!(filled, ["value-of-flow"]);
        assert_eq!(replaced.secrets.len(), 9);
        assert!(replaced.secret_names().is_empty());
        let text = serde_json::to_string(&replaced).unwrap();
        assert!(!text.contains("{{secret."), "{text}");
        assert_eq!(
            serde_json::from_str::<VisitOptions>(&text).unwrap(),
            replaced
        );
        let ended = serde_json::to_string(&replaced.without_values()).unwrap();
        assert!(!ended.contains("value-of"), "{ended}");
        assert!(!format!("{replaced:?}").contains("value-of"));
    }

    #[test]
    fn a_value_is_not_read_for_placeholders_again() {
        let mut values = values();
        values.insert("tab".to_owned(), Secret::from("{{secret.other}}"));
        let replaced = options().with_secrets(&values).unwrap();
        let state = replaced.state.unwrap();
        assert_eq!(state.session_storage["tab"].expose(), "{{secret.other}}");
    }

    #[test]
    fn a_name_without_a_value_is_an_error() {
        let mut values = values();
        values.remove("header");
        let error = options().with_secrets(&values).unwrap_err();
        assert_eq!(error, ReplacementError::Unknown("header".to_owned()));
    }

    #[test]
    fn a_value_that_is_not_valid_in_its_place_is_an_error_that_does_not_quote_it() {
        for (name, value, field) in [
            ("header", "canary\r\nX-Other: 1".to_owned(), "state.headers"),
            ("cookie", "canary;path=/".to_owned(), "state.cookies"),
            ("cookie", "canary".repeat(1000), "state.cookies"),
            ("fill", "canary".repeat(1000), "steps"),
            ("flow", "canary".repeat(1000), "flow"),
        ] {
            let mut values = values();
            values.insert(name.to_owned(), Secret::from(value));
            let Err(ReplacementError::Invalid(error)) = options().with_secrets(&values) else {
                panic!("{name}");
            };
            assert_eq!(error.field, field);
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }

    #[test]
    fn placeholders_are_refused_where_they_are_malformed_or_not_replaced() {
        for (member, value, field, index) in [
            ("state", json!({ "script": "{{secret.}}" }), "state", None),
            (
                "state",
                json!({ "script": "{{secret.a b}}" }),
                "state",
                None,
            ),
            ("state", json!({ "script": "{{secret.a" }), "state", None),
            (
                "state",
                json!({ "userAgentSuffix": "{{secret.a}}" }),
                "state",
                None,
            ),
            (
                "state",
                json!({ "localStorage": { "{{secret.a}}": "1" } }),
                "state",
                None,
            ),
            ("expect", json!({ "text": "{{secret.a}}" }), "expect", None),
            (
                "steps",
                json!([{ "type": "goto", "url": "/?t={{secret.a}}" }]),
                "steps",
                Some(0),
            ),
            (
                "steps",
                json!([{ "type": "press", "key": "Tab" }, { "type": "fill", "selector": "#a", "value": "{{secret.ä}}" }]),
                "steps",
                Some(1),
            ),
        ] {
            let options: VisitOptions = serde_json::from_value(json!({ member: value })).unwrap();
            let error = options.validate().unwrap_err();
            assert_eq!((error.field, error.index), (field, index), "{error}");
        }
        // Other texts in braces are no placeholders.
        let other = json!({ "state": { "script": "`{{ secret.a }} {{secrets.a}} ${{}}`" } });
        let other: VisitOptions = serde_json::from_value(other).unwrap();
        other.validate().unwrap();
        assert!(other.secret_names().is_empty());
    }

    #[test]
    fn names_and_values_have_bounds() {
        for name in ["a", "API_token.1-b", &"a".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "ä", "a/b", "a}", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
        assert!(check_secret_value("12345678").is_ok());
        assert!(check_secret_value(&"a".repeat(MAX_SECRET_BYTES)).is_ok());
        for value in ["canary", "canaryé", &"canary".repeat(4000)] {
            let reason = check_secret_value(value).unwrap_err();
            assert!(!reason.contains("canary"), "{reason}");
        }
    }
}
