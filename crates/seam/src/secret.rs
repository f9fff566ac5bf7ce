//! A text that must not be shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The text that replaces a secret wherever evidence, messages or logs would show it.
pub const REDACTED: &str = "[redacted]";

/// A secret of a client, such as the value of a cookie. It is written to the store and sent to
/// agents, and never formatted: [`fmt::Debug`] shows [`REDACTED`].
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text, for the browser and for finding it in evidence.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}
