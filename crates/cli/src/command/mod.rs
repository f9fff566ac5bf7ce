//! One file per command.

pub mod admin;
pub mod agent;
pub mod agents;
pub mod audit;
pub mod catalog;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod judge;
pub mod keys;
pub mod licenses;
pub mod man;
pub mod metrics;
pub mod migrate_store;
pub mod serve;
