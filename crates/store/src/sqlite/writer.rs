//! The thread that writes. Writes that arrive while it syncs to disk share its next transaction, so
//! that one sync serves many callers. No caller gets a result before the sync.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use crate::StoreError;
use crate::latency::Latency;

/// Maximum number of writes in a transaction, which limits how long the first waits for the last.
const MAX_BATCH: usize = 128;

pub(super) struct Writer {
    jobs: Option<Sender<Box<dyn PendingWrite>>>,
    thread: Option<JoinHandle<()>>,
    notifier: Arc<Notifier>,
    pub(super) latency: Latency,
}

/// Notifies waiting tasks after a commit, even if the caller of the write is gone.
#[derive(Default)]
pub(super) struct Notifier {
    /// Notified when there may be an audit to lease.
    pub(super) arrivals: Notify,
    /// Notified when an audit was finished.
    pub(super) finishes: Notify,
}

/// The tasks to wake after a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wakeup {
    /// Tasks that wait for an audit to lease.
    Leasers,
    /// Tasks that wait for an audit to be finished.
    Watchers,
    All,
    None,
}

/// The tasks to wake after a batch of writes.
#[derive(Default)]
struct BatchWakeup {
    leasers: bool,
    watchers: bool,
}

impl BatchWakeup {
    fn add(&mut self, wakeup: Wakeup) {
        self.leasers |= matches!(wakeup, Wakeup::Leasers | Wakeup::All);
        self.watchers |= matches!(wakeup, Wakeup::Watchers | Wakeup::All);
    }
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let notifier = Arc::new(Notifier::default());
        let (jobs, queue) = channel();
        let thread_notifier = Arc::clone(&notifier);
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || write_until_closed(&connection, &queue, &thread_notifier))
            .map_err(|error| {
                StoreError::Backend(format!("failed to start the writer thread: {error}"))
            })?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            notifier,
            latency: Latency::default(),
        })
    }

    pub(super) fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// Runs `work` in a transaction, which is committed on `Ok` and rolled back on `Err`. Once sent
    /// to the writer it runs to its end, even if the caller no longer waits.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        wakeup: Wakeup,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let start = Instant::now();
        let (reply, result) = oneshot::channel();
        let job = Box::new(Write {
            step: Step::Waiting(Box::new(work)),
            wakeup,
            reply,
        });
        self.send(job)?;
        let result = result.await;
        self.latency.record(start.elapsed());
        result.map_err(|_| stopped())?
    }

    fn send(&self, job: Box<dyn PendingWrite>) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).map_err(|_| stopped())
    }

    /// Completes the queued writes, then closes the file.
    pub(super) fn stop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("store writer thread panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn stopped() -> StoreError {
    StoreError::Backend("the writer thread has stopped".to_owned())
}

/// The write of one caller, independent of the type of its result.
trait PendingWrite: Send {
    /// Performs the write. On `Err` it must be rolled back.
    fn run(&mut self, connection: &Connection) -> Result<Wakeup, Rollback>;
    /// Sends the result to the caller. `batch_error` is set if the whole batch was rolled back.
    fn reply(self: Box<Self>, batch_error: Option<&str>);
}

struct Rollback;

struct Write<T> {
    step: Step<T>,
    wakeup: Wakeup,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

type Work<T> = Box<dyn FnOnce(&Connection) -> Result<T, StoreError> + Send>;

enum Step<T> {
    Waiting(Work<T>),
    Running,
    Done(Result<T, StoreError>),
}

impl<T: Send> PendingWrite for Write<T> {
    fn run(&mut self, connection: &Connection) -> Result<Wakeup, Rollback> {
        let Step::Waiting(work) = mem::replace(&mut self.step, Step::Running) else {
            return Err(Rollback);
        };
        let result = work(connection);
        let succeeded = result.is_ok();
        self.step = Step::Done(result);
        if succeeded {
            Ok(self.wakeup)
        } else {
            Err(Rollback)
        }
    }

