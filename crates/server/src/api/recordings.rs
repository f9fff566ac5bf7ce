//! Recordings: the traffic of audits that were started with `record`, and audits of it.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_model::matrix::Matrix;
use plumbline_recording::Recording;
use plumbline_store::StoredReport;
use tokio::task::spawn_blocking;

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
    query::{NoParameters, Query},
    replays,
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
    let options = FileOptions::read(&query)?;
    let stored = replays::completed(&service, &caller.account_id, &id).await?;
    caller.context.set_audit(&stored.tracking_id);
    file(&service, &stored, options).await
}

/// The format of a recording as a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileOptions {
    is_har: bool,
    is_redacted: bool,
}

impl FileOptions {
    /// Reads the options from `format` and `redact`.
    pub(crate) fn read(query: &Query) -> Result<Self, Failure> {
        query.only(&["format", "redact"])?;
        let format = query.get("format", "is not a format", |name| {
            Some(FORMATS.into_iter().find(|format| *format == name))
        })?;
        let format = format.map(|format| format.ok_or_else(invalid_format));
        let is_redacted = query.get("redact", "must be true or false", |text| {
            text.parse::<bool>().ok()
        })?;
        Ok(Self {
            is_har: format.transpose()? == Some("har"),
            is_redacted: is_redacted.unwrap_or(false),
        })
    }
}

/// Responds with the recording of an audit as a file.
pub(crate) async fn file(
    service: &SharedState,
    stored: &StoredReport,
    options: FileOptions,
) -> Result<Response, Failure> {
    let permit = replays::permit(service).await?;
    let packed = replays::packed(service, stored).await?;
    let FileOptions {
        is_har,
        is_redacted,
    } = options;
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
    let disposition = format!("attachment; filename=\"{}.{extension}\"", stored.audit_id);
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
    let key = idempotency.valid()?;
    let tracking_id = replays::start_experiment(&service, &starter, &id, request, key).await?;
    Ok(envelope::started(&tracking_id))
}

/// `GET /v1/audits/{id}/experiments`: the experiments with a recording, the newest first.
pub(crate) async fn experiments(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    replays::completed(&service, &caller.account_id, &id).await?;
    let results = replays::results(&service, &caller.account_id, &id).await?;
    Ok(envelope::data(results.experiments))
}

/// `POST /v1/audits/{id}/third-parties`: starts an experiment for each third party of a page.
pub(crate) async fn third_parties(
    State(service): State<SharedState>,
    starter: Starter,
    _: NoParameters,
    PathId(id): PathId,
    idempotency: IdempotencyKey,
    JsonObject(request): JsonObject<ExperimentRequest>,
) -> Result<Response, Failure> {
    let key = idempotency.valid()?;
    let started = replays::start_price_list(&service, &starter, &id, request, key).await?;
    Ok(accepted(&started.0, started.1))
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
    let key = idempotency.valid()?;
    let started = replays::start_matrix(&service, &starter, &id, request, key).await?;
    Ok(accepted(&started.0, started.1))
}

/// `GET /v1/audits/{id}/matrix`: the newest results of a recording for devices and networks.
pub(crate) async fn matrix_results(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let stored = replays::completed(&service, &caller.account_id, &id).await?;
    let results = replays::results(&service, &caller.account_id, &id).await?;
    let none = || Matrix::empty(stored.order.url, Vec::new(), Vec::new());
    Ok(envelope::data(results.matrix.unwrap_or_else(none)))
}
