//! What is kept: accounts, keys, credits, audits, leases, reports, agents, webhooks to be delivered.
//!
//! One trait, [`Store`], and one conformance suite that every backend passes. Reports are opaque
//! JSON text here: what is in them is the business of those who write and read them.

mod agents;
mod blobs;
mod delivery;
mod delivery_turns;
mod key;
mod latency;
mod limit;
mod listing;
mod moving;
mod operator;
mod pages;
mod postgres;
mod progress;
mod seat;
mod sqlite;
mod store;
mod submission;
mod types;

pub use agents::{
    AgentBounds, AgentRecord, AgentStore, AgentToken, SIGHTING_KEPT_MS, Sighting, Standing,
};
pub use blobs::{AttemptBlob, Blobs, FileBlobs, S3Blobs, S3Place};
pub use delivery::{
    ClaimedDeliveries, Delivery, DeliveryClaim, DeliveryDepth, DeliveryLane, Settled,
};
pub use delivery_turns::{DELIVERIES_AT_A_TIME, RETRIES_AT_A_TIME};
pub(crate) use key::{ACCOUNT_ID_LENGTH, WEBHOOK_SECRET_LENGTH, random};
pub use key::{Key, KeyDigest, random_text};
pub use latency::{LATENCY_BOUNDS_US, LatencyCounts, StoreLatency};
pub use limit::{Rate, SharedLimits, Taken, Taking};
pub use listing::{AuditEntry, AuditFilter, AuditPage, Batch, Place};
pub use moving::{Moved, move_to_postgres};
pub use operator::{AccountSummary, Forgotten, ForgottenAudit, QueuedAudit, Retention};
pub use pages::{PageStore, RecentAudit, Share, session_digest};
pub use postgres::{PostgresOptions, PostgresStore};
pub use progress::Progress;
pub use seat::{INTERACTIVE_IN_A_ROW, Seat, SlotBound};
pub use sqlite::SqliteStore;
pub use store::{Store, StoreError};
pub use submission::{Acceptance, FailureLimit, Replay, Submission};
pub use types::*;
