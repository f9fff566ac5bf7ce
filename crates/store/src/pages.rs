use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::{AuditError, KeyDigest, KeyRecord, StoreError, StoredReport, Timestamp};

/// Data of the web pages: sessions, shared reports and recent audits.
///
/// The rules of [`crate::Store`] apply here, too.
#[async_trait]
pub trait PageStore: Send + Sync + 'static {
    /// Opens a session of a key. Expired sessions are removed, and of the key's sessions all but
    /// the newest `limit`, including this one.
    async fn open_session(
        &self,
        session: KeyDigest,
        key_id: &str,
        expires_at: Timestamp,
        limit: u32,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns the key of a session, until the session expires (`expires_at <= now`). The caller
    /// checks whether the key is still usable.
    async fn session(
        &self,
        session: KeyDigest,
        now: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError>;

    /// Ends a session, if it exists.
    async fn close_session(&self, session: KeyDigest) -> Result<(), StoreError>;

    /// Ends all sessions of a key, or of all keys, and returns their number.
    async fn close_sessions(&self, key_id: Option<&str>) -> Result<u64, StoreError>;

    /// Shares the report of a completed audit by a token, or stops sharing it. A report has one
    /// token at a time. An audit of another account or without a report is a
    /// [`StoreError::NotFound`].
    async fn share(
        &self,
        account_id: &str,
        audit_id: &str,
        share: Option<Share>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns how a report of this account is currently shared.
    async fn shared(
        &self,
        account_id: &str,
        audit_id: &str,
        now: Timestamp,
    ) -> Result<Option<Share>, StoreError>;

    /// Returns up to `limit` reports of this account that are currently shared, the newest link
    /// first.
    async fn shares(
        &self,
        account_id: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<SharedReport>, StoreError>;

    /// Returns the report that is shared by a token, until the token expires (`expires_at <= now`).
    async fn shared_report(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<StoredReport>, StoreError>;

    /// Shares a page of this account that is not a report by a token, or stops sharing it. A page
    /// has one token at a time. `page` is a text that only the caller interprets.
    async fn share_page(
        &self,
        account_id: &str,
        page: &str,
        share: Option<Share>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns how a page of this account is currently shared.
    async fn page_share(
        &self,
        account_id: &str,
        page: &str,
        now: Timestamp,
    ) -> Result<Option<Share>, StoreError>;

    /// Returns the page that is shared by a token, until the token expires (`expires_at <= now`).
    async fn shared_page(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<SharedPage>, StoreError>;

    /// Returns the newest audits of the account, or those of one URL, without audits of recordings:
    /// these say nothing about the page at their time.
    async fn recent(
        &self,
        account_id: &str,
        url: Option<&str>,
        limit: u32,
    ) -> Result<Vec<RecentAudit>, StoreError>;

    /// Returns the summaries of audits of the account, by audit id and in any order; see
    /// [`crate::AuditSummary::summary`]. Audits without one are left out.
    async fn summaries(
        &self,
        account_id: &str,
        audit_ids: Vec<String>,
    ) -> Result<Vec<(String, String)>, StoreError>;
}

/// A link that gives access to one report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The secret part of the link.
    pub token: String,
    /// When the link expires; `None` if it does not.
    pub expires_at: Option<Timestamp>,
}

/// A shared page that is not a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPage {
    pub account_id: String,
    /// See [`PageStore::share_page`].
    pub page: String,
}

/// A report in the list of shared reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedReport {
    pub audit_id: String,
    pub url: String,
    pub share: Share,
    pub shared_at: Timestamp,
}

/// An audit in the list of recent audits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentAudit {
    pub tracking_id: String,
    /// The audit id, if the audit is completed.
    pub audit_id: Option<String>,
    pub url: String,
    /// When the audit was completed, or else accepted.
    pub at: Timestamp,
    /// See [`crate::AuditSummary::summary`]; `None` before the audit is completed and summarized.
    pub summary: Option<String>,
    /// The reason why nothing was measured.
    pub error: Option<AuditError>,
    pub labels: Vec<String>,
}

/// Returns the digest of a session's secret. The secret is random and long, so a fast digest is
/// enough.
pub fn session_digest(secret: &str) -> KeyDigest {
    KeyDigest(Sha256::digest(secret.as_bytes()).into())
}
