use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::{AuditOrder, KeyDigest, KeyRecord, StoreError, StoredReport, Timestamp};

/// What the pages need beyond the API: sessions, shared reports, recent audits.
///
/// The rules of [`crate::Store`] hold here too.
#[async_trait]
pub trait PageStore: Send + Sync + 'static {
    /// Remembers that whoever has this secret signed in with that key. Sessions that have ended are forgotten.
    async fn open_session(
        &self,
        session: KeyDigest,
        key_id: &str,
        expires_at: Timestamp,
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

    /// Makes a completed audit's report readable by whoever has the token, or by nobody. Another account's
    /// audit, and one without a report, is a [`StoreError::NotFound`]. A report has one token at a time.
    async fn share(
        &self,
        account_id: &str,
        audit_id: &str,
        token: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// The token of a report of this account, while it is shared.
    async fn share_token(
        &self,
        account_id: &str,
        audit_id: &str,
    ) -> Result<Option<String>, StoreError>;

    async fn shared_report(&self, token: &str) -> Result<Option<StoredReport>, StoreError>;

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

/// An audit in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentAudit {
    pub tracking_id: String,
    /// Set once it is completed.
    pub audit_id: Option<String>,
    pub url: String,
    /// When it was completed, or else accepted.
    pub at: Timestamp,
    pub report: Option<String>,
}

/// What is kept of a session's secret: it is random and long, so a fast digest is enough.
pub fn session_digest(secret: &str) -> KeyDigest {
    KeyDigest(Sha256::digest(secret.as_bytes()).into())
}
