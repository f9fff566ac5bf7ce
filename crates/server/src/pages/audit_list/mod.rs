//! The list of audits on several pages. The template needs the variables `past`, the rows, and
//! `same_address`, whether all audits have the same URL.

use std::collections::HashMap;

use plumbline_bundle::FailureCode;
use plumbline_catalog::Catalog;
use plumbline_model::report::{Scores, redirected_to};
use plumbline_model::summary::ReportSummary;
use plumbline_report::html::figures::{Grade, date, short_name};
use plumbline_store::{
    AuditEntry, AuditError, AuditFilter, AuditState, ListCursor, Order, RecentAudit,
};

use super::parts as page_parts;
use crate::{errors::Failure, state::SharedState};

/// An audit in a list.
#[derive(Debug, Clone)]
pub(super) struct PastAudit {
    pub(super) tracking_id: String,
    /// The id of the report; `None` until the audit is completed.
    pub(super) audit_id: Option<String>,
    pub(super) url: String,
    pub(super) at_ms: i64,
    /// The summary of the report; `None` until the audit is completed.
    pub(super) summary: Option<ReportSummary>,
    /// The reason why nothing was measured.
    pub(super) error: Option<AuditError>,
    pub(super) labels: Vec<String>,
}

impl PastAudit {
    /// Returns whether a recording was visited, so that the figures are not those of the page at
    /// that time.
    fn is_replay(&self) -> bool {
        let conditions = self.summary.as_ref().map(|summary| &summary.conditions);
        conditions.is_some_and(|conditions| conditions.replay.is_some())
    }
}

impl From<RecentAudit> for PastAudit {
    fn from(audit: RecentAudit) -> Self {
        Self {
            tracking_id: audit.tracking_id,
            audit_id: audit.audit_id,
            url: audit.url,
            at_ms: audit.at.0,
            summary: audit.summary.and_then(read_summary),
            error: audit.error,
            labels: audit.labels,
        }
    }
}

/// Reads a stored summary. One that cannot be read is logged, and its audit is listed without
/// figures.
fn read_summary(text: String) -> Option<ReportSummary> {
    let summary = serde_json::from_str(&text);
    summary
        .inspect_err(|error| tracing::error!(%error, "unreadable audit summary"))
        .ok()
        .flatten()
}

/// A row in a list of audits.
pub(super) struct AuditRow {
    /// The path of the report or of the progress; `None` for readers of a shared page.
    pub(super) href: Option<String>,
    pub(super) audit_id: Option<String>,
    pub(super) url: String,
    pub(super) when: String,
    pub(super) conditions: String,
    /// Class and text of the five scores, in the order of the rings; `None` if nothing was
    /// measured.
    pub(super) scores: Option<Vec<(&'static str, String)>>,
    pub(super) state: String,
    /// The URL of the measured document, if the request was redirected to another page.
    pub(super) redirected_to: Option<String>,
    pub(super) labels: Vec<String>,
    /// The kind of an audit that is not an ordinary one.
    pub(super) kind: Option<&'static str>,
}

/// Returns what to call an audit that is not an ordinary one.
pub(super) fn kind(is_comparison: bool, is_replay: bool) -> Option<&'static str> {
    match (is_comparison, is_replay) {
        (true, true) => Some("experiment"),
        (true, false) => Some("comparison"),
        (false, true) => Some("recording"),
        (false, false) => None,
    }
}

/// Returns the rows of a list of audits.
pub(super) fn audit_rows(past: &[PastAudit]) -> Vec<AuditRow> {
    past.iter().map(audit_row).collect()
}

fn audit_row(past: &PastAudit) -> AuditRow {
    let summary = past.summary.as_ref();
    let measured = summary.filter(|summary| summary.metrics.is_some());
    AuditRow {
        href: Some(match &past.audit_id {
            Some(id) => format!("/reports/{id}"),
            None => format!("/audits/{}", past.tracking_id),
        }),
        audit_id: past.audit_id.clone(),
        url: past.url.clone(),
        when: date(past.at_ms),
        conditions: summary.map_or_else(String::new, measured_conditions),
        scores: measured.map(|summary| score_cells(&summary.scores)),
        state: match (&past.audit_id, measured) {
            (None, _) => "not finished".to_owned(),
            (Some(_), None) => unmeasured_text(past.error.as_ref()),
            (Some(_), Some(_)) => String::new(),
        },
        redirected_to: summary
            .and_then(|summary| redirected_to(&past.url, summary.final_url.as_deref()?))
            .map(str::to_owned),
        labels: past.labels.clone(),
        kind: kind(
            summary.is_some_and(|summary| summary.comparison.is_some()),
            past.is_replay(),
        ),
    }
}

