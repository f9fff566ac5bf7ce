//! Comparisons: audits that visit two pages in turn.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_model::report::Report;
use plumbline_report::comparison::{ComparisonFormat, ComparisonReport};
use plumbline_store::AuditState;
use serde::Serialize;

use crate::{
    api::{
        audit::{MAX_WAIT_S, Tracking, status_of},
        idempotency::IdempotencyKey,
        json_body::JsonObject,
        path_id::PathId,
        request_body::ComparisonRequest,
    },
    auth::{Caller, Starter},
    envelope,
    errors::{Failure, InvalidValue},
    progress::Progress,
    query::{NoParameters, Query},
    start,
    state::SharedState,
};

/// `POST /v1/comparisons`: starts a comparison of two pages.
pub(crate) async fn start(
    State(service): State<SharedState>,
    starter: Starter,
    _: NoParameters,
    idempotency: IdempotencyKey,
    JsonObject(request): JsonObject<ComparisonRequest>,
) -> Result<Response, Failure> {
    let idempotency_key = idempotency.valid()?;
    let request = request.validate(&service.app)?;
    let tracking_id = start::start(&service, &starter, request, idempotency_key).await?;
    Ok(envelope::started(&tracking_id))
}

/// A comparison with the status of its audit.
#[derive(Serialize)]
struct ComparisonStatus<'a> {
    #[serde(flatten)]
    tracking: Tracking<'a>,
    /// The result, if both pages were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<ComparisonReport<'a>>,
}

/// `GET /v1/comparisons/{id}`: the status of a comparison, and its result when it is completed;
/// with `format`, the result as a file. With `wait`, the response is sent when it is completed, as
/// for the status of an audit.
pub(crate) async fn one(
    State(service): State<SharedState>,
    caller: Caller,
    PathId(id): PathId,
    query: Query,
) -> Result<Response, Failure> {
    query.only(&["format", "wait"])?;
    let wait_s = query.number("wait", 0..=MAX_WAIT_S)?;
    let format = query.get("format", "is not a format", |name| Some(file_format(name)))?;
    let format = format.transpose()?;
    let status = status_of(&service, &caller, &id, wait_s).await?;
    let account_id = &caller.account_id;
    let report = if status.state == AuditState::Completed {
        let stored = service
            .app
            .store
            .report(account_id, &status.audit_id)
            .await?;
        let stored = stored.ok_or(Failure::NotFound)?;
        if !stored.order.options.need_comparison() {
            return Err(Failure::NotFound);
        }
        let report = Report::from_json(&stored.report)
            .map_err(|error| Failure::internal(format!("report {id} is unreadable: {error}")))?;
        Some((report, stored.created_at.0))
    } else {
        None
    };
    let comparison = report
        .as_ref()
        .and_then(|(report, made_at)| ComparisonReport::of(report, *made_at));
    if let Some(format) = format {
        let comparison = comparison.ok_or(Failure::NotFound)?;
        let content_type = HeaderValue::from_static(format.content_type());
        let text = comparison.render(format);
        return Ok(([(header::CONTENT_TYPE, content_type)], text).into_response());
    }
    let progress = Progress::of(&service, account_id, &status).await?;
    Ok(envelope::data(ComparisonStatus {
        tracking: Tracking::from(&status).with_progress(progress),
        comparison,
    }))
}

fn file_format(name: &str) -> Result<ComparisonFormat, Failure> {
    ComparisonFormat::from_name(name).ok_or_else(|| {
        let names = ComparisonFormat::ALL.map(ComparisonFormat::name).join(", ");
        let reason = format!("The formats are {names}.");
        Failure::InvalidFormat(InvalidValue::new("format", reason))
    })
}
