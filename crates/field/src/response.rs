//! What the API answers, read. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use plumbline_engine::field::{
    FieldData, FieldHistory, FieldKind, FieldMetric, FieldMetrics, FieldReason, PERCENTILE, Period,
    Shares,
};
use serde::Deserialize;
use serde_json::Value;

use crate::question::{About, Question};

/// What a question came to.
pub(crate) type Answer = Result<Found, FieldReason>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    Data(Arc<FieldData>),
    History(Arc<FieldHistory>),
}

/// What an HTTP answer means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Meaning {
    /// Final until the dataset changes.
    Settled(Answer),
    KeyRefused,
    TooManyRequests,
    /// A fault on the other side.
    Failed,
    /// Nothing that the API would say.
    Nonsense(&'static str),
}

pub(crate) fn meaning(question: &Question, status: u16, body: &[u8]) -> Meaning {
    match status {
        200 => match found(question, body) {
            Ok(Some(found)) => Meaning::Settled(Ok(found)),
            Ok(None) => Meaning::Settled(Err(FieldReason::NotInDataset)),
            Err(what) => Meaning::Nonsense(what),
        },
        // Before its words are read: a server in trouble may say anything.
        429 => Meaning::TooManyRequests,
        500..=599 => Meaning::Failed,
        _ => match complaint(body) {
            None => Meaning::Nonsense("an error without its envelope"),
            Some(error) if error.is_about_the_key() => Meaning::KeyRefused,
            Some(error) => match (status, error.status.as_str()) {
                (404, "NOT_FOUND") => Meaning::Settled(Err(FieldReason::NotInDataset)),
                (400, "INVALID_ARGUMENT") => Meaning::Settled(Err(FieldReason::Rejected)),
                (401 | 403, _) => Meaning::KeyRefused,
                _ => Meaning::Nonsense("an error that means nothing here"),
            },
        },
    }
}

/// How long the API says to stay away: seconds, or a date (RFC 9110, 10.2.3).
pub(crate) fn retry_after(text: &str, now_ms: i64) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    let ms = at.ok()?.as_millisecond().saturating_sub(now_ms);
    Some(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

/// Google's error envelope (cloud.google.com/apis/design/errors).
#[derive(Deserialize)]
struct Envelope {
    error: Complaint,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    status: String,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(default)]
    reason: String,
}

impl Complaint {
    /// A bad key is an invalid argument (400) or a denied permission, with its own reason.
    fn is_about_the_key(&self) -> bool {
        self.details
            .iter()
            .any(|detail| detail.reason.starts_with("API_KEY_"))
    }
}

fn complaint(body: &[u8]) -> Option<Complaint> {
    let envelope: Envelope = serde_json::from_slice(body).ok()?;
    Some(envelope.error)
}

#[derive(Deserialize)]
struct Success {
    record: Record,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    key: Key,
    /// Those that are no metric of ours have other shapes.
    #[serde(default)]
    metrics: BTreeMap<String, Value>,
    collection_period: Option<Days>,
    #[serde(default)]
    collection_periods: Vec<Days>,
}

