//! Audits from the view of agents: lease, heartbeat, finish, release.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::lanes::{self, Lane};
use super::{accounts, audits, deliveries};
use crate::types::ended_options_column;
use crate::{
    AuditSummary, Cancellation, FinishedAudit, Lease, LeaseOwner, LeaseScope, LeaseState,
    LedgerReason, ProcessSet, QueueDepth, QueuedAudit, ReleaseReason, ReturnReason, StoreError,
    Timestamp, UnsummarizedAudit, owner::token_prefix,
};

// `INDEXED BY` makes a statement fail rather than scan a million finished audits: SQLite could
// otherwise use the rowid, which has the same order.

pub(super) fn lease(
    connection: &Connection,
    scope: &LeaseScope,
    running_per_account: Option<u32>,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<Option<Lease>, StoreError> {
    if let Some(slots) = &scope.slots {
        let leases = count_leases(connection, &token_prefix(&slots.token_id), now)?;
        if leases >= i64::from(slots.max_leases) {
            return Err(StoreError::SlotsInUse(slots.max_leases));
        }
    }
    let position = match first_expired(connection, scope, now)? {
        Some(position) => position,
        None => match lanes::next(connection, scope, running_per_account)? {
            Some(position) => position,
            None => return Ok(None),
        },
    };
    let (lease, account_id, interactive): (Lease, String, bool) = connection
        .prepare_cached(
            "UPDATE audits SET attempt = attempt + 1, faults = faults + (state = 'running'),
                               state = 'running', lease_owner = ?, lease_expires_at = ?
             WHERE position = ?
             RETURNING tracking_id, audit_id, attempt, faults, url, device, network, location,
                       options, runs, account_id, batch_id IS NULL",
        )?
        .query_row(
            params![scope.owner.to_string(), expires_at.0, position],
            |row| {
                let lease = Lease {
                    tracking_id: row.get(0)?,
                    audit_id: row.get(1)?,
                    attempt: row.get(2)?,
                    owner: scope.owner.clone(),
                    expires_at,
                    order: audits::order(row, 4)?,
                    runs: row.get(9)?,
                    faults: row.get(3)?,
                };
                Ok((lease, row.get(10)?, row.get(11)?))
            },
        )?;
    Lane {
        account_id: &account_id,
        location: &lease.order.location,
        interactive,
    }
    .record_served(connection)?;
    Ok(Some(lease))
}

/// Returns the number of leases of owners with this prefix that have not expired.
fn count_leases(
    connection: &Connection,
    owner_prefix: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let length = i64::try_from(owner_prefix.chars().count()).unwrap_or(i64::MAX);
    Ok(connection
        .prepare_cached(
            "SELECT count(*) FROM audits INDEXED BY audits_by_owner
             WHERE state = 'running' AND lease_owner >= ?1 AND lease_expires_at > ?2
                   AND substr(lease_owner, 1, ?3) = ?1",
        )?
        .query_row(params![owner_prefix, now.0, length], |row| row.get(0))?)
}

fn first_expired(
    connection: &Connection,
    scope: &LeaseScope,
    now: Timestamp,
) -> Result<Option<i64>, StoreError> {
    let mut first: Option<(i64, i64)> = None;
    for location in scope.location_filters() {
        let head = connection
            .prepare_cached(
                "SELECT lease_expires_at, position FROM audits INDEXED BY audits_running
                 WHERE state = 'running' AND lease_expires_at <= ?2
                   AND (?1 IS NULL OR location = ?1)
                 ORDER BY lease_expires_at, position LIMIT 1",
            )?
            .query_row(params![location, now.0], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        first = first.into_iter().chain(head).min();
    }
    Ok(first.map(|(_, position)| position))
}

pub(super) fn heartbeat(
    connection: &Connection,
    fence: &LeaseFence,
    until: Timestamp,
) -> Result<LeaseState, StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE audits SET lease_expires_at = ?
             WHERE tracking_id = ? AND attempt = ? AND state = 'running'",
        )?
        .execute(params![until.0, fence.tracking_id, fence.attempt])?;
    Ok(hold(changed))
}

pub(super) fn finish(
    connection: &Connection,
    fence: &LeaseFence,
    finished: &FinishedAudit,
    options: Option<&str>,
) -> Result<LeaseState, StoreError> {
    let error = finished.error.as_ref();
    let summary = finished.summary.as_ref();
    let ended: Option<EndedAudit> = connection
        .prepare_cached(
            "UPDATE audits SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL,
                               finished_at = ?, error_code = ?, error_message = ?,
                               lab_data = ?, summary = ?, final_url = ?, options = ?
             WHERE tracking_id = ? AND attempt = ? AND state = 'running'
             RETURNING position, account_id, runs, webhook IS NOT NULL, batch_id, attempt > 0",
        )?
        .query_row(
            params![
                finished.finished_at.0,
                error.map(|error| &error.code),
                error.map(|error| &error.message),
                summary.and_then(|summary| summary.lab_data.as_deref()),
                summary.map(|summary| &summary.summary),
                summary.and_then(|summary| summary.final_url.as_deref()),
                options,
                fence.tracking_id,
                fence.attempt
            ],
            EndedAudit::read,
        )
        .optional()?;
    let Some(ended) = ended else {
        return Ok(LeaseState::Lost);
    };
    ended.store_report(connection, &finished.report, finished.finished_at)?;
    if error.is_some() {
        ended.refund(connection, finished.finished_at)?;
    }
    Ok(LeaseState::Held)
}

