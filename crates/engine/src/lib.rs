//! The evaluation of a visit: evidence in, report out. It is pure, synchronous and deterministic:
//! the same bundle gives the same bytes.

pub mod category;
pub mod checks;
mod evaluate;
pub mod exhibits;
pub mod facts;
pub mod field;
pub mod metrics;
pub mod registry;
mod replay;
pub mod report;
pub mod runs;
pub mod scoring;

pub use evaluate::{
    evaluate, evaluate_with_exhibits, not_measured, remember_conditions, remembered_conditions,
};
pub use replay::{Distance, distances};
