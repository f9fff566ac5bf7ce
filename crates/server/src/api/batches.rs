//! Batches: audits that are started, paid for and followed together.

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{AuditEntry, AuditState, Batch};
use serde::Serialize;

use crate::{
    api::{
        audits::{Row, state_name},
        idempotency::IdempotencyKey,
        json_body::JsonObject,
        path_id::PathId,
        request_body::BatchRequest,
    },
    auth::{Caller, Starter},
    cancel::cancel_batch,
    envelope,
    errors::Failure,
    query::NoParameters,
    start,
    state::SharedState,
};

/// `POST /v1/batches`: starts audits of every URL on every device, location and network, or none.
pub(crate) async fn start(
    State(service): State<SharedState>,
    starter: Starter,
    _: NoParameters,
    idempotency: IdempotencyKey,
    JsonObject(request): JsonObject<BatchRequest>,
) -> Result<Response, Failure> {
    let idempotency_key = idempotency.valid()?;
    let request = request.validate(&service.app)?;
    let count = request.orders.count();
    let batch_id = start::start(&service, &starter, request, idempotency_key).await?;
    Ok(accepted(&batch_id, count))
}

/// Returns the response to the start of a batch.
pub(super) fn accepted(batch_id: &str, audits: u32) -> Response {
    envelope::data(AcceptedBatch { batch_id, audits })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptedBatch<'a> {
    batch_id: &'a str,
    audits: u32,
}

/// `GET /v1/batches/{id}`: a batch with its audits.
pub(crate) async fn one(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let batch = service.app.store.batch(&caller.account_id, &id).await?;
    let batch = batch.ok_or(Failure::NotFound)?;
    caller.context.set_audit(&batch.id);
    Ok(envelope::data(BatchStatus::from(&batch)))
}

/// `POST /v1/batches/{id}/cancel`: ends the audits of a batch that are not completed, and returns
/// the batch.
pub(crate) async fn cancel(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let batch = cancel_batch(&service, &caller.account_id, &id).await?;
    caller.context.set_audit(&batch.id);
    Ok(envelope::data(BatchStatus::from(&batch)))
}

/// A batch with its audits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchStatus<'a> {
    batch_id: &'a str,
    created_at: String,
    status: &'static str,
    counts: BatchCounts,
    audits: Vec<Row<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchCounts {
    accepted: u64,
    not_started: usize,
    in_progress: usize,
    completed: usize,
    /// Completed audits without measurements.
    failed: usize,
    deleted: u64,
}

impl<'a> From<&'a Batch> for BatchStatus<'a> {
    fn from(batch: &'a Batch) -> Self {
        let count = |matches: &dyn Fn(&AuditEntry) -> bool| {
            batch.audits.iter().filter(|audit| matches(audit)).count()
        };
        let counts = BatchCounts {
            accepted: batch.accepted,
            not_started: count(&|audit| audit.state == AuditState::NotStarted),
            in_progress: count(&|audit| audit.state == AuditState::InProgress),
            completed: count(&|audit| audit.state == AuditState::Completed),
            failed: count(&|audit| audit.error.is_some()),
            deleted: batch.accepted.saturating_sub(batch.audits.len() as u64),
        };
        // Only completed audits can have been deleted.
        let has_begun = counts.in_progress + counts.completed > 0 || counts.deleted > 0;
        let state = match (counts.not_started + counts.in_progress, has_begun) {
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
