//! The history page of a URL: trends of audits and of field data.

mod comparable;
mod field;
mod trend;

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::State,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use plumbline_catalog::FormFactor;
use plumbline_model::interval::{Interval, PERFORMANCE};
use plumbline_model::scoring::MetricKind;
use plumbline_model::summary::ReportSummary;
use plumbline_report::html::figures::{Grade, date, day, short_name};
use plumbline_report::html::summary::{
    METRICS, limit_text, metric, score_interval_text, value_text,
};

use self::comparable::{ComparisonOption, comparable};
use self::field::{DeviceFieldHistory, FieldSeries, field_series};
use self::trend::{Point, Scale};
use super::audit_list::{AuditRow, PastAudit, audit_rows};
use super::form::query;
use super::frame::{Page, PageFrame};
use super::parts as page_parts;
use super::report::SHARE_EXPIRY;
use super::session::Visitor;
use super::shared_page::{Sharing, Subject};
use crate::{errors::Failure, state::SharedState};

/// The number of audits in a history: enough for a trend, few enough to load at once.
const MAX_AUDITS: u32 = 60;

/// `GET /history?audit=` (the URL of that audit) or `?url=`: the history of a URL.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let url = match (query(&parts, "url")?, query(&parts, "audit")?) {
        (Some(url), _) => url,
        (None, Some(id)) => {
            let stored = service.app.store.report(&visitor.account_id, &id).await?;
            stored.ok_or(Failure::NotFound)?.order.url
        }
        (None, None) => return Err(Failure::NotFound),
    };
    let subject = Subject::History { url: url.clone() };
    let sharing = Sharing::of(&service, &visitor.account_id, &subject).await?;
    let page_frame = visitor.page_frame();
    render(
        &service,
        &visitor.account_id,
        url,
        page_frame,
        Some(sharing),
    )
    .await
}

/// Renders the history of a URL for anyone with a shared link.
pub(super) async fn shared(
    service: &SharedState,
    account_id: &str,
    url: String,
) -> Result<Response, Failure> {
    render(service, account_id, url, PageFrame::Shared, None).await
}

/// Renders the history of a URL. Only its owner, who can share it, gets links to other pages.
async fn render(
    service: &SharedState,
    account_id: &str,
    url: String,
    page_frame: PageFrame,
    sharing: Option<Sharing>,
) -> Result<Response, Failure> {
    let store = &page_parts(service)?.store;
    let audits = store.recent(account_id, Some(&url), MAX_AUDITS).await?;
    if audits.is_empty() {
        return Err(Failure::NotFound);
    }
    let past: Vec<_> = audits.into_iter().map(PastAudit::from).collect();
    let field = field_past(service, &url, &past).await?;
    let render = move || page_frame.render(&HistoryPage::new(&url, &past, &field, sharing));
    Ok(service.render_pool.page(render).await?.into_response())
}

/// Returns the field data for every kind of device on which the URL was audited, queried
/// concurrently.
async fn field_past(
    service: &SharedState,
    url: &str,
    past: &[PastAudit],
) -> Result<Vec<DeviceFieldHistory>, Failure> {
    let Some(source) = &service.app.field else {
        return Ok(Vec::new());
    };
    let mut form_factors: Vec<FormFactor> = Vec::new();
    for device in device_ids(past) {
        let device = service.app.catalog.device(&device);
        if let Some(form_factor) = device.map(|device| device.form_factor())
            && !form_factors.contains(&form_factor)
        {
            form_factors.push(form_factor);
        }
    }
    // The dataset lists visits under the final URL.
    let url = newest_final_url(past).unwrap_or_else(|| url.to_owned());
    let queries = form_factors.into_iter().map(|form_factor| {
        let (source, url) = (Arc::clone(source), url.clone());
        tokio::spawn(async move {
            let history = source.history(&url, form_factor).await;
            DeviceFieldHistory {
                form_factor,
                history,
            }
        })
    });
    let mut field = Vec::new();
    for query in queries.collect::<Vec<_>>() {
        field.push(query.await.map_err(Failure::internal)?);
    }
    Ok(field)
}