    fn reply(self: Box<Self>, batch_error: Option<&str>) {
        let result = match (self.step, batch_error) {
            // The write's own error says more than that of the batch.
            (Step::Done(Err(error)), _) => Err(error),
            (_, Some(reason)) => Err(StoreError::Backend(reason.to_owned())),
            (Step::Done(Ok(value)), None) => Ok(value),
            (_, None) => Err(stopped()),
        };
        // The caller may be gone, which undoes nothing.
        let _ = self.reply.send(result);
    }
}

fn write_until_closed(
    connection: &Connection,
    queue: &Receiver<Box<dyn PendingWrite>>,
    notifier: &Notifier,
) {
    while let Ok(first) = queue.recv() {
        let mut batch = vec![first];
        batch.extend(queue.try_iter().take(MAX_BATCH - 1));
        write_batch(connection, batch, notifier);
    }
}

fn write_batch(
    connection: &Connection,
    mut batch: Vec<Box<dyn PendingWrite>>,
    notifier: &Notifier,
) {
    let result = commit_batch(connection, &mut batch);
    let batch_error = result.as_ref().err().map(ToString::to_string);
    if let Some(reason) = &batch_error {
        tracing::error!(reason, writes = batch.len(), "store write failed");
    }
    if let Ok(wakeup) = result {
        if wakeup.leasers {
            notifier.arrivals.notify_waiters();
        }
        if wakeup.watchers {
            notifier.finishes.notify_waiters();
        }
    }
    for job in batch {
        job.reply(batch_error.as_deref());
    }
}

fn commit_batch(
    connection: &Connection,
    batch: &mut [Box<dyn PendingWrite>],
) -> Result<BatchWakeup, StoreError> {
    let result = run_batch(connection, batch);
    if result.is_err() && !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    result
}

/// Runs each job in its own savepoint, so that the failure of one does not undo the others.
fn run_batch(
    connection: &Connection,
    batch: &mut [Box<dyn PendingWrite>],
) -> Result<BatchWakeup, StoreError> {
    let mut batch_wakeup = BatchWakeup::default();
    execute(connection, "BEGIN IMMEDIATE")?;
    for job in batch {
        execute(connection, "SAVEPOINT job")?;
        match job.run(connection) {
            Ok(wakeup) => batch_wakeup.add(wakeup),
            // After some errors, for instance of the disk, SQLite rolls back the whole transaction.
            Err(Rollback) if connection.is_autocommit() => {
                return Err(StoreError::Backend(
                    "rolled back together with another write that failed".to_owned(),
                ));
            }
            Err(Rollback) => execute(connection, "ROLLBACK TO job")?,
        }
        execute(connection, "RELEASE job")?;
    }
    execute(connection, "COMMIT")?;
    Ok(batch_wakeup)
}

fn execute(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reply = oneshot::Receiver<Result<(), StoreError>>;

    fn job(sql: &'static str) -> (Box<dyn PendingWrite>, Reply) {
        let (reply, result) = oneshot::channel();
        let work = move |connection: &Connection| Ok(connection.execute_batch(sql)?);
        let job = Write {
            step: Step::Waiting(Box::new(work)),
            wakeup: Wakeup::None,
            reply,
        };
        (Box::new(job), result)
    }

    /// Returns which writes were reported as successful, and the rows of the table afterwards.
    fn write(sqls: &[&'static str]) -> (Vec<bool>, Vec<i64>) {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)")
            .unwrap();
        let (batch, mut replies): (Vec<_>, Vec<_>) = sqls.iter().map(|sql| job(sql)).unzip();
        write_batch(&connection, batch, &Notifier::default());
        assert!(connection.is_autocommit());
        let mut statement = connection.prepare("SELECT n FROM t ORDER BY n").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        let rows = rows.collect::<Result<_, _>>().unwrap();
        let successes = replies
            .iter_mut()
            .map(|reply| reply.try_recv().unwrap().is_ok());
        (successes.collect(), rows)
    }

    #[test]
    fn one_failure_does_not_undo_the_others() {
        let sqls = [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES (2); INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES (3)",
        ];
        assert_eq!(write(&sqls), (vec![true, false, true], vec![1, 3]));
    }

    #[test]
    fn a_rollback_of_the_batch_is_reported_to_all_callers() {
        let sqls = [
            "INSERT INTO t VALUES (1)",
            "ROLLBACK; INSERT INTO t VALUES ('no number')",
            "INSERT INTO t VALUES (3)",
        ];
        assert_eq!(write(&sqls), (vec![false; 3], vec![]));
    }

    #[test]
    fn a_failed_commit_is_reported_to_all_callers() {
        let sqls = [
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE u (n REFERENCES t DEFERRABLE INITIALLY DEFERRED);
             PRAGMA defer_foreign_keys = ON; INSERT INTO u VALUES (7)",
        ];
        assert_eq!(write(&sqls), (vec![false; 2], vec![]));
    }
}
