//! Many audits at once: accepted, paid for and watched together.

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{AuditEntry, AuditState, Batch, NewAudit, Submission};
use serde::Serialize;

use crate::{
    answer,
    api::{
        audit::{new_id, submit},
        audits::{Row, state_name},
        idempotency::{self, IdempotencyKey},
        order::{ManyWishes, Object},
        path_id::PathId,
    },
    auth::{Caller, Starter},
    errors::Failure,
    router::Shared,
};

/// `POST /v1/batches`: every URL on every device, location and network, or nothing.
pub(crate) async fn start(
    State(service): State<Shared>,
    starter: Starter,
    idempotency: IdempotencyKey,
    Object(wishes): Object<ManyWishes>,
) -> Result<Response, Failure> {
    let idempotency_key = idempotency.valid()?;
    let (orders, options) = wishes.into_orders(&service.app)?;
    let count = orders.len();
    starter
        .take(&service, u32::try_from(count).unwrap_or(u32::MAX))
        .await?;
    let now = (service.app.clock)();
    let batch_id = new_id("bat")?;
    let asked = serde_json::to_string(&("batch", &orders, options.runs, &options.webhook))
        .map_err(Failure::internal)?;
    let audits = orders.into_iter().map(|order| {
        Ok(NewAudit {
            account_id: starter.account_id.clone(),
            tracking_id: new_id("trk")?,
            audit_id: new_id("aud")?,
            order,
            options: options.clone(),
            accepted_at: now,
        })
    });
    let submission = Submission {
        account_id: starter.account_id.clone(),
        audits: audits.collect::<Result<_, Failure>>()?,
        batch_id: Some(batch_id.clone()),
        max_unfinished: service.app.limits.unfinished_audits(),
        failures: service.app.limits.failed_audits(),
        idempotency: idempotency_key
            .map(|key| idempotency::replay(key, &asked, batch_id.clone(), now)),
        accepted_at: now,
    };
    let batch_id = submit(&service, submission).await?.unwrap_or(batch_id);
    starter.notes.audit(&batch_id);
    Ok(answer::data(Accepted {
        batch_id: &batch_id,
        audits: count,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Accepted<'a> {
    batch_id: &'a str,
    audits: usize,
}

/// `GET /v1/batches/{id}`
pub(crate) async fn one(
    State(service): State<Shared>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let found = service.app.store.batch(&caller.account_id, &id).await?;
    let batch = found.ok_or(Failure::NotFound)?;
    caller.notes.audit(&batch.id);
    Ok(answer::data(Whole::from(&batch)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    batch_id: &'a str,
    created_at: String,
    status: &'static str,
    counts: Counts,
    audits: Vec<Row<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    accepted: u64,
    not_started: usize,
    in_progress: usize,
    completed: usize,
    /// Of the completed, those without measurements.
    failed: usize,
    deleted: u64,
}

impl<'a> From<&'a Batch> for Whole<'a> {
    fn from(batch: &'a Batch) -> Self {
        let count = |fits: &dyn Fn(&AuditEntry) -> bool| {
            batch.audits.iter().filter(|audit| fits(audit)).count()
        };
        let counts = Counts {
            accepted: batch.accepted,
            not_started: count(&|audit| audit.state == AuditState::NotStarted),
            in_progress: count(&|audit| audit.state == AuditState::InProgress),
            completed: count(&|audit| audit.state == AuditState::Completed),
            failed: count(&|audit| audit.error.is_some()),
            deleted: batch.accepted.saturating_sub(batch.audits.len() as u64),
        };
        // Only what is completed can have been deleted.
        let begun = counts.in_progress + counts.completed > 0 || counts.deleted > 0;
        let state = match (counts.not_started + counts.in_progress, begun) {
            (0, _) => AuditState::Completed,
            (_, true) => AuditState::InProgress,
            (_, false) => AuditState::NotStarted,
        };
        Self {
            batch_id: &batch.id,
            created_at: iso8601_ms(batch.accepted_at.0),
            status: state_name(state),
            counts,
            audits: batch.audits.iter().map(Row::from).collect(),
        }
    }
}