/// The history page.
#[derive(Template)]
#[template(path = "history/history.html")]
struct HistoryPage<'a> {
    url: &'a str,
    past: Vec<AuditRow>,
    /// The measured audits, newest first.
    comparable: Vec<ComparisonOption>,
    /// The indexes of the audits that are preselected as "before" and "after".
    preselected: [usize; 2],
    series: Vec<Series>,
    field: Vec<FieldSeries>,
    /// How the page is shared, for its owner.
    sharing: Option<Sharing>,
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
    /// The interval of the newest value.
    interval: Option<String>,
    /// Whether the chart shows the intervals of the values.
    has_band: bool,
    class: &'static str,
    median: String,
    svg: String,
}

/// A figure of one audit.
struct Value {
    at_ms: i64,
    value: f64,
    grade: Grade,
    /// The interval of the figure, if it has one.
    interval: Option<Interval>,
}

/// The fewest points that make a trend.
const MIN_POINTS: usize = 2;

/// Returns the final URL of the newest measured audit.
fn newest_final_url(past: &[PastAudit]) -> Option<String> {
    past.iter()
        .filter_map(|audit| audit.summary.as_ref())
        .find_map(|summary| summary.final_url.clone())
}

/// Returns the ids of the devices of these audits, without duplicates.
fn device_ids(past: &[PastAudit]) -> Vec<String> {
    let mut devices = Vec::new();
    for summary in past.iter().filter_map(|audit| audit.summary.as_ref()) {
        let device = &summary.conditions.device.id;
        if !devices.contains(device) {
            devices.push(device.clone());
        }
    }
    devices
}

impl<'a> HistoryPage<'a> {
    /// Creates the page of a URL. `past` is sorted newest first; `field` has one entry per form
    /// factor.
    fn new(
        url: &'a str,
        past: &[PastAudit],
        field: &[DeviceFieldHistory],
        sharing: Option<Sharing>,
    ) -> Self {
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
                conditions.location.label(),
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
        let mut past = audit_rows(past);
        let (mut comparable, preselected) = comparable(&past);
        if sharing.is_none() {
            comparable.clear();
            for audit in &mut past {
                audit.href = None;
                audit.labels.clear();
            }
        }
        Self {
            url,
            past,
            comparable,
            preselected,
            series: series.collect(),
            field: field_series(field),
            sharing,
        }
    }
}

impl HistoryPage<'_> {
    /// Whether an audit is preselected as "before" (0) or "after" (1).
    fn is_preselected(&self, side: usize, index: &usize) -> bool {
        self.preselected[side] == *index
    }
}

impl Page for HistoryPage<'_> {
    fn title(&self) -> String {
        format!("History of {} · Plumbline", self.url)
    }

    fn description(&self) -> String {
        format!("Audits of {} over time.", self.url)
    }
}

