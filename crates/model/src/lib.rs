//! The report of an audit and everything in it, as plain data: what the engine writes, the store
//! keeps, and pages, exports and the API show.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

pub mod cache_use;
pub mod category;
pub mod check;
pub mod comparison;
pub mod document_urls;
pub mod experiment;
pub mod field;
pub mod interval;
pub mod matrix;
pub mod media;
pub mod report;
pub mod responsiveness;
pub mod runs;
pub mod scoring;
pub mod size;
pub mod summary;