/// An audit whose state has become `completed` in this transaction.
struct EndedAudit {
    position: i64,
    account_id: String,
    cost: i64,
    has_webhook: bool,
    batch_id: Option<String>,
    was_leased: bool,
}

impl EndedAudit {
    /// Reads the first six columns: position, account, runs, whether there is a webhook, batch,
    /// whether it was ever leased.
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            position: row.get(0)?,
            account_id: row.get(1)?,
            cost: row.get(2)?,
            has_webhook: row.get(3)?,
            batch_id: row.get(4)?,
            was_leased: row.get(5)?,
        })
    }

    /// Stores the report, and the webhook that is due now.
    fn store_report(
        &self,
        connection: &Connection,
        report: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        connection
            .prepare_cached("INSERT INTO reports (position, report) VALUES (?, ?)")?
            .execute(params![self.position, report])?;
        if self.has_webhook {
            let batch_id = self.ended_batch(connection)?;
            deliveries::add(connection, self.position, &self.account_id, at, batch_id)?;
        }
        Ok(())
    }

    /// Counts the audit in its batch, and returns the batch if this was its last audit.
    fn ended_batch(&self, connection: &Connection) -> Result<Option<&str>, StoreError> {
        let Some(batch_id) = &self.batch_id else {
            return Ok(None);
        };
        let is_last = connection
            .prepare_cached(
                "UPDATE batches SET finished = finished + 1 WHERE id = ?
                 RETURNING finished >= audits",
            )?
            .query_row([batch_id], |row| row.get(0))?;
        Ok(Some(batch_id.as_str()).filter(|_| is_last))
    }

    fn refund(&self, connection: &Connection, at: Timestamp) -> Result<(), StoreError> {
        connection
            .prepare_cached("UPDATE accounts SET credits = credits + ? WHERE id = ?")?
            .execute(params![self.cost, self.account_id])?;
        accounts::add_ledger_entry(
            connection,
            &self.account_id,
            self.cost,
            LedgerReason::Refund,
            Some(self.position),
            at,
        )?;
        if !self.was_leased {
            connection
                .prepare_cached(
                    "UPDATE ledger SET never_leased = 1 WHERE position = ? AND reason = 'refund'",
                )?
                .execute([self.position])?;
        }
        Ok(())
    }
}

pub(super) fn cancel(
    connection: &Connection,
    cancellation: &Cancellation,
) -> Result<Vec<String>, StoreError> {
    let (error, at) = (&cancellation.error, cancellation.at);
    // A higher attempt makes the earlier ones late, as a new lease would.
    let mut statement = connection.prepare_cached(
        "UPDATE audits SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL,
                           attempt = attempt + (attempt > 0), finished_at = ?, error_code = ?,
                           error_message = ?, lab_data = ?, summary = ?, final_url = ?,
                           options = ?
         WHERE tracking_id = ? AND account_id = ? AND state <> 'completed'
         RETURNING position, account_id, runs, webhook IS NOT NULL, batch_id, attempt > 0, location",
    )?;
    let mut cancelled = Vec::new();
    for audit in &cancellation.audits {
        let summary = &audit.summary;
        let values = params![
            at.0,
            error.code,
            error.message,
            summary.lab_data,
            summary.summary,
            summary.final_url,
            ended_options_column(&audit.order)?,
            audit.tracking_id,
            cancellation.account_id
        ];
        let ended: Option<(EndedAudit, String)> = statement
            .query_row(values, |row| Ok((EndedAudit::read(row)?, row.get(6)?)))
            .optional()?;
        let Some((ended, location)) = ended else {
            continue;
        };
        ended.store_report(connection, &audit.report, at)?;
        ended.refund(connection, at)?;
        Lane {
            account_id: &cancellation.account_id,
            location: &location,
            interactive: ended.batch_id.is_none(),
        }
        .close_if_empty(connection)?;
        cancelled.push(audit.tracking_id.clone());
    }
    Ok(cancelled)
}

