//! The service as a client meets it: real sockets, the real router, a real store on disk.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on shall say where"
)]

mod agent;
mod agents;
mod attempts;
mod batches;
mod bodies;
mod bounds;
mod client;
#[path = "../../../store/tests/cluster/mod.rs"]
mod cluster;
mod contract;
mod crowds;
mod described;
mod exports;
mod faults;
mod field;
mod idempotency;
mod keys;
mod lists;
mod logs;
mod metrics;
mod options;
mod pages;
mod paths;
mod rates;
mod receivers;
mod rig;
mod sessions;
mod several;
mod shown;
mod shutdown;
mod targets;
mod tls;
mod unheard;
mod uploads;
mod visitor;
mod waiting;
mod webhooks;
mod wire;
