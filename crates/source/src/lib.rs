//! Reads scripts and style sheets: text in, figures out. What a check needs of a text is kept in its place, so
//! that no page's sources have to be.

mod legacy;
mod polyfills;
mod source_map;
mod tokens;

pub use legacy::{LegacyCode, LegacySignal, legacy_code};
pub use source_map::{Module, Modules, SourceMap, SourceMapError};
pub use tokens::{script_token_units, sheet_token_units};
