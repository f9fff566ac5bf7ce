//! What to fix first: failed checks by what their passing would gain.

use plumbline_engine::category::{CategoryResult, CheckResult};
use plumbline_engine::checks::{Details, Verdict};
use plumbline_engine::report::Report;

use super::checks::{ElementView, element_views};
use super::load::Shot;
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
            if check.verdict == Verdict::Fail && check.weight > 0.0 && weights > 0.0 {
                let left = 1.0 - check.score.unwrap_or_default();
                let points = check.weight * left / weights * 100.0;
                add(&mut candidates, category, check, points);
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
) {
    let gain = match points.round() as i64 {
        0 => "less than 1 point".to_owned(),
        1 => "+1 point".to_owned(),
        points => format!("+{points} points"),
    };
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

fn fix(candidate: Candidate<'_>, shot: Option<&Shot>) -> Fix {
    let check = candidate.check;
    let (elements, found) = match &check.details {
        Some(Details::Elements { items }) => {
            (element_views(items, MOST_ELEMENTS, shot), items.len())
        }
        _ => (Vec::new(), 0),
    };
    Fix {
        anchor: candidate.anchor,
        title: check.title.clone(),
        gains: candidate.gains,
        summary: check.summary.clone().map(Words),
        fix: Words(check.fix.clone()),
        more: found.saturating_sub(elements.len()),
        elements,
    }
}
