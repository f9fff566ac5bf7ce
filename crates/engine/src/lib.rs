//! The evaluation of a visit: evidence in, report out. It is pure, synchronous and deterministic:
//! the same bundle gives the same bytes.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

mod cache_use;
pub mod checks;
mod document_urls;
mod evaluate;
pub mod facts;
pub mod media;
pub mod metrics;
mod profile;
pub mod registry;
mod replay;
pub mod scoring;

pub use evaluate::{evaluate, evaluate_with_media};
pub use profile::profile;
