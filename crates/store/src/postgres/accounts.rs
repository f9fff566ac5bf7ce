//! Accounts, their keys and their credits.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::connect::{change, row, rows};
use super::{count, digest};
use crate::{
    Account, AccountSummary, KeyDigest, KeyRecord, LedgerEntry, LedgerReason, StoreError, Timestamp,
};

pub(super) async fn create(db: &Transaction<'_>, account: &Account) -> Result<(), StoreError> {
    change(
        db,
        "INSERT INTO accounts (id, name, credits, created_at) VALUES ($1, $2, $3, $4)",
        &[
            &account.id,
            &account.name,
            &account.credits,
            &account.created_at.0,
        ],
    )
    .await?;
    if account.credits != 0 {
        change(
            db,
            "INSERT INTO ledger (account_id, amount, reason, at) VALUES ($1, $2, 'opening', $3)",
            &[&account.id, &account.credits, &account.created_at.0],
        )
        .await?;
    }
    Ok(())
}

/// Locks the row of an account until the transaction ends, and returns its balance.
pub(super) async fn lock(
    db: &Transaction<'_>,
    account_id: &str,
) -> Result<Option<i64>, StoreError> {
    let row = row(
        db,
        "SELECT credits FROM accounts WHERE id = $1 FOR NO KEY UPDATE",
        &[&account_id],
    )
    .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

pub(super) async fn add_credits(
    db: &Transaction<'_>,
    account_id: &str,
    amount: i64,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let before = lock(db, account_id)
        .await?
        .ok_or(StoreError::NotFound("account"))?;
    let after = before.saturating_add(amount).max(0);
    if after != before {
        change(
            db,
            "UPDATE accounts SET credits = $1 WHERE id = $2",
            &[&after, &account_id],
        )
        .await?;
        change(
            db,
            "INSERT INTO ledger (account_id, amount, reason, at) VALUES ($1, $2, 'adjustment', $3)",
            &[&account_id, &(after - before), &now.0],
        )
        .await?;
    }
    Ok(after)
}

pub(super) async fn ledger(db: &Object, account_id: &str) -> Result<Vec<LedgerEntry>, StoreError> {
    let rows = rows(
        db,
        "SELECT ledger.amount, ledger.reason, audits.tracking_id, ledger.at
         FROM ledger LEFT JOIN audits ON audits.position = ledger.position
         WHERE ledger.account_id = $1 ORDER BY ledger.id",
        &[&account_id],
    )
    .await?;
    let entry = |row: &Row| {
        let reason: &str = row.try_get(1)?;
        Ok(LedgerEntry {
            amount: row.try_get(0)?,
            reason: match reason {
                "opening" => LedgerReason::Opening,
                "audit" => LedgerReason::Audit,
                "refund" => LedgerReason::Refund,
                _ => LedgerReason::Adjustment,
            },
            tracking_id: row.try_get(2)?,
            at: Timestamp(row.try_get(3)?),
        })
    };
    rows.iter().map(entry).collect()
}

pub(super) async fn add_key(
    db: &Transaction<'_>,
    account_id: &str,
    key_id: &str,
    digest: KeyDigest,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    lock(db, account_id)
        .await?
        .ok_or(StoreError::NotFound("account"))?;
    change(
        db,
        "INSERT INTO keys (id, account_id, digest, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5)",
        &[
            &key_id,
            &account_id,
            &digest.0.as_slice(),
            &now.0,
            &expires_at.map(|time| time.0),
        ],
    )
    .await?;
    Ok(())
}

macro_rules! select_keys {
    ($tail:literal) => {
        concat!(
            "SELECT keys.id, accounts.id, accounts.name, accounts.credits, keys.digest,
                    keys.created_at, keys.expires_at, keys.revoked_at
             FROM keys JOIN accounts ON accounts.id = keys.account_id ",
            $tail
        )
    };
}

pub(super) async fn keys(db: &Object) -> Result<Vec<KeyRecord>, StoreError> {
    let rows = rows(db, select_keys!("ORDER BY keys.created_at, keys.id"), &[]).await?;
    rows.iter().map(key_record).collect()
}

pub(super) async fn key(
    db: &impl GenericClient,
    key_id: &str,
) -> Result<Option<KeyRecord>, StoreError> {
    let row = row(db, select_keys!("WHERE keys.id = $1"), &[&key_id]).await?;
    row.as_ref().map(key_record).transpose()
}

pub(super) fn key_record(row: &Row) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        id: row.try_get(0)?,
        account_id: row.try_get(1)?,
        account_name: row.try_get(2)?,
        credits: row.try_get(3)?,
        digest: KeyDigest(digest(row, 4)?),
        created_at: Timestamp(row.try_get(5)?),
        expires_at: row.try_get::<_, Option<i64>>(6)?.map(Timestamp),
        revoked_at: row.try_get::<_, Option<i64>>(7)?.map(Timestamp),
    })
}

pub(super) async fn revoke_key(
    db: &Transaction<'_>,
    key_id: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let changed = change(
        db,
        "UPDATE keys SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2",
        &[&now.0, &key_id],
    )
    .await?;
    match changed {
        0 => Err(StoreError::NotFound("key")),
        _ => Ok(()),
    }
}

pub(super) async fn summaries(db: &Object) -> Result<Vec<AccountSummary>, StoreError> {
    let rows = rows(
        db,
        "SELECT id, name, credits, created_at, audits,
                (SELECT count(*) FROM keys WHERE keys.account_id = accounts.id),
                (SELECT count(*) FROM audits
                 WHERE audits.account_id = accounts.id AND audits.state <> 'completed')
         FROM accounts ORDER BY created_at, id",
        &[],
    )
    .await?;
    let summary = |row: &Row| {
        Ok(AccountSummary {
            account: Account {
                id: row.try_get(0)?,
                name: row.try_get(1)?,
                credits: row.try_get(2)?,
                created_at: Timestamp(row.try_get(3)?),
            },
            audits: count(row, 4)?,
            keys: count(row, 5)?,
            unfinished: count(row, 6)?,
        })
    };
    rows.iter().map(summary).collect()
}

/// Returns the stored secret, or stores and returns `fresh` if there is none or with `rotate`.
pub(super) async fn webhook_secret(
    db: &Transaction<'_>,
    account_id: &str,
    rotate: bool,
    fresh: &str,
) -> Result<String, StoreError> {
    let secret = row(
        db,
        "UPDATE accounts
         SET webhook_secret = CASE WHEN $1 THEN $2 ELSE coalesce(webhook_secret, $2) END
         WHERE id = $3 RETURNING webhook_secret",
        &[&rotate, &fresh, &account_id],
    )
    .await?;
    match secret {
        Some(row) => Ok(row.try_get(0)?),
        None => Err(StoreError::NotFound("account")),
    }
}
