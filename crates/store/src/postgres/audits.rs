//! Audits as their clients see them: accepted, asked after, read.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::connect::{change, row};
use super::{accounts, digest};
use crate::{
    Acceptance, AuditError, AuditOrder, AuditState, AuditStatus, NewAudit, Replay, StoreError,
    StoredReport, Submission, Timestamp,
};

pub(super) async fn submit(
    db: &Transaction<'_>,
    submission: &Submission,
) -> Result<Acceptance, StoreError> {
    // Whatever is decided below is decided for one submission of the account at a time.
    let balance = accounts::lock(db, &submission.account_id)
        .await?
        .ok_or(StoreError::NotFound("account"))?;
    if let Some(replay) = &submission.replay
        && let Some(earlier) = earlier_reply(db, submission, replay).await?
    {
        return Ok(earlier);
    }
    let audits = i64::try_from(submission.audits.len()).unwrap_or(i64::MAX);
    if let Some(at_most) = submission.unfinished_at_most {
        let unfinished = unfinished(db, &submission.account_id).await?;
        if (unfinished + audits).unsigned_abs() > at_most {
            return Ok(Acceptance::TooManyUnfinished);
        }
    }
    if balance < submission.cost() {
        return Ok(Acceptance::InsufficientCredits);
    }
    let paid = row(
        db,
        "UPDATE accounts SET credits = credits - $1, audits = audits + $2 WHERE id = $3
         RETURNING audits - $2",
        &[&submission.cost(), &audits, &submission.account_id],
    )
    .await?;
    let Some(paid) = paid else {
        return Err(StoreError::NotFound("account"));
    };
    if let Some(batch_id) = &submission.batch_id {
        change(
            db,
            "INSERT INTO batches (id, account_id, audits, accepted_at) VALUES ($1, $2, $3, $4)",
            &[
                batch_id,
                &submission.account_id,
                &audits,
                &submission.accepted_at.0,
            ],
        )
        .await?;
    }
    queue(db, submission, paid.try_get(0)?).await?;
    if let Some(replay) = &submission.replay {
        remember(db, &submission.account_id, replay).await?;
    }
    Ok(Acceptance::Accepted)
}

/// All at once: the audits in their order, what each of them cost, and the lanes in which they wait.
async fn queue(
    db: &Transaction<'_>,
    submission: &Submission,
    numbers_before: i64,
) -> Result<(), StoreError> {
    fn all<'a, T>(submission: &'a Submission, of: impl Fn(&'a NewAudit) -> T) -> Vec<T> {
        submission.audits.iter().map(of).collect()
    }
    change(
        db,
        "WITH queued AS (
             INSERT INTO audits (account_id, number, batch_id, tracking_id, audit_id, url, device,
                                 network, location, runs, webhook, accepted_at, state)
             SELECT $1, $2 + nth, $3, tracking_id, audit_id, url, device, network, location, runs,
                    webhook, accepted_at, 'waiting'
             FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                         $10::bigint[], $11::text[], $12::bigint[]) WITH ORDINALITY
                  AS handed_in (tracking_id, audit_id, url, device, network, location, runs,
                                webhook, accepted_at, nth)
             ORDER BY nth
             RETURNING position, location, runs, accepted_at
         ), charged AS (
             INSERT INTO ledger (account_id, amount, reason, position, at)
             SELECT $1, -runs, 'audit', position, accepted_at FROM queued ORDER BY position
         )
         INSERT INTO lanes (account_id, location, interactive, turn, since)
         SELECT $1, location, $3::text IS NULL,
                coalesce((SELECT turn FROM turns WHERE account_id = $1), 0), min(position)
         FROM queued GROUP BY location
         ON CONFLICT DO NOTHING",
        &[
            &submission.account_id,
            &numbers_before,
            &submission.batch_id,
            &all(submission, |audit| &audit.tracking_id),
            &all(submission, |audit| &audit.audit_id),
            &all(submission, |audit| &audit.order.url),
            &all(submission, |audit| &audit.order.device),
            &all(submission, |audit| &audit.order.network),
            &all(submission, |audit| &audit.order.location),
            &all(submission, |audit| i64::from(audit.options.runs)),
            &all(submission, |audit| audit.options.webhook.as_ref()),
            &all(submission, |audit| audit.accepted_at.0),
        ],
    )
    .await?;
    Ok(())
}

