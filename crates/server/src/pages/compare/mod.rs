//! The page that compares two audits.

mod figures;
mod pairs;

use std::collections::BTreeMap;

use askama::Template;
use axum::{
    extract::State,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use plumbline_model::check::{CheckResult, Verdict};
use plumbline_model::media::ReportMedia;
use plumbline_model::report::Report;
use plumbline_report::html::charts::Axis;
use plumbline_report::html::environment::compared_conditions;
use plumbline_report::html::figures::date;
use plumbline_report::html::film::{FilmTimes, FilmView, film};
use plumbline_report::html::recording::recording_text;
use plumbline_report::html::{CodeText, HtmlError, PictureSource};
use plumbline_store::StoredReport;

use self::figures::{Row, rows};
use self::pairs::{PairsView, pairs};
use super::audit_list::{condition_names, joined};
use super::form::query;
use super::frame::{Page, PageFrame};
use super::parts as page_parts;
use super::session::Visitor;
use super::shared_page::Subject;
use super::sharing::{Origin, Sharing};
use crate::{errors::Failure, state::SharedState};

/// `GET /compare?before=&after=`: the comparison of two audits, by audit ids.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    origin: Origin,
    parts: Parts,
) -> Result<Response, Failure> {
    let id = |name: &'static str| query(&parts, name)?.ok_or(Failure::NotFound);
    let (before, after) = (id("before")?, id("after")?);
    let account_id = &visitor.account_id;
    let sides = [
        side(&service, account_id, &before).await?,
        side(&service, account_id, &after).await?,
    ];
    let subject = Subject::Comparison { before, after };
    let sharing = subject.sharing(&service, account_id, &origin).await?;
    let page_frame = visitor.page_frame();
    let render = move || page_frame.render(&ComparePage::new(&sides, Reader::Owner(sharing))?);
    Ok(service.render_pool.page(render).await?.into_response())
}

/// Renders the comparison of two audits for anyone with a shared link.
pub(super) async fn shared(
    service: &SharedState,
    account_id: &str,
    ids: [&str; 2],
    token: &str,
) -> Result<Response, Failure> {
    let sides = [
        side(service, account_id, ids[0]).await?,
        side(service, account_id, ids[1]).await?,
    ];
    let reader = Reader::Guest(format!("/shared-pages/{token}"));
    let render = move || PageFrame::Shared.render(&ComparePage::new(&sides, reader)?);
    Ok(service.render_pool.page(render).await?.into_response())
}

async fn side(
    service: &SharedState,
    account_id: &str,
    audit_id: &str,
) -> Result<ComparedAudit, Failure> {
    let stored = service.app.store.report(account_id, audit_id).await?;
    let stored = stored.ok_or(Failure::NotFound)?;
    let media = page_parts(service)?.media_of(&stored).await?;
    Ok(ComparedAudit { stored, media })
}

/// The reader of a comparison.
enum Reader {
    Owner(Sharing),
    /// Anyone with a shared link, which has this path.
    Guest(String),
}

/// One of the two audits to compare.
struct ComparedAudit {
    stored: StoredReport,
    /// The packed report media; `None` if they are no longer stored.
    media: Option<Vec<u8>>,
}

