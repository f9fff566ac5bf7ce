//! The connection pools, with their sizes and timeouts.

use std::error::Error as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Transaction,
};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};

use super::tls::Tls;
use crate::StoreError;
use crate::latency::Latency;

/// Minimum number of connections. With fewer, one slow query would delay all others.
pub(super) const MIN_CONNECTIONS: usize = 4;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a free connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(20);
/// Time after which the server cancels a statement, also one that waits for a lock.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;
/// Time after which a transaction is abandoned with its connection, because the server does not
/// respond.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle time of a connection after which the operating system sends a keepalive.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);

/// A future that uses a borrowed connection.
pub(crate) type DbFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Statements that one connection runs. The type is erased, so that the code around it is compiled
/// once for each type of result.
type Work<'w, T> = Box<dyn for<'a> FnOnce(&'a Object) -> DbFuture<'a, T> + Send + 'w>;
type TransactionWork<'w, T> =
    Box<dyn for<'a> FnOnce(&'a Transaction<'a>) -> DbFuture<'a, T> + Send + 'w>;

pub(crate) struct Connections {
    pool: Pool,
    /// A connection whose commits do not wait for the disk.
    unsynced: Pool,
    pub(super) config: Config,
    pub(super) tls: Tls,
    timeout: Duration,
    pub(super) reads: Latency,
    pub(super) writes: Latency,
}

impl Connections {
    pub(crate) fn new(address: &str, max_connections: usize) -> Result<Self, StoreError> {
        Self::with_timeouts(
            address,
            max_connections,
            STATEMENT_TIMEOUT_MS,
            TRANSACTION_TIMEOUT,
        )
    }

    /// Opens connections with timeouts of 12 hours, for work on all data during which no server
    /// runs.
    pub(crate) fn without_timeouts(address: &str) -> Result<Self, StoreError> {
        let seconds = 12 * 60 * 60;
        let timeout = Duration::from_secs(seconds.into());
        Self::with_timeouts(address, MIN_CONNECTIONS, seconds * 1000, timeout)
    }

    fn with_timeouts(
        address: &str,
        max_connections: usize,
        statement_timeout_ms: u32,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let config = config(address, statement_timeout_ms)?;
        let tls = Tls::with_system_roots()?;
        let mut unsynced = config.clone();
        let options = config.get_options().unwrap_or_default();
        unsynced.options(format!("{options} -c synchronous_commit=off"));
        Ok(Self {
            pool: pool(&config, &tls, max_connections.max(MIN_CONNECTIONS))?,
            unsynced: pool(&unsynced, &tls, 1)?,
            config,
            tls,
            timeout,
            reads: Latency::default(),
            writes: Latency::default(),
        })
    }

    pub(super) async fn get(&self) -> Result<Object, StoreError> {
        Ok(self.pool.get().await?)
    }

    /// Returns a connection for writes that may be lost when the database server crashes: its
    /// commits do not wait for the disk.
    pub(super) async fn get_unsynced(&self) -> Result<Object, StoreError> {
        Ok(self.unsynced.get().await?)
    }

    /// Runs `work` without a transaction: one statement, or several that need no common snapshot.
    pub(crate) fn read<'w, T: 'w>(
        &'w self,
        work: impl for<'a> FnOnce(&'a Object) -> DbFuture<'a, T> + Send + 'w,
    ) -> impl Future<Output = Result<T, StoreError>> {
        self.run(Box::new(work), &self.reads)
    }

    /// Runs one statement that writes. It is a transaction by itself, with one round trip instead
    /// of three.
    pub(crate) fn write_statement<'w, T: 'w>(
        &'w self,
        work: impl for<'a> FnOnce(&'a Object) -> DbFuture<'a, T> + Send + 'w,
    ) -> impl Future<Output = Result<T, StoreError>> {
        self.run(Box::new(work), &self.writes)
    }

    async fn run<T>(&self, work: Work<'_, T>, latency: &Latency) -> Result<T, StoreError> {
        let start = Instant::now();
        let client = self.get().await?;
        let result = timeout(self.timeout, work(&client)).await;
        latency.record(start.elapsed());
        result.unwrap_or_else(|_| Err(timed_out(client)))
    }

    /// Runs `work` in a transaction, which is committed on `Ok` and rolled back on `Err`.
    pub(crate) fn write<'w, T: 'w>(
        &'w self,
        work: impl for<'a> FnOnce(&'a Transaction<'a>) -> DbFuture<'a, T> + Send + 'w,
    ) -> impl Future<Output = Result<T, StoreError>> {
        self.run_in_transaction(Box::new(work))
    }

    async fn run_in_transaction<T>(&self, work: TransactionWork<'_, T>) -> Result<T, StoreError> {
        let start = Instant::now();
        let mut client = self.get().await?;
        let result = timeout(self.timeout, async {
            let transaction = client.transaction().await?;
            let value = work(&transaction).await?;
            transaction.commit().await?;
            Ok(value)
        })
        .await;
        self.writes.record(start.elapsed());
        result.unwrap_or_else(|_| Err(timed_out(client)))
    }
}

