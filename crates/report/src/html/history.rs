//! What became of one address over time.

use askama::Template;
use plumbline_engine::report::{Conditions, Metrics, Scores};
use plumbline_engine::scoring::Metric as Kind;
use serde::Deserialize;

use super::HtmlError;
use super::charts::{self, Point, Scale};
use super::chrome::Chrome;
use super::field::{FieldPast, FieldSeries, field_series};
use super::figures::{Grade, date, day, in_short};
use super::summary::{METRICS, limit_text, metric, value_text};

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
#[serde(rename_all = "camelCase")]
struct Glance {
    #[serde(default)]
    final_url: Option<String>,
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
            let names = [&conditions.device.name, &conditions.network.name];
            names.map(|name| in_short(name)).join(" · ")
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
    /// What can be compared, the newest first.
    comparable: Vec<Choice>,
    /// Which of them stands for before: the next older under the newest's conditions.
    before: usize,
    series: Vec<Series>,
    field: Vec<FieldSeries>,
}

struct Choice {
    audit_id: String,
    words: String,
}

/// One set of conditions: only what was measured alike can be compared.
struct Series {
    conditions: String,
    trends: Vec<Trend>,
}

struct Run {
    at_ms: i64,
    glance: Glance,
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

/// Where the newest of these audits that was measured led to.
pub fn led_to(past: &[Past]) -> Option<String> {
    past.iter()
        .filter_map(glance)
        .find_map(|glance| glance.final_url)
}

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
    let mut by_conditions: Vec<([String; 3], Vec<Run>)> = Vec::new();
    for audit in past.iter().rev() {
        let Some(glance) = glance(audit).filter(|glance| glance.metrics.is_some()) else {
            continue;
        };
        let conditions = &glance.conditions;
        let names = [
            conditions.device.name.clone(),
            conditions.network.name.clone(),
            conditions.location.name.clone(),
        ];
        let run = Run {
            at_ms: audit.at_ms,
            glance,
        };
        match by_conditions.iter_mut().find(|(known, _)| *known == names) {
            Some((_, runs)) => runs.push(run),
            None => by_conditions.push((names, vec![run])),
        }
    }
    let series = by_conditions
        .into_iter()
        .filter(|(_, runs)| runs.len() >= LEAST_POINTS)
        .map(|(names, runs)| Series {
            conditions: names.each_ref().map(|name| in_short(name)).join(" · "),
            trends: trends(&runs),
        });
    let past = past_views(past);
    let (comparable, before) = comparable(&past);
    let template = HistoryTemplate {
        chrome,
        url,
        past,
        comparable,
        before,
        series: series.collect(),
        field: field_series(field),
    };
    Ok(template.render()?)
}

fn comparable(past: &[PastView]) -> (Vec<Choice>, usize) {
    let measured: Vec<(&PastView, Choice)> = past
        .iter()
        .filter_map(|audit| {
            let (scores, audit_id) = (audit.scores.as_ref()?, audit.audit_id.clone()?);
            let performance = scores.first().map_or("–", |(_, score)| score);
            let words = format!("{} · {} · {performance}", audit.when, audit.conditions);
            Some((audit, Choice { audit_id, words }))
        })
        .collect();
    let newest = measured.first().map(|(audit, _)| &audit.conditions);
    let before = measured
        .iter()
        .skip(1)
        .position(|(audit, _)| Some(&audit.conditions) == newest)
        .unwrap_or_default()
        + 1;
    let choices = measured.into_iter().map(|(_, choice)| choice);
    (choices.collect(), before)
}

fn trends(runs: &[Run]) -> Vec<Trend> {
    let performance = runs.iter().filter_map(|run| {
        let score = run.glance.scores.performance?;
        let grade = Grade::of_score(Some(score));
        Some((run.at_ms, f64::from(score), grade))
    });
    let whole = |value: f64| format!("{value:.0}");
    let mut trends = vec![trend(
        "Performance",
        performance.collect(),
        100.0,
        whole,
        whole,
    )];
    for (kind, name, _) in METRICS {
        if kind == Kind::Tti {
            continue;
        }
        let values = runs.iter().filter_map(|run| {
            let measured = metric(run.glance.metrics.as_ref()?, kind)?;
            Some((run.at_ms, measured.value, Grade::of_metric(Some(measured))))
        });
        // At least up to where good ends, so that good values look it.
        let good = runs
            .first()
            .map_or(0.0, |run| kind.curve(run.glance.conditions.device.mode).p10);
        trends.push(trend(
            name,
            values.collect(),
            good,
            |value| value_text(kind, value),
            |tick| limit_text(kind, tick),
        ));
    }
    trends.into_iter().flatten().collect()
}

fn trend(
    name: &'static str,
    values: Vec<(i64, f64, Grade)>,
    at_least: f64,
    text: impl Fn(f64) -> String,
    tick: impl Fn(f64) -> String,
) -> Option<Trend> {
    let (_, newest, grade) = *values.last()?;
    let median = median(values.iter().map(|(_, value, _)| *value).collect());
    let points: Vec<Option<Point>> = values
        .iter()
        .map(|(at_ms, value, grade)| {
            Some(Point {
                value: *value,
                class: grade.class(),
                title: format!("{}: {}", date(*at_ms), text(*value)),
                day: day(*at_ms),
            })
        })
        .collect();
    let highest = values.iter().map(|(_, value, _)| *value);
    let scale = Scale::up_to(highest.fold(at_least, f64::max));
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
        svg: charts::trend(&points, median, &scale, tick, &said),
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
