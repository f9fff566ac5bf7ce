//! Tests of the binary: started as a process, called over HTTP, killed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod audit_command;
mod browse;
mod budgets;
mod client;
#[path = "../../../store/tests/cluster/mod.rs"]
mod cluster;
mod compare_command;
mod crux;
mod exports;
mod field_data;
mod hostile;
mod login_site;
mod operating;
mod output;
mod own_pages;
mod pages;
mod postgres;
mod recordings;
mod restarts;
mod saved_sessions;
mod secrets;
mod server;
mod settings;
mod stored_secrets;
mod tools;
mod whole_way;
