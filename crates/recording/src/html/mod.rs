//! Finds and edits tags in documents without changing anything else.
//!
//! Documents are edited as bytes, so that their character encoding does not matter as long as it
//! extends ASCII. Only what the server sent is seen, not what scripts create.

mod edit;
mod scanner;
mod selector;

pub(crate) use edit::{Edit, apply, insert_head, remove_attribute, set_attribute};
pub(crate) use scanner::{Tag, tags};
pub(crate) use selector::Selector;
pub use selector::SelectorError;
