//! One file per resource.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod audits;
pub(crate) mod batches;
pub(crate) mod devices;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod locations;
pub(crate) mod networks;
pub(crate) mod operator;

pub(crate) mod idempotency;
pub(crate) mod order;

mod cursor;
mod path_id;

pub(crate) use audit::new_id;
pub(crate) use path_id::{PathId, PathIds};
