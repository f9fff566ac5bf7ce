//! JSON objects with a format version.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::PackError;

/// The format version, parsed first so that a newer format is reported instead of misread.
#[derive(Deserialize)]
struct FormatVersion {
    format: u32,
}

/// Parses a value with a member `format` up to `supported`.
pub fn parse<T: DeserializeOwned>(text: &[u8], supported: u32) -> Result<T, PackError> {
    let FormatVersion { format } = serde_json::from_slice(text).map_err(PackError::unreadable)?;
    if format > supported {
        return Err(PackError::Newer {
            found: format,
            supported,
        });
    }
    serde_json::from_slice(text).map_err(PackError::unreadable)
}
