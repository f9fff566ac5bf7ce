//! Audits from the view of clients: submission, status and report.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, params, types::Type};

use super::accounts;
use super::lanes::Lane;
use crate::{
    Acceptance, AuditError, AuditState, AuditStatus, IdempotencyRecord, LedgerReason, NewAudit,
    Order, StoreError, StoredReport, Submission, Timestamp, labels_column, options_column,
    read_labels, read_options,
};

pub(super) fn submit(
    connection: &Connection,
    submission: &Submission,
) -> Result<Acceptance, StoreError> {
    if let Some(record) = &submission.idempotency
        && let Some(earlier) = earlier_acceptance(
            connection,
            &submission.account_id,
            record,
            submission.accepted_at,
        )?
    {
        return Ok(earlier);
    }
    if let Some(until) = too_many_failed(connection, submission)? {
        return Ok(Acceptance::TooManyFailed(until));
    }
    let audits = i64::try_from(submission.audits.len()).unwrap_or(i64::MAX);
    if let Some(max) = submission.max_unfinished {
        let unfinished = unfinished(connection, &submission.account_id)?;
        if (unfinished + audits).unsigned_abs() > max {
            return Ok(Acceptance::TooManyUnfinished);
        }
    }
    let last_number: Option<i64> = connection
        .prepare_cached(
            "UPDATE accounts SET credits = credits - ?1, audits = audits + ?2
             WHERE id = ?3 AND credits >= ?1 RETURNING audits",
        )?
        .query_row(
            params![submission.cost(), audits, submission.account_id],
            |row| row.get(0),
        )
        .optional()?;
    let Some(last_number) = last_number else {
        return match accounts::balance(connection, &submission.account_id)? {
            Some(_) => Ok(Acceptance::InsufficientCredits),
            None => Err(StoreError::NotFound("account")),
        };
    };
    if let Some(batch_id) = &submission.batch_id {
        connection
            .prepare_cached(
                "INSERT INTO batches (id, account_id, audits, accepted_at) VALUES (?, ?, ?, ?)",
            )?
            .execute(params![
                batch_id,
                submission.account_id,
                audits,
                submission.accepted_at.0
            ])?;
    }
    let mut locations = HashSet::new();
    for (audit, number) in submission.audits.iter().zip(last_number - audits + 1..) {
        let position = queue(connection, submission, audit, number)?;
        let location = &audit.order.location;
        if locations.insert(location) {
            Lane {
                account_id: &submission.account_id,
                location,
                interactive: submission.batch_id.is_none(),
            }
            .open(connection, position)?;
        }
    }
    if let Some(record) = &submission.idempotency {
        store_idempotency(connection, &submission.account_id, record)?;
    }
    Ok(Acceptance::Accepted)
}

fn queue(
    connection: &Connection,
    submission: &Submission,
    audit: &NewAudit,
    number: i64,
) -> Result<i64, StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO audits (tracking_id, audit_id, account_id, number, batch_id, url, device,
                                 network, location, options, runs, webhook, labels, state,
                                 accepted_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', ?)",
        )?
        .execute(params![
            audit.tracking_id,
            audit.audit_id,
            submission.account_id,
            number,
            submission.batch_id,
            audit.order.url,
            audit.order.device,
            audit.order.network,
            audit.order.location,
            options_column(&audit.order)?,
            audit.options.runs,
            audit.options.webhook,
            labels_column(&audit.options.labels)?,
            audit.accepted_at.0
        ])?;
    let position = connection.last_insert_rowid();
    for label in &audit.options.labels {
        connection
            .prepare_cached(
                "INSERT INTO audit_labels (account_id, label, accepted_at, number, position)
                 VALUES (?, ?, ?, ?, ?)",
            )?
            .execute(params![
                submission.account_id,
                label,
                audit.accepted_at.0,
                number,
                position
            ])?;
    }
    accounts::add_ledger_entry(
        connection,
        &submission.account_id,
        -i64::from(audit.options.runs),
        LedgerReason::Audit,
        Some(position),
        audit.accepted_at,
    )?;
    Ok(position)
}

pub(super) fn earlier_acceptance(
    connection: &Connection,
    account_id: &str,
    record: &IdempotencyRecord,
    now: Timestamp,
) -> Result<Option<Acceptance>, rusqlite::Error> {
    let stored: Option<([u8; 32], String)> = connection
        .prepare_cached(
            "SELECT digest, reply FROM replies WHERE account_id = ? AND key = ? AND expires_at > ?",
        )?
        .query_row(params![account_id, record.key, now.0], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(stored.map(|(digest, reply)| record.acceptance(digest, reply)))
}

/// Stores an idempotency record, in place of an expired one.
fn store_idempotency(
    connection: &Connection,
    account_id: &str,
    record: &IdempotencyRecord,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO replies (account_id, key, digest, reply, expires_at) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (account_id, key) DO UPDATE
             SET digest = excluded.digest, reply = excluded.reply, expires_at = excluded.expires_at",
        )?
        .execute(params![
            account_id,
            record.key,
            record.digest,
            record.reply,
            record.until.0
        ])?;
    Ok(())
}

