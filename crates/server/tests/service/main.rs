//! Tests of the service over real sockets, with the real router and a real store on disk.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap shows where a test failed"
)]

mod again;
mod agent;
mod agents;
mod attempts;
mod audits_page;
mod batches;
mod bodies;
mod cancelling;
mod capacity;
mod client;
#[path = "../../../store/tests/cluster/mod.rs"]
mod cluster;
mod comparisons;
mod contract;
mod described;
mod described_report;
mod exports;
mod faults;
mod field;
mod idempotency;
mod keys;
mod labels;
mod limits;
mod lists;
mod logs;
mod malformed;
mod metrics;
mod options;
mod pages;
mod parameters;
mod paths;
mod progress;
mod rates;
mod receivers;
mod recordings;
mod replays;
mod report_page;
mod rig;
mod saved_sessions;
mod sessions;
mod shared_pages;
mod shares;
mod shutdown;
mod steps;
mod stored_secrets;
mod targets;
mod tls;
mod two_servers;
mod unconfirmed;
mod uploads;
mod visit_state;
mod visitor;
mod waiting;
mod webhooks;
