//! The HTTP server: the API of the contract and its additions, probes and metrics for operators,
//! the interface for agents on other machines, and the web pages.
//!
//! `router.rs` lists the routes, `errors.rs` maps failures to responses, and `api/` has one file
//! for each resource. `state.rs` holds what all handlers share. `middleware.rs` does what every
//! request needs (id, deadline, panic handling, log line). `serve.rs`, `connections.rs` and
//! `client_stream.rs` handle connections, including those of slow and malformed clients, and
//! `capacity.rs` limits concurrent requests in total and per client. `dispatch/` distributes audits
//! to agents, `agents/` exposes that over HTTP, `openapi/` describes the API, and `webhooks.rs`
//! delivers webhooks in a loop of its own.

mod agents;
mod api;
mod app;
mod auth;
mod cancel;
mod capacity;
mod client_stream;
mod connections;
mod dispatch;
mod envelope;
mod errors;
mod evidence_part;
mod fault;
mod field;
mod guarded_body;
mod logo;
mod metrics;
mod middleware;
mod openapi;
mod pages;
mod peer;
mod phases;
mod progress;
mod query;
mod rate;
mod render_pool;
mod replays;
mod request_context;
mod router;
mod routes;
mod serve;
mod share;
mod start;
mod state;
pub mod summaries;
mod target;
mod time;
mod tls;
mod unread_body;
mod uploads;
mod vault;
mod webhooks;

pub use app::{Agents, App, BrowserCounter, Limits, MayVisit, Pages};
pub use dispatch::{
    AgentSlot, AuditObserver, DEFAULT_LEASE, Dispatcher, DispatcherParts, EmbeddedAgent, TokenScope,
};
pub use field::FieldSource;
pub use logo::{Logo, LogoError};
pub use metrics::{AuditFigures, BrowserCounts, Metrics};
pub use phases::{AuditPhases, CurrentPhase};
pub use router::router;
pub use serve::{ServeOptions, serve, serve_with};
pub use time::Clock;
pub use tls::{TlsError, TlsFiles};
pub use uploads::Uploads;
pub use vault::{Vault, VaultKey};
pub use webhooks::{
    WEBHOOK_HEAD_TIMEOUT, WEBHOOK_RETRIES, WEBHOOK_TIMEOUT, WebhookRequest, WebhookTransport,
    deliver_webhooks,
};
