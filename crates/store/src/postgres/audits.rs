//! Audits from the view of clients: submission, status and report.

use std::collections::HashMap;
use std::iter;

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::connect::{Value, row, rows};
use super::{digest, read_u32};
use crate::{
    Acceptance, AuditError, AuditState, AuditStatus, IdempotencyRecord, NewAudit, Order,
    StoreError, StoredReport, Submission, Timestamp, labels_column, options_column, read_labels,
    read_options,
};

/// Accepts or refuses submissions of one account, in order. Values that the database rejects, for
/// instance an id that is already in use, are a [`StoreError::Refused`].
pub(super) async fn submit(
    db: &Transaction<'_>,
    submissions: &[Submission],
) -> Result<Vec<Acceptance>, StoreError> {
    let Some(first) = submissions.first() else {
        return Ok(Vec::new());
    };
    let account_id = &first.account_id;
    // The lock lets one group of the account's submissions be decided at a time.
    let account = row(
        db,
        "SELECT credits, audits FROM accounts WHERE id = $1 FOR NO KEY UPDATE",
        &[account_id],
    )
    .await?
    .ok_or(StoreError::NotFound("account"))?;
    let (mut balance, last_number): (i64, i64) = (account.try_get(0)?, account.try_get(1)?);
    let is_limited = |submission: &Submission| submission.max_unfinished.is_some();
    let mut unfinished = if submissions.iter().any(is_limited) {
        unfinished(db, account_id).await?
    } else {
        0
    };
    // Queried once: all submissions of the transaction came to servers with the same limit.
    let blocked_until = match submissions.iter().find(|one| one.failures.is_some()) {
        Some(submission) => too_many_failed(db, submission).await?,
        None => None,
    };
    let records = submissions
        .iter()
        .filter_map(|one| one.idempotency.as_ref());
    let stored = stored_replies(db, account_id, records).await?;
    let mut acceptances = Vec::with_capacity(submissions.len());
    let mut accepted = Vec::new();
    for submission in submissions {
        let audits = i64::try_from(submission.audits.len()).unwrap_or(i64::MAX);
        let max_unfinished = submission.max_unfinished;
        acceptances.push(
            if let Some(earlier) = submission
                .idempotency
                .as_ref()
                .and_then(|record| decided(record, &stored, submission.accepted_at))
            {
                earlier
            } else if let Some(until) = blocked_until.filter(|_| submission.failures.is_some()) {
                Acceptance::TooManyFailed(until)
            } else if max_unfinished.is_some_and(|max| (unfinished + audits).unsigned_abs() > max) {
                Acceptance::TooManyUnfinished
            } else if balance < submission.cost() {
                Acceptance::InsufficientCredits
            } else {
                unfinished += audits;
                balance -= submission.cost();
                accepted.push(submission);
                Acceptance::Accepted
            },
        );
    }
    if !accepted.is_empty() {
        insert(db, account_id, &accepted, last_number).await?;
    }
    Ok(acceptances)
}

/// Returns when the account may submit again, if too many of its audits have failed recently.
async fn too_many_failed(
    db: &Transaction<'_>,
    submission: &Submission,
) -> Result<Option<Timestamp>, StoreError> {
    let Some(limit) = submission.failures else {
        return Ok(None);
    };
    let oldest_counted = row(
        db,
        "SELECT at FROM ledger
         WHERE account_id = $1 AND reason = 'refund' AND at > $2 AND NOT never_leased
         ORDER BY at DESC LIMIT 1 OFFSET $3",
        &[
            &submission.account_id,
            &limit.since(submission.accepted_at),
            &limit.offset(),
        ],
    )
    .await?;
    let at: Option<i64> = oldest_counted.map(|row| row.try_get(0)).transpose()?;
    Ok(at.map(|at| Timestamp(at).plus(limit.window)))
}