/// Returns when the account may submit again, if too many of its audits have failed recently.
fn too_many_failed(
    connection: &Connection,
    submission: &Submission,
) -> Result<Option<Timestamp>, StoreError> {
    let Some(limit) = submission.failures else {
        return Ok(None);
    };
    let oldest_counted: Option<i64> = connection
        .prepare_cached(
            "SELECT at FROM ledger INDEXED BY ledger_refunds
             WHERE account_id = ? AND reason = 'refund' AND at > ? AND NOT never_leased
             ORDER BY at DESC LIMIT 1 OFFSET ?",
        )?
        .query_row(
            params![
                submission.account_id,
                limit.since(submission.accepted_at),
                limit.offset()
            ],
            |row| row.get(0),
        )
        .optional()?;
    Ok(oldest_counted.map(|at| Timestamp(at).plus(limit.window)))
}

fn unfinished(connection: &Connection, account_id: &str) -> Result<i64, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT count(*) FROM audits INDEXED BY audits_unfinished
             WHERE account_id = ? AND state <> 'completed'",
        )?
        .query_row([account_id], |row| row.get(0))?)
}

pub(super) fn status(
    connection: &Connection,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<AuditStatus>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT tracking_id, audit_id, url, state = 'completed', attempt > 0,
                    error_code, error_message, final_url, runs, accepted_at, labels
             FROM audits WHERE tracking_id = ? AND account_id = ?",
        )?
        .query_row([tracking_id, account_id], |row| {
            Ok(AuditStatus {
                tracking_id: row.get(0)?,
                audit_id: row.get(1)?,
                url: row.get(2)?,
                state: state(row, 3)?,
                error: error(row, 5, 6)?,
                final_url: row.get(7)?,
                runs: row.get(8)?,
                accepted_at: Timestamp(row.get(9)?),
                labels: labels(row, 10)?,
            })
        })
        .optional()
}

pub(super) fn report(
    connection: &Connection,
    account_id: &str,
    audit_id: &str,
) -> Result<Option<StoredReport>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT audits.audit_id, audits.tracking_id, audits.url, audits.device, audits.network,
                    audits.location, audits.options, audits.finished_at, audits.error_code,
                    audits.error_message, reports.report, audits.attempt
             FROM audits JOIN reports ON reports.position = audits.position
             WHERE audits.audit_id = ? AND audits.account_id = ?",
        )?
        .query_row([audit_id, account_id], |row| {
            Ok(StoredReport {
                account_id: account_id.to_owned(),
                audit_id: row.get(0)?,
                tracking_id: row.get(1)?,
                order: order(row, 2)?,
                created_at: Timestamp(row.get(7)?),
                error: error(row, 8, 9)?,
                report: row.get(10)?,
                attempt: row.get(11)?,
            })
        })
        .optional()?)
}

/// Reads an order from five columns: url, device, network, location, options.
pub(super) fn order(row: &Row<'_>, first: usize) -> Result<Order, rusqlite::Error> {
    Ok(Order {
        url: row.get(first)?,
        device: row.get(first + 1)?,
        network: row.get(first + 2)?,
        location: row.get(first + 3)?,
        options: read_options(row.get_ref(first + 4)?.as_str_or_null()?).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(first + 4, Type::Text, error.into())
        })?,
    })
}

/// Reads the labels of an audit.
pub(super) fn labels(row: &Row<'_>, column: usize) -> Result<Vec<String>, rusqlite::Error> {
    read_labels(row.get_ref(column)?.as_str_or_null()?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}

/// Reads a state from two columns: whether completed, whether ever leased.
pub(super) fn state(row: &Row<'_>, first: usize) -> Result<AuditState, rusqlite::Error> {
    Ok(match (row.get(first)?, row.get(first + 1)?) {
        (true, _) => AuditState::Completed,
        (false, true) => AuditState::InProgress,
        (false, false) => AuditState::NotStarted,
    })
}

pub(super) fn error(
    row: &Row<'_>,
    code: usize,
    message: usize,
) -> Result<Option<AuditError>, rusqlite::Error> {
    let code: Option<String> = row.get(code)?;
    let message: Option<String> = row.get(message)?;
    Ok(code
        .zip(message)
        .map(|(code, message)| AuditError { code, message }))
}
