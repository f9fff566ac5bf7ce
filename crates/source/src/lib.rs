//! Analyses documents, scripts and style sheets: text in, figures out. The figures are stored
//! instead of the text, so that a page's sources need not be kept. It also splits the values of
//! headers.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

mod legacy;
mod polyfills;
mod quoted;
mod served_html;
mod source_map;
mod tokens;

pub use legacy::{LegacyCode, LegacySignal, legacy_code};
pub use quoted::split_outside_quotes;
pub use served_html::ServedContent;
pub use source_map::{
    Module, Modules, OriginalPosition, ScriptFunction, ScriptPosition, SourceMap, SourceMapError,
    original_positions,
};
pub use tokens::{script_token_units, sheet_token_units};
