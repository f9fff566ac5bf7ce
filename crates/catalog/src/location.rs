use serde::Deserialize;

/// A location from which audits are made.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    pub id: String,
    /// City and country.
    pub name: String,
    pub latitude: f64,
    pub longitude: f64,
}