async fn earlier_reply(
    db: &Transaction<'_>,
    submission: &Submission,
    replay: &Replay,
) -> Result<Option<Acceptance>, StoreError> {
    let found = row(
        db,
        "SELECT digest, reply FROM replies
         WHERE account_id = $1 AND key = $2 AND expires_at > $3",
        &[
            &submission.account_id,
            &replay.key,
            &submission.accepted_at.0,
        ],
    )
    .await?;
    let Some(found) = found else {
        return Ok(None);
    };
    Ok(Some(match digest(&found, 0)? == replay.digest {
        true => Acceptance::Replayed(found.try_get(1)?),
        false => Acceptance::KeyReused,
    }))
}

/// In place of one that is over, if there is one.
async fn remember(
    db: &Transaction<'_>,
    account_id: &str,
    replay: &Replay,
) -> Result<(), StoreError> {
    change(
        db,
        "INSERT INTO replies (account_id, key, digest, reply, expires_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (account_id, key) DO UPDATE
         SET digest = excluded.digest, reply = excluded.reply, expires_at = excluded.expires_at",
        &[
            &account_id,
            &replay.key,
            &replay.digest.as_slice(),
            &replay.reply,
            &replay.until.0,
        ],
    )
    .await?;
    Ok(())
}

async fn unfinished(db: &Transaction<'_>, account_id: &str) -> Result<i64, StoreError> {
    let found = row(
        db,
        "SELECT count(*) FROM audits WHERE account_id = $1 AND state <> 'completed'",
        &[&account_id],
    )
    .await?;
    Ok(found.map_or(Ok(0), |row| row.try_get(0))?)
}

pub(super) async fn status(
    db: &Object,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<AuditStatus>, StoreError> {
    let found = row(
        db,
        "SELECT tracking_id, audit_id, url, state = 'completed', attempt > 0,
                error_code, error_message
         FROM audits WHERE tracking_id = $1 AND account_id = $2",
        &[&tracking_id, &account_id],
    )
    .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    Ok(Some(AuditStatus {
        tracking_id: row.try_get(0)?,
        audit_id: row.try_get(1)?,
        url: row.try_get(2)?,
        state: state(&row, 3)?,
        error: error(&row, 5)?,
    }))
}

pub(super) async fn report(
    db: &impl GenericClient,
    account_id: &str,
    audit_id: &str,
) -> Result<Option<StoredReport>, StoreError> {
    let found = row(
        db,
        "SELECT audits.audit_id, audits.tracking_id, audits.url, audits.device, audits.network,
                audits.location, audits.finished_at, audits.error_code, audits.error_message,
                reports.report
         FROM audits JOIN reports ON reports.position = audits.position
         WHERE audits.audit_id = $1 AND audits.account_id = $2",
        &[&audit_id, &account_id],
    )
    .await?;
    found.as_ref().map(stored_report).transpose()
}

pub(super) fn stored_report(row: &Row) -> Result<StoredReport, StoreError> {
    Ok(StoredReport {
        audit_id: row.try_get(0)?,
        tracking_id: row.try_get(1)?,
        order: order(row, 2)?,
        created_at: Timestamp(row.try_get(6)?),
        error: error(row, 7)?,
        report: row.try_get(9)?,
    })
}

/// From four columns: url, device, network, location.
pub(super) fn order(row: &Row, first: usize) -> Result<AuditOrder, StoreError> {
    Ok(AuditOrder {
        url: row.try_get(first)?,
        device: row.try_get(first + 1)?,
        network: row.try_get(first + 2)?,
        location: row.try_get(first + 3)?,
    })
}

/// From two columns: whether completed, whether ever leased.
pub(super) fn state(row: &Row, first: usize) -> Result<AuditState, StoreError> {
    Ok(match (row.try_get(first)?, row.try_get(first + 1)?) {
        (true, _) => AuditState::Completed,
        (false, true) => AuditState::InProgress,
        (false, false) => AuditState::NotStarted,
    })
}

/// From two columns: code and message.
pub(super) fn error(row: &Row, first: usize) -> Result<Option<AuditError>, StoreError> {
    let code: Option<String> = row.try_get(first)?;
    let message: Option<String> = row.try_get(first + 1)?;
    Ok(code
        .zip(message)
        .map(|(code, message)| AuditError { code, message }))
}
