//! Files, connections and the schema they must have.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::StoreError;

/// Applied in this order, each once; a file that has been released is never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_accounts_and_audits.sql"),
    include_str!("migrations/0002_lists_and_options.sql"),
    include_str!("migrations/0003_sessions_and_shares.sql"),
    include_str!("migrations/0004_fair_queue.sql"),
    include_str!("migrations/0005_agents.sql"),
    include_str!("migrations/0006_bounds.sql"),
    include_str!("migrations/0007_deliveries_in_turn.sql"),
    include_str!("migrations/0008_faults_last.sql"),
    include_str!("migrations/0009_summaries.sql"),
];

/// How long to wait for another process (the command line, a second server) to end its write.
const BUSY_FOR: Duration = Duration::from_secs(10);
/// How often to look whether it has. SQLite's locks know no queue, and its own steps grow to 100 ms:
/// beside a writer without rest, this one got its turn within 120 ms in 1,200 tries.
const BUSY_STEP: Duration = Duration::from_millis(1);

/// SQLite keeps up to this much of the file per connection. Small on purpose: what is not here is in
/// the operating system's cache, one `pread` away.
const WRITER_CACHE_KIB: i64 = 4096;
const READER_CACHE_KIB: i64 = 1024;
/// What is left of the write-ahead log's file after a checkpoint.
const JOURNAL_LIMIT_BYTES: i64 = 16 * 1024 * 1024;

/// Whether a connection waits for others' locks or says at once that the file is busy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Waits,
    None,
}

/// Creates what is missing, readable by nobody but the owner, and brings the schema up to date.
pub(crate) fn writer(path: &Path) -> Result<Connection, StoreError> {
    private_file(path).map_err(|error| {
        StoreError::Backend(format!("cannot prepare {}: {error}", path.display()))
    })?;
    let mut connection = connect(path, Patience::Waits)?;
    write_ahead(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_LIMIT_BYTES)?;
    // What is deleted is overwritten with zeros, and not only marked as free.
    connection.pragma_update(None, "secure_delete", true)?;
    migrate(&mut connection)?;
    Ok(connection)
}

pub(super) fn reader(path: &Path, patience: Patience) -> Result<Connection, StoreError> {
    let connection = connect(path, patience)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path, patience: Patience) -> Result<Connection, StoreError> {
    // Without SQLITE_OPEN_URI: a path is a path, also one that begins with `file:`.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    if patience == Patience::Waits {
        connection.busy_handler(Some(wait_a_step()))?;
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn wait_a_step() -> impl FnMut(i32) -> bool + Send {
    let mut since = Instant::now();
    move |tries| {
        if tries == 0 {
            since = Instant::now();
        }
        thread::sleep(BUSY_STEP);
        since.elapsed() < BUSY_FOR
    }
}

/// The change to WAL needs the file alone, and SQLite does not always call the busy handler for it:
/// when several processes start at once, some have to ask again.
fn write_ahead(connection: &Connection) -> Result<(), StoreError> {
    let since = Instant::now();
    loop {
        let answer = connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        });
        match answer {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::Backend(format!(
                    "this file system allows no write-ahead log (journal mode {mode})"
                )));
            }
            Err(error) if is_busy(&error) && since.elapsed() < BUSY_FOR => thread::sleep(BUSY_STEP),
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // The usual case takes no lock: the command line opens the file while a server writes.
    if schema_version(connection)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Again, now that nobody else can change it.
    let found = schema_version(&transaction)?;
    let applied = usize::try_from(found)
        .ok()
        .filter(|applied| *applied <= MIGRATIONS.len())
        .ok_or(StoreError::NewerSchema { found, known })?;
    for sql in &MIGRATIONS[applied..] {
        transaction.execute_batch(sql)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

fn schema_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// SQLite gives the log and its index the permissions of the main file, so that one decides.
/// Directories that exist already keep theirs.
fn private_file(path: &Path) -> io::Result<()> {
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    for file in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
        match fs::metadata(&file) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(&file, Permissions::from_mode(0o600))?;
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
