//! Sessions, shared reports and recent audits.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::writer::Wakeup;
use super::{SqliteStore, accounts, audits};
use crate::{
    KeyDigest, KeyRecord, PageStore, RecentAudit, Share, SharedPage, SharedReport, StoreError,
    StoredReport, Timestamp,
};

#[async_trait]
impl PageStore for SqliteStore {
    async fn open_session(
        &self,
        session: KeyDigest,
        key_id: &str,
        expires_at: Timestamp,
        limit: u32,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let key_id = key_id.to_owned();
        self.writer
            .write(Wakeup::None, move |connection| {
                connection
                    .prepare_cached("DELETE FROM sessions WHERE expires_at <= ?")?
                    .execute([now.0])?;
                connection
                    .prepare_cached(
                        "DELETE FROM sessions WHERE digest IN (
                             SELECT digest FROM sessions WHERE key_id = ?
                             ORDER BY expires_at DESC, digest LIMIT -1 OFFSET ?)",
                    )?
                    .execute(params![key_id, limit.saturating_sub(1)])?;
                connection
                    .prepare_cached(
                        "INSERT INTO sessions (digest, key_id, expires_at) VALUES (?, ?, ?)",
                    )?
                    .execute(params![session.0, key_id, expires_at.0])?;
                Ok(())
            })
            .await
    }

    async fn session(
        &self,
        session: KeyDigest,
        now: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError> {
        self.readers
            .quick(move |connection| {
                let key_id: Option<String> = connection
                    .prepare_cached(
                        "SELECT key_id FROM sessions WHERE digest = ? AND expires_at > ?",
                    )?
                    .query_row(params![session.0, now.0], |row| row.get(0))
                    .optional()?;
                match key_id {
                    Some(key_id) => accounts::key(connection, &key_id),
                    None => Ok(None),
                }
            })
            .await
    }

    async fn close_session(&self, session: KeyDigest) -> Result<(), StoreError> {
        self.writer
            .write(Wakeup::None, move |connection| {
                connection
                    .prepare_cached("DELETE FROM sessions WHERE digest = ?")?
                    .execute([session.0])?;
                Ok(())
            })
            .await
    }

    async fn close_sessions(&self, key_id: Option<&str>) -> Result<u64, StoreError> {
        let key_id = key_id.map(str::to_owned);
        self.writer
            .write(Wakeup::None, move |connection| {
                let closed = connection
                    .prepare_cached("DELETE FROM sessions WHERE ?1 IS NULL OR key_id = ?1")?
                    .execute([key_id])?;
                Ok(closed as u64)
            })
            .await
    }

    async fn share(
        &self,
        account_id: &str,
        audit_id: &str,
        share: Option<Share>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.writer
            .write(Wakeup::None, move |connection| {
                let position = position_with_report(connection, &account_id, &audit_id)?
                    .ok_or(StoreError::NotFound("report"))?;
                connection
                    .prepare_cached("DELETE FROM shares WHERE position = ?")?
                    .execute([position])?;
                if let Some(share) = share {
                    let expires_at = share.expires_at.map(|at| at.0);
                    connection
                        .prepare_cached(
                            "INSERT INTO shares (position, token, shared_at, expires_at)
                             VALUES (?, ?, ?, ?)",
                        )?
                        .execute(params![position, share.token, now.0, expires_at])?;
                }
                Ok(())
            })
            .await
    }

    async fn shared(
        &self,
        account_id: &str,
        audit_id: &str,
        now: Timestamp,
    ) -> Result<Option<Share>, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT shares.token, shares.expires_at FROM audits
                         JOIN shares ON shares.position = audits.position
                         WHERE audits.audit_id = ? AND audits.account_id = ?
                               AND (shares.expires_at IS NULL OR shares.expires_at > ?)",
                    )?
                    .query_row(params![audit_id, account_id, now.0], |row| {
                        Ok(Share {
                            token: row.get(0)?,
                            expires_at: row.get::<_, Option<i64>>(1)?.map(Timestamp),
                        })
                    })
                    .optional()
            })
            .await
    }

    async fn shares(
        &self,
        account_id: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<SharedReport>, StoreError> {
        let account_id = account_id.to_owned();
        self.readers
            .blocking(move |connection| {
                // A cross join reads the shares first; an account may have many more audits.
                let shares = connection
                    .prepare_cached(
                        "SELECT audits.audit_id, audits.url, shares.token, shares.expires_at,
                                shares.shared_at
                         FROM shares CROSS JOIN audits ON audits.position = shares.position
                         WHERE audits.account_id = ?
                               AND (shares.expires_at IS NULL OR shares.expires_at > ?)
                         ORDER BY shares.shared_at DESC, shares.position DESC LIMIT ?",
                    )?
                    .query_map(params![account_id, now.0, limit], |row| {
                        Ok(SharedReport {
                            audit_id: row.get(0)?,
                            url: row.get(1)?,
                            share: Share {
                                token: row.get(2)?,
                                expires_at: row.get::<_, Option<i64>>(3)?.map(Timestamp),
                            },
                            shared_at: Timestamp(row.get(4)?),
                        })
                    })?
                    .collect::<Result<_, _>>()?;
                Ok(shares)
            })
            .await
    }

    async fn shared_report(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<StoredReport>, StoreError> {
        let token = token.to_owned();
        self.readers
            .blocking(move |connection| {
                let shared: Option<(String, String)> = connection
                    .prepare_cached(
                        "SELECT audits.account_id, audits.audit_id FROM shares
                         JOIN audits ON audits.position = shares.position
                         WHERE shares.token = ?
                               AND (shares.expires_at IS NULL OR shares.expires_at > ?)",
                    )?
                    .query_row(params![token, now.0], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                match shared {
                    Some((account_id, audit_id)) => {
                        audits::report(connection, &account_id, &audit_id)
                    }
                    None => Ok(None),
                }
            })
            .await
    }

    async fn share_page(
        &self,
        account_id: &str,
        page: &str,
        share: Option<Share>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (account_id, page) = (account_id.to_owned(), page.to_owned());
        self.writer
            .write(Wakeup::None, move |connection| {
                connection
                    .prepare_cached("DELETE FROM page_shares WHERE account_id = ? AND page = ?")?
                    .execute(params![account_id, page])?;
                if let Some(share) = share {
                    let expires_at = share.expires_at.map(|at| at.0);
                    connection
                        .prepare_cached(
                            "INSERT INTO page_shares (token, account_id, page, shared_at, expires_at)
                             VALUES (?, ?, ?, ?, ?)",
                        )?
                        .execute(params![share.token, account_id, page, now.0, expires_at])?;
                }
                Ok(())
            })
            .await
    }

    async fn page_share(
        &self,
        account_id: &str,
        page: &str,
        now: Timestamp,
    ) -> Result<Option<Share>, StoreError> {
        let (account_id, page) = (account_id.to_owned(), page.to_owned());
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT token, expires_at FROM page_shares
                         WHERE account_id = ? AND page = ?
                               AND (expires_at IS NULL OR expires_at > ?)",
                    )?
                    .query_row(params![account_id, page, now.0], |row| {
                        Ok(Share {
                            token: row.get(0)?,
                            expires_at: row.get::<_, Option<i64>>(1)?.map(Timestamp),
                        })
                    })
                    .optional()
            })
            .await
    }

    async fn shared_page(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<SharedPage>, StoreError> {
        let token = token.to_owned();
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT account_id, page FROM page_shares
                         WHERE token = ? AND (expires_at IS NULL OR expires_at > ?)",
                    )?
                    .query_row(params![token, now.0], |row| {
                        Ok(SharedPage {
                            account_id: row.get(0)?,
                            page: row.get(1)?,
                        })
                    })
                    .optional()
            })
            .await
    }

    async fn recent(
        &self,
        account_id: &str,
        url: Option<&str>,
        limit: u32,
    ) -> Result<Vec<RecentAudit>, StoreError> {
        let (account_id, url) = (account_id.to_owned(), url.map(str::to_owned));
        self.readers
            .blocking(move |connection| recent(connection, &account_id, url.as_deref(), limit))
            .await
    }

    async fn summaries(
        &self,
        account_id: &str,
        audit_ids: Vec<String>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let account_id = account_id.to_owned();
        self.readers
            .blocking(move |connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT summary FROM audits
                     WHERE audit_id = ? AND account_id = ? AND state = 'completed'",
                )?;
                let mut summaries = Vec::new();
                for audit_id in audit_ids {
                    let summary: Option<Option<String>> = statement
                        .query_row(params![audit_id, account_id], |row| row.get(0))
                        .optional()?;
                    summaries.extend(summary.flatten().map(|summary| (audit_id, summary)));
                }
                Ok(summaries)
            })
            .await
    }
}

