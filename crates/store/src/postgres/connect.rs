//! Connections: how they are made, how many there are, and how long anything on them may take.

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

/// With fewer, one slow question would hold up everything else.
pub(super) const FEWEST_CONNECTIONS: usize = 4;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// For a connection to become free.
const FREE_WITHIN: Duration = Duration::from_secs(20);
/// After this the server itself ends a statement; also one that waits for a lock.
const STATEMENT_MS: u32 = 30_000;
/// After this a transaction is given up with its connection: the server no longer answers.
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// How long a connection may be silent before the operating system asks whether it still stands.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);

/// What is asked of the server, and borrows the connection that it is asked on.
pub(crate) type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

pub(crate) struct Connections {
    pool: Pool,
    hasty: Pool,
    pub(super) config: Config,
    pub(super) tls: Tls,
    done_within: Duration,
    pub(super) reads: Latency,
    pub(super) writes: Latency,
}

impl Connections {
    pub(crate) fn new(address: &str, at_most: usize) -> Result<Self, StoreError> {
        Self::within(address, at_most, STATEMENT_MS, DONE_WITHIN)
    }

    /// For work on everything at once, during which nobody else waits.
    pub(crate) fn patient(address: &str) -> Result<Self, StoreError> {
        let hours = 12 * 60 * 60;
        let within = Duration::from_secs(hours.into());
        Self::within(address, FEWEST_CONNECTIONS, hours * 1000, within)
    }

    fn within(
        address: &str,
        at_most: usize,
        statement_ms: u32,
        done_within: Duration,
    ) -> Result<Self, StoreError> {
        let config = config(address, statement_ms)?;
        let tls = Tls::with_the_systems_roots()?;
        let mut hasty = config.clone();
        let options = config.get_options().unwrap_or_default();
        hasty.options(format!("{options} -c synchronous_commit=off"));
        Ok(Self {
            pool: pool(&config, &tls, at_most.max(FEWEST_CONNECTIONS))?,
            hasty: pool(&hasty, &tls, 1)?,
            config,
            tls,
            done_within,
            reads: Latency::default(),
            writes: Latency::default(),
        })
    }

    pub(super) async fn get(&self) -> Result<Object, StoreError> {
        Ok(self.pool.get().await?)
    }

    /// A connection for what may be lost in a crash of the database server: its commits do not wait
    /// for the disk.
    pub(super) async fn get_hasty(&self) -> Result<Object, StoreError> {
        Ok(self.hasty.get().await?)
    }

    /// Without a transaction: for one statement, or several that need not agree.
    pub(crate) async fn read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: for<'a> FnOnce(&'a Object) -> Asking<'a, T> + Send,
    {
        let began = Instant::now();
        let client = self.get().await?;
        let answer = timeout(self.done_within, work(&client)).await;
        self.reads.note(began.elapsed());
        answer.unwrap_or_else(|_| Err(given_up(client)))
    }

    /// One statement that changes something: a transaction by itself, and one trip instead of three.
    pub(crate) async fn write_at_once<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: for<'a> FnOnce(&'a Object) -> Asking<'a, T> + Send,
    {
        let began = Instant::now();
        let client = self.get().await?;
        let answer = timeout(self.done_within, work(&client)).await;
        self.writes.note(began.elapsed());
        answer.unwrap_or_else(|_| Err(given_up(client)))
    }

    /// In a transaction: committed when `work` returns `Ok`, undone when `Err`.
    pub(crate) async fn write<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: for<'a> FnOnce(&'a Transaction<'a>) -> Asking<'a, T> + Send,
    {
        let began = Instant::now();
        let mut client = self.get().await?;
        let answer = timeout(self.done_within, async {
            let transaction = client.transaction().await?;
            let value = work(&transaction).await?;
            transaction.commit().await?;
            Ok(value)
        })
        .await;
        self.writes.note(began.elapsed());
        answer.unwrap_or_else(|_| Err(given_up(client)))
    }
}

fn pool(config: &Config, tls: &Tls, at_most: usize) -> Result<Pool, StoreError> {
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    Pool::builder(Manager::from_config(config.clone(), tls.clone(), recycling))
        .max_size(at_most)
        .wait_timeout(Some(FREE_WITHIN))
        .create_timeout(Some(CONNECT_WITHIN))
        .recycle_timeout(Some(CONNECT_WITHIN))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| StoreError::Backend(error.to_string()))
}

/// A connection in the middle of something goes back to nobody.
pub(super) fn given_up(client: Object) -> StoreError {
    drop(Object::take(client));
    StoreError::Backend("PostgreSQL did not answer in time".to_owned())
}

fn config(address: &str, statement_ms: u32) -> Result<Config, StoreError> {
    let mut config: Config = address
        .parse()
        .map_err(|error| StoreError::Backend(format!("no PostgreSQL address: {}", said(&error))))?;
    if !address.contains("sslmode=") {
        let near = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        };
        config.ssl_mode(match config.get_hosts().iter().all(near) {
            true => SslMode::Disable,
            false => SslMode::Require,
        });
    }
    let own =
        format!("-c statement_timeout={statement_ms} -c idle_in_transaction_session_timeout=60000");
    let options = match config.get_options() {
        Some(given) => format!("{own} {given}"),
        None => own,
    };
    config
        .options(options)
        .application_name("plumbline")
        .connect_timeout(CONNECT_WITHIN)
        .keepalives_idle(KEEPALIVE_AFTER)
        .tcp_user_timeout(DONE_WITHIN);
    Ok(config)
}

/// Statements are prepared once per connection.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

pub(super) async fn rows(
    db: &impl deadpool_postgres::GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, StoreError> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query(&statement, values).await?)
}

pub(super) async fn row(
    db: &impl deadpool_postgres::GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Option<Row>, StoreError> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query_opt(&statement, values).await?)
}

/// How many rows were changed.
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
        Self::Backend(said(&error))
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => {
                Self::Backend("no connection to PostgreSQL became free in time".to_owned())
            }
            other => Self::Backend(other.to_string()),
        }
    }
}

/// With what lies behind it: by itself such an error says little.
fn said(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(address: &str) -> SslMode {
        config(address, STATEMENT_MS).unwrap().get_ssl_mode()
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_told_otherwise() {
        for near in [
            "postgres://u@localhost/db",
            "postgres://u@127.0.0.1:5433/db",
            "postgres://u@[::1]/db",
            "postgres://u@%2Frun%2Fpostgresql/db",
        ] {
            assert_eq!(mode(near), SslMode::Disable, "{near}");
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
    fn what_is_no_address_is_refused_without_repeating_the_password() {
        let refused = config("postgres://u:secret@host:port/db", STATEMENT_MS).unwrap_err();
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}
