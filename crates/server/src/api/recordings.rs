//! Recordings: the traffic of audits that were started with `record`, and audits of it.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_recording::Recording;
use plumbline_seam::{Order, Replay, VisitOptions};
use plumbline_store::{AttemptBlob, StoredReport};
use tokio::{sync::OwnedSemaphorePermit, task::spawn_blocking};

use crate::{
    api::{
        batches::accepted,
        idempotency::IdempotencyKey,
        json_body::JsonObject,
        path_id::PathId,
        request_body::{ExperimentRequest, MatrixRequest},
    },
    auth::{Caller, Starter},
    envelope,
    errors::{Failure, InvalidValue},
    evidence_part::read_recording,
    query::{NoParameters, Query},
    start,
    state::SharedState,
};

/// The formats of a recording.
pub(crate) const FORMATS: [&str; 2] = ["recording", "har"];

/// `GET /v1/audits/{id}/recording`: the recording of an audit as a file, in our own format or as
/// HAR, on request without secrets.
pub(crate) async fn one(
    State(service): State<SharedState>,
    caller: Caller,
    PathId(id): PathId,
    query: Query,
) -> Result<Response, Failure> {
    query.only(&["format", "redact"])?;
    let format = query.get("format", "Format", |name| {
        Some(FORMATS.into_iter().find(|format| *format == name))
    })?;
    let format = format.map(|format| format.ok_or_else(invalid_format));
    let is_har = format.transpose()? == Some("har");
    let is_redacted = query.get("redact", "Redact", |text| text.parse::<bool>().ok())?;
    let is_redacted = is_redacted.unwrap_or(false);
    let stored = recorded(&service, &caller.account_id, &id).await?;
    caller.context.set_audit(&stored.tracking_id);
    let permit = export_permit(&service).await?;
    let packed = packed(&service, &stored).await?;
    let convert = spawn_blocking(move || {
        let _permit = permit;
        if !is_har && !is_redacted {
            return Ok(packed);
        }
        let mut recording = Recording::unpack(&packed).map_err(Failure::internal)?;
        if is_redacted {
            recording.redact();
        }
        if is_har {
            serde_json::to_vec(&recording.to_har()).map_err(Failure::internal)
        } else {
            recording.pack().map_err(Failure::internal)
        }
    });
    let bytes = convert.await.map_err(Failure::internal)??;
    let (content_type, extension) = if is_har {
        ("application/json", "har")
    } else {
        ("application/octet-stream", "recording")
    };
    let disposition = format!("attachment; filename=\"{id}.{extension}\"");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::try_from(disposition).map_err(Failure::internal)?,
        ),
    ];
    Ok((headers, Body::from(bytes)).into_response())
}

fn invalid_format() -> Failure {
    let reason = format!("The formats are {}.", FORMATS.join(", "));
    Failure::InvalidFormat(InvalidValue::new("format", reason))
}

/// `POST /v1/audits/{id}/experiments`: compares a recording with a changed one.
pub(crate) async fn experiment(
    State(service): State<SharedState>,
    starter: Starter,
    _: NoParameters,
    PathId(id): PathId,
    idempotency: IdempotencyKey,
    JsonObject(request): JsonObject<ExperimentRequest>,
) -> Result<Response, Failure> {
    let idempotency_key = idempotency.valid()?;
    let stored = recorded(&service, &starter.account_id, &id).await?;
    let changes = request.changes()?;
    let permit = export_permit(&service).await?;
    let packed = packed(&service, &stored).await?;
    let (recording, changes) = spawn_blocking(move || {
        let _permit = permit;
        let recording = Recording::unpack(&packed).map_err(Failure::internal)?;
        let changed = recording.with_changes(&changes).map_err(|error| {
            let value = InvalidValue::new("changes", format!("{error}."));
            Failure::InvalidChanges(value)
        });
        changed.map(|_| (recording, changes))
    })
    .await
    .map_err(Failure::internal)??;
    let order = Order {
        options: VisitOptions {
            compare_with: Some(recording.url.clone()),
            replay: Some(Box::new(replay(&stored))),
            replay_second: Some(Box::new(Replay {
                changes,
                ..replay(&stored)
            })),
            ..VisitOptions::default()
        },
        url: recording.url,
        ..stored.order
    };
    let request = request.validate(order, &service.app)?;
    let tracking_id = start::start(&service, &starter, request, idempotency_key).await?;
    Ok(envelope::started(&tracking_id))
}

/// `POST /v1/audits/{id}/matrix`: audits a recording on every device and network of two lists.
pub(crate) async fn matrix(
    State(service): State<SharedState>,
    starter: Starter,
    _: NoParameters,
    PathId(id): PathId,
    idempotency: IdempotencyKey,
    JsonObject(request): JsonObject<MatrixRequest>,
) -> Result<Response, Failure> {
    let idempotency_key = idempotency.valid()?;
    let stored = recorded(&service, &starter.account_id, &id).await?;
    let permit = export_permit(&service).await?;
    packed(&service, &stored).await?;
    drop(permit);
    let order = Order {
        options: VisitOptions {
            quick: true,
            replay: Some(Box::new(replay(&stored))),
            ..VisitOptions::default()
        },
        ..stored.order
    };
    let request = request.validate(order, &service.app)?;
    let count = request.orders.count();
    let batch_id = start::start(&service, &starter, request, idempotency_key).await?;
    Ok(accepted(&batch_id, count))
}

/// Waits until a recording may be read and unpacked: a few at a time, because they can be large.
/// The permit is kept to the end of the work, even if the request was dropped.
async fn export_permit(service: &SharedState) -> Result<OwnedSemaphorePermit, Failure> {
    let permit = Arc::clone(&service.exports).acquire_owned().await;
    permit.map_err(Failure::unavailable)
}

/// Returns a completed audit of an account.
async fn recorded(
    service: &SharedState,
    account_id: &str,
    audit_id: &str,
) -> Result<StoredReport, Failure> {
    let stored = service.app.store.report(account_id, audit_id).await?;
    stored.ok_or(Failure::NotFound)
}

/// Returns the packed recording of an audit.
async fn packed(service: &SharedState, stored: &StoredReport) -> Result<Vec<u8>, Failure> {
    let bundles = service.app.bundles.as_ref().ok_or(Failure::NoEvidence)?;
    let recording = read_recording(AttemptBlob::from(stored), &**bundles).await;
    recording
        .map_err(Failure::unavailable)?
        .ok_or(Failure::NoEvidence)
}

fn replay(stored: &StoredReport) -> Replay {
    Replay {
        recording: stored.audit_id.clone(),
        attempt: stored.attempt,
        changes: Vec::new(),
        repeatable: false,
    }
}
