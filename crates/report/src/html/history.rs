//! What became of one address over time.

use askama::Template;
use plumbline_engine::report::{Conditions, Metrics, Scores};
use plumbline_engine::scoring::Metric as Kind;
use serde::Deserialize;

use super::HtmlError;
use super::charts::{self, Point};
use super::chrome::Chrome;
use super::field::{FieldPast, FieldSeries, field_series};
use super::figures::{Grade, date};
use super::summary::{METRICS, metric, value_text};

/// An audit as lists show it.
#[derive(Debug, Clone)]
pub struct Past {
    pub tracking_id: String,
    /// Set once it is completed.
    pub audit_id: Option<String>,
    pub url: String,
    pub at_ms: i64,
    /// The report in JSON, where there is one.
    pub report: Option<String>,
}

/// The part of a report that lists need.
#[derive(Deserialize)]
struct Glance {
    scores: Scores,
    metrics: Option<Metrics>,
    conditions: Conditions,
}

pub(super) struct PastView {
    pub(super) href: String,
    pub(super) audit_id: Option<String>,
    pub(super) url: String,
    pub(super) when: String,
    pub(super) conditions: String,
    /// Five scores in the order of the rings; none where nothing was measured.
    pub(super) scores: Option<Vec<(&'static str, String)>>,
    pub(super) state: &'static str,
}

pub(super) fn past_views(past: &[Past]) -> Vec<PastView> {
    past.iter().map(past_view).collect()
}

fn past_view(past: &Past) -> PastView {
    let glance = glance(past);
    let measured = glance.as_ref().filter(|glance| glance.metrics.is_some());
    PastView {
        href: match &past.audit_id {
            Some(id) => format!("/reports/{id}"),
            None => format!("/audits/{}", past.tracking_id),
        },
        audit_id: past.audit_id.clone(),
        url: past.url.clone(),
        when: date(past.at_ms),
        conditions: glance.as_ref().map_or_else(String::new, |glance| {
            let conditions = &glance.conditions;
            format!("{} · {}", conditions.device.name, conditions.network.name)
        }),
        scores: measured.map(|glance| {
            let scores = &glance.scores;
            [
                scores.performance,
                scores.accessibility,
                scores.best_practices,
                scores.seo,
                scores.pwa,
            ]
            .into_iter()
            .map(|score| {
                let text = score.map_or("–".to_owned(), |score| score.to_string());
                (Grade::of_score(score).class(), text)
            })
            .collect()
        }),
        state: match (&past.audit_id, measured) {
            (None, _) => "running",
            (Some(_), None) => "not measured",
            (Some(_), Some(_)) => "",
        },
    }
}

fn glance(past: &Past) -> Option<Glance> {
    serde_json::from_str(past.report.as_deref()?).ok()
}

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryTemplate<'a> {
    chrome: &'a Chrome,
    url: &'a str,
    past: Vec<PastView>,
    series: Vec<Series>,
    field: Vec<FieldSeries>,
}

/// One set of conditions: only what was measured alike can be compared.
struct Series {
    conditions: String,
    trends: Vec<Trend>,
}

struct Trend {
    name: &'static str,
    newest: String,
    class: &'static str,
    median: String,
    svg: String,
}

/// A trend of one point is none.
const LEAST_POINTS: usize = 2;

/// The devices of these audits, each once, in their order.
pub fn devices_of(past: &[Past]) -> Vec<String> {
    let mut devices = Vec::new();
    for glance in past.iter().filter_map(glance) {
        let device = glance.conditions.device.id;
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    devices
}

/// `past` is of one address, the newest first; `field` is what its visitors met, by kind of device.
pub fn history_page(
    chrome: &Chrome,
    url: &str,
    past: &[Past],
    field: &[FieldPast],
) -> Result<String, HtmlError> {
    let mut by_conditions: Vec<(String, Vec<(String, Glance)>)> = Vec::new();
    for audit in past.iter().rev() {
        let Some(glance) = glance(audit).filter(|glance| glance.metrics.is_some()) else {
            continue;
        };
        let conditions = &glance.conditions;
        let name = format!(
            "{} · {} · {}",
            conditions.device.name, conditions.network.name, conditions.location.name
        );
        let run = (date(audit.at_ms), glance);
        match by_conditions.iter_mut().find(|(known, _)| *known == name) {
            Some((_, runs)) => runs.push(run),
            None => by_conditions.push((name, vec![run])),
        }
    }
    let series = by_conditions
        .into_iter()
        .filter(|(_, runs)| runs.len() >= LEAST_POINTS)
        .map(|(conditions, runs)| Series {
            conditions,
            trends: trends(&runs),
        });
    let template = HistoryTemplate {
        chrome,
        url,
        past: past_views(past),
        series: series.collect(),
        field: field_series(field),
    };
    Ok(template.render()?)
}

fn trends(runs: &[(String, Glance)]) -> Vec<Trend> {
    let performance = runs.iter().filter_map(|(when, glance)| {
        let score = glance.scores.performance?;
        Some((when, f64::from(score), Grade::of_score(Some(score))))
    });
    let mut trends = vec![trend("Performance", performance.collect(), |value| {
        format!("{value:.0}")
    })];
    for (kind, name, _) in METRICS {
        if kind == Kind::Tti {
            continue;
        }
        let values = runs.iter().filter_map(|(when, glance)| {
            let measured = metric(glance.metrics.as_ref()?, kind)?;
            Some((when, measured.value, Grade::of_metric(Some(measured))))
        });
        trends.push(trend(name, values.collect(), |value| {
            value_text(kind, value)
        }));
    }
    trends.into_iter().flatten().collect()
}

fn trend(
    name: &'static str,
    values: Vec<(&String, f64, Grade)>,
    text: impl Fn(f64) -> String,
) -> Option<Trend> {
    let (_, newest, grade) = *values.last()?;
    let median = median(values.iter().map(|(_, value, _)| *value).collect());
    let points: Vec<Point> = values
        .iter()
        .map(|(when, value, grade)| Point {
            value: *value,
            class: grade.class(),
            title: format!("{when}: {}", text(*value)),
        })
        .collect();
    let said = format!(
        "{name} over {} audits: newest {}, median {}",
        points.len(),
        text(newest),
        text(median)
    );
    Some(Trend {
        name,
        newest: text(newest),
        class: grade.class(),
        median: text(median),
        svg: charts::trend(&points, median, &said),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
