//! The page that compares two audits.

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
use plumbline_report::html::figures::{Grade, bytes, date, short_name};
use plumbline_report::html::film::{FilmTimes, FilmView, film};
use plumbline_report::html::summary::{METRICS, metric, value_text};
use plumbline_report::html::{HtmlError, PictureSource};
use plumbline_store::StoredReport;

use self::pairs::{PairsView, pairs};
use super::form::query;
use super::frame::Page;
use super::parts as page_parts;
use super::session::Visitor;
use crate::{errors::Failure, state::SharedState};

/// `GET /compare?before=&after=`: the comparison of two audits, by audit ids.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let pages = page_parts(&service)?;
    let side = async |name: &str| {
        let id = query(&parts, name)?.ok_or(Failure::NotFound)?;
        let stored = service.app.store.report(&visitor.account_id, &id).await?;
        let stored = stored.ok_or(Failure::NotFound)?;
        let media = pages.media_of(&stored).await?;
        Ok::<_, Failure>(ComparedAudit { stored, media })
    };
    let (before, after) = (side("before").await?, side("after").await?);
    let page_frame = visitor.page_frame();
    let render = move || page_frame.render(&ComparePage::new(&before, &after)?);
    Ok(service.render_pool.page(render).await?.into_response())
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
    same_conditions: bool,
    rows: Vec<Row>,
    /// The requests of both audits; `None` if those of one are no longer stored.
    requests: Option<PairsView>,
    fixed: Vec<Change>,
    broken: Vec<Change>,
}

/// One of the two audits as the page shows it.
struct SideView {
    name: &'static str,
    href: String,
    url: String,
    when: String,
    conditions: String,
    film: Option<FilmView>,
}

struct Row {
    name: &'static str,
    values: [(&'static str, String); 2],
    /// `better`, `worse` or empty.
    class: &'static str,
    change: String,
}

/// A check that fails in one of the two audits only.
struct Change {
    title: String,
    category: String,
}

impl ComparePage {
    fn new(before: &ComparedAudit, after: &ComparedAudit) -> Result<Self, HtmlError> {
        let reports: [Report; 2] = [
            serde_json::from_str(&before.stored.report)?,
            serde_json::from_str(&after.stored.report)?,
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
            let path = format!("/reports/{}", compared.stored.audit_id);
            let conditions = &report.conditions;
            SideView {
                name,
                url: report
                    .final_url
                    .clone()
                    .unwrap_or_else(|| report.requested_url.clone()),
                when: date(compared.stored.created_at.0),
                conditions: [
                    &conditions.device.name,
                    &conditions.network.name,
                    &conditions.location.name,
                ]
                .map(|name| short_name(name))
                .join(" · "),
                film: media.zip(film_times).and_then(|(media, times)| {
                    film(media, &PictureSource::Linked(path.clone()), times)
                }),
                href: path,
            }
        };
        let sides = [side(0, before, "Before"), side(1, after, "After")];
        let (fixed, broken) = changes(&reports[0], &reports[1]);
        Ok(Self {
            same_conditions: sides[0].conditions == sides[1].conditions,
            sides,
            requests: media[0]
                .as_ref()
                .zip(media[1].as_ref())
                .map(|(before, after)| pairs(before, after, axis)),
            rows: rows(&reports, [media[0].as_ref(), media[1].as_ref()]),
            fixed,
            broken,
        })
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

fn rows(reports: &[Report; 2], media: [Option<&ReportMedia>; 2]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, of) in [
        (
            "Performance",
            (|r: &Report| r.scores.performance) as fn(&Report) -> Option<u8>,
        ),
        ("Accessibility", |r| r.scores.accessibility),
        ("Best practices", |r| r.scores.best_practices),
        ("SEO", |r| r.scores.seo),
        ("PWA", |r| r.scores.pwa),
    ] {
        let scores = [of(&reports[0]), of(&reports[1])];
        let numbers = scores.map(|score| score.map(f64::from));
        let texts = scores.map(|score| {
            let text = score.map_or("–".to_owned(), |score| score.to_string());
            (Grade::of_score(score).class(), text)
        });
        rows.push(row(name, numbers, texts, true, whole));
    }
    for (kind, name, _) in METRICS {
        let measured = |report: &Report| metric(report.metrics.as_ref()?, kind);
        let values = [measured(&reports[0]), measured(&reports[1])];
        let texts = values.map(|value| {
            let text = value.map_or("–".to_owned(), |value| value_text(kind, value.value));
            (Grade::of_metric(value).class(), text)
        });
        let numbers = values.map(|value| value.map(|value| value.value));
        rows.push(row(name, numbers, texts, false, |change| {
            let size = value_text(kind, change.abs());
            format!("{}{size}", if change < 0.0 { '−' } else { '+' })
        }));
    }
    let weights = media.map(|media| {
        media.map(|media| media.requests.iter().map(|r| r.transfer_bytes).sum::<u64>())
    });
    let texts = weights.map(|weight| ("", weight.map_or("–".to_owned(), bytes)));
    let numbers = weights.map(|weight| weight.map(|weight| weight as f64));
    rows.push(row("Transferred", numbers, texts, false, |change| {
        format!(
            "{}{}",
            if change < 0.0 { '−' } else { '+' },
            bytes(change.abs() as u64)
        )
    }));
    let counts = media.map(|media| media.map(|media| media.requests.len()));
    let texts = counts.map(|count| ("", count.map_or("–".to_owned(), |count| count.to_string())));
    let numbers = counts.map(|count| count.map(|count| count as f64));
    rows.push(row("Requests", numbers, texts, false, whole));
    rows
}

/// Formats a change with a typographic minus sign, which is as wide as the plus sign.
fn whole(change: f64) -> String {
    let sign = if change < 0.0 { '−' } else { '+' };
    format!("{sign}{:.0}", change.abs())
}

fn row(
    name: &'static str,
    numbers: [Option<f64>; 2],
    values: [(&'static str, String); 2],
    more_is_better: bool,
    text: impl Fn(f64) -> String,
) -> Row {
    let same = values[0].1 == values[1].1;
    let change = match numbers {
        [Some(before), Some(after)] if !same => Some(after - before),
        _ => None,
    };
    // Two visits of the same page differ by a few per cent, which is not a change.
    let largest = numbers.into_iter().flatten().fold(0.0, f64::max);
    let threshold = if more_is_better { 1.0 } else { largest * 0.03 };
    Row {
        name,
        values,
        class: match change {
            Some(change) if change.abs() < threshold => "",
            Some(change) if (change > 0.0) == more_is_better => "better",
            Some(_) => "worse",
            None => "",
        },
        change: change.map_or_else(|| if same { "=" } else { "" }.to_owned(), text),
    }
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
            title: check.title.clone(),
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
    use plumbline_model::media::{FORMAT, RequestEntry};
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
            stored: StoredReport {
                audit_id: "aud_1".to_owned(),
                tracking_id: "trk_1".to_owned(),
                attempt: 1,
                order: Order {
                    url: EVIL.to_owned(),
                    device: "mobile".to_owned(),
                    network: "cable".to_owned(),
                    location: "eu".to_owned(),
                    options: plumbline_store::VisitOptions::default(),
                },
                created_at: Timestamp(0),
                error: None,
                report: serde_json::to_string(&report(EVIL)).unwrap(),
            },
            media: Some(media.pack().unwrap()),
        };
        assert_text_only(&ComparePage::new(&side(), &side()).unwrap());
    }
}
