//! One thread writes. What waits while it syncs to disk goes into its next transaction together:
//! one sync for many callers, and nobody is answered before it.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use crate::StoreError;
use crate::latency::Latency;

/// Bounds how long the first of a batch waits for the last.
const BATCH: usize = 128;

pub(super) struct Writer {
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    bells: Arc<Bells>,
    pub(super) latency: Latency,
}

/// Told after the commit, also where the caller that wrote has gone away meanwhile.
#[derive(Default)]
pub(super) struct Bells {
    /// The queue may have something to lease.
    pub(super) arrivals: Notify,
    /// An audit was finished.
    pub(super) finishes: Notify,
}

/// Whom a write may have given something to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wakes {
    Leasers,
    /// Those who wait for an audit to be finished.
    Watchers,
    Everybody,
    Nobody,
}

#[derive(Default)]
struct Woken {
    leasers: bool,
    watchers: bool,
}

impl Woken {
    fn add(&mut self, wakes: Wakes) {
        self.leasers |= matches!(wakes, Wakes::Leasers | Wakes::Everybody);
        self.watchers |= matches!(wakes, Wakes::Watchers | Wakes::Everybody);
    }
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let bells = Arc::new(Bells::default());
        let (jobs, queue) = channel();
        let waking = Arc::clone(&bells);
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || write_until_closed(&connection, &queue, &waking))
            .map_err(|error| StoreError::Backend(format!("no thread to write: {error}")))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            bells,
            latency: Latency::default(),
        })
    }

    pub(super) fn bells(&self) -> &Bells {
        &self.bells
    }

    /// Runs `work` in a transaction: committed when it returns `Ok`, undone when `Err`. Once begun it
    /// runs to its end, whether or not the caller still waits.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        wakes: Wakes,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Write {
            step: Step::Waiting(work),
            wakes,
            reply,
        });
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).map_err(|_| stopped())?;
        let answer = answer.await;
        self.latency.note(began.elapsed());
        answer.map_err(|_| stopped())?
    }

    /// Finishes what is queued, then closes the file.
    pub(super) fn stop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer had panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn stopped() -> StoreError {
    StoreError::Backend("the writer has stopped".to_owned())
}

/// One caller's transaction, with the type of its result hidden from the thread.
trait Job: Send {
    /// `Err` when what it wrote must be undone.
    fn run(&mut self, connection: &Connection) -> Result<Wakes, Undo>;
    /// `lost` says why nothing of the whole batch was kept.
    fn answer(self: Box<Self>, lost: Option<&str>);
}

struct Undo;

struct Write<W, T> {
    step: Step<W, T>,
    wakes: Wakes,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

enum Step<W, T> {
    Waiting(W),
    Running,
    Done(Result<T, StoreError>),
}

impl<W, T> Job for Write<W, T>
where
    W: FnOnce(&Connection) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<Wakes, Undo> {
        let Step::Waiting(work) = mem::replace(&mut self.step, Step::Running) else {
            return Err(Undo);
        };
        let result = work(connection);
        let kept = result.is_ok();
        self.step = Step::Done(result);
        if kept { Ok(self.wakes) } else { Err(Undo) }
    }

    fn answer(self: Box<Self>, lost: Option<&str>) {
        let answer = match (self.step, lost) {
            // An error of its own says more than that the batch was lost.
            (Step::Done(Err(own)), _) => Err(own),
            (_, Some(reason)) => Err(StoreError::Backend(reason.to_owned())),
            (Step::Done(Ok(value)), None) => Ok(value),
            (_, None) => Err(stopped()),
        };
        // Who no longer listens has gone away, which undoes nothing.
        let _ = self.reply.send(answer);
    }
}

fn write_until_closed(connection: &Connection, queue: &Receiver<Box<dyn Job>>, bells: &Bells) {
    while let Ok(first) = queue.recv() {
        let mut batch = vec![first];
        batch.extend(queue.try_iter().take(BATCH - 1));
        write_together(connection, batch, bells);
    }
}

