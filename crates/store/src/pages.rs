use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::{AuditOrder, KeyDigest, KeyRecord, StoreError, StoredReport, Timestamp};

/// What the pages need beyond the API: sessions, shared reports, recent audits.
///
/// The rules of [`crate::Store`] hold here too.
#[async_trait]
pub trait PageStore: Send + Sync + 'static {
    /// Remembers that whoever has this secret signed in with that key. Sessions that are over are
    /// removed, and of the key's sessions all but the newest `at_most`, this one included.
    async fn open_session(
        &self,
        session: KeyDigest,
        key_id: &str,
        expires_at: Timestamp,
        at_most: u32,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// The key that a session was opened with, until it ends (`expires_at <= now`). Whether the key is still
    /// usable is for the caller to ask.
    async fn session(
        &self,
        session: KeyDigest,
        now: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError>;

    /// Idempotent.
    async fn close_session(&self, session: KeyDigest) -> Result<(), StoreError>;

    /// Ends all sessions of a key, or of all keys. Returns how many there were.
    async fn close_sessions(&self, key_id: Option<&str>) -> Result<u64, StoreError>;

    /// Makes a completed audit's report readable by whoever has the token, or by nobody. Another account's
    /// audit, and one without a report, is a [`StoreError::NotFound`]. A report has one token at a time.
    async fn share(
        &self,
        account_id: &str,
        audit_id: &str,
        share: Option<Share>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// How a report of this account is shared, while it is.
    async fn shared(
        &self,
        account_id: &str,
        audit_id: &str,
        now: Timestamp,
    ) -> Result<Option<Share>, StoreError>;

    /// The report that a token opens, until the token is over (`expires_at <= now`).
    async fn shared_report(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<StoredReport>, StoreError>;

    /// The account's newest audits, of one address where one is named.
    async fn recent(
        &self,
        account_id: &str,
        url: Option<&str>,
        at_most: u32,
    ) -> Result<Vec<RecentAudit>, StoreError>;

    /// What was ordered, by tracking id; another account's audit is not found.
    async fn order(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditOrder>, StoreError>;
}

/// A link by which whoever has it reads one report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The secret part of the link.
    pub token: String,
    /// When the link ends by itself; `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// An audit in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentAudit {
    pub tracking_id: String,
    /// Set once it is completed.
    pub audit_id: Option<String>,
    pub url: String,
    /// When it was completed, or else accepted.
    pub at: Timestamp,
    /// See [`crate::AuditSummary::summary`]; `None` before the audit is completed and summarized.
    pub summary: Option<String>,
}

/// What is kept of a session's secret: it is random and long, so a fast digest is enough.
pub fn session_digest(secret: &str) -> KeyDigest {
    KeyDigest(Sha256::digest(secret.as_bytes()).into())
}