/// Returns the position of an audit of this account that has a report.
fn position_with_report(
    connection: &Connection,
    account_id: &str,
    audit_id: &str,
) -> Result<Option<i64>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT audits.position FROM audits JOIN reports ON reports.position = audits.position
             WHERE audits.audit_id = ? AND audits.account_id = ?",
        )?
        .query_row([audit_id, account_id], |row| row.get(0))
        .optional()
}

fn recent(
    connection: &Connection,
    account_id: &str,
    url: Option<&str>,
    limit: u32,
) -> Result<Vec<RecentAudit>, StoreError> {
    const COLUMNS: &str =
        "SELECT audits.tracking_id, audits.audit_id, audits.state = 'completed', audits.url,
                coalesce(audits.finished_at, audits.accepted_at), audits.summary,
                audits.error_code, audits.error_message, audits.labels
         FROM audits
         WHERE audits.account_id = ?";
    const ORDER: &str = "ORDER BY audits.accepted_at DESC, audits.number DESC LIMIT ?";
    let audit = |row: &Row<'_>| {
        let is_completed: bool = row.get(2)?;
        let audit_id: String = row.get(1)?;
        Ok(RecentAudit {
            tracking_id: row.get(0)?,
            audit_id: is_completed.then_some(audit_id),
            url: row.get(3)?,
            at: Timestamp(row.get(4)?),
            summary: row.get(5)?,
            error: audits::error(row, 6, 7)?,
            labels: audits::labels(row, 8)?,
        })
    };
    let rows = match url {
        None => connection
            .prepare_cached(&format!("{COLUMNS} {ORDER}"))?
            .query_map(params![account_id, limit], audit)?
            .collect::<Result<_, _>>()?,
        Some(url) => connection
            .prepare_cached(&format!(
                "{COLUMNS} AND audits.url = ?
                 AND json_extract(audits.options, '$.replay.recording') IS NULL {ORDER}"
            ))?
            .query_map(params![account_id, url, limit], audit)?
            .collect::<Result<_, _>>()?,
    };
    Ok(rows)
}