async fn insert(
    db: &Transaction<'_>,
    account_id: &str,
    accepted: &[&Submission],
    last_number: i64,
) -> Result<(), StoreError> {
    for submission in accepted {
        if let Some(batch_id) = &submission.batch_id {
            let audits = i64::try_from(submission.audits.len()).unwrap_or(i64::MAX);
            let sql =
                "INSERT INTO batches (id, account_id, audits, accepted_at) VALUES ($1, $2, $3, $4)";
            let values: &[Value<'_>] = &[batch_id, &account_id, &audits, &submission.accepted_at.0];
            execute_checked(db, sql, values).await?;
        }
    }
    queue(db, account_id, accepted, last_number).await?;
    for record in accepted.iter().filter_map(|one| one.idempotency.as_ref()) {
        store_idempotency(db, account_id, record).await?;
    }
    Ok(())
}

/// Takes the credits, queues the audits in their order, adds their costs to the ledger, and opens
/// their lanes, in one statement.
async fn queue(
    db: &Transaction<'_>,
    account_id: &str,
    accepted: &[&Submission],
    last_number: i64,
) -> Result<(), StoreError> {
    fn all<'a, T>(accepted: &[&'a Submission], value: impl Fn(&'a NewAudit) -> T) -> Vec<T> {
        let audits = accepted.iter().flat_map(|submission| &submission.audits);
        audits.map(value).collect()
    }
    let batch_ids =
        |submission: &&'_ Submission| vec![submission.batch_id.clone(); submission.audits.len()];
    let batches: Vec<Option<String>> = accepted.iter().flat_map(batch_ids).collect();
    let cost: i64 = accepted.iter().map(|submission| submission.cost()).sum();
    let options = all(accepted, |audit| options_column(&audit.order));
    let options: Vec<Option<String>> = options.into_iter().collect::<Result<_, _>>()?;
    let labels = all(accepted, |audit| labels_column(&audit.options.labels));
    let labels: Vec<Option<String>> = labels.into_iter().collect::<Result<_, _>>()?;
    // The labels of all audits, each with the number of its audit, from 1.
    let of_audits = all(accepted, |audit| &audit.options.labels);
    let (label_owners, label_texts): (Vec<i64>, Vec<&String>) = (1..)
        .zip(of_audits)
        .flat_map(|(nth, labels)| labels.iter().map(move |label| (nth, label)))
        .unzip();
    execute_checked(
        db,
        "WITH paid AS (
             UPDATE accounts SET credits = credits - $13, audits = audits + cardinality($4::text[])
             WHERE id = $1
         ), queued AS (
             INSERT INTO audits (account_id, number, batch_id, tracking_id, audit_id, url, device,
                                 network, location, options, runs, webhook, accepted_at,
                                 labels, state)
             SELECT $1, $2 + nth, batch_id, tracking_id, audit_id, url, device, network, location,
                    options, runs, webhook, accepted_at, labels, 'waiting'
             FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                         $9::text[], $14::text[], $10::bigint[], $11::text[], $12::bigint[],
                         $15::text[])
                  WITH ORDINALITY
                  AS submitted (batch_id, tracking_id, audit_id, url, device, network, location,
                                options, runs, webhook, accepted_at, labels, nth)
             ORDER BY nth
             RETURNING position, number, batch_id, location, runs, accepted_at
         ), labelled AS (
             INSERT INTO audit_labels (account_id, label, accepted_at, number, position)
             SELECT $1, label, accepted_at, number, position
             FROM unnest($16::bigint[], $17::text[]) AS given (nth, label)
             JOIN queued ON queued.number = $2 + given.nth
         ), charged AS (
             INSERT INTO ledger (account_id, amount, reason, position, at)
             SELECT $1, -runs, 'audit', position, accepted_at FROM queued ORDER BY position
         )
         INSERT INTO lanes (account_id, location, interactive, turn, since)
         SELECT $1, location, batch_id IS NULL,
                coalesce((SELECT turn FROM turns WHERE account_id = $1), 0), min(position)
         FROM queued GROUP BY location, batch_id IS NULL
         ON CONFLICT DO NOTHING",
        &[
            &account_id,
            &last_number,
            &batches,
            &all(accepted, |audit| &audit.tracking_id),
            &all(accepted, |audit| &audit.audit_id),
            &all(accepted, |audit| &audit.order.url),
            &all(accepted, |audit| &audit.order.device),
            &all(accepted, |audit| &audit.order.network),
            &all(accepted, |audit| &audit.order.location),
            &all(accepted, |audit| i64::from(audit.options.runs)),
            &all(accepted, |audit| audit.options.webhook.as_ref()),
            &all(accepted, |audit| audit.accepted_at.0),
            &cost,
            &options,
            &labels,
            &label_owners,
            &label_texts,
        ],
    )
    .await
}

