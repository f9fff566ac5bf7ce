//! An installation moved from a SQLite file to a PostgreSQL database: in bounded batches, so that a run that was
//! killed can be repeated and goes on where it stopped, and with a proof at the end.

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

/// What was moved, as both places have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveSummary {
    /// By table.
    pub rows: Vec<(&'static str, u64)>,
    /// All accounts' balances together, which is also the sum of the ledger.
    pub credits: i64,
}

/// Moves everything. `told` hears a table's name and how many of its rows are there after each batch.
///
/// The file cannot be written to meanwhile. A database that holds anything but an unfinished move from the
/// same file is refused; servers refuse one with an unfinished move.
pub async fn move_to_postgres(
    from: &Path,
    to: &str,
    mut told: impl FnMut(&str, u64),
) -> Result<MoveSummary, StoreError> {
    if !from.is_file() {
        let missing = format!("there is no file {}", from.display());
        return Err(StoreError::Refused(missing));
    }
    let source = sqlite::open_writer(from)?;
    // Held to the end: nobody changes what is being copied.
    source.execute_batch("BEGIN IMMEDIATE")?;
    let fingerprint = sums_of_all(&source)?;

    let connections = Connections::patient(to)?;
    postgres::bring_up_to_date(&connections).await?;
    let mark = fingerprint.join("\n");
    if begin(&connections, &mark).await? == Begun::Finished {
        return moved(&source);
    }
    for table in TABLES {
        copy(&source, &connections, table, &mut told).await?;
    }
    bring_counters(&source, &connections).await?;
    prove(&connections, &fingerprint).await?;
    connections
        .write(|db| {
            Box::pin(async move {
                db.execute("UPDATE move SET is_finished = true", &[])
                    .await?;
                Ok(())
            })
        })
        .await?;
    moved(&source)
}

#[derive(PartialEq, Eq)]
enum Begun {
    ToBeCopied,
    Finished,
}

/// Notes from where the move is; or finds that it was begun, and from the same.
async fn begin(connections: &Connections, mark: &str) -> Result<Begun, StoreError> {
    let mark = mark.to_owned();
    connections
        .write(move |db| {
            Box::pin(async move {
                let begun = db.query_opt("SELECT source, is_finished FROM move", &[]);
                let Some(begun) = begun.await? else {
                    refuse_other_data(db).await?;
                    db.execute("INSERT INTO move (source) VALUES ($1)", &[&mark])
                        .await?;
                    return Ok(Begun::ToBeCopied);
                };
                let is_same = begun.try_get::<_, &str>(0)? == mark;
                match (begun.try_get(1)?, is_same) {
                    (true, true) => Ok(Begun::Finished),
                    (true, false) => Err(StoreError::Refused(
                        "another installation was moved into this database before".to_owned(),
                    )),
                    (false, true) => Ok(Begun::ToBeCopied),
                    (false, false) => {
                        start_anew(db, &mark).await?;
                        Ok(Begun::ToBeCopied)
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
                "the database holds other data already (in {})",
                table.name
            )));
        }
    }
    Ok(())
}

/// What was copied so far is of a state that the file has left.
async fn start_anew(db: &Transaction<'_>, mark: &str) -> Result<(), StoreError> {
    let names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    // Who was seen is not moved, but refers to what is.
    let sql = format!("TRUNCATE {}, sightings, move_progress", names.join(", "));
    db.batch_execute(&sql).await?;
    db.execute("UPDATE move SET source = $1", &[&mark]).await?;
    Ok(())
}

/// Each batch in a transaction with the note of how far it reaches.
async fn copy(
    source: &Connection,
    connections: &Connections,
    table: &'static Table,
    told: &mut impl FnMut(&str, u64),
) -> Result<(), StoreError> {
    let done = connections
        .read(move |db| {
            Box::pin(async move {
                let sql = "SELECT last_rowid, copied FROM move_progress WHERE name = $1";
                Ok(db.query_opt(sql, &[&table.name]).await?)
            })
        })
        .await?;
    let (mut last, mut copied) = match done {
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
                put(db, table, &rows).await?;
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
        told(table.name, copied.unsigned_abs());
    }
}

struct CopiedRow {
    rowid: i64,
    values: Vec<Copied>,
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
                .map(|column| row.get(column).map(Copied))
                .collect::<Result<_, _>>()?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

async fn put(db: &Transaction<'_>, table: &Table, rows: &[CopiedRow]) -> Result<(), StoreError> {
    let width = table.columns.len();
    let places: Vec<_> = (0..rows.len())
        .map(|row| {
            let numbers = (1..=width).map(|column| format!("${}", row * width + column));
            format!("({})", numbers.collect::<Vec<_>>().join(", "))
        })
        .collect();
    let sql = format!(
        "INSERT INTO {} ({}) VALUES {}",
        table.name,
        table.columns.join(", "),
        places.join(", ")
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

/// Numbers that were given to rows that are gone are not given again.
async fn bring_counters(source: &Connection, connections: &Connections) -> Result<(), StoreError> {
    let given: Option<i64> = source
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
    let given = given.unwrap_or(0);
    connections
        .write(move |db| {
            Box::pin(async move {
                db.execute(
                    "SELECT setval(pg_get_serial_sequence('audits', 'position'), greatest($1::bigint, 1), $1::bigint > 0)",
                    &[&given],
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

async fn prove(connections: &Connections, expected: &[String]) -> Result<(), StoreError> {
    let found = connections
        .read(|db| {
            Box::pin(async move {
                let mut found = Vec::new();
                for table in TABLES {
                    let row = db.query_one(&table.asking("text"), &[]).await?;
                    found.push(format!("{} {}", table.name, row.try_get::<_, String>(0)?));
                }
                let sql = "SELECT count(*) FROM accounts WHERE credits <> (
                               SELECT coalesce(sum(amount), 0) FROM ledger
                               WHERE ledger.account_id = accounts.id)";
                let unbalanced: i64 = db.query_one(sql, &[]).await?.try_get(0)?;
                Ok((found, unbalanced))
            })
        })
        .await?;
    let (found, unbalanced) = found;
    if let Some((here, there)) = expected.iter().zip(&found).find(|(a, b)| a != b) {
        return Err(StoreError::Refused(format!(
            "what was copied is not what was there: {here} became {there}"
        )));
    }
    match unbalanced {
        0 => Ok(()),
        some => Err(StoreError::Refused(format!(
            "{some} accounts have a balance that is not the sum of their ledger"
        ))),
    }
}

fn sums_of_all(source: &Connection) -> Result<Vec<String>, StoreError> {
    TABLES
        .iter()
        .map(|table| {
            let sums: String = source.query_row(&table.asking("TEXT"), [], |row| row.get(0))?;
            Ok(format!("{} {sums}", table.name))
        })
        .collect()
}

fn moved(source: &Connection) -> Result<MoveSummary, StoreError> {
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

/// A value as SQLite has it, told to PostgreSQL as what the column there is.
#[derive(Debug)]
struct Copied(Value);

impl ToSql for Copied {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) if *of == Type::BOOL => (*number != 0).to_sql(of, out),
            Value::Integer(number) => number.to_sql(of, out),
            Value::Text(text) => text.to_sql(of, out),
            Value::Blob(bytes) => bytes.to_sql(of, out),
            Value::Real(_) => Err("a fraction, where none is kept".into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
