use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{
    Acceptance, AuditError, AuditOrder, AuditState, AuditStatus, NewAudit, random_text,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    answer,
    api::{
        export::{self, Wanted},
        order::Wish,
        path_id::PathId,
    },
    auth::Caller,
    errors::Failure,
    router::Shared,
};

/// Random characters of an id, 62 kinds each: 190 bits, so that none is ever guessed or drawn twice.
const ID_RANDOM_CHARS: usize = 32;

/// `POST /v1/audit/start`
///
/// The arguments are checked from left to right: the key before any of the body is read.
pub(crate) async fn start(
    State(service): State<Shared>,
    caller: Caller,
    wish: Wish,
) -> Result<Response, Failure> {
    let order = wish.into_order(&service.app)?;
    let now = (service.app.clock)();
    let Some(turn) = service.starts.take(&caller.key_id, now) else {
        return accept(&service, caller, order).await;
    };
    let answer = if turn.is_refused() {
        Err(Failure::RateLimited)
    } else {
        accept(&service, caller, order).await
    };
    let mut response = answer.into_response();
    turn.write_to(response.headers_mut());
    Ok(response)
}

async fn accept(service: &Shared, caller: Caller, order: AuditOrder) -> Result<Response, Failure> {
    let tracking_id = new_id("trk")?;
    let audit = NewAudit {
        account_id: caller.account_id,
        tracking_id: tracking_id.clone(),
        audit_id: new_id("aud")?,
        order,
        accepted_at: (service.app.clock)(),
    };
    match service.app.store.accept(audit).await? {
        Acceptance::Accepted => Ok(answer::started(&tracking_id)),
        Acceptance::InsufficientCredits => Err(Failure::InsufficientCredits),
    }
}

pub(crate) fn new_id(kind: &str) -> Result<String, Failure> {
    let random = random_text(ID_RANDOM_CHARS)
        .map_err(|error| Failure::internal(format!("no random source: {error}")))?;
    Ok(format!("{kind}_{random}"))
}

/// `GET /v1/audit/status/{id}`
pub(crate) async fn status(
    State(service): State<Shared>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let found = service.app.store.status(&caller.account_id, &id).await?;
    Ok(answer::data(Tracking::from(
        &found.ok_or(Failure::NotFound)?,
    )))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tracking<'a> {
    tracking_id: &'a str,
    url: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a AuditError>,
}

impl<'a> From<&'a AuditStatus> for Tracking<'a> {
    fn from(audit: &'a AuditStatus) -> Self {
        let is_completed = audit.state == AuditState::Completed;
        Self {
            tracking_id: &audit.tracking_id,
            url: &audit.url,
            status: match audit.state {
                AuditState::NotStarted => "not-started",
                AuditState::InProgress => "in-progress",
                AuditState::Completed => "completed",
            },
            audit_id: is_completed.then_some(&audit.audit_id),
            error: audit.error.as_ref().filter(|_| is_completed),
        }
    }
}

/// `GET /v1/audit/data/{id}`
pub(crate) async fn data(
    State(service): State<Shared>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let found = service.app.store.report(&caller.account_id, &id).await?;
    let stored = found.ok_or(Failure::NotFound)?;
    let data = plumbline_report::contract::audit_data(
        &stored.audit_id,
        stored.created_at.0,
        &stored.order.url,
        &stored.report,
    )
    .map_err(|error| Failure::internal(format!("report {id} is unreadable: {error}")))?;
    Ok(answer::data(data))
}

/// `GET /v1/audit/report/{id}`: everything that was measured and judged, as it was kept; with
/// `?format=…` as a file in another form.
pub(crate) async fn report(
    State(service): State<Shared>,
    caller: Caller,
    PathId(id): PathId,
    Wanted(format): Wanted,
) -> Result<Response, Failure> {
    let found = service.app.store.report(&caller.account_id, &id).await?;
    let stored = found.ok_or(Failure::NotFound)?;
    if let Some(format) = format {
        return export::file(&service, stored, format).await;
    }
    let report = RawValue::from_string(stored.report)
        .map_err(|error| Failure::internal(format!("report {id} is unreadable: {error}")))?;
    Ok(answer::data(Whole {
        audit_id: &stored.audit_id,
        tracking_id: &stored.tracking_id,
        created_at: iso8601_ms(stored.created_at.0),
        report,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    audit_id: &'a str,
    tracking_id: &'a str,
    created_at: String,
    report: Box<RawValue>,
}