#[derive(Deserialize)]
struct Key {
    url: Option<String>,
    origin: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Days {
    first_date: Day,
    last_date: Day,
}

#[derive(Deserialize)]
struct Day {
    year: i16,
    month: i8,
    day: i8,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metric {
    percentiles: Option<Percentiles>,
    #[serde(default)]
    histogram: Vec<Bin>,
    percentiles_timeseries: Option<Percentiles>,
}

#[derive(Deserialize)]
struct Percentiles {
    p75: Option<Value>,
    #[serde(default)]
    p75s: Vec<Value>,
}

#[derive(Deserialize)]
struct Bin {
    density: Option<f64>,
}

/// A subject longer than any URL that can be audited is not one.
const LONGEST_SUBJECT: usize = 4096;
/// 40 weeks is the most that the API gives.
const MOST_PERIODS: usize = 100;

/// None for a record without any of our metrics.
fn found(question: &Question, body: &[u8]) -> Result<Option<Found>, &'static str> {
    let Success { record } = serde_json::from_slice(body).map_err(|_| "no record")?;
    let subject = record.key.url.or(record.key.origin).ok_or("no key")?;
    if subject.len() > LONGEST_SUBJECT {
        return Err("a key that is no address");
    }
    let mut metrics = Vec::new();
    for kind in FieldKind::ALL {
        let named = names(kind)
            .iter()
            .find_map(|name| record.metrics.get(*name));
        if let Some(value) = named {
            let metric = Metric::deserialize(value).map_err(|_| "no metric")?;
            metrics.push((kind, metric));
        }
    }
    let (of, form_factor) = (question.record, question.form_factor);
    match question.about {
        About::Now => {
            let mut now = FieldMetrics::default();
            for (kind, metric) in metrics {
                now.set(kind, of_now(&metric)?);
            }
            if now == FieldMetrics::default() {
                return Ok(None);
            }
            let data = FieldData {
                record: of,
                subject,
                form_factor,
                percentile: PERCENTILE,
                collection_period: record.collection_period.map(period).transpose()?,
                metrics: now,
            };
            Ok(Some(Found::Data(Arc::new(data))))
        }
        About::History => {
            let periods = record.collection_periods;
            if periods.len() > MOST_PERIODS {
                return Err("more periods than there are");
            }
            let periods = periods
                .into_iter()
                .map(period)
                .collect::<Result<Vec<_>, _>>()?;
            let mut p75s = Vec::new();
            for (kind, metric) in metrics {
                let values = over_time(&metric, periods.len())?;
                if values.iter().any(Option::is_some) {
                    p75s.push((kind, values));
                }
            }
            if p75s.is_empty() {
                return Ok(None);
            }
            let history = FieldHistory {
                record: of,
                subject,
                form_factor,
                periods,
                p75s,
            };
            Ok(Some(Found::History(Arc::new(history))))
        }
    }
}

/// A metric loses its prefix when it is no longer an experiment, as Interaction to Next Paint did.
fn names(kind: FieldKind) -> &'static [&'static str] {
    match kind {
        FieldKind::Fcp => &["first_contentful_paint"],
        FieldKind::Lcp => &["largest_contentful_paint"],
        FieldKind::Fid => &["first_input_delay"],
        FieldKind::Cls => &["cumulative_layout_shift"],
        FieldKind::Inp => &[
            "interaction_to_next_paint",
            "experimental_interaction_to_next_paint",
        ],
        FieldKind::Ttfb => &["time_to_first_byte", "experimental_time_to_first_byte"],
    }
}

fn of_now(metric: &Metric) -> Result<Option<FieldMetric>, &'static str> {
    let p75 = metric.percentiles.as_ref().and_then(|p| p.p75.as_ref());
    let Some(p75) = p75.map(figure).transpose()?.flatten() else {
        return Ok(None);
    };
    let shares = match metric.histogram[..] {
        [ref good, ref middling, ref poor] => shares([good, middling, poor]),
        _ => None,
    };
    Ok(Some(FieldMetric { p75, shares }))
}

fn shares(bins: [&Bin; 3]) -> Option<Shares> {
    let [good, needs_improvement, poor] = bins.map(|bin| {
        bin.density
            .filter(|density| density.is_finite() && (0.0..=1.0).contains(density))
    });
    Some(Shares {
        good: good?,
        needs_improvement: needs_improvement?,
        poor: poor?,
    })
}

fn over_time(metric: &Metric, periods: usize) -> Result<Vec<Option<f64>>, &'static str> {
    let Some(over_time) = &metric.percentiles_timeseries else {
        return Ok(vec![None; periods]);
    };
    if over_time.p75s.len() != periods {
        return Err("as many values as periods were expected");
    }
    over_time.p75s.iter().map(figure).collect()
}

/// Milliseconds are numbers, layout shift is a decimal in a string; null or "NaN" is a period that has too
/// few visits.
fn figure(value: &Value) -> Result<Option<f64>, &'static str> {
    let figure = match value {
        Value::Null => return Ok(None),
        Value::String(text) if text == "NaN" => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let is_one = |figure: &f64| figure.is_finite() && *figure >= 0.0;
    figure
        .filter(is_one)
        .map(Some)
        .ok_or("a value that is none")
}

fn period(days: Days) -> Result<Period, &'static str> {
    let date = |day: Day| {
        let date = Date::new(day.year, day.month, day.day);
        date.map(|date| date.to_string())
            .map_err(|_| "a date that is none")
    };
    Ok(Period {
        first_date: date(days.first_date)?,
        last_date: date(days.last_date)?,
    })
}

#[cfg(test)]
mod tests;