pub(super) fn unsummarized(
    connection: &Connection,
    limit: u32,
) -> Result<Vec<UnsummarizedAudit>, StoreError> {
    let audits = connection
        .prepare_cached(
            "SELECT audits.tracking_id, reports.report
             FROM audits INDEXED BY audits_without_summary
             JOIN reports ON reports.position = audits.position
             WHERE audits.state = 'completed' AND audits.summary IS NULL LIMIT ?",
        )?
        .query_map([limit], |row| {
            Ok(UnsummarizedAudit {
                tracking_id: row.get(0)?,
                report: row.get(1)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(audits)
}

pub(super) fn store_summary(
    connection: &Connection,
    tracking_id: &str,
    summary: &AuditSummary,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE audits SET lab_data = ?, summary = ?, final_url = ?
             WHERE tracking_id = ? AND state = 'completed' AND summary IS NULL",
        )?
        .execute(params![
            summary.lab_data,
            summary.summary,
            summary.final_url,
            tracking_id
        ])?;
    Ok(())
}

pub(super) fn release(
    connection: &Connection,
    fence: &LeaseFence,
    reason: ReleaseReason,
) -> Result<LeaseState, StoreError> {
    let position = connection
        .prepare_cached(
            "UPDATE audits SET state = 'waiting', lease_owner = NULL, lease_expires_at = NULL,
                               faults = faults + ?
             WHERE tracking_id = ? AND attempt = ? AND state = 'running'
                   AND (NOT ? OR lease_expires_at = ?)
             RETURNING position",
        )?
        .query_row(
            params![
                reason == ReleaseReason::Returned(ReturnReason::Fault),
                fence.tracking_id,
                fence.attempt,
                reason == ReleaseReason::Unconfirmed,
                fence.expires_at.0
            ],
            |row| row.get(0),
        )
        .optional()?;
    match position {
        None => Ok(LeaseState::Lost),
        Some(position) => {
            open_lane(connection, position)?;
            Ok(LeaseState::Held)
        }
    }
}

/// Opens the lane of an audit that waits again.
fn open_lane(connection: &Connection, position: i64) -> Result<(), StoreError> {
    let (account_id, location, interactive): (String, String, bool) = connection
        .prepare_cached(
            "SELECT account_id, location, batch_id IS NULL FROM audits WHERE position = ?",
        )?
        .query_row([position], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    Lane {
        account_id: &account_id,
        location: &location,
        interactive,
    }
    .open(connection, position)
}

pub(super) fn recover(connection: &Connection, processes: &ProcessSet) -> Result<u64, StoreError> {
    let running = connection
        .prepare_cached(
            "SELECT position, lease_owner FROM audits INDEXED BY audits_running
             WHERE state = 'running'",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(i64, String)>, _>>()?;
    let mut recovered = 0;
    for (position, _) in running
        .iter()
        .filter(|(_, owner)| processes.contains(&LeaseOwner::from(owner.as_str()).process))
    {
        connection
            .prepare_cached(
                "UPDATE audits SET state = 'waiting', lease_owner = NULL, lease_expires_at = NULL,
                                   faults = faults + 1
                 WHERE position = ?",
            )?
            .execute([position])?;
        open_lane(connection, *position)?;
        recovered += 1;
    }
    Ok(recovered)
}

pub(super) fn depth(connection: &Connection) -> Result<QueueDepth, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM audits INDEXED BY audits_waiting WHERE state = 'waiting'),
                    (SELECT count(*) FROM audits INDEXED BY audits_running WHERE state = 'running')",
        )?
        .query_row([], |row| {
            Ok(QueueDepth {
                waiting: row.get::<_, i64>(0)?.unsigned_abs(),
                running: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        })?)
}

pub(super) fn waiting_since(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT accepted_at FROM audits INDEXED BY audits_waiting
             WHERE state = 'waiting' ORDER BY position LIMIT 1",
        )?
        .query_row([], |row| row.get(0).map(Timestamp))
        .optional()?)
}

pub(super) fn unfinished(
    connection: &Connection,
    limit: u32,
) -> Result<Vec<QueuedAudit>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT tracking_id, account_id, url, accepted_at, attempt, faults, lease_owner,
                lease_expires_at
         FROM audits WHERE position IN (
             SELECT position FROM audits INDEXED BY audits_waiting WHERE state = 'waiting'
             UNION ALL
             SELECT position FROM audits INDEXED BY audits_running WHERE state = 'running')
         ORDER BY position LIMIT ?",
    )?;
    let rows = statement.query_map([limit], |row| {
        let owner: Option<String> = row.get(6)?;
        let until: Option<i64> = row.get(7)?;
        Ok(QueuedAudit {
            tracking_id: row.get(0)?,
            account_id: row.get(1)?,
            url: row.get(2)?,
            accepted_at: Timestamp(row.get(3)?),
            attempt: row.get(4)?,
            faults: row.get(5)?,
            lease: owner
                .map(|owner| LeaseOwner::from(owner.as_str()))
                .zip(until.map(Timestamp)),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The part of a lease that identifies it. Owners may share a name, but attempts are unique.
pub(super) struct LeaseFence {
    tracking_id: String,
    attempt: u32,
    /// The expiry when it was leased or last read.
    expires_at: Timestamp,
}

impl From<&Lease> for LeaseFence {
    fn from(lease: &Lease) -> Self {
        Self {
            tracking_id: lease.tracking_id.clone(),
            attempt: lease.attempt,
            expires_at: lease.expires_at,
        }
    }
}

fn hold(changed: usize) -> LeaseState {
    if changed == 0 {
        LeaseState::Lost
    } else {
        LeaseState::Held
    }
}