/// Names the conditions under which an audit was measured.
fn measured_conditions(summary: &ReportSummary) -> String {
    let conditions = &summary.conditions;
    let names = [
        short_name(&conditions.device.name),
        short_name(&conditions.network.name),
        &conditions.location.label(),
    ];
    names.join(" · ")
}

/// Returns class and text of the five scores, in the order of the rings.
fn score_cells(scores: &Scores) -> Vec<(&'static str, String)> {
    [
        scores.performance,
        scores.accessibility,
        scores.best_practices,
        scores.seo,
        scores.pwa,
    ]
    .into_iter()
    .map(|score| {
        let text = score.map_or("–".to_owned(), |score| score.to_string());
        (Grade::of_score(score).class(), text)
    })
    .collect()
}

/// Returns the rows of a page of the list of audits, newest first, and the cursor of the next
/// page.
pub(super) async fn listed(
    service: &SharedState,
    account_id: &str,
    filter: AuditFilter,
    after: Option<ListCursor>,
    limit: u32,
) -> Result<(Vec<AuditRow>, Option<ListCursor>), Failure> {
    let app = &service.app;
    let page = app.store.audits(account_id, filter, after, limit).await?;
    let completed = page
        .audits
        .iter()
        .filter(|audit| audit.state == AuditState::Completed);
    let ids = completed.map(|audit| audit.audit_id.clone()).collect();
    let store = &page_parts(service)?.store;
    let summaries = store.summaries(account_id, ids).await?;
    let mut summaries: HashMap<_, _> = summaries.into_iter().collect();
    let rows = page.audits.iter().map(|audit| {
        let summary = summaries.remove(&audit.audit_id).and_then(read_summary);
        listed_row(audit, summary.as_ref(), &app.catalog)
    });
    Ok((rows.collect(), page.next))
}

/// Names the device, the network and the location of an order. Where the audit runs is known only
/// afterwards.
pub(super) fn requested_conditions(order: &Order, catalog: &Catalog) -> [String; 3] {
    let device = catalog.device(&order.device);
    let network = catalog.network(&order.network);
    let location = catalog.location(&order.location);
    let location = location.map_or(&order.location, |location| &location.name);
    [
        device.map_or(&order.device, |device| &device.name).clone(),
        network
            .map_or(&order.network, |network| &network.name)
            .clone(),
        format!("{location} requested"),
    ]
}

/// Returns the row of an audit in a list of the API. Without a summary, the conditions are those
/// that were requested.
pub(super) fn listed_row(
    audit: &AuditEntry,
    summary: Option<&ReportSummary>,
    catalog: &Catalog,
) -> AuditRow {
    let order = &audit.order;
    let scores: Option<Scores> = audit.lab_data.as_deref().and_then(|text| {
        serde_json::from_str(text)
            .inspect_err(|error| tracing::error!(%error, "unreadable figures of an audit"))
            .ok()
    });
    let is_completed = audit.state == AuditState::Completed;
    AuditRow {
        href: Some(if is_completed {
            format!("/reports/{}", audit.audit_id)
        } else {
            format!("/audits/{}", audit.tracking_id)
        }),
        audit_id: is_completed.then(|| audit.audit_id.clone()),
        url: order.url.clone(),
        when: date(audit.finished_at.unwrap_or(audit.accepted_at).0),
        conditions: summary.map_or_else(
            || {
                requested_conditions(order, catalog)
                    .map(|name| short_name(&name).to_owned())
                    .join(" · ")
            },
            measured_conditions,
        ),
        scores: scores.as_ref().map(score_cells),
        state: match (audit.state, &audit.error) {
            (AuditState::NotStarted, _) => "waiting".to_owned(),
            (AuditState::InProgress, _) => "running".to_owned(),
            (AuditState::Completed, error) => unmeasured_text(error.as_ref()),
        },
        redirected_to: audit.final_url.clone(),
        labels: audit.labels.clone(),
        kind: kind(
            order.options.need_comparison(),
            order.options.replay.is_some(),
        ),
    }
}
/// Describes the end of an audit without measurements.
fn unmeasured_text(error: Option<&AuditError>) -> String {
    match error {
        Some(error) if error.code == FailureCode::Cancelled.as_str() => "cancelled".to_owned(),
        Some(error) => format!("not measured ({})", error.code),
        None => "not measured".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;
    use plumbline_store::VisitOptions;

    use super::*;

    #[test]
    fn the_location_of_an_order_is_only_requested() {
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let order = Order {
            url: "https://example.com/".to_owned(),
            device: "desktop".to_owned(),
            network: "mobileSlow4g".to_owned(),
            location: "us-tx".to_owned(),
            options: VisitOptions::default(),
        };
        let expected = ["Desktop", "Slow 4G", "Dallas, Texas, USA requested"];
        let names = requested_conditions(&order, &catalog);
        assert_eq!(names.each_ref().map(|name| short_name(name)), expected);
    }
}
