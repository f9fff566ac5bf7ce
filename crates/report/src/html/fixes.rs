//! The list "What to fix first": failed checks, performance first.
//!
//! Fixes of performance are ordered by the time that they save on the worst metric, and not by
//! points: the score of a very slow page hardly changes with any single fix. All others are ordered
//! by the points that fixing them would gain.

use plumbline_model::category::CategoryResult;
use plumbline_model::check::{Cell, CheckResult, Details, ElementDetail, Findings, Row};
use plumbline_model::report::Report;

use super::code_text::CodeText;
use super::crops::Screenshots;
use super::figures::{bytes, ms};
use super::gain::{Gain, gain};
use super::links::Link;
use super::overlaps::overlaps;
use super::places;
use super::replays::Replays;

/// A failed check that is worth fixing.
pub(super) struct Fix {
    /// The link to the check further down the page.
    pub(super) anchor: String,
    pub(super) title: CodeText,
    /// The gain and the title of each category: some checks count in two.
    pub(super) gains: Vec<(String, String)>,
    pub(super) summary: Option<CodeText>,
    pub(super) fix: CodeText,
    /// The other fixes whose savings come from the same files, as a sentence.
    pub(super) overlaps: Option<String>,
    /// The first few items of the check's details.
    pub(super) items: Vec<Item>,
    pub(super) more: usize,
}

/// An item of a check's details.
pub(super) struct Item {
    /// An element, a URL, or a text such as a message.
    pub(super) text: String,
    /// The target of the text, if it is a URL.
    pub(super) href: Option<String>,
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
            href: None,
            is_code: true,
            note: note.into(),
            crop: None,
        }
    }

    fn link(link: Link, note: impl Into<String>) -> Self {
        Self {
            href: link.href,
            ..Self::code(link.text, note)
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
/// The most fixes of performance listed.
const MAX_PERFORMANCE_FIXES: usize = 5;
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
    rank: Rank,
    /// The gain in all categories that the check counts in.
    gain: Gain,
    /// The gain and the title of each category.
    gains: Vec<(String, String)>,
}

pub(super) fn fixes(report: &Report, screenshots: &Screenshots, replays: &Replays<'_>) -> Vec<Fix> {
    let page_url = report.final_url.as_deref().unwrap_or_default();
    let candidates = candidates(report, replays);
    let overlaps = candidate_overlaps(&candidates, page_url);
    candidates
        .into_iter()
        .zip(overlaps)
        .map(|(candidate, overlaps)| Fix {
            overlaps,
            ..fix(candidate, page_url, screenshots)
        })
        .collect()
}

/// A failed check that is worth fixing, for outputs without markup.
pub(crate) struct PlainFix<'r> {
    pub(crate) title: &'r str,
    pub(crate) gains: Vec<String>,
    /// The first file that the check names, with line and column if they are known.
    pub(crate) place: Option<String>,
    /// The other fixes whose savings come from the same files, as a sentence.
    pub(crate) overlaps: Option<String>,
}

/// Returns the checks to fix first.
pub(crate) fn plain_fixes(report: &Report) -> Vec<PlainFix<'_>> {
    let page_url = report.final_url.as_deref().unwrap_or_default();
    let candidates = candidates(report, &Replays::default());
    let overlaps = candidate_overlaps(&candidates, page_url);
    candidates
        .into_iter()
        .zip(overlaps)
        .map(|(candidate, overlaps)| PlainFix {
            overlaps,
            title: &candidate.check.title,
            gains: candidate.gains.into_iter().map(|(gain, _)| gain).collect(),
            place: places::first(candidate.check.details.as_ref(), page_url),
        })
        .collect()
}

fn candidate_overlaps(candidates: &[Candidate<'_>], page_url: &str) -> Vec<Option<String>> {
    let checks: Vec<&CheckResult> = candidates.iter().map(|candidate| candidate.check).collect();
    overlaps(&checks, page_url)
}

/// The position of a category in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Performance,
    Other,
    /// Most pages are not meant to be installed as an app.
    Pwa,
}

/// Returns the failed checks that are worth fixing, the most important first.
fn candidates<'r>(report: &'r Report, replays: &Replays<'_>) -> Vec<Candidate<'r>> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for category in &report.categories {
        for check in &category.checks {
            if let Some(gain) = gain(report, category, check, replays) {
                add(&mut candidates, category, check, gain);
            }
        }
    }
    candidates.sort_by(|a, b| {
        a.rank
            .cmp(&b.rank)
            .then_with(|| Gain::largest_first(&a.gain, &b.gain))
    });
    let mut of_performance = 0;
    candidates.retain(|candidate| {
        of_performance += usize::from(candidate.rank == Rank::Performance);
        candidate.rank != Rank::Performance || of_performance <= MAX_PERFORMANCE_FIXES
    });
    candidates.truncate(MAX_FIXES);
    candidates
}

