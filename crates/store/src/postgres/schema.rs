//! The schema, brought up to date by whichever server comes first.

use deadpool_postgres::Transaction;

use super::connect::Connections;
use crate::StoreError;

/// Applied in this order, each once; a file that has been released is never edited. Servers of the version before go on
/// while a newer one starts: a migration adds, and takes nothing away that they use.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_everything.sql"),
    include_str!("migrations/0002_agents.sql"),
    include_str!("migrations/0003_limits_for_many.sql"),
    include_str!("migrations/0004_bounds.sql"),
    include_str!("migrations/0005_deliveries_in_turn.sql"),
    include_str!("migrations/0006_faults_last.sql"),
    include_str!("migrations/0007_summaries.sql"),
];

/// Any number that no other program on the same database takes its advisory lock with.
const LOCK: i64 = 0x706c_756d_626c_696e;

pub(crate) async fn bring_up_to_date(connections: &Connections) -> Result<(), StoreError> {
    connections
        .write(|transaction| Box::pin(up_to_date(transaction)))
        .await
}

/// What is half there is nothing to serve from.
pub(super) async fn refuse_half_moved(connections: &Connections) -> Result<(), StoreError> {
    let is_unfinished = connections
        .read(|db| {
            Box::pin(async move {
                let sql = "SELECT EXISTS (SELECT 1 FROM move WHERE NOT is_finished)";
                Ok(db.query_one(sql, &[]).await?.try_get(0)?)
            })
        })
        .await?;
    match is_unfinished {
        true => Err(StoreError::Refused(
            "an installation is being moved into this database: let `plumbline migrate-store` finish \
             first, by running it again if it was stopped"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

async fn up_to_date(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    // Servers that start together wait for the first, then find nothing left to do.
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    let encoding: String = transaction
        .query_one("SHOW server_encoding", &[])
        .await?
        .try_get(0)?;
    if encoding != "UTF8" {
        return Err(StoreError::Backend(format!(
            "the database's encoding is {encoding}; Plumbline needs UTF8"
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
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let applied = usize::try_from(found)
        .ok()
        .filter(|applied| *applied <= MIGRATIONS.len())
        .ok_or(StoreError::NewerSchema { found, known })?;
    for sql in &MIGRATIONS[applied..] {
        transaction.batch_execute(sql).await?;
    }
    if found < known {
        transaction
            .execute("UPDATE plumbline_schema SET version = $1", &[&known])
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those after the first, which finds nothing.
    #[test]
    fn a_migration_takes_nothing_from_servers_of_the_version_before() {
        for sql in &MIGRATIONS[1..] {
            let said: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
            let said = said.join("\n").to_uppercase();
            for statement in said.split(';') {
                for taken in ["DROP ", "RENAME ", " TYPE ", "TRUNCATE ", "DELETE "] {
                    assert!(!statement.contains(taken), "{statement}");
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
