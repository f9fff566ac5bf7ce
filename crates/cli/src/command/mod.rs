//! One file per command.

pub mod admin;
pub mod agent;
pub mod agents;
pub mod audit;
pub mod catalog;
pub mod compare;
pub mod completions;
pub mod convert_recording;
pub mod doctor;
pub mod experiment;
pub mod judge;
pub mod keys;
pub mod licenses;
pub mod man;
pub mod matrix;
pub mod metrics;
pub mod migrate_store;
pub mod record;
pub mod serve;
