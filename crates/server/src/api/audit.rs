use std::time::Duration;

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{AuditError, AuditState, AuditStatus, Delivery};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::{
    api::{
        audits::{read_lab_data, state_name},
        export::{self, RequestedFormat},
        idempotency::IdempotencyKey,
        json_body::JsonObject,
        path_id::PathId,
        request_body::AuditRequest,
    },
    auth::{Caller, Starter},
    cancel::cancel_audit,
    envelope,
    errors::Failure,
    progress::Progress,
    query::{NoParameters, Query},
    start,
    state::SharedState,
};

/// `POST /v1/audit/start`: starts an audit.
///
/// The arguments are extracted in order: the key is checked before the body is read.
pub(crate) async fn start(
    State(service): State<SharedState>,
    starter: Starter,
    idempotency: IdempotencyKey,
    JsonObject(request): JsonObject<AuditRequest>,
) -> Result<Response, Failure> {
    let idempotency_key = idempotency.valid()?;
    let request = request.validate(&service.app)?;
    let tracking_id = start::start(&service, &starter, request, idempotency_key).await?;
    Ok(envelope::started(&tracking_id))
}

/// The longest time for which a status request waits.
pub(crate) const MAX_WAIT_S: u32 = 30;
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(MAX_WAIT_S as u64);

/// `GET /v1/audit/status/{id}`: the status of an audit. With `wait`, the response is sent when the
/// audit is completed, at the latest after so many seconds, or when the service shuts down.
pub(crate) async fn status(
    State(service): State<SharedState>,
    caller: Caller,
    PathId(id): PathId,
    query: Query,
) -> Result<Response, Failure> {
    let wait_s = query.number("wait", 0..=MAX_WAIT_S)?;
    let status = status_of(&service, &caller, &id, wait_s).await?;
    let progress = Progress::of(&service, &caller.account_id, &status).await?;
    let tracking = Tracking::from(&status);
    Ok(envelope::data(tracking.with_progress(progress)))
}

/// Returns the status of an audit, when it is completed or so many seconds have passed.
pub(crate) async fn status_of(
    service: &SharedState,
    caller: &Caller,
    id: &str,
    wait_s: Option<u32>,
) -> Result<AuditStatus, Failure> {
    let app = &service.app;
    let status = match wait_s {
        None | Some(0) => app.store.status(&caller.account_id, id).await?,
        Some(wait_s) => {
            let wait = Duration::from_secs(wait_s.into());
            let _permit = service
                .capacity
                .acquire_wait(caller.address, &caller.key_id)?;
            tokio::select! {
                status = app.store.wait_for_completion(&caller.account_id, id, wait) => status?,
                () = shutdown_requested(app.stopping.clone()) => {
                    app.store.status(&caller.account_id, id).await?
                }
            }
        }
    };
    let status = status.ok_or(Failure::NotFound)?;
    caller.context.set_audit(&status.tracking_id);
    Ok(status)
}

/// `POST /v1/audit/cancel/{id}`: ends an audit before it is measured, and returns its status. A
/// completed audit does not change.
pub(crate) async fn cancel(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let status = cancel_audit(&service, &caller.account_id, &id).await?;
    caller.context.set_audit(&status.tracking_id);
    Ok(envelope::data(Tracking::from(&status)))
}

/// Waits until the service shuts down.
pub(crate) async fn shutdown_requested(mut stopping: watch::Receiver<bool>) {
    let is_requested = stopping.wait_for(|stopping| *stopping).await.is_ok();
    // If the sender is gone, no shutdown can be requested any more.
    if !is_requested {
        std::future::pending().await
    }
}

/// The status of an audit in the contract's format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tracking<'a> {
    tracking_id: &'a str,
    url: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a AuditError>,
    /// The figures of the report operation, in webhooks; absent if the audit was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    lab_data: Option<&'a RawValue>,
    /// Set if the request was redirected to another page.
    #[serde(skip_serializing_if = "Option::is_none")]
    final_url: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    labels: &'a [String],
    /// Set by the status operation while the audit is not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

impl<'a> From<&'a AuditStatus> for Tracking<'a> {
    fn from(audit: &'a AuditStatus) -> Self {
        let is_completed = audit.state == AuditState::Completed;
        Self {
            tracking_id: &audit.tracking_id,
            url: &audit.url,
            status: state_name(audit.state),
            audit_id: is_completed.then_some(&audit.audit_id),
            error: audit.error.as_ref().filter(|_| is_completed),
            lab_data: None,
            final_url: audit.final_url.as_deref(),
            labels: &audit.labels,
            progress: None,
        }
    }
}

impl<'a> Tracking<'a> {
    /// Returns the state with the progress of an audit that is not completed.
    pub(crate) fn with_progress(self, progress: Option<Progress>) -> Self {
        Self { progress, ..self }
    }

    /// Returns the state of a completed audit with its scores and metrics.
    pub(crate) fn with_figures(delivery: &'a Delivery) -> Self {
        Self {
            lab_data: delivery.lab_data.as_deref().and_then(read_lab_data),
            ..Self::from(&delivery.audit)
        }
    }
}

/// `GET /v1/audit/data/{id}`: the scores and metrics of an audit.
pub(crate) async fn data(
    State(service): State<SharedState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let stored = service.app.store.report(&caller.account_id, &id).await?;
    let stored = stored.ok_or(Failure::NotFound)?;
    caller.context.set_audit(&stored.audit_id);
    let data = plumbline_report::contract::audit_data(
        &stored.audit_id,
        stored.created_at.0,
        &stored.order.url,
        &stored.report,
    )
    .map_err(|error| Failure::internal(format!("report {id} is unreadable: {error}")))?;
    Ok(envelope::data(data))
}

/// `GET /v1/audit/report/{id}`: the whole report as it was stored; with `?format=…` as a file in
/// another format.
pub(crate) async fn report(
    State(service): State<SharedState>,
    caller: Caller,
    PathId(id): PathId,
    RequestedFormat(format): RequestedFormat,
) -> Result<Response, Failure> {
    let stored = service.app.store.report(&caller.account_id, &id).await?;
    let stored = stored.ok_or(Failure::NotFound)?;
    caller.context.set_audit(&stored.audit_id);
    if let Some(format) = format {
        return export::file(&service, stored, format).await;
    }
    let report = RawValue::from_string(stored.report)
        .map_err(|error| Failure::internal(format!("report {id} is unreadable: {error}")))?;
    Ok(envelope::data(WholeReport {
        audit_id: &stored.audit_id,
        tracking_id: &stored.tracking_id,
        created_at: iso8601_ms(stored.created_at.0),
        report,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WholeReport<'a> {
    audit_id: &'a str,
    tracking_id: &'a str,
    created_at: String,
    report: Box<RawValue>,
}
