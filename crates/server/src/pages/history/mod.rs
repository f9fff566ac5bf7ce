//! The history page of a URL: trends of audits and of field data.

mod comparable;
mod field;
mod figures;
mod no_audits;
mod trend;

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::State,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use plumbline_catalog::FormFactor;

use self::comparable::{ComparisonOption, comparable};
use self::field::{DeviceFieldHistory, FieldSeries, field_series};
use self::figures::{Run, Trend, trends};
use super::audit_list::{AuditRow, PastAudit, audit_rows, condition_names, joined};
use super::form::query;
use super::frame::{Page, PageFrame};
use super::parts as page_parts;
use super::session::Visitor;
use super::shared_page::Subject;
use super::sharing::{Origin, Sharing};
use crate::{errors::Failure, state::SharedState};

/// The number of audits in a history: enough for a trend, few enough to load at once.
const MAX_AUDITS: u32 = 60;

/// `GET /history?audit=` (the URL of that audit) or `?url=`: the history of a URL.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    origin: Origin,
    parts: Parts,
) -> Result<Response, Failure> {
    let url = match (query(&parts, "url")?, query(&parts, "audit")?) {
        (Some(url), _) => url,
        (None, Some(id)) => {
            let stored = service.app.store.report(&visitor.account_id, &id).await?;
            stored.ok_or(Failure::NotFound)?.order.url
        }
        (None, None) => return Err(Failure::NotFound),
    };
    let subject = Subject::History { url: url.clone() };
    let account_id = &visitor.account_id;
    let sharing = subject.sharing(&service, account_id, &origin).await?;
    let page_frame = visitor.page_frame();
    let page = render(&service, account_id, url.clone(), page_frame, Some(sharing)).await?;
    match page {
        Some(page) => Ok(page),
        None => no_audits::page(&visitor, &url),
    }
}

/// Renders the history of a URL for anyone with a shared link.
pub(super) async fn shared(
    service: &SharedState,
    account_id: &str,
    url: String,
) -> Result<Response, Failure> {
    let page = render(service, account_id, url, PageFrame::Shared, None).await?;
    page.ok_or(Failure::NotFound)
}

/// Renders the history of a URL; `None` if there are no audits. Only its owner, who can share it,
/// gets links to other pages.
async fn render(
    service: &SharedState,
    account_id: &str,
    url: String,
    page_frame: PageFrame,
    sharing: Option<Sharing>,
) -> Result<Option<Response>, Failure> {
    let store = &page_parts(service)?.store;
    let audits = store.recent(account_id, Some(&url), MAX_AUDITS).await?;
    if audits.is_empty() {
        return Ok(None);
    }
    let past: Vec<_> = audits.into_iter().map(PastAudit::from).collect();
    let field = field_past(service, &url, &past).await?;
    let render = move || page_frame.render(&HistoryPage::new(&url, &past, &field, sharing));
    let page = service.render_pool.page(render).await?;
    Ok(Some(page.into_response()))
}

/// Returns the field data for every kind of device on which the URL was audited, queried
/// concurrently.
async fn field_past(
    service: &SharedState,
    url: &str,
    past: &[PastAudit],
) -> Result<Vec<DeviceFieldHistory>, Failure> {
    let Some(source) = &service.app.field else {
        return Ok(Vec::new());
    };
    let mut form_factors: Vec<FormFactor> = Vec::new();
    for device in device_ids(past) {
        let device = service.app.catalog.device(&device);
        if let Some(form_factor) = device.map(|device| device.form_factor())
            && !form_factors.contains(&form_factor)
        {
            form_factors.push(form_factor);
        }
    }
    // The dataset lists visits under the final URL.
    let url = newest_final_url(past).unwrap_or_else(|| url.to_owned());
    let queries = form_factors.into_iter().map(|form_factor| {
        let (source, url) = (Arc::clone(source), url.clone());
        tokio::spawn(async move {
            let history = source.history(&url, form_factor).await;
            DeviceFieldHistory {
                form_factor,
                history,
            }
        })
    });
    let mut field = Vec::new();
    for query in queries.collect::<Vec<_>>() {
        field.push(query.await.map_err(Failure::internal)?);
    }
    Ok(field)
}