/// Like `change`, but returns [`StoreError::Refused`] if the database rejects the values.
async fn execute_checked(
    db: &Transaction<'_>,
    sql: &str,
    values: &[Value<'_>],
) -> Result<(), StoreError> {
    let statement = db.prepare_cached(sql).await?;
    match db.execute(&statement, values).await {
        Ok(_) => Ok(()),
        Err(error) => {
            // Classes 22, data exception, and 23, integrity constraint violation.
            let is_value_error = error
                .code()
                .is_some_and(|code| code.code().starts_with("22") || code.code().starts_with("23"));
            Err(match (is_value_error, StoreError::from(error)) {
                (true, StoreError::Backend(reason)) => StoreError::Refused(reason),
                (_, error) => error,
            })
        }
    }
}

/// A stored idempotency record.
struct StoredReply {
    digest: [u8; 32],
    reply: String,
    until: Timestamp,
}

/// Returns the stored replies by idempotency key, including expired ones.
async fn stored_replies(
    db: &impl GenericClient,
    account_id: &str,
    records: impl Iterator<Item = &IdempotencyRecord>,
) -> Result<HashMap<String, StoredReply>, StoreError> {
    let keys: Vec<&String> = records.map(|record| &record.key).collect();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = rows(
        db,
        "SELECT key, digest, reply, expires_at FROM replies
         WHERE account_id = $1 AND key = ANY ($2)",
        &[&account_id, &keys],
    )
    .await?;
    let entry = |row: &Row| {
        let stored = StoredReply {
            digest: digest(row, 1)?,
            reply: row.try_get(2)?,
            until: Timestamp(row.try_get(3)?),
        };
        Ok((row.try_get(0)?, stored))
    };
    rows.iter().map(entry).collect()
}

pub(super) async fn earlier_acceptance(
    db: &Object,
    account_id: &str,
    record: &IdempotencyRecord,
    now: Timestamp,
) -> Result<Option<Acceptance>, StoreError> {
    let stored = stored_replies(db, account_id, iter::once(record)).await?;
    Ok(decided(record, &stored, now))
}

/// Returns how a request with this record was decided before.
fn decided(
    record: &IdempotencyRecord,
    stored: &HashMap<String, StoredReply>,
    now: Timestamp,
) -> Option<Acceptance> {
    let stored = stored.get(&record.key)?;
    (stored.until > now).then(|| record.acceptance(stored.digest, stored.reply.clone()))
}

/// Stores an idempotency record, in place of an expired one.
async fn store_idempotency(
    db: &Transaction<'_>,
    account_id: &str,
    record: &IdempotencyRecord,
) -> Result<(), StoreError> {
    execute_checked(
        db,
        "INSERT INTO replies (account_id, key, digest, reply, expires_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (account_id, key) DO UPDATE
         SET digest = excluded.digest, reply = excluded.reply, expires_at = excluded.expires_at",
        &[
            &account_id,
            &record.key,
            &record.digest.as_slice(),
            &record.reply,
            &record.until.0,
        ],
    )
    .await
}

async fn unfinished(db: &Transaction<'_>, account_id: &str) -> Result<i64, StoreError> {
    let row = row(
        db,
        "SELECT count(*) FROM audits WHERE account_id = $1 AND state <> 'completed'",
        &[&account_id],
    )
    .await?;
    Ok(row.map_or(Ok(0), |row| row.try_get(0))?)
}

pub(super) async fn status(
    db: &Object,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<AuditStatus>, StoreError> {
    let row = row(
        db,
        "SELECT tracking_id, audit_id, url, state = 'completed', attempt > 0,
                error_code, error_message, final_url, runs, accepted_at, labels
         FROM audits WHERE tracking_id = $1 AND account_id = $2",
        &[&tracking_id, &account_id],
    )
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(AuditStatus {
        tracking_id: row.try_get(0)?,
        audit_id: row.try_get(1)?,
        url: row.try_get(2)?,
        state: state(&row, 3)?,
        error: error(&row, 5)?,
        final_url: row.try_get(7)?,
        runs: read_u32(&row, 8)?,
        accepted_at: Timestamp(row.try_get(9)?),
        labels: labels(&row, 10)?,
    }))
}

pub(super) async fn report(
    db: &impl GenericClient,
    account_id: &str,
    audit_id: &str,
) -> Result<Option<StoredReport>, StoreError> {
    let row = row(
        db,
        "SELECT audits.audit_id, audits.tracking_id, audits.url, audits.device, audits.network,
                audits.location, audits.options, audits.finished_at, audits.error_code,
                audits.error_message, reports.report, audits.attempt, audits.account_id
         FROM audits JOIN reports ON reports.position = audits.position
         WHERE audits.audit_id = $1 AND audits.account_id = $2",
        &[&audit_id, &account_id],
    )
    .await?;
    row.as_ref().map(stored_report).transpose()
}

pub(super) fn stored_report(row: &Row) -> Result<StoredReport, StoreError> {
    Ok(StoredReport {
        audit_id: row.try_get(0)?,
        tracking_id: row.try_get(1)?,
        order: order(row, 2)?,
        created_at: Timestamp(row.try_get(7)?),
        error: error(row, 8)?,
        report: row.try_get(10)?,
        attempt: read_u32(row, 11)?,
        account_id: row.try_get(12)?,
    })
}

/// Reads an order from five columns: url, device, network, location, options.
pub(super) fn order(row: &Row, first: usize) -> Result<Order, StoreError> {
    Ok(Order {
        url: row.try_get(first)?,
        device: row.try_get(first + 1)?,
        network: row.try_get(first + 2)?,
        location: row.try_get(first + 3)?,
        options: read_options(row.try_get(first + 4)?)
            .map_err(|error| StoreError::Backend(format!("unreadable options: {error}")))?,
    })
}

/// Reads the labels of an audit.
pub(super) fn labels(row: &Row, column: usize) -> Result<Vec<String>, StoreError> {
    read_labels(row.try_get(column)?)
        .map_err(|error| StoreError::Backend(format!("unreadable labels: {error}")))
}

/// Reads a state from two columns: whether completed, whether ever leased.
pub(super) fn state(row: &Row, first: usize) -> Result<AuditState, StoreError> {
    Ok(match (row.try_get(first)?, row.try_get(first + 1)?) {
        (true, _) => AuditState::Completed,
        (false, true) => AuditState::InProgress,
        (false, false) => AuditState::NotStarted,
    })
}

/// Reads an error from two columns: code and message.
pub(super) fn error(row: &Row, first: usize) -> Result<Option<AuditError>, StoreError> {
    let code: Option<String> = row.try_get(first)?;
    let message: Option<String> = row.try_get(first + 1)?;
    Ok(code
        .zip(message)
        .map(|(code, message)| AuditError { code, message }))
}
