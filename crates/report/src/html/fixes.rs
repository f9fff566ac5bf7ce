//! The list "What to fix first": failed checks, ordered by how many points fixing them would gain.

use plumbline_model::category::CategoryResult;
use plumbline_model::check::{
    Cell, CheckResult, Details, ElementDetail, Findings, Row, Savings, Verdict,
};
use plumbline_model::report::Report;
use plumbline_model::scoring::{MetricKind, PERFORMANCE_WEIGHTS};

use super::code_text::CodeText;
use super::crops::Screenshots;
use super::figures::{bytes, ms};
use super::summary::{metric, value_text};

/// A failed check that is worth fixing.
pub(super) struct Fix {
    /// The link to the check further down the page.
    pub(super) anchor: String,
    pub(super) title: String,
    /// The gain and the title of each category: some checks count in two.
    pub(super) gains: Vec<(String, String)>,
    pub(super) summary: Option<CodeText>,
    pub(super) fix: CodeText,
    /// The first few items of the check's details.
    pub(super) items: Vec<Item>,
    pub(super) more: usize,
}

/// An item of a check's details.
pub(super) struct Item {
    /// An element, a URL, or a text such as a message.
    pub(super) text: String,
    pub(super) is_code: bool,
    /// Figures or remarks about the item.
    pub(super) note: String,
    /// Trusted markup: the part of a screenshot that shows the element.
    pub(super) crop: Option<String>,
}

impl Item {
    fn code(text: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_code: true,
            note: note.into(),
            crop: None,
        }
    }

    fn plain(text: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            is_code: false,
            ..Self::code(text, note)
        }
    }
}

impl Fix {
    /// Whether any item has a picture. Items with pictures are laid out side by side.
    pub(super) fn is_pictured(&self) -> bool {
        self.items.iter().any(|item| item.crop.is_some())
    }
}

/// The most fixes listed.
const MAX_FIXES: usize = 8;
/// The most items listed per fix.
const MAX_ITEMS: usize = 3;
/// The most items listed per fix if they have pictures.
const MAX_PICTURED_ITEMS: usize = 2;
/// The most items searched for pictures: as many as the check itself lists.
const MAX_EXAMINED_ITEMS: usize = super::checks::MAX_ITEMS;

/// A failed check with its possible gain.
struct Candidate<'r> {
    check: &'r CheckResult,
    anchor: String,
    /// PWA checks come last: most pages are not meant to be installed as an app.
    is_pwa: bool,
    points: f64,
    gains: Vec<(String, String)>,
}

pub(super) fn fixes(report: &Report, screenshots: &Screenshots) -> Vec<Fix> {
    let fix = |candidate: Candidate| fix(candidate, screenshots);
    candidates(report).into_iter().map(fix).collect()
}

/// Returns the titles of the checks to fix first, each with its gains.
pub(crate) fn titles_and_gains(report: &Report) -> Vec<(&str, Vec<String>)> {
    candidates(report)
        .into_iter()
        .map(|candidate| {
            let gains = candidate.gains.into_iter().map(|(gain, _)| gain);
            (candidate.check.title.as_str(), gains.collect())
        })
        .collect()
}

/// Returns the failed checks that are worth fixing, those that gain most first.
fn candidates(report: &Report) -> Vec<Candidate<'_>> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for category in &report.categories {
        let counted = category.checks.iter().filter(|c| c.score.is_some());
        let weights: f64 = counted.map(|check| check.weight).sum();
        for check in &category.checks {
            if check.verdict != Verdict::Fail {
                continue;
            }
            if check.weight > 0.0 && weights > 0.0 {
                let left = 1.0 - check.score.unwrap_or_default();
                let points = check.weight * left / weights * 100.0;
                add(
                    &mut candidates,
                    category,
                    check,
                    points,
                    points_text(points),
                );
            } else if let Some(savings) = &check.savings {
                let (points, gain) = performance_gain(report, savings);
                if !gain.is_empty() {
                    add(&mut candidates, category, check, points, gain);
                }
            }
        }
    }
    candidates.sort_by(|a, b| a.is_pwa.cmp(&b.is_pwa).then(b.points.total_cmp(&a.points)));
    candidates.truncate(MAX_FIXES);
    candidates
}

fn add<'r>(
    candidates: &mut Vec<Candidate<'r>>,
    category: &'r CategoryResult,
    check: &'r CheckResult,
    points: f64,
    gain: String,
) {
    let gain = (gain, category.title.clone());
    match candidates
        .iter_mut()
        .find(|candidate| candidate.check.id == check.id)
    {
        Some(candidate) => {
            candidate.points += points;
            candidate.gains.push(gain);
        }
        None => candidates.push(Candidate {
            check,
            anchor: format!("#{}-{}", category.id.as_str(), check.id),
            is_pwa: category.id.as_str() == "pwa",
            points,
            gains: vec![gain],
        }),
    }
}

fn points_text(points: f64) -> String {
    match points.round() as i64 {
        0 => "less than 1 point".to_owned(),
        1 => "+1 point".to_owned(),
        points => format!("+{points} points"),
    }
}

