//! The list of audits on several pages. The template needs the variables `past`, the rows, and
//! `same_address`, whether all audits have the same URL.

use std::collections::HashMap;

use plumbline_bundle::FailureCode;
use plumbline_catalog::Catalog;
use plumbline_model::report::{Conditions, Scores, View};
use plumbline_model::summary::ReportSummary;
use plumbline_report::html::environment::view_text;
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
    /// The reason why nothing was measured, as a sentence.
    pub(super) reason: Option<String>,
    /// The URL of the measured document, if the request was redirected to another page.
    pub(super) redirected_to: Option<String>,
    /// The status of a measured page that is an error page.
    pub(super) error_status: Option<u16>,
    pub(super) labels: Vec<String>,
    /// The kind of an audit that is not an ordinary one.
    pub(super) kind: Option<&'static str>,
}

impl AuditRow {
    /// Returns the URL in parts, between which it may be broken into lines.
    pub(super) fn url_parts(&self) -> impl Iterator<Item = &str> {
        self.url.split_inclusive(['/', '?', '&'])
    }

    /// Returns name, class and text of the scores after the first, for screens that are too narrow
    /// for a column of each.
    pub(super) fn other_scores(&self) -> Vec<(&'static str, &'static str, &str)> {
        let names = ["A11y", "BP", "SEO", "PWA"].into_iter();
        let scores = self.scores.iter().flatten().skip(1);
        names
            .zip(scores)
            .map(|(name, (class, score))| (name, *class, score.as_str()))
            .collect()
    }
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
        conditions: summary.map_or_else(String::new, |summary| {
            joined(&condition_names(&summary.conditions))
        }),
        scores: measured.map(|summary| score_cells(&summary.scores)),
        state: match (&past.audit_id, measured) {
            (None, _) => "not finished".to_owned(),
            (Some(_), None) => unmeasured_text(past.error.as_ref()),
            (Some(_), Some(_)) => String::new(),
        },
        reason: past.error.as_ref().map(|error| error.message.clone()),
        redirected_to: summary
            .and_then(|summary| summary.redirected_to(&past.url))
            .map(str::to_owned),
        error_status: measured.and_then(ReportSummary::error_status),
        labels: past.labels.clone(),
        kind: kind(
            summary.is_some_and(|summary| summary.comparison.is_some()),
            past.is_replay(),
        ),
    }
}

/// Names the conditions that audits must share to be comparable in lists and charts.
pub(super) fn condition_names(conditions: &Conditions) -> Vec<String> {
    let mut names = vec![
        conditions.device.name.clone(),
        conditions.network.name.clone(),
        conditions.location.label(),
    ];
    names.extend(later_view(&conditions.view));
    if let Some(session) = &conditions.session {
        names.push(format!("signed in with {session}"));
    }
    if conditions.state.is_some() {
        names.push("with state".to_owned());
    }
    if !conditions.steps.is_empty() {
        names.push("after steps".to_owned());
    }
    if let Some(consent) = &conditions.consent {
        names.push(format!("consent: {}", consent.choice.as_str()));
    }
    names
}

/// Describes a view that is not the first one.
fn later_view(view: &View) -> Option<String> {
    (!view.is_first()).then(|| view_text(view))
}

/// Joins the short names of conditions.
pub(super) fn joined(names: &[String]) -> String {
    let names = names.iter().map(|name| short_name(name));
    names.collect::<Vec<_>>().join(" · ")
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
        // The list has the order of this time.
        when: date(audit.accepted_at.0),
        conditions: joined(&summary.map_or_else(
            || {
                let mut names = requested_conditions(order, catalog).to_vec();
                names.extend(later_view(&order.options.view));
                names
            },
            |summary| condition_names(&summary.conditions),
        )),
        scores: scores.as_ref().map(score_cells),
        state: match (audit.state, &audit.error) {
            (AuditState::NotStarted, _) => "waiting".to_owned(),
            (AuditState::InProgress, _) => "running".to_owned(),
            (AuditState::Completed, error) => unmeasured_text(error.as_ref()),
        },
        reason: audit.error.as_ref().map(|error| error.message.clone()),
        redirected_to: audit.final_url.clone(),
        error_status: summary.and_then(ReportSummary::error_status),
        labels: audit.labels.clone(),
        kind: kind(
            order.options.need_comparison(),
            order.options.replay.is_some(),
        ),
    }
}

/// Describes the end of an audit without measurements.
fn unmeasured_text(error: Option<&AuditError>) -> String {
    let code = error.map(|error| &*error.code);
    let code = FailureCode::ALL
        .into_iter()
        .find(|known| Some(known.as_str()) == code);
    match code {
        Some(FailureCode::Cancelled) => "cancelled".to_owned(),
        Some(code) => format!("not measured: {}", cause(code)),
        None => "not measured".to_owned(),
    }
}

/// Names the cause of a failure in a few words.
fn cause(code: FailureCode) -> &'static str {
    match code {
        FailureCode::DnsFailure => "host not found",
        FailureCode::ConnectionFailed => "no connection",
        FailureCode::TlsFailure => "TLS error",
        FailureCode::BlockedTarget => "address not allowed",
        FailureCode::NotHtml => "no HTML page",
        FailureCode::HttpError => "HTTP error",
        FailureCode::PreconditionFailed => "not the expected page",
        FailureCode::NoPaint => "nothing painted",
        FailureCode::PageCrashed => "page crashed",
        FailureCode::PageHung => "page hung",
        FailureCode::TooManyRedirects => "too many redirects",
        FailureCode::TooLarge => "page too large",
        FailureCode::Timeout => "timeout",
        FailureCode::Cancelled => "cancelled",
        FailureCode::Internal => "internal error",
    }
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::MainDocument;
    use plumbline_catalog::BUILT_IN;
    use plumbline_model::report::{Consent, ConsentConditions};
    use plumbline_store::VisitOptions;

    use super::*;
    use crate::pages::testing::report;

    #[test]
    fn the_row_of_an_error_page_has_its_status() {
        let row_of = |status: u16| {
            let mut report = report("https://example.com/");
            report.document = Some(MainDocument {
                status,
                ..MainDocument::default()
            });
            audit_row(&PastAudit {
                tracking_id: String::new(),
                audit_id: None,
                url: report.requested_url.clone(),
                at_ms: 0,
                summary: Some((&report).into()),
                error: None,
                labels: Vec::new(),
            })
        };
        assert_eq!(row_of(500).error_status, Some(500));
        assert_eq!(row_of(200).error_status, None);
    }

    #[test]
    fn conditions_name_what_a_visit_began_with() {
        let mut conditions = report("page").conditions;
        let names = condition_names(&conditions);
        conditions.session = Some("staging".to_owned());
        conditions.state = Some(Box::default());
        conditions.steps = vec!["Click".to_owned()];
        conditions.consent = Some(ConsentConditions {
            choice: Consent::Accept,
            manager: None,
        });
        let more = [
            "signed in with staging",
            "with state",
            "after steps",
            "consent: accept",
        ];
        assert_eq!(condition_names(&conditions)[names.len()..], more);
    }

    #[test]
    fn a_failure_is_described_in_words() {
        for (code, text) in [
            ("DNS_FAILURE", "not measured: host not found"),
            ("CANCELLED", "cancelled"),
            ("OF_A_LATER_VERSION", "not measured"),
        ] {
            let error = AuditError {
                code: code.to_owned(),
                message: String::new(),
            };
            assert_eq!(unmeasured_text(Some(&error)), text);
        }
    }

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
