//! Moves an installation from a SQLite file to a PostgreSQL database. It copies batches of limited
//! size, is resumable, and verifies the result at the end.

mod tables;

use std::error::Error;
use std::path::Path;

use bytes::BytesMut;
use deadpool_postgres::{GenericClient, Transaction};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::StoreError;
use crate::postgres::Connections;
use crate::{postgres, sqlite};

use tables::{TABLES, Table};

/// A summary of the moved data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveSummary {
    /// The number of rows by table.
    pub rows: Vec<(&'static str, u64)>,
    /// The sum of all balances, which is also the sum of the ledger.
    pub credits: i64,
}

/// Moves all data. `on_progress` is called after each batch with a table's name and the number of
/// its rows copied so far.
///
/// The file is locked for writing meanwhile. A database that contains anything but an unfinished
/// move from the same file is refused, and servers refuse a database with an unfinished move.
pub async fn move_to_postgres(
    from: &Path,
    to: &str,
    mut on_progress: impl FnMut(&str, u64),
) -> Result<MoveSummary, StoreError> {
    if !from.is_file() {
        let message = format!("file not found: {}", from.display());
        return Err(StoreError::Refused(message));
    }
    let source = sqlite::open_writer(from)?;
    // Held to the end, so that no other process changes the data while it is copied.
    source.execute_batch("BEGIN IMMEDIATE")?;
    let checksums = checksums(&source)?;

    let connections = Connections::without_timeouts(to)?;
    postgres::migrate(&connections).await?;
    let fingerprint = checksums.join("\n");
    if begin(&connections, &fingerprint).await? == MoveState::Finished {
        return summary(&source);
    }
    for table in TABLES {
        copy(&source, &connections, table, &mut on_progress).await?;
    }
    copy_counters(&source, &connections).await?;
    verify(&connections, &checksums).await?;
    connections
        .write(|db| {
            Box::pin(async move {
                db.execute("UPDATE move SET is_finished = true", &[])
                    .await?;
                Ok(())
            })
        })
        .await?;
    summary(&source)
}

#[derive(PartialEq, Eq)]
enum MoveState {
    Unfinished,
    Finished,
}

/// Records the start of a move, or checks the one that was started before.
async fn begin(connections: &Connections, fingerprint: &str) -> Result<MoveState, StoreError> {
    let fingerprint = fingerprint.to_owned();
    connections
        .write(move |db| {
            Box::pin(async move {
                let earlier = db
                    .query_opt("SELECT source, is_finished FROM move", &[])
                    .await?;
                let Some(earlier) = earlier else {
                    refuse_other_data(db).await?;
                    db.execute("INSERT INTO move (source) VALUES ($1)", &[&fingerprint])
                        .await?;
                    return Ok(MoveState::Unfinished);
                };
                let is_same = earlier.try_get::<_, &str>(0)? == fingerprint;
                match (earlier.try_get(1)?, is_same) {
                    (true, true) => Ok(MoveState::Finished),
                    (true, false) => Err(StoreError::Refused(
                        "another installation has already been moved into this database".to_owned(),
                    )),
                    (false, true) => Ok(MoveState::Unfinished),
                    (false, false) => {
                        restart(db, &fingerprint).await?;
                        Ok(MoveState::Unfinished)
                    }
                }
            })
        })
        .await
}

async fn refuse_other_data(db: &Transaction<'_>) -> Result<(), StoreError> {
    for table in TABLES {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", table.name);
        if db.query_one(&sql, &[]).await?.try_get(0)? {
            return Err(StoreError::Refused(format!(
                "the database already contains other data (in table {})",
                table.name
            )));
        }
    }
    Ok(())
}

/// Deletes the copied rows, because the file has changed since they were copied.
async fn restart(db: &Transaction<'_>, fingerprint: &str) -> Result<(), StoreError> {
    let names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    // Presences are not moved, but they refer to agents.
    let sql = format!("TRUNCATE {}, sightings, move_progress", names.join(", "));
    db.batch_execute(&sql).await?;
    db.execute("UPDATE move SET source = $1", &[&fingerprint])
        .await?;
    Ok(())
}

/// Copies a table. Each batch is one transaction, which also records the last copied row.
async fn copy(
    source: &Connection,
    connections: &Connections,
    table: &'static Table,
    on_progress: &mut impl FnMut(&str, u64),
) -> Result<(), StoreError> {
    let progress = connections
        .read(move |db| {
            Box::pin(async move {
                let sql = "SELECT last_rowid, copied FROM move_progress WHERE name = $1";
                Ok(db.query_opt(sql, &[&table.name]).await?)
            })
        })
        .await?;
    let (mut last, mut copied) = match progress {
        Some(row) => (row.try_get(0)?, row.try_get(1)?),
        None => (0_i64, 0_i64),
    };
    loop {
        let rows = next_rows(source, table, last)?;
        let Some(end) = rows.last().map(|row| row.rowid) else {
            return Ok(());
        };
        copied += i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let insert = connections.write(move |db| {
            Box::pin(async move {
                insert(db, table, &rows).await?;
                let sql = "INSERT INTO move_progress (name, last_rowid, copied) VALUES ($1, $2, $3)
                           ON CONFLICT (name) DO UPDATE
                           SET last_rowid = excluded.last_rowid, copied = excluded.copied";
                db.execute(sql, &[&table.name, &end, &copied]).await?;
                Ok(())
            })
        });
        insert.await.map_err(|error| {
            StoreError::Refused(format!("{} rows {last} to {end}: {error}", table.name))
        })?;
        last = end;
        on_progress(table.name, copied.unsigned_abs());
    }
}

