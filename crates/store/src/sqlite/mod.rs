//! The store in one SQLite file, shared between processes on one machine.

mod accounts;
mod audits;
mod open;
mod pages;
mod queue;
mod readers;
mod writer;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use self::queue::Attempt;
use self::readers::Readers;
use self::writer::{Wakes, Writer};
use crate::{
    Acceptance, Account, AuditStatus, Finished, HandBack, Hold, KeyDigest, KeyRecord, Lease,
    LedgerEntry, NewAudit, QueueDepth, Store, StoreError, StoredReport, Timestamp, random_text,
};

/// Letters and digits in an account's id: 95 random bits.
const ACCOUNT_ID_LENGTH: usize = 16;

/// One SQLite file in WAL mode, every commit synced to disk.
///
/// Other processes may open the same file at the same time. Dropping the store finishes the writes
/// that were begun, then closes the file.
pub struct SqliteStore {
    // Closed before the writer, which as the last to close empties the write-ahead log.
    readers: Readers,
    writer: Writer,
}

impl SqliteStore {
    /// Opens the file, creating it (and its directory) private to the owner where it is missing.
    ///
    /// Blocks for as long as that takes: for use at start-up.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::writer(path)?;
        Ok(Self {
            readers: Readers::open(path)?,
            writer: Writer::start(connection)?,
        })
    }

    /// Every change of an account's balance, oldest first; their sum is the balance.
    pub async fn ledger(&self, account_id: &str) -> Result<Vec<LedgerEntry>, StoreError> {
        let account_id = account_id.to_owned();
        self.readers
            .patient(move |connection| accounts::ledger(connection, &account_id))
            .await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_account(
        &self,
        name: &str,
        credits: u32,
        now: Timestamp,
    ) -> Result<Account, StoreError> {
        let id = random_text(ACCOUNT_ID_LENGTH)
            .map_err(|error| StoreError::Backend(format!("no random bytes: {error}")))?;
        let account = Account {
            id,
            name: name.to_owned(),
            credits: credits.into(),
            created_at: now,
        };
        self.writer
            .write(Wakes::Nobody, move |connection| {
                accounts::create(connection, &account)?;
                Ok(account)
            })
            .await
    }

    async fn add_key(
        &self,
        account_id: &str,
        key_id: &str,
        digest: KeyDigest,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (account_id, key_id) = (account_id.to_owned(), key_id.to_owned());
        self.writer
            .write(Wakes::Nobody, move |connection| {
                accounts::add_key(connection, &account_id, &key_id, digest, expires_at, now)
            })
            .await
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.readers.patient(accounts::keys).await
    }

    async fn key(&self, key_id: &str) -> Result<Option<KeyRecord>, StoreError> {
        let key_id = key_id.to_owned();
        self.readers
            .quick(move |connection| accounts::key(connection, &key_id))
            .await
    }

    async fn revoke_key(&self, key_id: &str, now: Timestamp) -> Result<(), StoreError> {
        let key_id = key_id.to_owned();
        self.writer
            .write(Wakes::Nobody, move |connection| {
                accounts::revoke_key(connection, &key_id, now)
            })
            .await
    }

    async fn add_credits(
        &self,
        account_id: &str,
        amount: i64,
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        let account_id = account_id.to_owned();
        self.writer
            .write(Wakes::Nobody, move |connection| {
                accounts::add_credits(connection, &account_id, amount, now)
            })
            .await
    }

    async fn accept(&self, audit: NewAudit) -> Result<Acceptance, StoreError> {
        self.writer
            .write(Wakes::Leasers, move |connection| {
                audits::accept(connection, &audit)
            })
            .await
    }

    async fn status(
        &self,
        account_id: &str,
        tracking_id: &str,
    ) -> Result<Option<AuditStatus>, StoreError> {
        let (account_id, tracking_id) = (account_id.to_owned(), tracking_id.to_owned());
        self.readers
            .quick(move |connection| audits::status(connection, &account_id, &tracking_id))
            .await
    }

    async fn report(
        &self,
        account_id: &str,
        audit_id: &str,
    ) -> Result<Option<StoredReport>, StoreError> {
        let (account_id, audit_id) = (account_id.to_owned(), audit_id.to_owned());
        self.readers
            .patient(move |connection| audits::report(connection, &account_id, &audit_id))
            .await
    }

    async fn lease(
        &self,
        owner: &str,
        now: Timestamp,
        lasting: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let owner = owner.to_owned();
        self.writer
            .write(Wakes::Nobody, move |connection| {
                queue::lease(connection, &owner, now, now.plus(lasting))
            })
            .await
    }

    async fn work_arrives(&self, at_most: Duration) {
        let arrives = async {
            let mut arrival = std::pin::pin!(self.writer.arrivals().notified());
            // First listen, then look: what is committed before the look is seen by it, what is
            // committed after it is heard. The other way round, an audit accepted in between would
            // wake nobody.
            arrival.as_mut().enable();
            if !matches!(self.readers.quick(queue::has_waiting).await, Ok(true)) {
                arrival.await;
            }
        };
        // Past `at_most` there is nothing to report: callers try to lease either way.
        let _ = timeout(at_most, arrives).await;
    }

    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<Hold, StoreError> {
        let held = Attempt::from(lease);
        self.writer
            .write(Wakes::Nobody, move |connection| {
                queue::heartbeat(connection, &held, until)
            })
            .await
    }

    async fn finish(&self, lease: &Lease, finished: Finished) -> Result<Hold, StoreError> {
        let held = Attempt::from(lease);
        self.writer
            .write(Wakes::Nobody, move |connection| {
                queue::finish(connection, &held, &finished)
            })
            .await
    }

    async fn hand_back(&self, lease: &Lease, why: HandBack) -> Result<Hold, StoreError> {
        let held = Attempt::from(lease);
        self.writer
            .write(Wakes::Leasers, move |connection| {
                queue::hand_back(connection, &held, why)
            })
            .await
    }

    async fn recover(&self, owner_prefix: &str) -> Result<u64, StoreError> {
        let owner_prefix = owner_prefix.to_owned();
        self.writer
            .write(Wakes::Leasers, move |connection| {
                queue::recover(connection, &owner_prefix)
            })
            .await
    }

    async fn queue_depth(&self) -> Result<QueueDepth, StoreError> {
        self.readers.patient(queue::depth).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // An empty transaction: shows that the writer lives and gets the file, and syncs nothing.
        self.writer.write(Wakes::Nobody, |_| Ok(())).await
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Backend(error.to_string())
    }
}
