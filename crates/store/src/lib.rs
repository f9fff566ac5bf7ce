//! Stores accounts, keys, credits, audits, leases, reports, agents and pending webhooks.
//!
//! The traits [`Store`], [`PageStore`], [`AgentStore`] and [`SecretStore`] are implemented for
//! SQLite and PostgreSQL, and both pass one conformance suite. Reports are opaque JSON text to this
//! crate.

mod agents;
mod blobs;
mod cancellation;
mod delivery;
mod delivery_turns;
mod key;
mod latency;
mod lease_scope;
mod limit;
mod listing;
mod moving;
mod operator;
mod owner;
mod pages;
mod postgres;
mod progress;
mod secrets;
mod sqlite;
mod store;
mod submission;
mod summary;
mod types;

pub use agents::{
    AgentBounds, AgentPresence, AgentRecord, AgentStore, AgentToken, AttemptState,
    PRESENCE_RETENTION_MS,
};
pub use blobs::{AttemptBlob, BlobPart, Blobs, FileBlobs, S3Blobs, S3Config};
pub use cancellation::{Cancellation, CancelledAudit};
pub use delivery::{
    ClaimedDeliveries, Delivery, DeliveryClaim, DeliveryDepth, DeliveryEvent, DeliveryLane,
    DeliveryOutcome,
};
pub use delivery_turns::{MAX_CONCURRENT_DELIVERIES, MAX_CONCURRENT_RETRIES};
pub(crate) use key::{ACCOUNT_ID_LENGTH, WEBHOOK_SECRET_LENGTH, random};
pub use key::{Key, KeyDigest, random_text};
pub use latency::{LATENCY_BOUNDS_US, LatencyCounts, StoreLatency};
pub use lease_scope::{LeaseScope, MAX_INTERACTIVE_IN_A_ROW, SlotLimit};
pub use limit::{BucketGrant, BucketRate, BucketRequest, SharedLimits};
pub use listing::{AuditEntry, AuditFilter, AuditPage, Batch, ListCursor, ReplayAudit};
pub use moving::{MoveSummary, move_to_postgres};
pub use operator::{AccountSummary, PurgeResult, PurgedAudit, QueuedAudit, Retention};
pub use owner::{AgentProcess, LeaseOwner, ProcessSet};
pub use pages::{PageStore, RecentAudit, Share, SharedPage, SharedReport, session_digest};
pub use plumbline_seam::{Cookie, LeaseState, Order, ReturnReason, VisitOptions, VisitState};
pub use postgres::{PostgresOptions, PostgresStore};
pub use progress::AuditProgress;
pub use secrets::{SavedSession, SealedSession, SecretStore, StoredSecret};
pub use sqlite::SqliteStore;
pub use store::{Store, StoreError};
pub use submission::{Acceptance, FailureLimit, IdempotencyRecord, Submission};
pub use summary::{AuditSummary, UnsummarizedAudit};
pub use types::*;