fn write_together(connection: &Connection, mut batch: Vec<Box<dyn Job>>, bells: &Bells) {
    let committed = commit_together(connection, &mut batch);
    let lost = committed.as_ref().err().map(ToString::to_string);
    if let Some(reason) = &lost {
        tracing::error!(reason, writes = batch.len(), "the store could not write");
    }
    if let Ok(woken) = committed {
        if woken.leasers {
            bells.arrivals.notify_waiters();
        }
        if woken.watchers {
            bells.finishes.notify_waiters();
        }
    }
    for job in batch {
        job.answer(lost.as_deref());
    }
}

/// Each job in a savepoint of its own, so that one failure does not undo the others.
fn commit_together(
    connection: &Connection,
    batch: &mut [Box<dyn Job>],
) -> Result<Woken, StoreError> {
    let outcome = run_together(connection, batch);
    if outcome.is_err() && !connection.is_autocommit() {
        command(connection, "ROLLBACK")?;
    }
    outcome
}

fn run_together(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<Woken, StoreError> {
    let mut woken = Woken::default();
    command(connection, "BEGIN IMMEDIATE")?;
    for job in batch {
        command(connection, "SAVEPOINT job")?;
        match job.run(connection) {
            Ok(wakes) => woken.add(wakes),
            // After some failures, of the disk say, SQLite undoes the whole transaction by itself.
            Err(Undo) if connection.is_autocommit() => {
                return Err(StoreError::Backend(
                    "undone together with another write, which failed".to_owned(),
                ));
            }
            Err(Undo) => command(connection, "ROLLBACK TO job")?,
        }
        command(connection, "RELEASE job")?;
    }
    command(connection, "COMMIT")?;
    Ok(woken)
}

fn command(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answer = oneshot::Receiver<Result<(), StoreError>>;

    fn job(sql: &'static str) -> (Box<dyn Job>, Answer) {
        let (reply, answer) = oneshot::channel();
        let work = move |connection: &Connection| Ok(connection.execute_batch(sql)?);
        let job = Write {
            step: Step::Waiting(work),
            wakes: Wakes::Nobody,
            reply,
        };
        (Box::new(job), answer)
    }

    /// Which of the writes were answered with success, and what the table holds afterwards.
    fn written(sqls: &[&'static str]) -> (Vec<bool>, Vec<i64>) {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)")
            .unwrap();
        let (batch, mut answers): (Vec<_>, Vec<_>) = sqls.iter().map(|sql| job(sql)).unzip();
        write_together(&connection, batch, &Bells::default());
        assert!(connection.is_autocommit());
        let mut statement = connection.prepare("SELECT n FROM t ORDER BY n").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        let rows = rows.collect::<Result<_, _>>().unwrap();
        let answers = answers
            .iter_mut()
            .map(|answer| answer.try_recv().unwrap().is_ok());
        (answers.collect(), rows)
    }

    #[test]
    fn one_failure_does_not_undo_the_others() {
        let sqls = [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES (2); INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES (3)",
        ];
        assert_eq!(written(&sqls), (vec![true, false, true], vec![1, 3]));
    }

    #[test]
    fn when_all_is_undone_nobody_is_told_otherwise() {
        let sqls = [
            "INSERT INTO t VALUES (1)",
            "ROLLBACK; INSERT INTO t VALUES ('no number')",
            "INSERT INTO t VALUES (3)",
        ];
        assert_eq!(written(&sqls), (vec![false; 3], vec![]));
    }

    #[test]
    fn when_the_commit_fails_nobody_is_told_otherwise() {
        let sqls = [
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE u (n REFERENCES t DEFERRABLE INITIALLY DEFERRED);
             PRAGMA defer_foreign_keys = ON; INSERT INTO u VALUES (7)",
        ];
        assert_eq!(written(&sqls), (vec![false; 2], vec![]));
    }
}
