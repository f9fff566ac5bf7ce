//! Secrets that clients have stored, and sessions that audits sign in with.

use async_trait::async_trait;
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::notifier::Wakeup;
use super::{PostgresStore, count};
use crate::{SavedSession, SealedSession, SecretStore, StoreError, StoredSecret, Timestamp};

#[async_trait]
impl SecretStore for PostgresStore {
    async fn put_secret(
        &self,
        account_id: &str,
        name: &str,
        sealed: &[u8],
        max_secrets: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        let sealed = sealed.to_owned();
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                // Locked, so that of two concurrent calls the second counts the first.
                let lock = "SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
                if row(db, lock, &[&account_id]).await?.is_none() {
                    return Err(StoreError::NotFound("account"));
                }
                let others = rows(
                    db,
                    "SELECT count(*) FROM stored_secrets WHERE account_id = $1 AND name <> $2",
                    &[&account_id, &name],
                )
                .await?;
                let others = others.first().map_or(Ok(0), |row| count(row, 0))?;
                if others >= u64::from(max_secrets) {
                    return Ok(false);
                }
                change(
                    db,
                    "INSERT INTO stored_secrets (account_id, name, sealed, created_at, updated_at)
                     VALUES ($1, $2, $3, $4, $4)
                     ON CONFLICT (account_id, name)
                     DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at",
                    &[&account_id, &name, &sealed, &now.0],
                )
                .await?;
                Ok(true)
            })
        })
        .await
    }

    async fn secrets(&self, account_id: &str) -> Result<Vec<StoredSecret>, StoreError> {
        let account_id = account_id.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let rows = rows(
                    db,
                    "SELECT name, created_at, updated_at FROM stored_secrets
                     WHERE account_id = $1 ORDER BY name",
                    &[&account_id],
                )
                .await?;
                let secret = |row: &Row| {
                    Ok(StoredSecret {
                        name: row.try_get(0)?,
                        created_at: Timestamp(row.try_get(1)?),
                        updated_at: Timestamp(row.try_get(2)?),
                    })
                };
                rows.iter().map(secret).collect()
            })
        })
        .await
    }

    async fn sealed_secret(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.read(move |db| {
            Box::pin(async move {
                let row = row(
                    db,
                    "SELECT sealed FROM stored_secrets WHERE account_id = $1 AND name = $2",
                    &[&account_id, &name],
                )
                .await?;
                Ok(row.map(|row| row.try_get(0)).transpose()?)
            })
        })
        .await
    }

    async fn delete_secret(&self, account_id: &str, name: &str) -> Result<bool, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let sql = "DELETE FROM stored_secrets WHERE account_id = $1 AND name = $2";
                Ok(change(db, sql, &[&account_id, &name]).await? > 0)
            })
        })
        .await
    }

    async fn put_saved_session(
        &self,
        account_id: &str,
        name: &str,
        definition: &[u8],
        max_sessions: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        let definition = definition.to_owned();
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                // Locked, so that of two concurrent calls the second counts the first.
                let lock = "SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
                if row(db, lock, &[&account_id]).await?.is_none() {
                    return Err(StoreError::NotFound("account"));
                }
                let others = rows(
                    db,
                    "SELECT count(*) FROM saved_sessions WHERE account_id = $1 AND name <> $2",
                    &[&account_id, &name],
                )
                .await?;
                let others = others.first().map_or(Ok(0), |row| count(row, 0))?;
                if others >= u64::from(max_sessions) {
                    return Ok(false);
                }
                change(
                    db,
                    "INSERT INTO saved_sessions
                         (account_id, name, version, definition, created_at, updated_at)
                     VALUES ($1, $2, $4, $3, $4, $4)
                     ON CONFLICT (account_id, name)
                     DO UPDATE SET definition = excluded.definition,
                                   version = greatest(excluded.version, saved_sessions.version + 1),
                                   updated_at = excluded.updated_at, state = NULL, made_at = NULL",
                    &[&account_id, &name, &definition, &now.0],
                )
                .await?;
                Ok(true)
            })
        })
        .await
    }

    async fn saved_sessions(&self, account_id: &str) -> Result<Vec<SavedSession>, StoreError> {
        let account_id = account_id.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let rows = rows(
                    db,
                    "SELECT name, created_at, updated_at, made_at FROM saved_sessions
                     WHERE account_id = $1 ORDER BY name",
                    &[&account_id],
                )
                .await?;
                let session = |row: &Row| {
                    Ok(SavedSession {
                        name: row.try_get(0)?,
                        created_at: Timestamp(row.try_get(1)?),
                        updated_at: Timestamp(row.try_get(2)?),
                        made_at: row.try_get::<_, Option<i64>>(3)?.map(Timestamp),
                    })
                };
                rows.iter().map(session).collect()
            })
        })
        .await
    }

    async fn saved_session(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<Option<SealedSession>, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.read(move |db| {
            Box::pin(async move {
                let row = row(
                    db,
                    "SELECT version, definition, state FROM saved_sessions
                     WHERE account_id = $1 AND name = $2",
                    &[&account_id, &name],
                )
                .await?;
                let session = |row: Row| {
                    Ok(SealedSession {
                        version: row.try_get(0)?,
                        definition: row.try_get(1)?,
                        state: row.try_get(2)?,
                    })
                };
                row.map(session).transpose()
            })
        })
        .await
    }

    async fn put_session_state(
        &self,
        account_id: &str,
        name: &str,
        version: i64,
        state: &[u8],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        let state = state.to_owned();
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let stored = change(
                    db,
                    "UPDATE saved_sessions SET state = $1, made_at = $2
                     WHERE account_id = $3 AND name = $4 AND version = $5",
                    &[&state, &now.0, &account_id, &name, &version],
                )
                .await?;
                Ok(stored > 0)
            })
        })
        .await
    }

    async fn delete_saved_session(&self, account_id: &str, name: &str) -> Result<bool, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.write(Wakeup::None, move |db| {
            Box::pin(async move {
                let sql = "DELETE FROM saved_sessions WHERE account_id = $1 AND name = $2";
                Ok(change(db, sql, &[&account_id, &name]).await? > 0)
            })
        })
        .await
    }

    async fn account_of_audit(&self, tracking_id: &str) -> Result<Option<String>, StoreError> {
        let tracking_id = tracking_id.to_owned();
        self.read(move |db| {
            Box::pin(async move {
                let sql = "SELECT account_id FROM audits WHERE tracking_id = $1";
                let row = row(db, sql, &[&tracking_id]).await?;
                Ok(row.map(|row| row.try_get(0)).transpose()?)
            })
        })
        .await
    }
}