/// Returns the points that the performance score would gain if each metric improved by its savings,
/// and a description of the savings. Points are comparable with those of other categories.
fn performance_gain(report: &Report, savings: &Savings) -> (f64, String) {
    let Some(metrics) = &report.metrics else {
        return (0.0, String::new());
    };
    let mode = report.conditions.device.mode;
    let (mut points, mut texts) = (0.0, Vec::new());
    for (kind, name, saved) in [
        (MetricKind::Fcp, "FCP", savings.fcp_ms),
        (MetricKind::Lcp, "LCP", savings.lcp_ms),
        (MetricKind::Tbt, "TBT", savings.tbt_ms),
        (MetricKind::Cls, "CLS", savings.cls),
    ] {
        let (Some(current), Some(saved)) = (metric(metrics, kind), saved) else {
            continue;
        };
        let better = kind.score(mode, (current.value - saved).max(0.0));
        let weight = PERFORMANCE_WEIGHTS.iter().find(|(other, _)| *other == kind);
        points += (better - current.score).max(0.0) * weight.map_or(0.0, |(_, weight)| *weight);
        let min_shown = if kind == MetricKind::Cls { 0.005 } else { 10.0 };
        if saved >= min_shown {
            texts.push(format!("{name} −{}", value_text(kind, saved)));
        }
    }
    if let Some(wasted) = savings.wasted_bytes.filter(|wasted| *wasted >= 1000.0) {
        texts.push(format!("−{}", bytes(wasted as u64)));
    }
    if points >= 0.5 {
        texts.insert(0, points_text(points));
    }
    (points, texts.join(", "))
}

fn fix(candidate: Candidate<'_>, screenshots: &Screenshots) -> Fix {
    let check = candidate.check;
    let details = check.details.as_ref().map(first_part);
    let items = details.map_or_else(Vec::new, |details| items(details, screenshots));
    let total = match details {
        Some(Details::Checklist { .. }) | None => items.len(),
        Some(details) => details.len(),
    };
    let items = first_few(items);
    Fix {
        anchor: candidate.anchor,
        title: check.title.clone(),
        gains: candidate.gains,
        summary: check.summary.clone().map(CodeText),
        fix: CodeText(check.fix.clone()),
        more: match items.len() {
            0 => 0,
            shown => total.saturating_sub(shown),
        },
        items,
    }
}

/// Returns the first items, preferring those with pictures.
fn first_few(items: Vec<Item>) -> Vec<Item> {
    let is_pictured = items.iter().any(|item| item.crop.is_some());
    if !is_pictured {
        return items.into_iter().take(MAX_ITEMS).collect();
    }
    let pictured = items.into_iter().filter(|item| item.crop.is_some());
    pictured.take(MAX_PICTURED_ITEMS).collect()
}

fn items(details: &Details, screenshots: &Screenshots) -> Vec<Item> {
    match details {
        Details::Elements { items } => {
            let element = |element: &ElementDetail| Item {
                crop: screenshots.crop(&element.node),
                ..Item::code(&element.node.snippet, "")
            };
            items.iter().take(MAX_EXAMINED_ITEMS).map(element).collect()
        }
        Details::Urls { items } => items
            .iter()
            .map(|item| Item::code(&item.url, item.note.clone().unwrap_or_default()))
            .collect(),
        Details::Findings(findings) => {
            let rows = findings.rows.iter();
            let rows = rows.take(MAX_EXAMINED_ITEMS);
            rows.filter_map(|row| row_item(findings, row, screenshots))
                .collect()
        }
        Details::Console { items } => items
            .iter()
            .map(|line| Item::plain(&line.text, &line.url))
            .collect(),
        Details::Values { items } => items
            .iter()
            .map(|value| Item::plain(&value.name, &value.value))
            .collect(),
        Details::Table(table) => table
            .rows
            .iter()
            .filter_map(|row| {
                let (first, others) = row.split_first()?;
                let others = others.iter().filter(|cell| !cell.is_empty());
                let others: Vec<&str> = others.map(String::as_str).collect();
                Some(Item::plain(first, others.join(", ")))
            })
            .collect(),
        Details::Checklist { items } => items
            .iter()
            .filter(|item| !item.is_met)
            .map(|item| Item::plain(&item.label, ""))
            .collect(),
        Details::Parts { .. } => Vec::new(),
    }
}

/// Returns the first part that is not empty.
fn first_part(details: &Details) -> &Details {
    match details {
        Details::Parts { items } => items
            .iter()
            .map(first_part)
            .find(|part| !part.is_empty())
            .unwrap_or(details),
        other => other,
    }
}

/// Converts a row: its first URL, element or text becomes the item, its figures the note.
fn row_item(findings: &Findings, row: &Row, screenshots: &Screenshots) -> Option<Item> {
    let cells = || row.cells.iter();
    let node = cells().find_map(|cell| match cell {
        Cell::Element(node) => Some(node),
        _ => None,
    });
    let address = cells().find_map(|cell| match cell {
        Cell::Url(url) => Some(Item::code(url, "")),
        Cell::Source(place) => Some(Item::code(format!("{}:{}", place.url, place.line + 1), "")),
        _ => None,
    });
    let element = || Some(Item::code(&node?.snippet, ""));
    let text = || {
        cells().find_map(|cell| match cell {
            Cell::Text(text) if !text.is_empty() => Some(Item::plain(text, "")),
            _ => None,
        })
    };
    let item = address.or_else(element).or_else(text)?;
    let figures = cells().zip(&findings.columns).filter_map(|(cell, column)| {
        let figure = match cell {
            Cell::Bytes(size) => bytes(size.max(0.0) as u64),
            Cell::Ms(time) => ms(*time),
            _ => return None,
        };
        Some(format!("{} {figure}", column.label.to_lowercase()))
    });
    Some(Item {
        note: figures.collect::<Vec<_>>().join(", "),
        crop: node.and_then(|node| screenshots.crop(node)),
        ..item
    })
}
