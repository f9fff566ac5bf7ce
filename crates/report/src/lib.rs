//! A report in the forms that people and programs read. Pure: data in, text out.

pub mod budget;
pub mod contract;
mod csv;
mod export;
mod har;
pub mod html;
mod junit;
pub mod lighthouse;
mod network;
pub mod terminal;
#[cfg(test)]
mod testing;
mod trace_file;

pub use export::{ExportError, Format, Stored, Subject};
pub use network::visited_at_ms;
