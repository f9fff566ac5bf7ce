//! A store in a PostgreSQL database, which any number of servers can use.
//!
//! It behaves like the store in SQLite; the conformance suite verifies it.

mod accounts;
mod agents;
mod audits;
mod connect;
mod deliveries;
mod empty_queue_cache;
mod lanes;
mod leaser;
mod limits;
mod lists;
mod notifier;
mod pages;
mod queue;
mod retention;
mod schema;
mod secrets;
mod store;
mod submitter;
mod tls;
mod turns;

pub(crate) use self::connect::Connections;
pub(crate) use self::schema::migrate;

use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::Row;

use self::connect::DbFuture;
use self::empty_queue_cache::EmptyQueueCache;
use self::leaser::{Leaser, WaitingLease};
use self::notifier::{Notifier, Wakeup};
use self::submitter::Submitter;
use crate::{ACCOUNT_ID_LENGTH, LeaseState, LedgerEntry, StoreError, random};

/// Options of a PostgreSQL store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOptions {
    /// The maximum number of connections, at least 4, besides one that listens for notifications
    /// and one that records turns.
    pub connections: usize,
    /// The maximum number of leases of an account at a time.
    pub running_per_account: Option<u32>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections: 16,
            running_per_account: None,
        }
    }
}

/// A store in a PostgreSQL database that other servers may use at the same time.
///
/// Connections are opened when they are needed, and again after they were lost. Writes that were
/// started run to their end even if their caller no longer waits, unless the runtime is shut down.
pub struct PostgresStore {
    connections: Arc<Connections>,
    notifier: Arc<Notifier>,
    submitter: Arc<Submitter>,
    leases: mpsc::UnboundedSender<WaitingLease>,
    empty_queues: Arc<EmptyQueueCache>,
    running_per_account: Option<u32>,
    /// Background tasks, which are aborted when the store is dropped.
    tasks: [JoinHandle<()>; 2],
}

impl PostgresStore {
    /// Connects and migrates the schema, which several servers may do at once. `address` is a
    /// `postgres://` URL.
    pub fn open<'a>(
        address: &'a str,
        options: PostgresOptions,
    ) -> BoxFuture<'a, Result<Self, StoreError>> {
        Box::pin(async move {
            let connections = Arc::new(Connections::new(address, options.connections)?);
            schema::migrate(&connections).await?;
            schema::refuse_unfinished_move(&connections).await?;
            let notifier = Arc::new(Notifier::new(random(ACCOUNT_ID_LENGTH)?));
            let (leases, requests) = mpsc::unbounded_channel();
            let empty_queues = Arc::new(EmptyQueueCache::default());
            let leaser = Leaser {
                connections: Arc::clone(&connections),
                notifier: Arc::clone(&notifier),
                empty_queues: Arc::clone(&empty_queues),
                running_per_account: options.running_per_account,
            };
            tokio::spawn(leaser.run(requests));
            let tasks = [
                tokio::spawn(notifier::send(
                    Arc::clone(&notifier),
                    Arc::clone(&connections),
                )),
                tokio::spawn(notifier::listen(
                    Arc::clone(&notifier),
                    Arc::clone(&connections),
                )),
            ];
            let submitter = Submitter::new(Arc::clone(&connections), Arc::clone(&notifier));
            Ok(Self {
                connections,
                notifier,
                submitter: Arc::new(submitter),
                leases,
                empty_queues,
                running_per_account: options.running_per_account,
                tasks,
            })
        })
    }

    /// Returns every change of an account's balance, oldest first. Their sum is the balance.
    pub async fn ledger(&self, account_id: &str) -> Result<Vec<LedgerEntry>, StoreError> {
        let account_id = account_id.to_owned();
        self.read(move |db| Box::pin(async move { accounts::ledger(db, &account_id).await }))
            .await
    }

    fn read<'w, T: 'w>(
        &'w self,
        work: impl for<'a> FnOnce(&'a Object) -> DbFuture<'a, T> + Send + 'w,
    ) -> impl Future<Output = Result<T, StoreError>> {
        self.connections.read(work)
    }

    /// Runs `work` in a transaction and then notifies waiting tasks. It runs to its end even if the
    /// caller no longer waits.
    async fn write<T, W>(&self, wakeup: Wakeup, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: for<'a> FnOnce(&'a Transaction<'a>) -> DbFuture<'a, T> + Send + 'static,
    {
        let (connections, notifier) = (Arc::clone(&self.connections), Arc::clone(&self.notifier));
        run_to_end(async move {
            let result = connections.write(work).await;
            if result.is_ok() {
                notifier.notify(&wakeup);
            }
            result
        })
        .await
    }

    /// Like [`Self::write`] for one statement, without notifying anybody.
    async fn write_statement<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: for<'a> FnOnce(&'a Object) -> DbFuture<'a, T> + Send + 'static,
    {
        let connections = Arc::clone(&self.connections);
        run_to_end(async move { connections.write_statement(work).await }).await
    }
}

/// Spawns `work` as a task, so that it runs to its end even if the caller no longer waits.
async fn run_to_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let (sender, result) = oneshot::channel();
    let task: BoxFuture<'static, ()> = Box::pin(async move {
        // The caller may be gone.
        let _ = sender.send(work.await);
    });
    let failed = |error| StoreError::Backend(format!("write task failed: {error}"));
    tokio::spawn(task).await.map_err(failed)?;
    result
        .await
        .map_err(|_| StoreError::Backend("the write was not made".to_owned()))?
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn count(row: &Row, column: usize) -> Result<u64, StoreError> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn read_u32(row: &Row, column: usize) -> Result<u32, StoreError> {
    let number: i64 = row.try_get(column)?;
    number
        .try_into()
        .map_err(|_| StoreError::Backend(format!("{number} is out of range")))
}

fn digest(row: &Row, column: usize) -> Result<[u8; 32], StoreError> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes
        .try_into()
        .map_err(|_| StoreError::Backend("digest of unexpected length".to_owned()))
}

fn hold(changed: u64) -> LeaseState {
    if changed == 0 {
        LeaseState::Lost
    } else {
        LeaseState::Held
    }
}