/// The history page.
#[derive(Template)]
#[template(path = "history/history.html")]
struct HistoryPage<'a> {
    url: &'a str,
    past: Vec<AuditRow>,
    /// The measured audits, newest first.
    comparable: Vec<ComparisonOption>,
    /// The indexes of the audits that are preselected as "before" and "after".
    preselected: [usize; 2],
    series: Vec<Series>,
    field: Vec<FieldSeries>,
    /// How the page is shared, for its owner.
    sharing: Option<Sharing>,
}

/// The figures of all audits with the same conditions.
struct Series {
    conditions: String,
    /// Whether there is one audit only, so that there are no charts.
    is_single: bool,
    trends: Vec<Trend>,
}

/// Returns the final URL of the newest measured audit.
fn newest_final_url(past: &[PastAudit]) -> Option<String> {
    past.iter()
        .filter_map(|audit| audit.summary.as_ref())
        .find_map(|summary| summary.final_url.clone())
}

/// Returns the ids of the devices of these audits, without duplicates.
fn device_ids(past: &[PastAudit]) -> Vec<String> {
    let mut devices = Vec::new();
    for summary in past.iter().filter_map(|audit| audit.summary.as_ref()) {
        let device = &summary.conditions.device.id;
        if !devices.contains(device) {
            devices.push(device.clone());
        }
    }
    devices
}

impl<'a> HistoryPage<'a> {
    /// Creates the page of a URL. `past` is sorted newest first; `field` has one entry per form
    /// factor.
    fn new(
        url: &'a str,
        past: &[PastAudit],
        field: &[DeviceFieldHistory],
        sharing: Option<Sharing>,
    ) -> Self {
        let mut by_conditions: Vec<(Vec<String>, Vec<Run<'_>>)> = Vec::new();
        for audit in past.iter().rev() {
            let summary = audit.summary.as_ref();
            let Some(summary) = summary.filter(|summary| summary.metrics.is_some()) else {
                continue;
            };
            let names = condition_names(&summary.conditions);
            let run = Run {
                at_ms: audit.at_ms,
                summary,
            };
            match by_conditions.iter_mut().find(|(other, _)| *other == names) {
                Some((_, runs)) => runs.push(run),
                None => by_conditions.push((names, vec![run])),
            }
        }
        let series = by_conditions.into_iter().map(|(names, runs)| Series {
            conditions: joined(&names),
            is_single: runs.len() == 1,
            trends: trends(&runs),
        });
        let mut past = audit_rows(past);
        let (mut comparable, preselected) = comparable(&past);
        if sharing.is_none() {
            comparable.clear();
            for audit in &mut past {
                audit.href = None;
                audit.labels.clear();
                // It may contain URLs and texts of the page.
                audit.reason = None;
            }
        }
        Self {
            url,
            past,
            comparable,
            preselected,
            series: series.collect(),
            field: field_series(field),
            sharing,
        }
    }
}

impl HistoryPage<'_> {
    /// Whether an audit is preselected as "before" (0) or "after" (1).
    fn is_preselected(&self, side: usize, index: &usize) -> bool {
        self.preselected[side] == *index
    }
}

