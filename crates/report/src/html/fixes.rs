//! The list "What to fix first": failed checks, performance first.
//!
//! Fixes of performance are ordered by the time that they save on the worst metric, and not by
//! points: the score of a very slow page hardly changes with any single fix. Those of each other
//! category follow, ordered by the points that fixing them would gain.

use plumbline_model::category::{CategoryId, CategoryResult};
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
    pub(super) text: CodeText,
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
            text: CodeText(text.into()),
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

/// The most fixes of performance listed.
const MAX_PERFORMANCE_FIXES: usize = 5;
/// The most fixes of each other category listed.
const MAX_OTHER_FIXES: usize = 3;
/// The most items listed per fix.
const MAX_ITEMS: usize = 3;
/// The most items listed per fix if they have pictures.
const MAX_PICTURED_ITEMS: usize = 2;
/// The most items searched for pictures: as many as the check itself lists.
const MAX_EXAMINED_ITEMS: usize = super::checks::MAX_ITEMS;

/// The fixes to begin with.
pub(super) struct Fixes {
    pub(super) first: Vec<Fix>,
    /// The fixes of each category that are not among them.
    pub(super) more: Vec<MoreFixes>,
}

/// Fixes that are not listed.
pub(super) struct MoreFixes {
    /// The link to the category further down the page.
    pub(super) anchor: String,
    pub(super) category: String,
    pub(super) count: usize,
}

impl Fixes {
    /// Returns the number of all fixes without the first few.
    pub(super) fn beyond(&self, few: usize) -> usize {
        let more: usize = self.more.iter().map(|more| more.count).sum();
        (self.first.len() + more).saturating_sub(few)
    }
}

/// A failed check with its possible gain.
struct Candidate<'r> {
    check: &'r CheckResult,
    /// The first category that the check counts in, and its position in the report.
    category: &'r CategoryResult,
    position: usize,
    /// The gain in all categories that the check counts in.
    gain: Gain,
    /// The gain and the title of each category.
    gains: Vec<(String, String)>,
}

pub(super) fn fixes(report: &Report, screenshots: &Screenshots, replays: &Replays<'_>) -> Fixes {
    let page_url = report.final_url.as_deref().unwrap_or_default();
    let (candidates, more) = candidates(report, replays);
    let overlaps = candidate_overlaps(&candidates, page_url);
    let first = candidates
        .into_iter()
        .zip(overlaps)
        .map(|(candidate, overlaps)| Fix {
            overlaps,
            ..fix(candidate, page_url, screenshots)
        })
        .collect();
    Fixes { first, more }
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
    let (candidates, _) = candidates(report, &Replays::default());
    let overlaps = candidate_overlaps(&candidates, page_url);
    candidates
        .into_iter()
        .zip(overlaps)
        .map(|(candidate, overlaps)| PlainFix {
            overlaps,
            title: &candidate.check.title,
            gains: plain_gains(&candidate),
            place: places::first(candidate.check.details.as_ref(), page_url),
        })
        .collect()
}

/// Returns the gains of a fix. Points of other categories than performance name their category.
fn plain_gains(candidate: &Candidate<'_>) -> Vec<String> {
    let is_performance = candidate.category.id == CategoryId::Performance;
    let gains = candidate.gains.iter();
    gains
        .map(|(gain, category)| match is_performance {
            true => gain.clone(),
            false => format!("{gain} in {category}"),
        })
        .collect()
}

fn candidate_overlaps(candidates: &[Candidate<'_>], page_url: &str) -> Vec<Option<String>> {
    let checks: Vec<&CheckResult> = candidates.iter().map(|candidate| candidate.check).collect();
    overlaps(&checks, page_url)
}

/// Returns the failed checks that are worth fixing, the most important first, and how many more
/// there are.
fn candidates<'r>(
    report: &'r Report,
    replays: &Replays<'_>,
) -> (Vec<Candidate<'r>>, Vec<MoreFixes>) {
    let mut candidates: Vec<Candidate> = Vec::new();
    for (position, category) in report.categories.iter().enumerate() {
        for check in &category.checks {
            if let Some(gain) = gain(report, category, check, replays) {
                add(&mut candidates, (position, category), check, gain);
            }
        }
    }
    candidates.sort_by(|a, b| {
        a.place()
            .cmp(&b.place())
            .then_with(|| Gain::largest_first(&a.gain, &b.gain))
    });
    let mut more: Vec<MoreFixes> = Vec::new();
    let (mut current, mut listed) = (None, 0);
    candidates.retain(|candidate| {
        if current.replace(candidate.position) != Some(candidate.position) {
            listed = 0;
        }
        listed += 1;
        let category = candidate.category;
        let max = match category.id {
            CategoryId::Performance => MAX_PERFORMANCE_FIXES,
            _ => MAX_OTHER_FIXES,
        };
        if listed > max {
            match more
                .last_mut()
                .filter(|more| more.category == category.title)
            {
                Some(more) => more.count += 1,
                None => more.push(MoreFixes {
                    anchor: format!("#{}", category.id.as_str()),
                    category: category.title.clone(),
                    count: 1,
                }),
            }
        }
        listed <= max
    });
    (candidates, more)
}

impl Candidate<'_> {
    /// Returns the place of the category in the list. Most pages are not meant to be installed as
    /// an app.
    fn place(&self) -> (bool, usize) {
        (self.category.id == CategoryId::Pwa, self.position)
    }
}

fn add<'r>(
    candidates: &mut Vec<Candidate<'r>>,
    (position, category): (usize, &'r CategoryResult),
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
            category,
            position,
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
        anchor: format!("#{}-{}", candidate.category.id.as_str(), check.id),
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
            .map(|line| Item::plain(&line.text, places::console_link(line, page_url).text))
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
        Cell::Source(place) => Some(Item::link(places::source_link(place, page_url), "")),
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
            category(
                "performance",
                json!([
                    check("small", 0.0, Savings::paints(500.0, 1_000.0)),
                    check("large", 0.0, Savings::paints(0.0, 9_000.0)),
                    check("lcp-discovery-insight", 0.0, Savings::default()),
                    check("cache-insight", 0.0, Savings::bytes(50_000.0)),
                    check("other", 0.0, Savings::default()),
                ])
            ),
            category(
                "accessibility",
                json!([
                    check("label", 1.0, Savings::default()),
                    check("contrast", 3.0, Savings::default()),
                    check("focus", 2.0, Savings::default()),
                    check("heading", 1.0, Savings::default()),
                    check("language", 0.5, Savings::default()),
                ])
            ),
            category("seo", json!([check("title", 9.0, Savings::default())])),
        ]))
        .unwrap();
        let fixes = plain_fixes(&report);
        let titles: Vec<_> = fixes.iter().map(|fix| fix.title).collect();
        let expected = [
            "large",
            "small",
            // It concerns the largest paint, although nobody knows by how much.
            "lcp-discovery-insight",
            "cache-insight",
            "contrast",
            "focus",
            "label",
            "title",
            "app",
        ];
        assert_eq!(titles, expected);
        assert_eq!(fixes[2].gains, ["concerns LCP"]);
        assert_eq!(fixes[4].gains, ["+40 points in accessibility"]);
        let (_, more) = candidates(&report, &Replays::default());
        let more: Vec<_> = more.iter().map(|it| (&it.anchor[..], it.count)).collect();
        assert_eq!(more, [("#accessibility", 2)]);
    }
}
