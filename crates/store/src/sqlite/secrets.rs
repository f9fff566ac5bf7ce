//! Secrets that clients have stored, and sessions that audits sign in with.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::writer::Wakeup;
use crate::{SavedSession, SealedSession, SecretStore, StoreError, StoredSecret, Timestamp};

#[async_trait]
impl SecretStore for SqliteStore {
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
        self.writer
            .write(Wakeup::None, move |connection| {
                require_account(connection, &account_id)?;
                let others: u32 = connection
                    .prepare_cached(
                        "SELECT count(*) FROM stored_secrets WHERE account_id = ? AND name <> ?",
                    )?
                    .query_row(params![account_id, name], |row| row.get(0))?;
                if others >= max_secrets {
                    return Ok(false);
                }
                connection
                    .prepare_cached(
                        "INSERT INTO stored_secrets (account_id, name, sealed, created_at, updated_at)
                         VALUES (?1, ?2, ?3, ?4, ?4)
                         ON CONFLICT (account_id, name)
                         DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at",
                    )?
                    .execute(params![account_id, name, sealed, now.0])?;
                Ok(true)
            })
            .await
    }

    async fn secrets(&self, account_id: &str) -> Result<Vec<StoredSecret>, StoreError> {
        let account_id = account_id.to_owned();
        self.readers
            .blocking(move |connection| {
                let secrets = connection
                    .prepare_cached(
                        "SELECT name, created_at, updated_at FROM stored_secrets
                         WHERE account_id = ? ORDER BY name",
                    )?
                    .query_map([account_id], |row| {
                        Ok(StoredSecret {
                            name: row.get(0)?,
                            created_at: Timestamp(row.get(1)?),
                            updated_at: Timestamp(row.get(2)?),
                        })
                    })?
                    .collect::<Result<_, _>>()?;
                Ok(secrets)
            })
            .await
    }

    async fn sealed_secret(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT sealed FROM stored_secrets WHERE account_id = ? AND name = ?",
                    )?
                    .query_row(params![account_id, name], |row| row.get(0))
                    .optional()
            })
            .await
    }

    async fn delete_secret(&self, account_id: &str, name: &str) -> Result<bool, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.writer
            .write(Wakeup::None, move |connection| {
                let deleted = connection
                    .prepare_cached("DELETE FROM stored_secrets WHERE account_id = ? AND name = ?")?
                    .execute(params![account_id, name])?;
                Ok(deleted > 0)
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
        self.writer
            .write(Wakeup::None, move |connection| {
                require_account(connection, &account_id)?;
                let others: u32 = connection
                    .prepare_cached(
                        "SELECT count(*) FROM saved_sessions WHERE account_id = ? AND name <> ?",
                    )?
                    .query_row(params![account_id, name], |row| row.get(0))?;
                if others >= max_sessions {
                    return Ok(false);
                }
                connection
                    .prepare_cached(
                        "INSERT INTO saved_sessions
                             (account_id, name, version, definition, created_at, updated_at)
                         VALUES (?1, ?2, ?4, ?3, ?4, ?4)
                         ON CONFLICT (account_id, name)
                         DO UPDATE SET definition = excluded.definition,
                                       version = max(excluded.version, saved_sessions.version + 1),
                                       updated_at = excluded.updated_at, state = NULL, made_at = NULL",
                    )?
                    .execute(params![account_id, name, definition, now.0])?;
                Ok(true)
            })
            .await
    }

    async fn saved_sessions(&self, account_id: &str) -> Result<Vec<SavedSession>, StoreError> {
        let account_id = account_id.to_owned();
        self.readers
            .blocking(move |connection| {
                let sessions = connection
                    .prepare_cached(
                        "SELECT name, created_at, updated_at, made_at FROM saved_sessions
                         WHERE account_id = ? ORDER BY name",
                    )?
                    .query_map([account_id], |row| {
                        Ok(SavedSession {
                            name: row.get(0)?,
                            created_at: Timestamp(row.get(1)?),
                            updated_at: Timestamp(row.get(2)?),
                            made_at: row.get::<_, Option<i64>>(3)?.map(Timestamp),
                        })
                    })?
                    .collect::<Result<_, _>>()?;
                Ok(sessions)
            })
            .await
    }

    async fn saved_session(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<Option<SealedSession>, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT version, definition, state FROM saved_sessions
                         WHERE account_id = ? AND name = ?",
                    )?
                    .query_row(params![account_id, name], |row| {
                        Ok(SealedSession {
                            version: row.get(0)?,
                            definition: row.get(1)?,
                            state: row.get(2)?,
                        })
                    })
                    .optional()
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
        self.writer
            .write(Wakeup::None, move |connection| {
                let stored = connection
                    .prepare_cached(
                        "UPDATE saved_sessions SET state = ?, made_at = ?
                         WHERE account_id = ? AND name = ? AND version = ?",
                    )?
                    .execute(params![state, now.0, account_id, name, version])?;
                Ok(stored > 0)
            })
            .await
    }

    async fn delete_saved_session(&self, account_id: &str, name: &str) -> Result<bool, StoreError> {
        let (account_id, name) = (account_id.to_owned(), name.to_owned());
        self.writer
            .write(Wakeup::None, move |connection| {
                let deleted = connection
                    .prepare_cached("DELETE FROM saved_sessions WHERE account_id = ? AND name = ?")?
                    .execute(params![account_id, name])?;
                Ok(deleted > 0)
            })
            .await
    }

    async fn account_of_audit(&self, tracking_id: &str) -> Result<Option<String>, StoreError> {
        let tracking_id = tracking_id.to_owned();
        self.readers
            .quick(move |connection| {
                connection
                    .prepare_cached("SELECT account_id FROM audits WHERE tracking_id = ?")?
                    .query_row([&tracking_id], |row| row.get(0))
                    .optional()
            })
            .await
    }
}

fn require_account(connection: &Connection, account_id: &str) -> Result<(), StoreError> {
    connection
        .prepare_cached("SELECT 1 FROM accounts WHERE id = ?")?
        .query_row([account_id], |_| Ok(()))
        .optional()?
        .ok_or(StoreError::NotFound("account"))
}