fn pool(config: &Config, tls: &Tls, max_size: usize) -> Result<Pool, StoreError> {
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    Pool::builder(Manager::from_config(config.clone(), tls.clone(), recycling))
        .max_size(max_size)
        .wait_timeout(Some(POOL_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .recycle_timeout(Some(CONNECT_TIMEOUT))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| StoreError::Backend(error.to_string()))
}

/// Closes a connection with a statement in progress, which must not return to the pool.
pub(super) fn timed_out(client: Object) -> StoreError {
    drop(Object::take(client));
    StoreError::Backend("PostgreSQL did not respond in time".to_owned())
}

fn config(address: &str, statement_timeout_ms: u32) -> Result<Config, StoreError> {
    let mut config: Config = address.parse().map_err(|error| {
        StoreError::Backend(format!("invalid PostgreSQL URL: {}", message(&error)))
    })?;
    if !address.contains("sslmode=") {
        let is_local = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        };
        let all_local = config.get_hosts().iter().all(is_local);
        config.ssl_mode(if all_local {
            SslMode::Disable
        } else {
            SslMode::Require
        });
    }
    let defaults = format!(
        "-c statement_timeout={statement_timeout_ms} -c idle_in_transaction_session_timeout=60000"
    );
    let options = match config.get_options() {
        Some(options) => format!("{defaults} {options}"),
        None => defaults,
    };
    config
        .options(options)
        .application_name("plumbline")
        .connect_timeout(CONNECT_TIMEOUT)
        .keepalives_idle(KEEPALIVE_AFTER)
        .tcp_user_timeout(TRANSACTION_TIMEOUT);
    Ok(config)
}

/// A parameter of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// Runs a query, which is prepared once per connection, and returns its rows.
pub(super) async fn rows(
    db: &impl deadpool_postgres::GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, StoreError> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query(&statement, values).await?)
}

/// Runs a query like [`rows`], and returns its only row, if there is one.
pub(super) async fn row(
    db: &impl deadpool_postgres::GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Option<Row>, StoreError> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query_opt(&statement, values).await?)
}

/// Runs a statement, and returns the number of changed rows.
pub(super) async fn change(
    db: &impl deadpool_postgres::GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, StoreError> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.execute(&statement, values).await?)
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Backend(message(&error))
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => {
                Self::Backend("timed out waiting for a connection to PostgreSQL".to_owned())
            }
            other => Self::Backend(other.to_string()),
        }
    }
}

/// Returns the message of an error with that of its source, which contains the reason.
fn message(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(address: &str) -> SslMode {
        config(address, STATEMENT_TIMEOUT_MS)
            .unwrap()
            .get_ssl_mode()
    }

    #[test]
    fn connections_to_other_machines_are_encrypted_unless_disabled() {
        for address in [
            "postgres://u@localhost/db",
            "postgres://u@127.0.0.1:5433/db",
            "postgres://u@[::1]/db",
            "postgres://u@%2Frun%2Fpostgresql/db",
        ] {
            assert_eq!(mode(address), SslMode::Disable, "{address}");
        }
        assert_eq!(mode("postgres://u@db.example/db"), SslMode::Require);
        assert_eq!(
            mode("postgres://u@localhost,db.example/db"),
            SslMode::Require
        );
        assert_eq!(
            mode("postgres://u@db.example/db?sslmode=disable"),
            SslMode::Disable
        );
    }

    #[test]
    fn the_error_of_an_invalid_url_does_not_contain_the_password() {
        let error = config("postgres://u:secret@host:port/db", STATEMENT_TIMEOUT_MS).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
