//! Selectors of elements, in the notations of the Recorder.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Alternatives for finding an element: the first that finds one is used. Each is a path, whose
/// parts are searched for inside the shadow root of the element before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Selectors(pub Vec<Vec<String>>);

impl<'de> Deserialize<'de> for Selectors {
    /// Reads one selector, or a list of alternatives, each of which is a selector or a path.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Notation {
            One(String),
            Alternatives(Vec<Alternative>),
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Alternative {
            One(String),
            Path(Vec<String>),
        }
        let value = Value::deserialize(deserializer)?;
        let notation = serde_json::from_value(value)
            .map_err(|_| serde::de::Error::custom("expected a selector or a list of selectors"))?;
        let alternatives = match notation {
            Notation::One(selector) => vec![vec![selector]],
            Notation::Alternatives(alternatives) => alternatives
                .into_iter()
                .map(|alternative| match alternative {
                    Alternative::One(selector) => vec![selector],
                    Alternative::Path(path) => path,
                })
                .collect(),
        };
        Ok(Self(alternatives))
    }
}

/// Shows the first alternative.
impl fmt::Display for Selectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.0.first().map_or(&[][..], Vec::as_slice);
        f.write_str(&first.join(" >>> "))
    }
}

/// One part of a selector, by its notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector<'a> {
    Css(&'a str),
    /// A CSS selector that is searched for in all open shadow roots.
    Pierce(&'a str),
    XPath(&'a str),
    /// The smallest element that contains a text.
    Text(&'a str),
    /// An element with an accessible name, and with a role if there is one.
    Aria {
        name: &'a str,
        role: Option<&'a str>,
    },
}

impl<'a> Selector<'a> {
    /// Reads a selector with one of the prefixes of the Recorder, or a CSS selector.
    pub fn of(text: &'a str) -> Self {
        if let Some(css) = text.strip_prefix("css/") {
            Self::Css(css)
        } else if let Some(css) = text.strip_prefix("pierce/") {
            Self::Pierce(css)
        } else if let Some(path) = text.strip_prefix("xpath/") {
            Self::XPath(path)
        } else if let Some(text) = text.strip_prefix("text/") {
            Self::Text(text)
        } else if let Some(aria) = text.strip_prefix("aria/") {
            let role = aria.strip_suffix("\"]").or_else(|| aria.strip_suffix("']"));
            let with_role = role.and_then(|rest| {
                rest.rsplit_once("[role=\"")
                    .or_else(|| rest.rsplit_once("[role='"))
            });
            match with_role {
                Some((name, role)) => Self::Aria {
                    name: name.trim(),
                    role: Some(role),
                },
                None => Self::Aria {
                    name: aria.trim(),
                    role: None,
                },
            }
        } else {
            Self::Css(text)
        }
    }
}
