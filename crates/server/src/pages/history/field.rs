//! The field data of a URL over time.

use plumbline_catalog::FormFactor;
use plumbline_model::field::{FieldHistory, FieldKind, FieldReason, Period, RecordScope};
use plumbline_report::html::field::{ORDER, date, days, grade, sentence, value_text, visitors};
use plumbline_report::html::figures::{ms, tick};

use super::trend::{self, Point, Scale};

/// The field data of a URL over time for one form factor, or the reason why there is none.
pub(super) struct DeviceFieldHistory {
    pub(super) form_factor: FormFactor,
    pub(super) history: Result<FieldHistory, FieldReason>,
}

/// The trends of one form factor.
pub(super) struct FieldSeries {
    pub(super) title: String,
    /// The reason why there are no trends.
    pub(super) missing: Option<&'static str>,
    pub(super) trends: Vec<FieldTrend>,
}

pub(super) struct FieldTrend {
    pub(super) name: &'static str,
    pub(super) newest: String,
    pub(super) class: &'static str,
    pub(super) limit: String,
    pub(super) svg: String,
}

/// Returns the trends of all form factors.
pub(super) fn field_series(past: &[DeviceFieldHistory]) -> Vec<FieldSeries> {
    let mut all: Vec<FieldSeries> = past.iter().map(series).collect();
    // If the reason is the same for all form factors, it is shown once.
    if let [first, others @ ..] = &mut all[..]
        && first.missing.is_some()
        && !others.is_empty()
        && others.iter().all(|other| other.missing == first.missing)
    {
        first.title = "Field data".to_owned();
        all.truncate(1);
    }
    all
}

fn series(past: &DeviceFieldHistory) -> FieldSeries {
    let visitors = visitors(past.form_factor);
    match &past.history {
        Err(reason) => FieldSeries {
            title: format!("Field data · {visitors}"),
            missing: Some(sentence(*reason)),
            trends: Vec::new(),
        },
        Ok(history) => FieldSeries {
            title: match history.record {
                RecordScope::Url => format!("Field data · {visitors}"),
                RecordScope::Origin => format!("Field data · {visitors} · all pages of the origin"),
            },
            missing: None,
            trends: ORDER
                .into_iter()
                .filter_map(|(kind, name)| field_trend(history, kind, name))
                .collect(),
        },
    }
}

fn field_trend(history: &FieldHistory, kind: FieldKind, name: &'static str) -> Option<FieldTrend> {
    let (_, values) = history.p75s.iter().find(|(other, _)| *other == kind)?;
    let newest = values.iter().rev().find_map(|value| *value)?;
    let points: Vec<Option<Point>> = values
        .iter()
        .zip(&history.periods)
        .map(|(value, period)| {
            let value = (*value)?;
            Some(Point {
                value,
                class: grade(kind, value).class(),
                title: format!("{}: {}", days(period), value_text(kind, value)),
                day: last_day(period),
                interval: None,
            })
        })
        .collect();
    let limit = limit_text(kind);
    let good_up_to = kind.limits()[0];
    let highest = values.iter().flatten().copied();
    let scale = Scale::up_to(highest.fold(good_up_to, f64::max));
    let tick = |value: f64| tick_text(kind, value);
    let aria_label = format!(
        "{name}, 75th percentile of {} periods: newest {}, good up to {limit}",
        points.iter().flatten().count(),
        value_text(kind, newest)
    );
    Some(FieldTrend {
        name,
        newest: value_text(kind, newest),
        class: grade(kind, newest).class(),
        svg: trend::draw(&points, good_up_to, &scale, tick, &aria_label),
        limit,
    })
}

fn limit_text(kind: FieldKind) -> String {
    let [good, _] = kind.limits();
    tick_text(kind, good)
}

/// Formats a round value, such as a limit or a tick.
fn tick_text(kind: FieldKind, value: f64) -> String {
    match kind {
        // Steps of a twentieth come as 0.15000000000000002.
        FieldKind::Cls => format!("{}", (value * 1000.0).round() / 1000.0),
        _ if value < 1000.0 && value > 0.0 => ms(value),
        _ => tick(value),
    }
}

fn last_day(period: &Period) -> String {
    date(&period.last_date, "%-d %b %Y")
}
