//! The history page of a URL, and the rows of audit lists.

use askama::Template;
use plumbline_model::scoring::MetricKind;
use plumbline_model::summary::ReportSummary;

use super::HtmlError;
use super::charts::{self, Point, Scale};
use super::field::{DeviceFieldHistory, FieldSeries, field_series};
use super::figures::{Grade, date, day, short_name};
use super::page_frame::PageFrame;
use super::summary::{METRICS, limit_text, metric, value_text};

/// An audit in a list.
#[derive(Debug, Clone)]
pub struct PastAudit {
    pub tracking_id: String,
    /// The id of the report; `None` until the audit is completed.
    pub audit_id: Option<String>,
    pub url: String,
    pub at_ms: i64,
    /// The summary of the report; `None` until the audit is completed.
    pub summary: Option<ReportSummary>,
}

/// A row in a list of audits.
pub(super) struct AuditRow {
    pub(super) href: String,
    pub(super) audit_id: Option<String>,
    pub(super) url: String,
    pub(super) when: String,
    pub(super) conditions: String,
    /// Class and text of the five scores, in the order of the rings; `None` if nothing was
    /// measured.
    pub(super) scores: Option<Vec<(&'static str, String)>>,
    pub(super) state: &'static str,
}

pub(super) fn audit_rows(past: &[PastAudit]) -> Vec<AuditRow> {
    past.iter().map(audit_row).collect()
}

fn audit_row(past: &PastAudit) -> AuditRow {
    let summary = past.summary.as_ref();
    let measured = summary.filter(|summary| summary.metrics.is_some());
    AuditRow {
        href: match &past.audit_id {
            Some(id) => format!("/reports/{id}"),
            None => format!("/audits/{}", past.tracking_id),
        },
        audit_id: past.audit_id.clone(),
        url: past.url.clone(),
        when: date(past.at_ms),
        conditions: summary.map_or_else(String::new, |summary| {
            let conditions = &summary.conditions;
            let names = [&conditions.device.name, &conditions.network.name];
            names.map(|name| short_name(name)).join(" · ")
        }),
        scores: measured.map(|summary| {
            let scores = &summary.scores;
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

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryTemplate<'a> {
    page_frame: &'a PageFrame,
    url: &'a str,
    past: Vec<AuditRow>,
    /// The measured audits, newest first.
    comparable: Vec<ComparisonOption>,
    /// The index of the audit preselected as "before": the newest but one with the same conditions.
    before: usize,
    series: Vec<Series>,
    field: Vec<FieldSeries>,
}

/// An audit that can be selected for comparison.
struct ComparisonOption {
    audit_id: String,
    label: String,
}

/// The trends of all audits with the same conditions.
struct Series {
    conditions: String,
    trends: Vec<Trend>,
}

struct Run<'a> {
    at_ms: i64,
    summary: &'a ReportSummary,
}

struct Trend {
    name: &'static str,
    newest: String,
    class: &'static str,
    median: String,
    svg: String,
}

/// The fewest points that make a trend.
const MIN_POINTS: usize = 2;

/// Returns the final URL of the newest measured audit.
pub fn newest_final_url(past: &[PastAudit]) -> Option<String> {
    past.iter()
        .filter_map(|audit| audit.summary.as_ref())
        .find_map(|summary| summary.final_url.clone())
}

/// Returns the ids of the devices of these audits, without duplicates.
pub fn device_ids(past: &[PastAudit]) -> Vec<String> {
    let mut devices = Vec::new();
    for summary in past.iter().filter_map(|audit| audit.summary.as_ref()) {
        let device = &summary.conditions.device.id;
        if !devices.contains(device) {
            devices.push(device.clone());
        }
    }
    devices
}

/// Renders the history page of a URL. `past` is sorted newest first; `field` has one entry per form
/// factor.
pub fn history_page(
    page_frame: &PageFrame,
    url: &str,
    past: &[PastAudit],
    field: &[DeviceFieldHistory],
) -> Result<String, HtmlError> {
    let mut by_conditions: Vec<([String; 3], Vec<Run<'_>>)> = Vec::new();
    for audit in past.iter().rev() {
        let summary = audit.summary.as_ref();
        let Some(summary) = summary.filter(|summary| summary.metrics.is_some()) else {
            continue;
        };
        let conditions = &summary.conditions;
        let names = [
            conditions.device.name.clone(),
            conditions.network.name.clone(),
            conditions.location.name.clone(),
        ];
        let run = Run {
            at_ms: audit.at_ms,
            summary,
        };
        match by_conditions.iter_mut().find(|(other, _)| *other == names) {
            Some((_, runs)) => runs.push(run),
            None => by_conditions.push((names, vec![run])),
        }
    }
    let series = by_conditions
        .into_iter()
        .filter(|(_, runs)| runs.len() >= MIN_POINTS)
        .map(|(names, runs)| Series {
            conditions: names.each_ref().map(|name| short_name(name)).join(" · "),
            trends: trends(&runs),
        });
    let past = audit_rows(past);
    let (comparable, before) = comparable(&past);
    let template = HistoryTemplate {
        page_frame,
        url,
        past,
        comparable,
        before,
        series: series.collect(),
        field: field_series(field),
    };
    Ok(template.render()?)
}

fn comparable(past: &[AuditRow]) -> (Vec<ComparisonOption>, usize) {
    let measured: Vec<(&AuditRow, ComparisonOption)> = past
        .iter()
        .filter_map(|audit| {
            let (scores, audit_id) = (audit.scores.as_ref()?, audit.audit_id.clone()?);
            let performance = scores.first().map_or("–", |(_, score)| score);
            let label = format!("{} · {} · {performance}", audit.when, audit.conditions);
            Some((audit, ComparisonOption { audit_id, label }))
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

fn trends(runs: &[Run<'_>]) -> Vec<Trend> {
    let performance = runs.iter().filter_map(|run| {
        let score = run.summary.scores.performance?;
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
        if kind == MetricKind::Tti {
            continue;
        }
        let values = runs.iter().filter_map(|run| {
            let measured = metric(run.summary.metrics.as_ref()?, kind)?;
            Some((run.at_ms, measured.value, Grade::of_metric(Some(measured))))
        });
        // The scale includes the limit for good, so that good values appear low.
        let good = runs.first().map_or(0.0, |run| {
            kind.curve(run.summary.conditions.device.mode).p10
        });
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
    min_top: f64,
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
    let scale = Scale::up_to(highest.fold(min_top, f64::max));
    let aria_label = format!(
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
        svg: charts::trend(&points, median, &scale, tick, &aria_label),
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
