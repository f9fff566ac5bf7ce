//! What to fix first: failed checks by what their passing would gain.

use plumbline_engine::category::{CategoryResult, CheckResult};
use plumbline_engine::checks::{Cell, Details, Findings, Row, Savings, Verdict};
use plumbline_engine::report::Report;
use plumbline_engine::scoring::{Metric as Kind, PERFORMANCE_WEIGHTS};

use super::checks::{ElementView, element_views};
use super::figures::{bytes, ms};
use super::load::Shot;
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
    pub(super) elements: Vec<ElementView>,
    /// Addresses and what each costs.
    pub(super) urls: Vec<(String, String)>,
    /// What has no address: console messages, kinds of work, things that are missing; with figures where there are some.
    pub(super) told: Vec<(String, String)>,
    pub(super) more: usize,
}

/// As many as one can begin with.
const MOST: usize = 8;
const MOST_ELEMENTS: usize = 3;

struct Candidate<'r> {
    check: &'r CheckResult,
    anchor: String,
    /// Being installable as an app gains nothing for a page that does not want to be one: those come last.
    is_pwa: bool,
    points: f64,
    gains: Vec<(String, String)>,
}

pub(super) fn fixes(report: &Report, shot: Option<&Shot>) -> Vec<Fix> {
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
    let fix = |candidate: Candidate| fix(candidate, shot);
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

fn fix(candidate: Candidate<'_>, shot: Option<&Shot>) -> Fix {
    let check = candidate.check;
    let details = check.details.as_ref().map(first_part);
    let shown = details.map_or_else(Shown::default, |details| shown(details, shot));
    let count = shown.elements.len() + shown.urls.len() + shown.told.len();
    let found = match details {
        Some(Details::Checklist { .. }) | None => count,
        Some(details) => details.len(),
    };
    Fix {
        anchor: candidate.anchor,
        title: check.title.clone(),
        gains: candidate.gains,
        summary: check.summary.clone().map(Words),
        fix: Words(check.fix.clone()),
        more: if count > 0 {
            found.saturating_sub(count)
        } else {
            0
        },
        elements: shown.elements,
        urls: shown.urls,
        told: shown.told,
    }
}

#[derive(Default)]
struct Shown {
    elements: Vec<ElementView>,
    urls: Vec<(String, String)>,
    told: Vec<(String, String)>,
}

/// The first few of what was found.
fn shown(details: &Details, shot: Option<&Shot>) -> Shown {
    let mut shown = Shown::default();
    match details {
        Details::Elements { items } => {
            shown.elements = element_views(items, MOST_ELEMENTS, shot);
        }
        Details::Urls { items } => {
            let named = items.iter().take(MOST_ELEMENTS);
            let named = named.map(|item| (item.url.clone(), item.note.clone().unwrap_or_default()));
            shown.urls.extend(named);
        }
        Details::Findings(findings) => {
            let rows = findings.rows.iter();
            let costs = rows.filter_map(|row| cost(findings, row));
            for (what, is_address, figures) in costs.take(MOST_ELEMENTS) {
                let among = if is_address {
                    &mut shown.urls
                } else {
                    &mut shown.told
                };
                among.push((what, figures));
            }
        }
        Details::Console { items } => {
            let lines = items.iter().take(MOST_ELEMENTS);
            shown
                .told
                .extend(lines.map(|line| (line.text.clone(), line.url.clone())));
        }
        Details::Values { items } => {
            let values = items.iter().take(MOST_ELEMENTS);
            shown
                .told
                .extend(values.map(|value| (value.name.clone(), value.value.clone())));
        }
        Details::Table(table) => {
            let rows = table.rows.iter().take(MOST_ELEMENTS);
            shown.told.extend(rows.filter_map(|row| {
                let (first, others) = row.split_first()?;
                let others = others.iter().filter(|cell| !cell.is_empty());
                let others: Vec<&str> = others.map(String::as_str).collect();
                Some((first.clone(), others.join(", ")))
            }));
        }
        Details::Checklist { items } => {
            let unmet = items.iter().filter(|item| !item.is_met);
            let unmet = unmet.map(|item| (item.label.clone(), String::new()));
            shown.told.extend(unmet.take(MOST_ELEMENTS));
        }
        Details::Parts { .. } => {}
    }
    shown
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

/// What a row is about, whether that is an address, and its figures by name. None where it names nothing.
fn cost(findings: &Findings, row: &Row) -> Option<(String, bool, String)> {
    let address = row.cells.iter().find_map(|cell| match cell {
        Cell::Url(url) => Some((url.clone(), true)),
        Cell::Source(place) => Some((format!("{}:{}", place.url, place.line + 1), true)),
        _ => None,
    });
    let text = || {
        row.cells.iter().find_map(|cell| match cell {
            Cell::Text(text) if !text.is_empty() => Some((text.clone(), false)),
            _ => None,
        })
    };
    let (what, is_address) = address.or_else(text)?;
    let named = row.cells.iter().zip(&findings.columns);
    let figures = named.filter_map(|(cell, column)| {
        let figure = match cell {
            Cell::Bytes(size) => bytes(size.max(0.0) as u64),
            Cell::Ms(time) => ms(*time),
            _ => return None,
        };
        Some(format!("{} {figure}", column.label.to_lowercase()))
    });
    Some((what, is_address, figures.collect::<Vec<_>>().join(", ")))
}
