//! Audits as their clients see them: accepted, asked after, read.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::accounts;
use crate::{
    Acceptance, AuditError, AuditOrder, AuditState, AuditStatus, LedgerReason, NewAudit,
    StoreError, StoredReport, Timestamp,
};

pub(super) fn accept(connection: &Connection, audit: &NewAudit) -> Result<Acceptance, StoreError> {
    let paid = connection
        .prepare_cached("UPDATE accounts SET credits = credits - 1 WHERE id = ? AND credits >= 1")?
        .execute([&audit.account_id])?;
    if paid == 0 {
        return match accounts::balance(connection, &audit.account_id)? {
            Some(_) => Ok(Acceptance::InsufficientCredits),
            None => Err(StoreError::NotFound("account")),
        };
    }
    connection
        .prepare_cached(
            "INSERT INTO audits (tracking_id, audit_id, account_id, url, device, network, location,
                                 state, accepted_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?)",
        )?
        .execute(params![
            audit.tracking_id,
            audit.audit_id,
            audit.account_id,
            audit.order.url,
            audit.order.device,
            audit.order.network,
            audit.order.location,
            audit.accepted_at.0
        ])?;
    accounts::enter(
        connection,
        &audit.account_id,
        -1,
        LedgerReason::Audit,
        Some(connection.last_insert_rowid()),
        audit.accepted_at,
    )?;
    Ok(Acceptance::Accepted)
}

pub(super) fn status(
    connection: &Connection,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<AuditStatus>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT tracking_id, audit_id, url, state = 'completed', attempt > 0,
                    error_code, error_message
             FROM audits WHERE tracking_id = ? AND account_id = ?",
        )?
        .query_row([tracking_id, account_id], |row| {
            Ok(AuditStatus {
                tracking_id: row.get(0)?,
                audit_id: row.get(1)?,
                url: row.get(2)?,
                state: match (row.get(3)?, row.get(4)?) {
                    (true, _) => AuditState::Completed,
                    (false, true) => AuditState::InProgress,
                    (false, false) => AuditState::NotStarted,
                },
                error: error(row, 5, 6)?,
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
                    audits.location, audits.finished_at, audits.error_code, audits.error_message,
                    reports.report
             FROM audits JOIN reports ON reports.position = audits.position
             WHERE audits.audit_id = ? AND audits.account_id = ?",
        )?
        .query_row([audit_id, account_id], |row| {
            Ok(StoredReport {
                audit_id: row.get(0)?,
                tracking_id: row.get(1)?,
                order: order(row, 2)?,
                created_at: Timestamp(row.get(6)?),
                error: error(row, 7, 8)?,
                report: row.get(9)?,
            })
        })
        .optional()?)
}

/// From four columns: url, device, network, location.
pub(super) fn order(row: &Row<'_>, first: usize) -> Result<AuditOrder, rusqlite::Error> {
    Ok(AuditOrder {
        url: row.get(first)?,
        device: row.get(first + 1)?,
        network: row.get(first + 2)?,
        location: row.get(first + 3)?,
    })
}

fn error(
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
