//! The schema, which the first server that starts migrates.

use deadpool_postgres::Transaction;

use super::connect::Connections;
use crate::StoreError;

/// Migrations, each applied once in this order. A released file is never edited. Servers of the
/// previous version continue to run while a newer one starts, so a migration only adds.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_everything.sql"),
    include_str!("migrations/0002_agents.sql"),
    include_str!("migrations/0003_limits_for_many.sql"),
    include_str!("migrations/0004_bounds.sql"),
    include_str!("migrations/0005_deliveries_in_turn.sql"),
    include_str!("migrations/0006_faults_last.sql"),
    include_str!("migrations/0007_summaries.sql"),
    include_str!("migrations/0008_options.sql"),
    include_str!("migrations/0009_batch_webhooks.sql"),
    include_str!("migrations/0010_labels.sql"),
    include_str!("migrations/0011_page_shares.sql"),
    include_str!("migrations/0012_stored_secrets.sql"),
    include_str!("migrations/0013_saved_sessions.sql"),
    include_str!("migrations/0014_replays.sql"),
    include_str!("migrations/0015_refunds_without_lease.sql"),
];

/// The key of an advisory lock, which no other program on the same database should use.
const LOCK: i64 = 0x706c_756d_626c_696e;

pub(crate) async fn migrate(connections: &Connections) -> Result<(), StoreError> {
    connections
        .write(|transaction| Box::pin(apply_migrations(transaction)))
        .await
}

/// Fails if an installation is being moved into the database.
pub(super) async fn refuse_unfinished_move(connections: &Connections) -> Result<(), StoreError> {
    let is_unfinished = connections
        .read(|db| {
            Box::pin(async move {
                let sql = "SELECT EXISTS (SELECT 1 FROM move WHERE NOT is_finished)";
                Ok(db.query_one(sql, &[]).await?.try_get(0)?)
            })
        })
        .await?;
    if is_unfinished {
        return Err(StoreError::Refused(
            "an installation is being moved into this database; let `plumbline migrate-store` \
             finish first (run it again if it was stopped)"
                .to_owned(),
        ));
    }
    Ok(())
}

async fn apply_migrations(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    // Servers that start at the same time wait for the first, and then find nothing to do.
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    let encoding: String = transaction
        .query_one("SHOW server_encoding", &[])
        .await?
        .try_get(0)?;
    if encoding != "UTF8" {
        return Err(StoreError::Backend(format!(
            "the encoding of the database is {encoding}; Plumbline requires UTF8"
        )));
    }
    transaction
        .batch_execute(
            "SET LOCAL client_min_messages = warning;
             CREATE TABLE IF NOT EXISTS plumbline_schema (version BIGINT NOT NULL);
             INSERT INTO plumbline_schema SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM plumbline_schema)",
        )
        .await?;
    let found: i64 = transaction
        .query_one("SELECT version FROM plumbline_schema", &[])
        .await?
        .try_get(0)?;
    let supported = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let applied = usize::try_from(found)
        .ok()
        .filter(|applied| *applied <= MIGRATIONS.len())
        .ok_or(StoreError::NewerSchema { found, supported })?;
    for sql in &MIGRATIONS[applied..] {
        transaction.batch_execute(sql).await?;
    }
    if found < supported {
        transaction
            .execute("UPDATE plumbline_schema SET version = $1", &[&supported])
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks all migrations but the first, which runs on an empty database.
    #[test]
    fn a_migration_removes_nothing_that_the_previous_version_uses() {
        for sql in &MIGRATIONS[1..] {
            let lines: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
            // A cascade deletes only rows of the table that the migration creates.
            let sql = lines.join("\n").to_uppercase();
            let sql = sql.replace("ON DELETE CASCADE", "");
            for statement in sql.split(';') {
                for keyword in ["DROP ", "RENAME ", " TYPE ", "TRUNCATE ", "DELETE "] {
                    assert!(!statement.contains(keyword), "{statement}");
                }
                let adds_to_rows =
                    statement.contains("ADD COLUMN") && statement.contains("NOT NULL");
                assert!(
                    !adds_to_rows || statement.contains("DEFAULT"),
                    "{statement}"
                );
            }
        }
    }
}
