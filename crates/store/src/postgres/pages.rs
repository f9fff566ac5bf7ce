//! Sessions, shared reports and recent audits.

use async_trait::async_trait;
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::notifier::Wakeup;
use super::{PostgresStore, accounts, audits};
use crate::{
    KeyDigest, KeyRecord, PageStore, RecentAudit, Share, SharedPage, SharedReport, StoreError,
    StoredReport, Timestamp,
};

#[async_trait]
impl PageStore for PostgresStore {
    async fn open_session(
        &self,
        session: KeyDigest,
        key_id: &str,
        expires_at: Timestamp,
        limit: u32,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (key_id, others) = (key_id.to_owned(), i64::from(limit.saturating_sub(1)));
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                // Of two concurrent sign-ins, the second counts the first.
                let lock = "SELECT 1 FROM keys WHERE id = $1 FOR NO KEY UPDATE";
                row(db, lock, &[&key_id]).await?;
                change(db, "DELETE FROM sessions WHERE expires_at <= $1", &[&now.0]).await?;
                change(
                    db,
                    "DELETE FROM sessions WHERE digest IN (
                         SELECT digest FROM sessions WHERE key_id = $1
                         ORDER BY expires_at DESC, digest OFFSET $2)",
                    &[&key_id, &others],
                )
                .await?;
                change(
                    db,
                    "INSERT INTO sessions (digest, key_id, expires_at) VALUES ($1, $2, $3)",
                    &[&session.0.as_slice(), &key_id, &expires_at.0],
                )
                .await?;
                Ok(())
            })
        })
        .await
    }

    async fn session(
        &self,
        session: KeyDigest,
        now: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError> {
        self.read(move |db| {
            Box::pin(async move {
                let row = row(
                    db,
                    "SELECT key_id FROM sessions WHERE digest = $1 AND expires_at > $2",
                    &[&session.0.as_slice(), &now.0],
                )
                .await?;
                match row {
                    Some(row) => accounts::key(db, row.try_get(0)?).await,
                    None => Ok(None),
                }
            })
        })
        .await
    }

    async fn close_session(&self, session: KeyDigest) -> Result<(), StoreError> {
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                change(
                    db,
                    "DELETE FROM sessions WHERE digest = $1",
                    &[&session.0.as_slice()],
                )
                .await?;
                Ok(())
            })
        })
        .await
    }

    async fn close_sessions(&self, key_id: Option<&str>) -> Result<u64, StoreError> {
        let key_id = key_id.map(str::to_owned);
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                change(
                    db,
                    "DELETE FROM sessions WHERE $1::text IS NULL OR key_id = $1",
                    &[&key_id],
                )
                .await
            })
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
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                // Locked, so that of two concurrent calls the second sees the result of the first.
                let audit = row(
                    db,
                    "SELECT audits.position FROM audits
                     JOIN reports ON reports.position = audits.position
                     WHERE audits.audit_id = $1 AND audits.account_id = $2 FOR UPDATE OF audits",
                    &[&audit_id, &account_id],
                )
                .await?;
                let Some(audit) = audit else {
                    return Err(StoreError::NotFound("report"));
                };
                let position: i64 = audit.try_get(0)?;
                change(db, "DELETE FROM shares WHERE position = $1", &[&position]).await?;
                if let Some(share) = &share {
                    let expires_at = share.expires_at.map(|at| at.0);
                    change(
                        db,
                        "INSERT INTO shares (position, token, shared_at, expires_at)
                         VALUES ($1, $2, $3, $4)",
                        &[&position, &share.token, &now.0, &expires_at],
                    )
                    .await?;
                }
                Ok(())
            })
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
        self.read(move |db| {
            Box::pin(async move {
                let row = row(
                    db,
                    "SELECT shares.token, shares.expires_at FROM audits
                     JOIN shares ON shares.position = audits.position
                     WHERE audits.audit_id = $1 AND audits.account_id = $2
                           AND (shares.expires_at IS NULL OR shares.expires_at > $3)",
                    &[&audit_id, &account_id, &now.0],
                )
                .await?;
                let share = |row: Row| {
                    Ok(Share {
                        token: row.try_get(0)?,
                        expires_at: row.try_get::<_, Option<i64>>(1)?.map(Timestamp),
                    })
                };
                row.map(share).transpose()
            })
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
        self.read(move |db| {
            Box::pin(async move {
                let rows = rows(
                    db,
                    "SELECT audits.audit_id, audits.url, shares.token, shares.expires_at,
                            shares.shared_at
                     FROM shares JOIN audits ON audits.position = shares.position
                     WHERE audits.account_id = $1
                           AND (shares.expires_at IS NULL OR shares.expires_at > $2)
                     ORDER BY shares.shared_at DESC, shares.position DESC LIMIT $3",
                    &[&account_id, &now.0, &i64::from(limit)],
                )
                .await?;
                let share = |row: &Row| {
                    Ok(SharedReport {
                        audit_id: row.try_get(0)?,
                        url: row.try_get(1)?,
                        share: Share {
                            token: row.try_get(2)?,
                            expires_at: row.try_get::<_, Option<i64>>(3)?.map(Timestamp),
                        },
                        shared_at: Timestamp(row.try_get(4)?),
                    })
                };
                rows.iter().map(share).collect()
            })
        })
        .await
    }

    async fn shared_report(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<StoredReport>, StoreError> {
        let token = token.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let row = row(
                    db,
                    "SELECT audits.audit_id, audits.tracking_id, audits.url, audits.device,
                            audits.network, audits.location, audits.options, audits.finished_at,
                            audits.error_code, audits.error_message, reports.report,
                            audits.attempt, audits.account_id
                     FROM shares JOIN audits ON audits.position = shares.position
                     JOIN reports ON reports.position = shares.position
                     WHERE shares.token = $1
                           AND (shares.expires_at IS NULL OR shares.expires_at > $2)",
                    &[&token, &now.0],
                )
                .await?;
                row.as_ref().map(audits::stored_report).transpose()
            })
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
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let Some(share) = &share else {
                    change(
                        db,
                        "DELETE FROM page_shares
                         WHERE account_id = $1 AND md5(page) = md5($2::text)",
                        &[&account_id, &page],
                    )
                    .await?;
                    return Ok(());
                };
                let expires_at = share.expires_at.map(|at| at.0);
                // Of two concurrent calls, the second replaces the link of the first.
                change(
                    db,
                    "INSERT INTO page_shares (token, account_id, page, shared_at, expires_at)
                     VALUES ($1, $2, $3, $4, $5)
                     ON CONFLICT (account_id, md5(page)) DO UPDATE
                     SET token = excluded.token, shared_at = excluded.shared_at,
                         expires_at = excluded.expires_at",
                    &[&share.token, &account_id, &page, &now.0, &expires_at],
                )
                .await?;
                Ok(())
            })
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
        self.read(move |db| {
            Box::pin(async move {
                let row = row(
                    db,
                    "SELECT token, expires_at FROM page_shares
                     WHERE account_id = $1 AND md5(page) = md5($2::text)
                           AND (expires_at IS NULL OR expires_at > $3)",
                    &[&account_id, &page, &now.0],
                )
                .await?;
                let share = |row: Row| {
                    Ok(Share {
                        token: row.try_get(0)?,
                        expires_at: row.try_get::<_, Option<i64>>(1)?.map(Timestamp),
                    })
                };
                row.map(share).transpose()
            })
        })
        .await
    }

    async fn shared_page(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<SharedPage>, StoreError> {
        let token = token.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let row = row(
                    db,
                    "SELECT account_id, page FROM page_shares
                     WHERE token = $1 AND (expires_at IS NULL OR expires_at > $2)",
                    &[&token, &now.0],
                )
                .await?;
                let page = |row: Row| {
                    Ok(SharedPage {
                        account_id: row.try_get(0)?,
                        page: row.try_get(1)?,
                    })
                };
                row.map(page).transpose()
            })
        })
        .await
    }

    async fn recent(
        &self,
        account_id: &str,
        url: Option<&str>,
        limit: u32,
    ) -> Result<Vec<RecentAudit>, StoreError> {
        const COLUMNS: &str =
            "SELECT audits.tracking_id, audits.audit_id, audits.state = 'completed', audits.url,
                    coalesce(audits.finished_at, audits.accepted_at), audits.summary,
                    audits.error_code, audits.error_message, audits.labels
             FROM audits
             WHERE audits.account_id = $1";
        const ORDER: &str = "ORDER BY audits.accepted_at DESC, audits.number DESC LIMIT $2";
        let (account_id, url) = (account_id.to_owned(), url.map(str::to_owned));
        self.read(move |db| {
            Box::pin(async move {
                let limit = i64::from(limit);
                let found = match &url {
                    None => rows(db, &format!("{COLUMNS} {ORDER}"), &[&account_id, &limit]).await,
                    Some(url) => {
                        let sql = format!(
                            "{COLUMNS} AND md5(audits.url) = md5($3::text) AND audits.url = $3
                             AND options::jsonb #>> '{{replay,recording}}' IS NULL {ORDER}"
                        );
                        rows(db, &sql, &[&account_id, &limit, url]).await
                    }
                };
                found?.iter().map(recent).collect()
            })
        })
        .await
    }

    async fn summaries(
        &self,
        account_id: &str,
        audit_ids: Vec<String>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let account_id = account_id.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let found = rows(
                    db,
                    "SELECT audit_id, summary FROM audits
                     WHERE audit_id = ANY($1) AND account_id = $2 AND state = 'completed'
                           AND summary IS NOT NULL",
                    &[&audit_ids, &account_id],
                )
                .await?;
                found
                    .iter()
                    .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
                    .collect()
            })
        })
        .await
    }
}

fn recent(row: &Row) -> Result<RecentAudit, StoreError> {
    let is_completed: bool = row.try_get(2)?;
    let audit_id: String = row.try_get(1)?;
    Ok(RecentAudit {
        tracking_id: row.try_get(0)?,
        audit_id: is_completed.then_some(audit_id),
        url: row.try_get(3)?,
        at: Timestamp(row.try_get(4)?),
        summary: row.try_get(5)?,
        error: audits::error(row, 6)?,
        labels: audits::labels(row, 8)?,
    })
}
