//! Past audits: listed, and deleted by their owner.

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{
    AttemptBlob, AuditEntry, AuditError, AuditFilter, AuditState, ListCursor, Timestamp,
};
use serde::Serialize;

use crate::{
    answer,
    api::{cursor, path_id::PathId},
    auth::Caller,
    errors::Failure,
    query::Query,
    router::Shared,
    time,
};

pub(crate) const PAGE_DEFAULT: u32 = 20;
pub(crate) const PAGE_AT_MOST: u32 = 100;
/// Ids of a catalog are short; a filter longer than any id is a mistake.
pub(crate) const FILTER_ID_CHARS: usize = 50;

/// `GET /v1/audits`
pub(crate) async fn list(
    State(service): State<Shared>,
    caller: Caller,
    query: Query,
) -> Result<Response, Failure> {
    let filter = filter(&query, service.app.limits.url_chars)?;
    let after: Option<ListCursor> = query.get("cursor", "Cursor", cursor::read)?;
    let limit = query
        .number("limit", "Limit", 1..=PAGE_AT_MOST)?
        .unwrap_or(PAGE_DEFAULT);
    let page = service
        .app
        .store
        .audits(&caller.account_id, filter, after, limit)
        .await?;
    let rows: Vec<_> = page.audits.iter().map(Row::from).collect();
    Ok(answer::page(rows, page.next.map(cursor::write)))
}

fn filter(query: &Query, url_chars: usize) -> Result<AuditFilter, Failure> {
    let text = |name, called, longest: usize| {
        query.get(name, called, |text| {
            (1..=longest)
                .contains(&text.chars().count())
                .then(|| text.to_owned())
        })
    };
    let moment = |name, called| query.get(name, called, |text| time::read(text).map(Timestamp));
    Ok(AuditFilter {
        url: text("url", "Url", url_chars)?,
        device: text("device", "Device", FILTER_ID_CHARS)?,
        network: text("network", "Network", FILTER_ID_CHARS)?,
        location: text("location", "Location", FILTER_ID_CHARS)?,
        state: query.get("state", "State", state_of)?,
        from: moment("from", "From")?,
        to: moment("to", "To")?,
    })
}

pub(crate) fn state_name(state: AuditState) -> &'static str {
    match state {
        AuditState::NotStarted => "not-started",
        AuditState::InProgress => "in-progress",
        AuditState::Completed => "completed",
    }
}

fn state_of(name: &str) -> Option<AuditState> {
    [
        AuditState::NotStarted,
        AuditState::InProgress,
        AuditState::Completed,
    ]
    .into_iter()
    .find(|state| state_name(*state) == name)
}

/// An audit in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row<'a> {
    tracking_id: &'a str,
    url: &'a str,
    device: &'a str,
    network: &'a str,
    location: &'a str,
    runs: u32,
    status: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a AuditError>,
}

impl<'a> From<&'a AuditEntry> for Row<'a> {
    fn from(audit: &'a AuditEntry) -> Self {
        let is_completed = audit.state == AuditState::Completed;
        Self {
            tracking_id: &audit.tracking_id,
            url: &audit.order.url,
            device: &audit.order.device,
            network: &audit.order.network,
            location: &audit.order.location,
            runs: audit.runs,
            status: state_name(audit.state),
            created_at: iso8601_ms(audit.accepted_at.0),
            completed_at: audit.finished_at.map(|at| iso8601_ms(at.0)),
            audit_id: is_completed.then_some(&audit.audit_id),
            batch_id: audit.batch_id.as_deref(),
            error: audit.error.as_ref(),
        }
    }
}

/// `DELETE /v1/audit/data/{id}`: the report, its evidence, and every trace of it in lists.
pub(crate) async fn delete(
    State(service): State<Shared>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let store = &service.app.store;
    let stored = store.report(&caller.account_id, &id).await?;
    let stored = stored.ok_or(Failure::NotFound)?;
    caller.notes.audit(&id);
    // What is kept beside it first: as long as that fails, deleting can be tried again.
    let media = service.app.pages.as_ref().map(|pages| &pages.media);
    for blobs in [service.app.bundles.as_ref(), media].into_iter().flatten() {
        let removed = AttemptBlob::from(&stored).remove_all(&**blobs).await;
        removed.map_err(Failure::unavailable)?;
    }
    if !store.delete_audit(&caller.account_id, &id).await? {
        return Err(Failure::NotFound);
    }
    Ok(answer::data(serde_json::json!({ "auditId": id })))
}
