//! What is kept: accounts, keys, credits, audits, leases, reports.
//!
//! One trait, [`Store`], and one conformance suite that every backend passes. Reports are opaque
//! JSON text here: what is in them is the business of those who write and read them.

mod blobs;
mod key;
mod pages;
mod sqlite;
mod store;
mod types;

pub use blobs::FileBlobs;
pub use key::{Key, KeyDigest, random_text};
pub use pages::{PageStore, RecentAudit, session_digest};
pub use sqlite::SqliteStore;
pub use store::{Store, StoreError};
pub use types::*;