fn trends(runs: &[Run<'_>]) -> Vec<Trend> {
    let performance = runs.iter().filter_map(|run| {
        let score = run.summary.scores.performance?;
        Some(Value {
            at_ms: run.at_ms,
            value: f64::from(score),
            grade: Grade::of_score(Some(score)),
            interval: run.summary.intervals.get(PERFORMANCE).cloned(),
        })
    });
    let mut trends = vec![trend_of(
        "Performance",
        performance.collect(),
        100.0,
        |value| format!("{value:.0}"),
        score_interval_text,
        |tick| format!("{tick:.0}"),
    )];
    for (kind, name, _) in METRICS {
        if kind == MetricKind::Tti {
            continue;
        }
        let values = runs.iter().filter_map(|run| {
            let measured = metric(run.summary.metrics.as_ref()?, kind)?;
            Some(Value {
                at_ms: run.at_ms,
                value: measured.value,
                grade: Grade::of_metric(Some(measured)),
                interval: run.summary.intervals.get(kind.as_str()).cloned(),
            })
        });
        // The scale includes the limit for good, so that good values appear low.
        let good = runs.first().map_or(0.0, |run| {
            kind.curve(run.summary.conditions.device.mode).p10
        });
        trends.push(trend_of(
            name,
            values.collect(),
            good,
            |value| value_text(kind, value),
            |it| {
                [it.low, it.high]
                    .map(|bound| value_text(kind, bound))
                    .join(" to ")
            },
            |tick| limit_text(kind, tick),
        ));
    }
    trends.into_iter().flatten().collect()
}

fn trend_of(
    name: &'static str,
    values: Vec<Value>,
    min_top: f64,
    text: impl Fn(f64) -> String,
    interval_text: impl Fn(&Interval) -> String,
    tick: impl Fn(f64) -> String,
) -> Option<Trend> {
    let newest = values.last()?;
    let median = median(values.iter().map(|value| value.value).collect());
    let with_interval = |value: &Value| match &value.interval {
        Some(interval) => format!("{} ({})", text(value.value), interval_text(interval)),
        None => text(value.value),
    };
    let points: Vec<Option<Point>> = values
        .iter()
        .map(|value| {
            let text = with_interval(value);
            Some(Point {
                value: value.value,
                class: value.grade.class(),
                title: format!("{}: {text}", date(value.at_ms)),
                day: day(value.at_ms),
                interval: value.interval.as_ref().map(|it| [it.low, it.high]),
            })
        })
        .collect();
    let highest = values.iter().map(|value| value.value);
    let scale = Scale::up_to(highest.fold(min_top, f64::max));
    let aria_label = format!(
        "{name} over {} audits: newest {}, median {}",
        points.len(),
        text(newest.value),
        text(median)
    );
    Some(Trend {
        name,
        newest: text(newest.value),
        interval: newest.interval.as_ref().map(&interval_text),
        has_band: values.iter().any(|value| value.interval.is_some()),
        class: newest.grade.class(),
        median: text(median),
        svg: trend::draw(&points, median, &scale, tick, &aria_label),
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
    use plumbline_model::field::{FieldHistory, FieldKind, Period, RecordScope};

    use super::super::testing::{EVIL, assert_text_only, report};
    use super::*;

    #[test]
    fn texts_of_audits_and_of_field_data_are_escaped() {
        let past = PastAudit {
            tracking_id: "trk_1".to_owned(),
            audit_id: Some("aud_1".to_owned()),
            url: EVIL.to_owned(),
            at_ms: 0,
            summary: Some((&report(EVIL)).into()),
            error: None,
            labels: vec![EVIL.to_owned()],
        };
        let period = Period {
            first_date: EVIL.to_owned(),
            last_date: EVIL.to_owned(),
        };
        let field = DeviceFieldHistory {
            form_factor: FormFactor::Tablet,
            history: Ok(FieldHistory {
                record: RecordScope::Origin,
                subject: EVIL.to_owned(),
                form_factor: FormFactor::Tablet,
                periods: vec![period],
                p75s: vec![(FieldKind::Cls, vec![Some(0.2)])],
            }),
        };
        let twice = [past.clone(), past];
        assert_text_only(&HistoryPage::new(EVIL, &twice, &[field], None));
    }

    fn sharing() -> Sharing {
        Sharing {
            action: "/history/share",
            fields: Vec::new(),
            share: None,
        }
    }

    #[test]
    fn labels_are_shown_to_the_owner_only() {
        let labelled = |label: &str| PastAudit {
            tracking_id: "trk_1".to_owned(),
            audit_id: Some("aud_1".to_owned()),
            url: "https://example.com/".to_owned(),
            at_ms: 0,
            summary: Some((&report("https://example.com/")).into()),
            error: None,
            labels: vec![label.to_owned()],
        };
        let past = ["release-2", "release-1"].map(labelled);
        let url = "https://example.com/";
        let own = HistoryPage::new(url, &past, &[], Some(sharing()));
        let own = own.render().unwrap();
        assert_eq!(own.matches("release-1").count(), 3, "two options and a row");
        let shared = HistoryPage::new(url, &past, &[], None).render().unwrap();
        assert!(!shared.contains("release-"));
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
