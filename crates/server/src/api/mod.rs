//! One file per resource.

pub(crate) mod audit;
pub(crate) mod devices;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod locations;

mod order;
mod path_id;
