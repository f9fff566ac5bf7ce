//! Lists and deletes audits.

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{
    AttemptBlob, AuditEntry, AuditError, AuditFilter, AuditState, ListCursor, Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    api::{
        cursor,
        path_id::PathId,
        request_body::{MAX_LABEL_CHARS, is_label},
    },
    auth::Caller,
    envelope,
    errors::Failure,
    query::{NoParameters, Query},
    state::SharedState,
    time,
};

pub(crate) const DEFAULT_PAGE_SIZE: u32 = 20;
pub(crate) const MAX_PAGE_SIZE: u32 = 100;
/// The longest id in a filter. Ids of a catalog are short; a longer filter is a mistake.
pub(crate) const FILTER_ID_CHARS: usize = 50;

/// The parameters of `GET /v1/audits`.
const PARAMETERS: [&str; 10] = [
    "url", "device", "network", "location", "state", "label", "from", "to", "limit", "cursor",
];

/// `GET /v1/audits`: a page of the account's audits.
pub(crate) async fn list(
    State(service): State<SharedState>,
    caller: Caller,
    query: Query,
) -> Result<Response, Failure> {
    query.only(&PARAMETERS)?;
    let filter = parse_filter(&query, service.app.limits.url_chars)?;
    let after: Option<ListCursor> = query.get("cursor", cursor::RULE, cursor::parse)?;
    let limit = query
        .number("limit", 1..=MAX_PAGE_SIZE)?
        .unwrap_or(DEFAULT_PAGE_SIZE);
    let page = service
        .app
        .store
        .audits(&caller.account_id, filter, after, limit)
        .await?;
    let rows: Vec<_> = page.audits.iter().map(Row::from).collect();
    Ok(envelope::page(rows, page.next.map(cursor::format)))
}

/// The rule for a parameter with a state.
pub(crate) const STATE_RULE: &str = "must be not-started, in-progress or completed";

/// Parses a filter. Ids of devices, networks and locations need not be in the catalog: audits keep
/// ids that were removed from it.
fn parse_filter(query: &Query, url_chars: usize) -> Result<AuditFilter, Failure> {
    let text = |name: &'static str, max_chars: usize| {
        let rule = format!("must have between 1 and {max_chars} characters");
        query.get(name, &rule, |text| {
            let is_valid = (1..=max_chars).contains(&text.chars().count());
            is_valid.then(|| text.to_owned())
        })
    };
    let time = |name| {
        let rule = "must be a time in UTC, such as 2026-01-31T00:00:00.000Z";
        query.get(name, rule, |text| time::parse(text).map(Timestamp))
    };
    let label_rule = format!("must be a label of at most {MAX_LABEL_CHARS} characters");
    Ok(AuditFilter {
        url: text("url", url_chars)?,
        device: text("device", FILTER_ID_CHARS)?,
        network: text("network", FILTER_ID_CHARS)?,
        location: text("location", FILTER_ID_CHARS)?,
        state: query.get("state", STATE_RULE, parse_state)?,
        label: query.get("label", &label_rule, |text| {
            is_label(text).then(|| text.to_owned())
        })?,
        url_part: None,
        from: time("from")?,
        to: time("to")?,
    })
}

/// Returns the contract's name of a state.
pub(crate) fn state_name(state: AuditState) -> &'static str {
    match state {
        AuditState::NotStarted => "not-started",
        AuditState::InProgress => "in-progress",
        AuditState::Completed => "completed",
    }
}

/// Parses the contract's name of a state.
pub(crate) fn parse_state(name: &str) -> Option<AuditState> {
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
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    labels: &'a [String],
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
    /// The figures of the report operation; absent if the audit was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    lab_data: Option<&'a RawValue>,
    /// Set if the request was redirected to another page.
    #[serde(skip_serializing_if = "Option::is_none")]
    final_url: Option<&'a str>,
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
            labels: &audit.labels,
            status: state_name(audit.state),
            created_at: iso8601_ms(audit.accepted_at.0),
            completed_at: audit.finished_at.map(|at| iso8601_ms(at.0)),
            audit_id: is_completed.then_some(&audit.audit_id),
            batch_id: audit.batch_id.as_deref(),
            error: audit.error.as_ref(),
            lab_data: audit.lab_data.as_deref().and_then(read_lab_data),
            final_url: audit.final_url.as_deref(),
        }
    }
}

/// Returns stored figures as they are. A text that is not JSON is logged and left out.
pub(super) fn read_lab_data(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text)
        .inspect_err(|error| tracing::error!(%error, "unreadable figures of an audit"))
        .ok()
}

/// `DELETE /v1/audit/data/{id}`: deletes an audit with its report and its evidence.
pub(crate) async fn delete(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let store = &service.app.store;
    let stored = store.report(&caller.account_id, &id).await?;
    let stored = stored.ok_or(Failure::NotFound)?;
    caller.context.set_audit(&id);
    // Evidence and report media first: if that fails, the request can be repeated.
    let media = service.app.pages.as_ref().map(|pages| &pages.media);
    for blobs in [service.app.bundles.as_ref(), media].into_iter().flatten() {
        let removal = AttemptBlob::from(&stored).remove_all(&**blobs).await;
        removal.map_err(Failure::unavailable)?;
    }
    if !store.delete_audit(&caller.account_id, &id).await? {
        return Err(Failure::NotFound);
    }
    Ok(envelope::data(serde_json::json!({ "auditId": id })))
}