impl Page for HistoryPage<'_> {
    fn title(&self) -> String {
        format!("History of {} · Plumbline", self.url)
    }

    fn description(&self) -> String {
        format!("Audits of {} over time.", self.url)
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::field::{FieldHistory, FieldKind, Period, RecordScope};
    use plumbline_model::report::{Report, View};
    use plumbline_store::AuditError;

    use super::super::testing::{EVIL, assert_text_only, report};
    use super::*;

    #[test]
    fn texts_of_audits_and_of_field_data_are_escaped() {
        let past = PastAudit {
            tracking_id: "trk_1".to_owned(),
            audit_id: Some("aud_1".to_owned()),
            url: EVIL.to_owned(),
            at_ms: 0,
            summary: Some((&report(EVIL)).into()),
            error: None,
            labels: vec![EVIL.to_owned()],
        };
        let period = Period {
            first_date: EVIL.to_owned(),
            last_date: EVIL.to_owned(),
        };
        let field = DeviceFieldHistory {
            form_factor: FormFactor::Tablet,
            history: Ok(FieldHistory {
                record: RecordScope::Origin,
                subject: EVIL.to_owned(),
                form_factor: FormFactor::Tablet,
                periods: vec![period],
                p75s: vec![(FieldKind::Cls, vec![Some(0.2)])],
            }),
        };
        let twice = [past.clone(), past];
        assert_text_only(&HistoryPage::new(EVIL, &twice, &[field], None));
    }

    fn audit_of(report: &Report) -> PastAudit {
        PastAudit {
            tracking_id: "trk_1".to_owned(),
            audit_id: Some("aud_1".to_owned()),
            url: "https://example.com/".to_owned(),
            at_ms: 0,
            summary: Some(report.into()),
            error: None,
            labels: Vec::new(),
        }
    }

    #[test]
    fn first_and_repeat_views_have_charts_of_their_own() {
        let first = report("x");
        let mut repeat = first.clone();
        repeat.conditions.view = View::Repeat;
        let past = [&repeat, &first, &repeat, &first].map(audit_of);
        let page = HistoryPage::new("https://example.com/", &past, &[], Some(sharing()));
        let headings: Vec<_> = page
            .series
            .iter()
            .map(|it| it.conditions.as_str())
            .collect();
        assert_eq!(
            headings,
            ["x · x · x", "x · x · x · repeat visit, warm cache"]
        );
        assert_eq!(page.preselected, [2, 0], "the newest two repeat views");
        let html = page.render().unwrap();
        let count = html.matches("repeat visit, warm cache").count();
        assert_eq!(
            count, 7,
            "a heading, two rows, and two options in each list"
        );
        assert_eq!(html.matches("over 2 audits").count(), 12);
    }

    #[test]
    fn a_single_audit_has_figures_and_no_chart() {
        let past = [audit_of(&report("x"))];
        let page = HistoryPage::new("https://example.com/", &past, &[], Some(sharing()));
        let html = page.render().unwrap();
        assert!(html.contains("There is one audit under these conditions. A chart needs two."));
        assert!(html.contains("<h3>Performance</h3><p><strong class=\"middling\">87</strong></p>"));
        assert!(!html.contains("<svg"), "{html}");
    }

    #[test]
    fn audits_without_figures_are_explained() {
        let failed = Report {
            metrics: None,
            ..report("x")
        };
        let past = [audit_of(&failed)];
        let page = HistoryPage::new("https://example.com/", &past, &[], Some(sharing()));
        let html = page.render().unwrap();
        assert!(html.contains("None of these audits has figures"), "{html}");
    }

    fn sharing() -> Sharing {
        Sharing {
            action: "/history/share".to_owned(),
            fields: Vec::new(),
            link: None,
        }
    }

    #[test]
    fn labels_are_shown_to_the_owner_only() {
        let labelled = |label: &str| PastAudit {
            tracking_id: "trk_1".to_owned(),
            audit_id: Some("aud_1".to_owned()),
            url: "https://example.com/".to_owned(),
            at_ms: 0,
            summary: Some((&report("https://example.com/")).into()),
            error: None,
            labels: vec![label.to_owned()],
        };
        let past = ["release-2", "release-1"].map(labelled);
        let url = "https://example.com/";
        let own = HistoryPage::new(url, &past, &[], Some(sharing()));
        let own = own.render().unwrap();
        let count = own.matches("release-1").count();
        assert_eq!(count, 4, "two options, and a row with a link");
        let shared = HistoryPage::new(url, &past, &[], None).render().unwrap();
        assert!(!shared.contains("release-"));
    }

    #[test]
    fn reasons_of_failures_are_shown_to_the_owner_only() {
        let message = "The page had redirected to https://login.example/?state=1.";
        let failed = PastAudit {
            tracking_id: "trk_1".to_owned(),
            audit_id: Some("aud_1".to_owned()),
            url: "https://example.com/".to_owned(),
            at_ms: 0,
            summary: None,
            error: Some(AuditError {
                code: "HTTP_ERROR".to_owned(),
                message: message.to_owned(),
            }),
            labels: Vec::new(),
        };
        let url = "https://example.com/";
        let page = |sharing| HistoryPage::new(url, std::slice::from_ref(&failed), &[], sharing);
        assert!(
            page(Some(sharing()))
                .render()
                .unwrap()
                .contains("login.example")
        );
        assert!(!page(None).render().unwrap().contains("login.example"));
    }
}
