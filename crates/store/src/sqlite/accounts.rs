//! Accounts, their keys and their credits.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    Account, AccountSummary, KeyDigest, KeyRecord, LedgerEntry, LedgerReason, StoreError, Timestamp,
};

pub(super) fn create(connection: &Connection, account: &Account) -> Result<(), StoreError> {
    connection
        .prepare_cached("INSERT INTO accounts (id, name, credits, created_at) VALUES (?, ?, ?, ?)")?
        .execute(params![
            account.id,
            account.name,
            account.credits,
            account.created_at.0
        ])?;
    if account.credits != 0 {
        add_ledger_entry(
            connection,
            &account.id,
            account.credits,
            LedgerReason::Opening,
            None,
            account.created_at,
        )?;
    }
    Ok(())
}

/// Adds an entry to the ledger. The caller changes the balance by the same amount.
pub(super) fn add_ledger_entry(
    connection: &Connection,
    account_id: &str,
    amount: i64,
    reason: LedgerReason,
    position: Option<i64>,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO ledger (account_id, amount, reason, position, at) VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![
            account_id,
            amount,
            reason_text(reason),
            position,
            at.0
        ])?;
    Ok(())
}

pub(super) fn add_credits(
    connection: &Connection,
    account_id: &str,
    amount: i64,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let before = balance(connection, account_id)?.ok_or(StoreError::NotFound("account"))?;
    let after = before.saturating_add(amount).max(0);
    if after != before {
        connection
            .prepare_cached("UPDATE accounts SET credits = ? WHERE id = ?")?
            .execute(params![after, account_id])?;
        add_ledger_entry(
            connection,
            account_id,
            after - before,
            LedgerReason::Adjustment,
            None,
            now,
        )?;
    }
    Ok(after)
}

pub(super) fn balance(
    connection: &Connection,
    account_id: &str,
) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT credits FROM accounts WHERE id = ?")?
        .query_row([account_id], |row| row.get(0))
        .optional()?)
}

pub(super) fn ledger(
    connection: &Connection,
    account_id: &str,
) -> Result<Vec<LedgerEntry>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT ledger.amount, ledger.reason, audits.tracking_id, ledger.at
         FROM ledger LEFT JOIN audits ON audits.position = ledger.position
         WHERE ledger.account_id = ? ORDER BY ledger.id",
    )?;
    let rows = statement.query_map([account_id], |row| {
        let reason: String = row.get(1)?;
        Ok(LedgerEntry {
            amount: row.get(0)?,
            reason: match reason.as_str() {
                "opening" => LedgerReason::Opening,
                "audit" => LedgerReason::Audit,
                "refund" => LedgerReason::Refund,
                _ => LedgerReason::Adjustment,
            },
            tracking_id: row.get(2)?,
            at: Timestamp(row.get(3)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn reason_text(reason: LedgerReason) -> &'static str {
    match reason {
        LedgerReason::Opening => "opening",
        LedgerReason::Adjustment => "adjustment",
        LedgerReason::Audit => "audit",
        LedgerReason::Refund => "refund",
    }
}

pub(super) fn add_key(
    connection: &Connection,
    account_id: &str,
    key_id: &str,
    digest: KeyDigest,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    balance(connection, account_id)?.ok_or(StoreError::NotFound("account"))?;
    connection
        .prepare_cached(
            "INSERT INTO keys (id, account_id, digest, created_at, expires_at)
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![
            key_id,
            account_id,
            digest.0,
            now.0,
            expires_at.map(|time| time.0)
        ])?;
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

pub(super) fn keys(connection: &Connection) -> Result<Vec<KeyRecord>, StoreError> {
    let mut statement =
        connection.prepare_cached(select_keys!("ORDER BY keys.created_at, keys.id"))?;
    let rows = statement.query_map([], key_record)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn key(
    connection: &Connection,
    key_id: &str,
) -> Result<Option<KeyRecord>, rusqlite::Error> {
    connection
        .prepare_cached(select_keys!("WHERE keys.id = ?"))?
        .query_row([key_id], key_record)
        .optional()
}

fn key_record(row: &Row<'_>) -> Result<KeyRecord, rusqlite::Error> {
    Ok(KeyRecord {
        id: row.get(0)?,
        account_id: row.get(1)?,
        account_name: row.get(2)?,
        credits: row.get(3)?,
        digest: KeyDigest(row.get(4)?),
        created_at: Timestamp(row.get(5)?),
        expires_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
        revoked_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
    })
}

pub(super) fn revoke_key(
    connection: &Connection,
    key_id: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let changed = connection
        .prepare_cached("UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?")?
        .execute(params![now.0, key_id])?;
    if changed == 0 {
        return Err(StoreError::NotFound("key"));
    }
    Ok(())
}

pub(super) fn summaries(connection: &Connection) -> Result<Vec<AccountSummary>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, credits, created_at, audits,
                (SELECT count(*) FROM keys WHERE keys.account_id = accounts.id),
                (SELECT count(*) FROM audits INDEXED BY audits_unfinished
                 WHERE audits.account_id = accounts.id AND audits.state <> 'completed')
         FROM accounts ORDER BY created_at, id",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(AccountSummary {
            account: Account {
                id: row.get(0)?,
                name: row.get(1)?,
                credits: row.get(2)?,
                created_at: Timestamp(row.get(3)?),
            },
            audits: row.get::<_, i64>(4)?.unsigned_abs(),
            keys: row.get::<_, i64>(5)?.unsigned_abs(),
            unfinished: row.get::<_, i64>(6)?.unsigned_abs(),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the stored secret, or stores and returns `fresh` if there is none or with `rotate`.
pub(super) fn webhook_secret(
    connection: &Connection,
    account_id: &str,
    rotate: bool,
    fresh: &str,
) -> Result<String, StoreError> {
    connection
        .prepare_cached(
            "UPDATE accounts
             SET webhook_secret = CASE WHEN ?1 THEN ?2 ELSE coalesce(webhook_secret, ?2) END
             WHERE id = ?3 RETURNING webhook_secret",
        )?
        .query_row(params![rotate, fresh, account_id], |row| row.get(0))
        .optional()?
        .ok_or(StoreError::NotFound("account"))
}
