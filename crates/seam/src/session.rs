//! Saved sessions: a login that is performed once, and whose cookies and storage many audits use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Cookie, Expectation, InvalidOption, Secret, Steps};

/// The largest size of a saved state as JSON.
pub const MAX_SAVED_STATE_BYTES: usize = 256 * 1024;

/// The saved session that a visit uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUse {
    pub name: String,
    /// How the session is made, and its state. Only the options of a job have it: an order is
    /// stored with the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<Box<SignIn>>,
}

/// A saved session as a job contains it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignIn {
    #[serde(flatten)]
    pub definition: SessionDefinition,
    /// Identifies the definition. A state that was made with an earlier one is not stored.
    pub version: i64,
    /// The state that the steps left earlier; `None` if the session was not made yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SavedState>,
}

/// The definition of a saved session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDefinition {
    /// The page on which steps begin that open none, and of whose site paths are; `None` for the
    /// audited page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The steps that sign in.
    pub steps: Steps,
    /// Conditions that the measured page meets while the session is valid.
    pub expect: Expectation,
}

impl SessionDefinition {
    /// Checks that there are steps and a condition, and their sizes and characters.
    pub fn validate(&self) -> Result<(), InvalidOption> {
        if self.steps.is_empty() {
            return Err(InvalidOption::new("steps", "A session needs steps."));
        }
        if self.expect == Expectation::default() {
            let reason =
                "A session needs a condition by which an audited page shows that it is signed in.";
            return Err(InvalidOption::new("expect", reason));
        }
        self.as_options().validate()
    }

    /// Returns options with these steps and this expectation, to check them and to replace
    /// placeholders in them.
    pub fn as_options(&self) -> crate::VisitOptions {
        crate::VisitOptions {
            steps: self.steps.clone(),
            expect: Some(Box::new(self.expect.clone())),
            ..crate::VisitOptions::default()
        }
    }
}

/// Cookies and storage that steps have left in a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedState {
    /// Cookies of all hosts, each with its domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cookies: Vec<Cookie>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<OriginStorage>,
}

/// The storage of an origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginStorage {
    pub origin: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub local_storage: BTreeMap<String, Secret>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub session_storage: BTreeMap<String, Secret>,
}

impl SavedState {
    /// Returns the values of the cookies, which are secrets.
    pub fn cookie_values(&self) -> impl Iterator<Item = &Secret> {
        self.cookies.iter().map(|cookie| &cookie.value)
    }

    /// Returns the values in the storage of all origins, which are secrets.
    pub fn stored_values(&self) -> impl Iterator<Item = &Secret> {
        self.storage.iter().flat_map(|storage| {
            let local = storage.local_storage.values();
            local.chain(storage.session_storage.values())
        })
    }
}

/// A state that an agent has made for a saved session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeSession {
    /// See [`SignIn::version`].
    pub version: i64,
    pub state: SavedState,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_needs_steps_and_a_condition() {
        let parse = |value| serde_json::from_value::<SessionDefinition>(value).unwrap();
        let press = json!({ "type": "press", "key": "Tab" });
        for (steps, expect, field) in [
            (json!([]), json!({ "selector": "#a" }), "steps"),
            (json!([press]), json!({}), "expect"),
            (json!([press]), json!({ "text": "" }), "expect.text"),
            (json!([press]), json!({ "text": "{{secret.a}}" }), "expect"),
        ] {
            let definition = parse(json!({ "steps": steps, "expect": expect }));
            assert_eq!(definition.validate().unwrap_err().field, field);
        }
        let definition = parse(json!({ "steps": [press], "expect": { "selector": "#a" } }));
        definition.validate().unwrap();
    }

    #[test]
    fn the_values_of_a_state_are_listed_and_not_formatted() {
        let state = json!({
            "cookies": [{ "name": "sid", "value": "canary-1", "domain": "example.com" }],
            "storage": [{
                "origin": "https://example.com", "localStorage": { "a": "canary-2" },
                "sessionStorage": { "b": "canary-3" },
            }],
        });
        let state: SavedState = serde_json::from_value(state).unwrap();
        let values = state.cookie_values().chain(state.stored_values());
        let values: Vec<_> = values.map(Secret::expose).collect();
        assert_eq!(values, ["canary-1", "canary-2", "canary-3"]);
        assert!(!format!("{state:?}").contains("canary"));
    }
}
