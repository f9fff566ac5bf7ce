//! Creates files, opens connections and migrates the schema.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::StoreError;

/// Migrations, each applied once in this order. A released file is never edited.
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
    include_str!("migrations/0010_options.sql"),
    include_str!("migrations/0011_batch_webhooks.sql"),
    include_str!("migrations/0012_labels.sql"),
    include_str!("migrations/0013_page_shares.sql"),
    include_str!("migrations/0014_stored_secrets.sql"),
    include_str!("migrations/0015_saved_sessions.sql"),
    include_str!("migrations/0016_replays.sql"),
    include_str!("migrations/0017_refunds_without_lease.sql"),
];

/// How long to wait for a write of another process (the command line, a second server).
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of retries while the file is locked. SQLite's locks have no queue, and its own interval
/// grows to 100 ms: with this one, a writer got the lock beside a continuous writer within 120 ms
/// in 1,200 tries.
const BUSY_INTERVAL: Duration = Duration::from_millis(1);

/// Size of SQLite's page cache per connection. It is small on purpose: other pages are in the cache
/// of the operating system, one `pread` away.
const WRITER_CACHE_KIB: i64 = 4096;
const READER_CACHE_KIB: i64 = 1024;
/// Maximum size of the file of the write-ahead log after a checkpoint.
const JOURNAL_LIMIT_BYTES: i64 = 16 * 1024 * 1024;

/// The behaviour of a connection when another one has locked the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BusyPolicy {
    Wait,
    Fail,
}

/// Opens the connection for writing. Creates missing files, accessible only to the owner, and
/// migrates the schema.
pub(crate) fn writer(path: &Path) -> Result<Connection, StoreError> {
    private_file(path).map_err(|error| {
        StoreError::Backend(format!("cannot prepare {}: {error}", path.display()))
    })?;
    let mut connection = connect(path, BusyPolicy::Wait)?;
    enable_wal(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_LIMIT_BYTES)?;
    // Deleted content is overwritten with zeros instead of being marked as free.
    connection.pragma_update(None, "secure_delete", true)?;
    migrate(&mut connection)?;
    Ok(connection)
}

pub(super) fn reader(path: &Path, busy_policy: BusyPolicy) -> Result<Connection, StoreError> {
    let connection = connect(path, busy_policy)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path, busy_policy: BusyPolicy) -> Result<Connection, StoreError> {
    // Without SQLITE_OPEN_URI, a path that begins with `file:` is a path, too.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    if busy_policy == BusyPolicy::Wait {
        connection.busy_handler(Some(busy_handler()))?;
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn busy_handler() -> impl FnMut(i32) -> bool + Send {
    let mut since = Instant::now();
    move |tries| {
        if tries == 0 {
            since = Instant::now();
        }
        thread::sleep(BUSY_INTERVAL);
        since.elapsed() < BUSY_TIMEOUT
    }
}

/// Switches to WAL mode. That needs exclusive access, and SQLite does not always call the busy
/// handler for it: when several processes start at once, some have to retry.
fn enable_wal(connection: &Connection) -> Result<(), StoreError> {
    let since = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        });
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::Backend(format!(
                    "this file system does not support a write-ahead log (journal mode {mode})"
                )));
            }
            Err(error) if is_busy(&error) && since.elapsed() < BUSY_TIMEOUT => {
                thread::sleep(BUSY_INTERVAL);
            }
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
    let supported = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // The usual case takes no lock: the command line opens the file while a server writes.
    if schema_version(connection)? == supported {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again, now that no other process can change it.
    let found = schema_version(&transaction)?;
    let applied = usize::try_from(found)
        .ok()
        .filter(|applied| *applied <= MIGRATIONS.len())
        .ok_or(StoreError::NewerSchema { found, supported })?;
    for sql in &MIGRATIONS[applied..] {
        transaction.execute_batch(sql)?;
    }
    transaction.pragma_update(None, "user_version", supported)?;
    transaction.commit()?;
    Ok(())
}

fn schema_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Creates the file, or restricts its permissions. SQLite gives the log and its index the
/// permissions of the main file. Existing directories keep theirs.
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
    let files = [
        path.to_owned(),
        with_suffix(path, "-wal"),
        with_suffix(path, "-shm"),
    ];
    for file in files {
        match fs::metadata(&file) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(&file, Permissions::from_mode(0o600))?;
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