/// The comparison page.
#[derive(Template)]
#[template(path = "compare/compare.html")]
struct ComparePage {
    sides: [SideView; 2],
    /// Sentences to read before the figures are compared.
    notices: Vec<String>,
    /// The name of each condition that differs, with both values.
    differences: Vec<(&'static str, [String; 2])>,
    rows: Vec<Row>,
    /// The requests of both audits; `None` if those of one are no longer stored.
    requests: Option<PairsView>,
    fixed: Vec<Change>,
    broken: Vec<Change>,
    /// How the page is shared, for its owner.
    sharing: Option<Sharing>,
}

/// One of the two audits as the page shows it.
struct SideView {
    name: &'static str,
    /// The path of the report, for those who may read it.
    href: Option<String>,
    url: String,
    when: String,
    conditions: String,
    is_measured: bool,
    film: Option<FilmView>,
}

/// A check that fails in one of the two audits only.
struct Change {
    title: CodeText,
    category: String,
}

impl ComparePage {
    fn new([before, after]: &[ComparedAudit; 2], reader: Reader) -> Result<Self, HtmlError> {
        let reports: [Report; 2] = [
            Report::from_json(&before.stored.report)?,
            Report::from_json(&after.stored.report)?,
        ];
        let unpacked = |side: &ComparedAudit| {
            side.media
                .as_deref()
                .map(ReportMedia::unpack_without_pictures)
                .transpose()
        };
        let media = [unpacked(before)?, unpacked(after)?];
        // Both audits share a timeline, which is as long as the longer one.
        let longest =
            |of: fn(&ReportMedia) -> f64| media.iter().flatten().map(of).fold(0.0, f64::max);
        let film_times = FilmTimes::of(media.iter().flatten());
        // Only requests count: the page does not show main-thread activity, which may end later.
        let requests_end = |media: &ReportMedia| {
            let ends = media.requests.iter();
            let ends = ends.map(|request| request.end_ms.unwrap_or(request.start_ms));
            ends.fold(0.0, f64::max)
        };
        let axis = Axis {
            end_ms: longest(requests_end) * 1.05,
        };
        let side = |index: usize, compared: &ComparedAudit, name: &'static str| {
            let (report, media) = (&reports[index], media[index].as_ref());
            let report_path = format!("/reports/{}", compared.stored.audit_id);
            let (path, href) = match &reader {
                Reader::Owner(_) => (report_path.clone(), Some(report_path)),
                Reader::Guest(path) => (format!("{path}/{}", name.to_lowercase()), None),
            };
            SideView {
                name,
                url: visited_url(report).to_owned(),
                when: date(compared.stored.created_at.0),
                is_measured: report.error.is_none(),
                conditions: joined(&condition_names(&report.conditions)),
                film: media.zip(film_times).and_then(|(media, times)| {
                    film(media, &PictureSource::Linked(path.clone()), times)
                }),
                href,
            }
        };
        let sides = [side(0, before, "Before"), side(1, after, "After")];
        let (fixed, broken) = changes(&reports[0], &reports[1]);
        let is_same_audit = before.stored.audit_id == after.stored.audit_id;
        Ok(Self {
            notices: notices(&reports, is_same_audit),
            differences: differences(&reports),
            sides,
            requests: media[0]
                .as_ref()
                .zip(media[1].as_ref())
                .map(|(before, after)| pairs(before, after, axis)),
            rows: rows(&reports, [media[0].as_ref(), media[1].as_ref()]),
            fixed,
            broken,
            sharing: match reader {
                Reader::Owner(sharing) => Some(sharing),
                Reader::Guest(_) => None,
            },
        })
    }
}

impl ComparePage {
    /// Whether both audits have figures and checks.
    fn are_measured(&self) -> bool {
        self.sides.iter().all(|side| side.is_measured)
    }

    /// Whether a change is not larger than the uncertainty of the figures.
    fn has_noise(&self) -> bool {
        self.rows.iter().any(|row| row.is_noise)
    }
}

impl Page for ComparePage {
    fn title(&self) -> String {
        "Two audits compared · Plumbline".to_owned()
    }

    fn description(&self) -> String {
        "Two audits side by side: scores, metrics, filmstrips, requests and checks that changed."
            .to_owned()
    }
}

/// Returns the URL of the measured document, or the requested one if there is none.
fn visited_url(report: &Report) -> &str {
    report.final_url.as_deref().unwrap_or(&report.requested_url)
}

/// Returns sentences about audits that say little about each other: one that was not measured or
/// that visited a recording, the same audit twice, or audits of different pages.
fn notices(reports: &[Report; 2], is_same_audit: bool) -> Vec<String> {
    let mut notices = Vec::new();
    if is_same_audit {
        notices.push("Both sides are the same audit, so nothing differs.".to_owned());
    }
    for (report, side) in reports.iter().zip(["before", "after"]) {
        if let Some(error) = &report.error {
            let (message, code) = (&error.message, error.code.as_str());
            let text = format!("The audit {side} was not measured: {message} (Code {code}.)");
            notices.push(text);
        }
        if let Some(replay) = &report.conditions.replay {
            let recording = recording_text(replay);
            notices.push(format!("The audit {side} visited a recording {recording}."));
        }
    }
    let [before, after] = reports;
    let is_same_page = if reports.iter().all(|report| report.error.is_none()) {
        visited_url(before) == visited_url(after)
    } else {
        before.requested_url == after.requested_url
    };
    if !is_same_page {
        notices.push(
            "These are audits of different URLs, so the differences are those between two pages."
                .to_owned(),
        );
    }
    notices
}

/// Returns the conditions that differ. One that an older report did not record does not count.
fn differences(reports: &[Report; 2]) -> Vec<(&'static str, [String; 2])> {
    let [before, after] = reports.each_ref().map(compared_conditions);
    let mut differences = Vec::new();
    for (name, value) in before {
        let other = after.iter().find(|(other, _)| *other == name);
        if let Some((_, other)) = other.filter(|(_, other)| *other != value) {
            differences.push((name, [value, other.clone()]));
        }
    }
    differences
}

