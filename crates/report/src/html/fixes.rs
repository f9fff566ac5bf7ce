//! What to fix first: failed checks by what their passing would gain.

use plumbline_engine::category::{CategoryResult, CheckResult};
use plumbline_engine::checks::{Cell, Details, ElementDetail, Findings, Row, Savings, Verdict};
use plumbline_engine::report::Report;
use plumbline_engine::scoring::{Metric as Kind, PERFORMANCE_WEIGHTS};

use super::crops::Scenes;
use super::figures::{bytes, ms};
use super::summary::{metric, value_text};
use super::words::Words;

pub(super) struct Fix {
    /// The check's place further down the page.
    pub(super) anchor: String,
    pub(super) title: String,
    /// What it would gain, and where: some checks count in two categories.
    pub(super) gains: Vec<(String, String)>,
    pub(super) summary: Option<Words>,
    pub(super) fix: Words,
    /// The first few of what was found.
    pub(super) items: Vec<Item>,
    pub(super) more: usize,
}

pub(super) struct Item {
    /// An element, an address, or words: a message, a kind of work, a thing that is missing.
    pub(super) what: String,
    pub(super) is_code: bool,
    /// Figures or remarks.
    pub(super) told: String,
    /// Markup of ours: the piece of a picture that shows it.
    pub(super) crop: Option<String>,
}

impl Item {
    fn code(what: impl Into<String>, told: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_code: true,
            told: told.into(),
            crop: None,
        }
    }

    fn words(what: impl Into<String>, told: impl Into<String>) -> Self {
        Self {
            is_code: false,
            ..Self::code(what, told)
        }
    }
}

impl Fix {
    /// Pictures stand side by side.
    pub(super) fn is_pictured(&self) -> bool {
        self.items.iter().any(|item| item.crop.is_some())
    }
}

/// As many as one can begin with.
const MOST: usize = 8;
const MOST_ITEMS: usize = 3;
/// Side by side on a screen, below each other on a phone.
const MOST_PICTURED: usize = 2;
/// For pictures: as many as its check lists.
const LOOKED_AT: usize = super::checks::MOST_ITEMS;

struct Candidate<'r> {
    check: &'r CheckResult,
    anchor: String,
    /// Being installable as an app gains nothing for a page that does not want to be one: those come last.
    is_pwa: bool,
    points: f64,
    gains: Vec<(String, String)>,
}

pub(super) fn fixes(report: &Report, scenes: &Scenes) -> Vec<Fix> {
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
    candidates.truncate(MOST);
    let fix = |candidate: Candidate| fix(candidate, scenes);
    candidates.into_iter().map(fix).collect()
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
        .find(|known| known.check.id == check.id)
    {
        Some(known) => {
            known.points += points;
            known.gains.push(gain);
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

/// What the performance score would gain if each metric improved by what is saved: the same points as
/// elsewhere, so that one order holds for all. And what is saved, in words.
fn performance_gain(report: &Report, savings: &Savings) -> (f64, String) {
    let Some(metrics) = &report.metrics else {
        return (0.0, String::new());
    };
    let mode = report.conditions.device.mode;
    let (mut points, mut words) = (0.0, Vec::new());
    for (kind, name, saved) in [
        (Kind::Fcp, "FCP", savings.fcp_ms),
        (Kind::Lcp, "LCP", savings.lcp_ms),
        (Kind::Tbt, "TBT", savings.tbt_ms),
        (Kind::Cls, "CLS", savings.cls),
    ] {
        let (Some(now), Some(saved)) = (metric(metrics, kind), saved) else {
            continue;
        };
        let better = kind.score(mode, (now.value - saved).max(0.0));
        let weight = PERFORMANCE_WEIGHTS.iter().find(|(other, _)| *other == kind);
        points += (better - now.score).max(0.0) * weight.map_or(0.0, |(_, weight)| *weight);
        let seen = if kind == Kind::Cls { 0.005 } else { 10.0 };
        if saved >= seen {
            words.push(format!("{name} −{}", value_text(kind, saved)));
        }
    }
    if let Some(wasted) = savings.wasted_bytes.filter(|wasted| *wasted >= 1000.0) {
        words.push(format!("−{}", bytes(wasted as u64)));
    }
    if points >= 0.5 {
        words.insert(0, points_text(points));
    }
    (points, words.join(", "))
}

fn fix(candidate: Candidate<'_>, scenes: &Scenes) -> Fix {
    let check = candidate.check;
    let details = check.details.as_ref().map(first_part);
    let items = details.map_or_else(Vec::new, |details| items(details, scenes));
    let found = match details {
        Some(Details::Checklist { .. }) | None => items.len(),
        Some(details) => details.len(),
    };
    let items = first_few(items);
    Fix {
        anchor: candidate.anchor,
        title: check.title.clone(),
        gains: candidate.gains,
        summary: check.summary.clone().map(Words),
        fix: Words(check.fix.clone()),
        more: match items.len() {
            0 => 0,
            shown => found.saturating_sub(shown),
        },
        items,
    }
}

/// Those that can be seen, where there are some.
fn first_few(items: Vec<Item>) -> Vec<Item> {
    let is_pictured = items.iter().any(|item| item.crop.is_some());
    if !is_pictured {
        return items.into_iter().take(MOST_ITEMS).collect();
    }
    let pictured = items.into_iter().filter(|item| item.crop.is_some());
    pictured.take(MOST_PICTURED).collect()
}

fn items(details: &Details, scenes: &Scenes) -> Vec<Item> {
    match details {
        Details::Elements { items } => {
            let element = |found: &ElementDetail| Item {
                crop: scenes.crop(&found.node),
                ..Item::code(&found.node.snippet, "")
            };
            items.iter().take(LOOKED_AT).map(element).collect()
        }
        Details::Urls { items } => items
            .iter()
            .map(|item| Item::code(&item.url, item.note.clone().unwrap_or_default()))
            .collect(),
        Details::Findings(findings) => {
            let rows = findings.rows.iter();
            let rows = rows.take(LOOKED_AT);
            rows.filter_map(|row| cost(findings, row, scenes)).collect()
        }
        Details::Console { items } => items
            .iter()
            .map(|line| Item::words(&line.text, &line.url))
            .collect(),
        Details::Values { items } => items
            .iter()
            .map(|value| Item::words(&value.name, &value.value))
            .collect(),
        Details::Table(table) => table
            .rows
            .iter()
            .filter_map(|row| {
                let (first, others) = row.split_first()?;
                let others = others.iter().filter(|cell| !cell.is_empty());
                let others: Vec<&str> = others.map(String::as_str).collect();
                Some(Item::words(first, others.join(", ")))
            })
            .collect(),
        Details::Checklist { items } => items
            .iter()
            .filter(|item| !item.is_met)
            .map(|item| Item::words(&item.label, ""))
            .collect(),
        Details::Parts { .. } => Vec::new(),
    }
}

/// The first of several that says anything.
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

/// What a row is about and its figures by name. None where it names nothing.
fn cost(findings: &Findings, row: &Row, scenes: &Scenes) -> Option<Item> {
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
            Cell::Text(text) if !text.is_empty() => Some(Item::words(text, "")),
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
        told: figures.collect::<Vec<_>>().join(", "),
        crop: node.and_then(|node| scenes.crop(node)),
        ..item
    })
}
