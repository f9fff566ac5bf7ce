use std::time::Duration;

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{
    Acceptance, AuditError, AuditState, AuditStatus, NewAudit, Submission, random_text,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::{
    answer,
    api::{
        audits::state_name,
        export::{self, Wanted},
        idempotency::{self, IdempotencyKey},
        order::{Object, Wish},
        path_id::PathId,
    },
    auth::{Caller, Starter},
    errors::Failure,
    query::Query,
    router::Shared,
};

/// Random characters of an id, 62 kinds each: 190 bits, so that none is ever guessed or drawn twice.
const ID_RANDOM_CHARS: usize = 32;

/// `POST /v1/audit/start`
///
/// The arguments are checked from left to right: the key before any of the body is read.
pub(crate) async fn start(
    State(service): State<Shared>,
    starter: Starter,
    idempotency: IdempotencyKey,
    Object(wish): Object<Wish>,
) -> Result<Response, Failure> {
    let idempotency_key = idempotency.valid()?;
    let (order, options) = wish.into_order(&service.app)?;
    starter.take(&service, 1).await?;
    let now = (service.app.clock)();
    let tracking_id = new_id("trk")?;
    let asked = serde_json::to_string(&("start", &order, options.runs, &options.webhook))
        .map_err(Failure::internal)?;
    let audit = NewAudit {
        account_id: starter.account_id.clone(),
        tracking_id: tracking_id.clone(),
        audit_id: new_id("aud")?,
        order,
        options,
        accepted_at: now,
    };
    let submission = Submission {
        max_unfinished: service.app.limits.unfinished_audits(),
        failures: service.app.limits.failed_audits(),
        idempotency: idempotency_key
            .map(|key| idempotency::replay(key, &asked, tracking_id.clone(), now)),
        ..Submission::single(audit)
    };
    let tracking_id = submit(&service, submission).await?.unwrap_or(tracking_id);
    starter.notes.audit(&tracking_id);
    Ok(answer::started(&tracking_id))
}

/// The earlier reply where the submission repeats one.
pub(crate) async fn submit(
    service: &Shared,
    submission: Submission,
) -> Result<Option<String>, Failure> {
    let now = submission.accepted_at;
    match service.app.store.submit(submission).await? {
        Acceptance::Accepted => Ok(None),
        Acceptance::Replayed(reply) => Ok(Some(reply)),
        Acceptance::InsufficientCredits => Err(Failure::InsufficientCredits),
        Acceptance::TooManyUnfinished => Err(Failure::TooManyUnfinished),
        Acceptance::TooManyFailed(until) => {
            let wait_ms = until.0.saturating_sub(now.0).max(1);
            // Rounded up: whoever waits as told is served.
            Err(Failure::TooManyFailedAudits((wait_ms - 1) / 1000 + 1))
        }
        Acceptance::KeyReused => Err(Failure::IdempotencyKeyReused),
    }
}

pub(crate) fn new_id(kind: &str) -> Result<String, Failure> {
    let random = random_text(ID_RANDOM_CHARS)
        .map_err(|error| Failure::internal(format!("no random source: {error}")))?;
    Ok(format!("{kind}_{random}"))
}

/// The longest that a status is waited for.
pub(crate) const WAIT_AT_MOST_S: u32 = 30;

/// `GET /v1/audit/status/{id}`; with `wait`, answered when the audit is completed, at the latest
/// after so many seconds, or when the service is being stopped.
pub(crate) async fn status(
    State(service): State<Shared>,
    caller: Caller,
    PathId(id): PathId,
    query: Query,
) -> Result<Response, Failure> {
    let wait_s = query.number("wait", "Wait", 0..=WAIT_AT_MOST_S)?;
    let app = &service.app;
    let found = match wait_s {
        None | Some(0) => app.store.status(&caller.account_id, &id).await?,
        Some(wait_s) => {
            let wait = Duration::from_secs(wait_s.into());
            let _place = service.places.wait(caller.from, &caller.key_id)?;
            tokio::select! {
                found = app.store.wait_for_completion(&caller.account_id, &id, wait) => found?,
                () = asked_to_stop(app.stopping.clone()) => {
                    app.store.status(&caller.account_id, &id).await?
                }
            }
        }
    };
    let found = found.ok_or(Failure::NotFound)?;
    caller.notes.audit(&found.tracking_id);
    Ok(answer::data(Tracking::from(&found)))
}

pub(crate) async fn asked_to_stop(mut stopping: watch::Receiver<bool>) {
    let asked = stopping.wait_for(|stopping| *stopping).await.is_ok();
    // Nobody is left who could ask.
    if !asked {
        std::future::pending().await
    }
}

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
    caller.notes.audit(&stored.audit_id);
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
    caller.notes.audit(&stored.audit_id);
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