/// Returns the checks that no longer fail, and those that fail only now.
fn changes(before: &Report, after: &Report) -> (Vec<Change>, Vec<Change>) {
    type ChecksById<'a> = BTreeMap<(&'static str, &'a str), (&'a str, &'a CheckResult)>;
    fn all(report: &Report) -> ChecksById<'_> {
        let categories = report.categories.iter();
        categories
            .flat_map(|category| {
                category.checks.iter().map(move |check| {
                    let id = (category.id.as_str(), check.id.as_str());
                    (id, (category.title.as_str(), check))
                })
            })
            .collect()
    }
    let (before, after) = (all(before), all(after));
    let failed = |check: &CheckResult| check.verdict == Verdict::Fail;
    let (mut fixed, mut broken) = (Vec::new(), Vec::new());
    for (id, (category, check)) in &after {
        let Some((_, previous)) = before.get(id) else {
            continue;
        };
        let change = Change {
            title: CodeText(check.title.clone()),
            category: (*category).to_owned(),
        };
        match (failed(previous), failed(check)) {
            (true, false) => fixed.push(change),
            (false, true) => broken.push(change),
            _ => {}
        }
    }
    (fixed, broken)
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::{Failure, FailureCode};
    use plumbline_model::media::{FORMAT, RequestEntry};
    use plumbline_model::report::ReplayConditions;
    use plumbline_store::{Order, Timestamp};

    use super::super::testing::{EVIL, assert_text_only, report};
    use super::*;

    #[test]
    fn texts_of_both_audits_are_escaped() {
        let request = RequestEntry {
            url: format!("https://example.com/{EVIL}.js"),
            host: EVIL.to_owned(),
            third_party: true,
            end_ms: Some(321.5),
            ..RequestEntry::default()
        };
        let media = ReportMedia {
            format: FORMAT,
            end_ms: 500.0,
            requests: vec![request],
            ..ReportMedia::default()
        };
        let side = || ComparedAudit {
            media: Some(media.pack().unwrap()),
            ..audit("aud_1", &report(EVIL))
        };
        assert_text_only(&compared([side(), side()]));
        let failed = || audit("aud_1", &unmeasured(EVIL));
        assert_text_only(&compared([failed(), failed()]));
    }

    fn audit(audit_id: &str, report: &Report) -> ComparedAudit {
        ComparedAudit {
            stored: StoredReport {
                account_id: "acc_1".to_owned(),
                audit_id: audit_id.to_owned(),
                tracking_id: "trk_1".to_owned(),
                attempt: 1,
                order: Order {
                    url: report.requested_url.clone(),
                    device: "mobile".to_owned(),
                    network: "cable".to_owned(),
                    location: "eu".to_owned(),
                    options: plumbline_store::VisitOptions::default(),
                },
                created_at: Timestamp(0),
                error: None,
                report: serde_json::to_string(report).unwrap(),
            },
            media: None,
        }
    }

    fn unmeasured(text: &str) -> Report {
        let failure = Failure::new(FailureCode::HttpError, text);
        Report::failed(text, report(text).conditions, failure)
    }

    fn compared(sides: [ComparedAudit; 2]) -> ComparePage {
        let reader = Reader::Guest("/shared-pages/token".to_owned());
        ComparePage::new(&sides, reader).unwrap()
    }

    #[test]
    fn audits_that_say_little_about_each_other_have_a_notice() {
        let (first, second) = (audit("aud_1", &report("x")), audit("aud_2", &report("x")));
        assert!(compared([first, second]).notices.is_empty());

        let [once, twice] = ["aud_1"; 2].map(|id| audit(id, &report("x")));
        let same = compared([once, twice]).notices;
        assert_eq!(same, ["Both sides are the same audit, so nothing differs."]);

        let other = audit("aud_2", &report("y"));
        let different = compared([audit("aud_1", &report("x")), other]).notices;
        assert!(different[0].starts_with("These are audits of different URLs"));
        assert_eq!(different.len(), 1);
    }

    #[test]
    fn an_audit_of_a_recording_is_named_with_what_was_missing() {
        let mut replayed = report("x");
        replayed.conditions.replay = Some(Box::new(ReplayConditions {
            recorded_at: "2027-01-15T08:00:00Z".to_owned(),
            missing_requests: 1,
            missing: vec!["https://a.test/".to_owned()],
        }));
        let page = compared([audit("aud_1", &report("x")), audit("aud_2", &replayed)]);
        assert_eq!(
            page.notices,
            [
                "The audit after visited a recording of 15 Jan 2027, 08:00 UTC; 1 request was not \
                 in it: https://a.test/."
            ]
        );
        let values = ["none", "visited in place of the servers"].map(str::to_owned);
        assert_eq!(page.differences, [("Recording", values)]);
    }

    #[test]
    fn an_audit_that_was_not_measured_is_named_with_the_reason() {
        let failed = unmeasured("The server answered 404.");
        let measured = Report {
            requested_url: failed.requested_url.clone(),
            ..report("x")
        };
        let page = compared([audit("aud_1", &failed), audit("aud_2", &measured)]);
        assert_eq!(
            page.notices,
            ["The audit before was not measured: The server answered 404. (Code HTTP_ERROR.)"]
        );
        let html = page.render().unwrap();
        assert!(html.contains("An audit that was not measured has no checks."));
        assert!(!html.contains("the same checks fail in both audits"));
    }
}