fn add<'r>(
    candidates: &mut Vec<Candidate<'r>>,
    category: &'r CategoryResult,
    check: &'r CheckResult,
    gain: Gain,
) {
    let text = (gain.text.clone(), category.title.clone());
    match candidates
        .iter_mut()
        .find(|candidate| candidate.check.id == check.id)
    {
        Some(candidate) => {
            candidate.gain.points += gain.points;
            candidate.gains.push(text);
        }
        None => candidates.push(Candidate {
            check,
            anchor: format!("#{}-{}", category.id.as_str(), check.id),
            rank: match category.id.as_str() {
                "performance" => Rank::Performance,
                "pwa" => Rank::Pwa,
                _ => Rank::Other,
            },
            gain,
            gains: vec![text],
        }),
    }
}

fn fix(candidate: Candidate<'_>, page_url: &str, screenshots: &Screenshots) -> Fix {
    let check = candidate.check;
    let details = check.details.as_ref().map(first_part);
    let items = details.map_or_else(Vec::new, |details| items(details, page_url, screenshots));
    let total = match details {
        Some(Details::Checklist { .. }) | None => items.len(),
        Some(details) => details.len(),
    };
    let items = first_few(items);
    Fix {
        anchor: candidate.anchor,
        title: CodeText(check.title.clone()),
        gains: candidate.gains,
        summary: check.summary.clone().map(CodeText),
        fix: CodeText(check.fix.clone()),
        overlaps: None,
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

fn items(details: &Details, page_url: &str, screenshots: &Screenshots) -> Vec<Item> {
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
            .map(|item| {
                let link = Link::new(&item.url, page_url);
                Item::link(link, item.note.clone().unwrap_or_default())
            })
            .collect(),
        Details::Findings(findings) => {
            let rows = findings.rows.iter();
            let rows = rows.take(MAX_EXAMINED_ITEMS);
            rows.filter_map(|row| row_item(findings, row, page_url, screenshots))
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
fn row_item(
    findings: &Findings,
    row: &Row,
    page_url: &str,
    screenshots: &Screenshots,
) -> Option<Item> {
    let cells = || row.cells.iter();
    let node = cells().find_map(|cell| match cell {
        Cell::Element(node) => Some(node),
        _ => None,
    });
    let address = cells().find_map(|cell| match cell {
        Cell::Url(url) => Some(Item::link(Link::new(url, page_url), "")),
        Cell::Source(place) => {
            let position = (place.line + 1).to_string();
            let link = Link::to_position(&place.url, &position, page_url);
            Some(Item::link(link, ""))
        }
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

#[cfg(test)]
mod tests {
    use plumbline_model::check::Savings;
    use plumbline_model::report::Metric;
    use serde_json::json;

    use super::*;
    use crate::testing::report;

    fn check(id: &str, weight: f64, savings: Savings) -> serde_json::Value {
        json!({
            "id": id, "title": id, "verdict": "fail", "weight": weight, "score": 0.0,
            "group": "seo-content", "why": "", "fix": "", "savings": savings,
        })
    }

    #[test]
    fn performance_comes_first_ordered_by_time_saved_on_the_worst_metric() {
        let mut report = report();
        if let Some(metrics) = &mut report.metrics {
            // So slow that no single fix changes the score.
            metrics.lcp = Some(Metric {
                value: 30_000.0,
                score: 0.0,
            });
        }
        let category = |id: &str, checks: serde_json::Value| json!({ "id": id, "title": id, "score": 50, "checks": checks });
        report.categories = serde_json::from_value(json!([
            category("pwa", json!([check("app", 1.0, Savings::default())])),
            category("seo", json!([check("title", 1.0, Savings::default())])),
            category(
                "performance",
                json!([
                    check("small", 0.0, Savings::paints(500.0, 1_000.0)),
                    check("large", 0.0, Savings::paints(0.0, 9_000.0)),
                ])
            ),
        ]))
        .unwrap();
        let fixes = plain_fixes(&report);
        let titles: Vec<_> = fixes.iter().map(|fix| fix.title).collect();
        assert_eq!(titles, ["large", "small", "title", "app"]);
    }
}
