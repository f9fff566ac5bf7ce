//! The page that compares two audits.

use std::collections::BTreeMap;

use askama::Template;
use plumbline_model::check::{CheckResult, Verdict};
use plumbline_model::media::ReportMedia;
use plumbline_model::report::Report;

use super::HtmlError;
use super::charts::Axis;
use super::figures::{Grade, bytes, date, short_name};
use super::film::{FilmTimes, FilmView, film};
use super::page_frame::PageFrame;
use super::pairs::{PairsView, pairs};
use super::pictures::PictureSource;
use super::summary::{METRICS, metric, value_text};

/// One of the two audits to compare.
pub struct ComparedAudit<'a> {
    pub audit_id: &'a str,
    pub created_at_ms: i64,
    pub report: &'a str,
    pub media: Option<&'a [u8]>,
}

#[derive(Template)]
#[template(path = "compare.html")]
struct CompareTemplate<'a> {
    page_frame: &'a PageFrame,
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

/// Renders the comparison of two audits.
pub fn compare_page(
    page_frame: &PageFrame,
    before: &ComparedAudit<'_>,
    after: &ComparedAudit<'_>,
) -> Result<String, HtmlError> {
    let reports: [Report; 2] = [
        serde_json::from_str(before.report)?,
        serde_json::from_str(after.report)?,
    ];
    let unpacked = |side: &ComparedAudit<'_>| side.media.map(ReportMedia::unpack).transpose();
    let media = [unpacked(before)?, unpacked(after)?];
    // Both audits share a timeline, which is as long as the longer one.
    let longest = |of: fn(&ReportMedia) -> f64| media.iter().flatten().map(of).fold(0.0, f64::max);
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
    let side = |index: usize, compared: &ComparedAudit<'_>, name: &'static str| {
        let (report, media) = (&reports[index], media[index].as_ref());
        let path = format!("/reports/{}", compared.audit_id);
        let conditions = &report.conditions;
        SideView {
            name,
            url: report
                .final_url
                .clone()
                .unwrap_or_else(|| report.requested_url.clone()),
            when: date(compared.created_at_ms),
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
    let template = CompareTemplate {
        page_frame,
        same_conditions: sides[0].conditions == sides[1].conditions,
        sides,
        requests: media[0]
            .as_ref()
            .zip(media[1].as_ref())
            .map(|(before, after)| pairs(before, after, axis)),
        rows: rows(&reports, [media[0].as_ref(), media[1].as_ref()]),
        fixed,
        broken,
    };
    Ok(template.render()?)
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
