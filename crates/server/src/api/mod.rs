//! The handlers of the API, one file for each resource.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod audits;
pub(crate) mod batches;
pub(crate) mod comparisons;
pub(crate) mod devices;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod locations;
pub(crate) mod metrics;
pub(crate) mod networks;
pub(crate) mod recordings;
pub(crate) mod saved_sessions;
pub(crate) mod secrets;
pub(crate) mod shares;

pub(crate) mod idempotency;
pub(crate) mod json_body;
pub(crate) mod request_body;
pub(crate) mod visit_options;

pub(crate) mod cursor;
mod path_id;

pub(crate) use path_id::{PathId, PathIds};
