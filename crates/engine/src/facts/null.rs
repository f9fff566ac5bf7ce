//! Lenient parsing of artifacts.

use serde::{Deserialize, Deserializer};

/// Deserializes `null` as the type's default.
pub(super) fn or_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