struct CopiedRow {
    rowid: i64,
    values: Vec<SqliteValue>,
}

fn next_rows(source: &Connection, table: &Table, after: i64) -> Result<Vec<CopiedRow>, StoreError> {
    let columns = table.columns.join(", ");
    let sql = format!(
        "SELECT rowid, {columns} FROM {} WHERE rowid > ? ORDER BY rowid LIMIT {}",
        table.name, table.rows_at_once
    );
    let mut statement = source.prepare_cached(&sql)?;
    let rows = statement.query_map([after], |row| {
        let values = 1..=table.columns.len();
        Ok(CopiedRow {
            rowid: row.get(0)?,
            values: values
                .map(|column| row.get(column).map(SqliteValue))
                .collect::<Result<_, _>>()?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

async fn insert(db: &Transaction<'_>, table: &Table, rows: &[CopiedRow]) -> Result<(), StoreError> {
    let width = table.columns.len();
    let placeholders: Vec<_> = (0..rows.len())
        .map(|row| {
            let numbers = (1..=width).map(|column| format!("${}", row * width + column));
            format!("({})", numbers.collect::<Vec<_>>().join(", "))
        })
        .collect();
    let sql = format!(
        "INSERT INTO {} ({}) VALUES {}",
        table.name,
        table.columns.join(", "),
        placeholders.join(", ")
    );
    let values: Vec<_> = rows
        .iter()
        .flat_map(|row| row.values.iter())
        .map(|value| value as &(dyn ToSql + Sync))
        .collect();
    let statement = db.prepare_cached(&sql).await?;
    db.execute(&statement, &values).await?;
    Ok(())
}

/// Copies the counters, so that ids of deleted rows are not used again.
async fn copy_counters(source: &Connection, connections: &Connections) -> Result<(), StoreError> {
    let last_position: Option<i64> = source
        .query_row(
            "SELECT seq FROM sqlite_sequence WHERE name = 'audits'",
            [],
            |row| row.get(0),
        )
        .optional()?;
    let (turn, batch_turn): (i64, i64) =
        source.query_row("SELECT turn, batch_turn FROM queue_clock", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let last_position = last_position.unwrap_or(0);
    connections
        .write(move |db| {
            Box::pin(async move {
                db.execute(
                    "SELECT setval(pg_get_serial_sequence('audits', 'position'), greatest($1::bigint, 1), $1::bigint > 0)",
                    &[&last_position],
                )
                .await?;
                db.execute(
                    "SELECT setval(pg_get_serial_sequence('ledger', 'id'), coalesce(max(id), 1),
                                   max(id) IS NOT NULL)
                     FROM ledger",
                    &[],
                )
                .await?;
                db.execute(
                    "UPDATE queue_clock SET turn = $1, batch_turn = $2",
                    &[&turn, &batch_turn],
                )
                .await?;
                Ok(())
            })
        })
        .await
}

/// Compares the checksums of all tables, and each balance with its ledger.
async fn verify(connections: &Connections, expected: &[String]) -> Result<(), StoreError> {
    let (actual, unbalanced) = connections
        .read(|db| {
            Box::pin(async move {
                let mut actual = Vec::new();
                for table in TABLES {
                    let row = db.query_one(&table.checksum_sql("text"), &[]).await?;
                    actual.push(format!("{} {}", table.name, row.try_get::<_, String>(0)?));
                }
                let sql = "SELECT count(*) FROM accounts WHERE credits <> (
                               SELECT coalesce(sum(amount), 0) FROM ledger
                               WHERE ledger.account_id = accounts.id)";
                let unbalanced: i64 = db.query_one(sql, &[]).await?.try_get(0)?;
                Ok((actual, unbalanced))
            })
        })
        .await?;
    let difference = expected.iter().zip(&actual).find(|(a, b)| a != b);
    if let Some((expected, actual)) = difference {
        return Err(StoreError::Refused(format!(
            "verification failed: expected {expected}, copied {actual}"
        )));
    }
    match unbalanced {
        0 => Ok(()),
        count => Err(StoreError::Refused(format!(
            "{count} accounts have a balance that is not the sum of their ledger"
        ))),
    }
}

fn checksums(source: &Connection) -> Result<Vec<String>, StoreError> {
    TABLES
        .iter()
        .map(|table| {
            let sql = table.checksum_sql("TEXT");
            let sums: String = source.query_row(&sql, [], |row| row.get(0))?;
            Ok(format!("{} {sums}", table.name))
        })
        .collect()
}

fn summary(source: &Connection) -> Result<MoveSummary, StoreError> {
    let count = |table: &Table| {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let rows: i64 = source.query_row(&sql, [], |row| row.get(0))?;
        Ok((table.name, rows.unsigned_abs()))
    };
    Ok(MoveSummary {
        rows: TABLES
            .iter()
            .map(count)
            .collect::<Result<_, StoreError>>()?,
        credits: source.query_row(
            "SELECT coalesce(sum(credits), 0) FROM accounts",
            [],
            |row| row.get(0),
        )?,
    })
}

/// A value from SQLite, which is encoded with the type of the column in PostgreSQL.
#[derive(Debug)]
struct SqliteValue(Value);

impl ToSql for SqliteValue {
    fn to_sql(
        &self,
        column_type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) if *column_type == Type::BOOL => {
                (*number != 0).to_sql(column_type, out)
            }
            Value::Integer(number) => number.to_sql(column_type, out),
            Value::Text(text) => text.to_sql(column_type, out),
            Value::Blob(bytes) => bytes.to_sql(column_type, out),
            Value::Real(_) => Err("unexpected floating-point value".into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
