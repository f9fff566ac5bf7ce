//! Converts a report to the formats that people and programs read. This crate performs no IO.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

pub mod budget;
pub mod comparison;
pub mod contract;
mod csv;
mod export;
mod har;
pub mod html;
mod junit;
pub mod lighthouse;
pub mod matrix;
mod network;
mod script_sizes;
pub mod terminal;
#[cfg(test)]
mod testing;
mod trace_file;
mod video;

/// The version that exports and pages state.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub use export::{ExportError, ExportSource, Format, StoredAudit};
pub use junit::JunitOptions;
pub use network::visited_at_ms;
