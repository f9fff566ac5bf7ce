//! One file per resource.

pub(crate) mod audit;
pub(crate) mod devices;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod locations;

pub(crate) mod order;
mod path_id;

pub(crate) use audit::new_id;
pub(crate) use path_id::PathId;
