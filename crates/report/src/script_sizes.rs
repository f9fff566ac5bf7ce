//! Reads the sizes of scripts and their sources from the findings of a check.

use plumbline_model::check::{Cell, Row};

/// The check that lists all scripts.
pub(crate) const CHECK_ID: &str = "script-treemap-data";

/// The sizes of a script or a source, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScriptSizes<'r> {
    pub(crate) name: &'r str,
    /// The uncompressed size.
    pub(crate) resource_bytes: f64,
    pub(crate) encoded_bytes: f64,
    /// The part that was not used; `None` if that is not known.
    pub(crate) unused_bytes: Option<f64>,
}

impl<'r> ScriptSizes<'r> {
    /// Reads a row of the findings. Sizes that it lacks are 0.
    pub(crate) fn of(row: &'r Row) -> Self {
        let bytes = |column: usize| match row.cells.get(column) {
            Some(Cell::Bytes(bytes)) if bytes.is_finite() => Some(*bytes),
            _ => None,
        };
        Self {
            name: match row.cells.first() {
                Some(Cell::Url(name) | Cell::Text(name)) => name,
                _ => "",
            },
            resource_bytes: bytes(1).unwrap_or_default(),
            encoded_bytes: bytes(2).unwrap_or_default(),
            unused_bytes: bytes(3),
        }
    }
}
