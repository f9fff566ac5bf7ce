//! The store in a PostgreSQL database, shared between any number of servers.
//!
//! The same behaviour as in SQLite, written anew in this dialect; the conformance suite keeps the two one.

mod accounts;
mod agents;
mod audits;
mod bells;
mod connect;
mod deliveries;
mod lanes;
mod leaser;
mod limits;
mod lists;
mod looks;
mod pages;
mod queue;
mod retention;
mod schema;
mod store;
mod submitter;
mod tls;
mod turns;

pub(crate) use self::connect::Connections;
pub(crate) use self::schema::bring_up_to_date;

use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::Row;

use self::bells::{Bells, Rings};
use self::connect::Asking;
use self::leaser::{Leaser, Request};
use self::looks::Looks;
use self::submitter::Submitter;
use crate::{ACCOUNT_ID_LENGTH, Hold, LedgerEntry, StoreError, random};

/// What an operator decides about a database's use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Open at a time, for all but one that listens and one that notes whose turn it is; at least 4.
    pub connections: usize,
    /// No account gets more leases at a time than this; what is over waits, and others go first.
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

/// A PostgreSQL database that other servers may use at the same time.
///
/// Connections are made when they are needed, and anew when they were lost. Writes that were begun are ended
/// even if nobody waits for them, for as long as the runtime lives.
pub struct PostgresStore {
    connections: Arc<Connections>,
    bells: Arc<Bells>,
    submitter: Arc<Submitter>,
    leases: mpsc::UnboundedSender<Request>,
    looks: Arc<Looks>,
    running_per_account: Option<u32>,
    /// These end with the store.
    at_work: [JoinHandle<()>; 2],
}

impl PostgresStore {
    /// Connects and brings the schema up to date, which several servers may do at once. `address` is a
    /// `postgres://` URL.
    pub async fn open(address: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let connections = Arc::new(Connections::new(address, options.connections)?);
        schema::bring_up_to_date(&connections).await?;
        schema::refuse_half_moved(&connections).await?;
        let bells = Arc::new(Bells::new(random(ACCOUNT_ID_LENGTH)?));
        let (leases, requests) = mpsc::unbounded_channel();
        let at_most = options.running_per_account;
        let looks = Arc::new(Looks::default());
        let leaser = Leaser {
            connections: Arc::clone(&connections),
            bells: Arc::clone(&bells),
            looks: Arc::clone(&looks),
            running_per_account: at_most,
        };
        tokio::spawn(leaser.lease_for_all(requests));
        let at_work = [
            tokio::spawn(bells::tell(Arc::clone(&bells), Arc::clone(&connections))),
            tokio::spawn(bells::listen(Arc::clone(&bells), Arc::clone(&connections))),
        ];
        let submitter = Submitter::new(Arc::clone(&connections), Arc::clone(&bells));
        Ok(Self {
            connections,
            bells,
            submitter: Arc::new(submitter),
            leases,
            looks,
            running_per_account: at_most,
            at_work,
        })
    }

    /// Every change of an account's balance, oldest first; their sum is the balance.
    pub async fn ledger(&self, account_id: &str) -> Result<Vec<LedgerEntry>, StoreError> {
        let account_id = account_id.to_owned();
        self.read(move |db| Box::pin(async move { accounts::ledger(db, &account_id).await }))
            .await
    }

    async fn read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: for<'a> FnOnce(&'a Object) -> Asking<'a, T> + Send,
    {
        self.connections.read(work).await
    }

    /// Runs to its end, whether or not the caller still waits.
    async fn write<T, W>(&self, rings: Rings, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: for<'a> FnOnce(&'a Transaction<'a>) -> Asking<'a, T> + Send + 'static,
    {
        let (connections, bells) = (Arc::clone(&self.connections), Arc::clone(&self.bells));
        to_its_end(async move {
            let answer = connections.write(work).await;
            if answer.is_ok() {
                bells.ring(&rings);
            }
            answer
        })
        .await
    }

    /// As [`Self::write`], for what one statement does; nobody is rung for.
    async fn write_at_once<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: for<'a> FnOnce(&'a Object) -> Asking<'a, T> + Send + 'static,
    {
        let connections = Arc::clone(&self.connections);
        to_its_end(async move { connections.write_at_once(work).await }).await
    }
}

/// Whether or not the caller still waits.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::spawn(work)
        .await
        .map_err(|error| StoreError::Backend(format!("a write was cut short: {error}")))?
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        for task in &self.at_work {
            task.abort();
        }
    }
}

fn count(row: &Row, column: usize) -> Result<u64, StoreError> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn small(row: &Row, column: usize) -> Result<u32, StoreError> {
    let number: i64 = row.try_get(column)?;
    number
        .try_into()
        .map_err(|_| StoreError::Backend(format!("{number} where a small number was kept")))
}

fn digest(row: &Row, column: usize) -> Result<[u8; 32], StoreError> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes
        .try_into()
        .map_err(|_| StoreError::Backend("a digest of another length".to_owned()))
}

fn hold(changed: u64) -> Hold {
    if changed == 0 { Hold::Lost } else { Hold::Held }
}
