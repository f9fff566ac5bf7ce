//! Parses responses of the API. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use plumbline_model::field::{
    FieldData, FieldHistory, FieldKind, FieldMetric, FieldMetrics, FieldReason, PERCENTILE, Period,
    Shares,
};
use serde::Deserialize;
use serde_json::Value;

use crate::query::{Query, QueryKind};

/// Result of a query: a record, or the reason why there is none.
pub(crate) type QueryResult = Result<FieldRecord, FieldReason>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldRecord {
    Data(Arc<FieldData>),
    History(Arc<FieldHistory>),
}

/// Meaning of an HTTP response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Interpretation {
    /// A result that is final until the dataset changes.
    Final(QueryResult),
    KeyRefused,
    TooManyRequests,
    /// A server error.
    Failed,
    /// A response that does not match the API's description.
    Invalid(&'static str),
}

pub(crate) fn interpret(query: &Query, status: u16, body: &[u8]) -> Interpretation {
    match status {
        200 => match parse_record(query, body) {
            Ok(Some(record)) => Interpretation::Final(Ok(record)),
            Ok(None) => Interpretation::Final(Err(FieldReason::NotInDataset)),
            Err(reason) => Interpretation::Invalid(reason),
        },
        // The status decides before the body is read: a failing server may send anything.
        429 => Interpretation::TooManyRequests,
        500..=599 => Interpretation::Failed,
        _ => match parse_error(body) {
            None => Interpretation::Invalid("an error without an envelope"),
            Some(error) if error.is_invalid_key() => Interpretation::KeyRefused,
            Some(error) => match (status, error.status.as_str()) {
                (404, "NOT_FOUND") => Interpretation::Final(Err(FieldReason::NotInDataset)),
                (400, "INVALID_ARGUMENT") => Interpretation::Final(Err(FieldReason::Rejected)),
                (401 | 403, _) => Interpretation::KeyRefused,
                _ => Interpretation::Invalid("an unknown error"),
            },
        },
    }
}

/// Parses a `Retry-After` header: seconds or a date (RFC 9110, 10.2.3).
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
    error: ApiError,
}

#[derive(Deserialize)]
struct ApiError {
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

impl ApiError {
    /// Returns true for an invalid key, which is an invalid argument (400) or a denied permission
    /// with its own reason.
    fn is_invalid_key(&self) -> bool {
        self.details
            .iter()
            .any(|detail| detail.reason.starts_with("API_KEY_"))
    }
}

fn parse_error(body: &[u8]) -> Option<ApiError> {
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
    /// Metrics by name. Metrics that are not used here have other shapes.
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

/// Maximum length of a subject: no URL that can be audited is longer.
const MAX_SUBJECT_LENGTH: usize = 4096;
/// Maximum number of periods; the API returns at most 40 weeks.
const MAX_PERIODS: usize = 100;

/// Parses a record; returns `None` if it has none of the supported metrics.
fn parse_record(query: &Query, body: &[u8]) -> Result<Option<FieldRecord>, &'static str> {
    let Success { record } = serde_json::from_slice(body).map_err(|_| "no record")?;
    let subject = record.key.url.or(record.key.origin).ok_or("no key")?;
    if subject.len() > MAX_SUBJECT_LENGTH {
        return Err("a key that is not a URL");
    }
    let mut metrics = Vec::new();
    for kind in FieldKind::ALL {
        let value = api_names(kind)
            .iter()
            .find_map(|name| record.metrics.get(*name));
        if let Some(value) = value {
            let metric = Metric::deserialize(value).map_err(|_| "no metric")?;
            metrics.push((kind, metric));
        }
    }
    let (of, form_factor) = (query.record, query.form_factor);
    match query.kind {
        QueryKind::Current => {
            let mut now = FieldMetrics::default();
            for (kind, metric) in metrics {
                now.set(kind, current_metric(&metric)?);
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
            Ok(Some(FieldRecord::Data(Arc::new(data))))
        }
        QueryKind::History => {
            let periods = record.collection_periods;
            if periods.len() > MAX_PERIODS {
                return Err("too many periods");
            }
            let periods = periods
                .into_iter()
                .map(period)
                .collect::<Result<Vec<_>, _>>()?;
            let mut p75s = Vec::new();
            for (kind, metric) in metrics {
                let values = p75s_over_time(&metric, periods.len())?;
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
            Ok(Some(FieldRecord::History(Arc::new(history))))
        }
    }
}

/// Returns the API's names of a metric. A metric loses its prefix when it is no longer
/// experimental, as Interaction to Next Paint did.
fn api_names(kind: FieldKind) -> &'static [&'static str] {
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

fn current_metric(metric: &Metric) -> Result<Option<FieldMetric>, &'static str> {
    let p75 = metric.percentiles.as_ref().and_then(|p| p.p75.as_ref());
    let Some(p75) = p75.map(parse_number).transpose()?.flatten() else {
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

fn p75s_over_time(metric: &Metric, periods: usize) -> Result<Vec<Option<f64>>, &'static str> {
    let Some(series) = &metric.percentiles_timeseries else {
        return Ok(vec![None; periods]);
    };
    if series.p75s.len() != periods {
        return Err("the number of values differs from the number of periods");
    }
    series.p75s.iter().map(parse_number).collect()
}

/// Parses a value. Milliseconds are numbers, layout shift is a decimal in a string; null or "NaN"
/// is a period with too few visits.
fn parse_number(value: &Value) -> Result<Option<f64>, &'static str> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::String(text) if text == "NaN" => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let is_valid = |number: &f64| number.is_finite() && *number >= 0.0;
    number.filter(is_valid).map(Some).ok_or("an invalid value")
}

fn period(days: Days) -> Result<Period, &'static str> {
    let date = |day: Day| {
        let date = Date::new(day.year, day.month, day.day);
        date.map(|date| date.to_string())
            .map_err(|_| "an invalid date")
    };
    Ok(Period {
        first_date: date(days.first_date)?,
        last_date: date(days.last_date)?,
    })
}

#[cfg(test)]
mod tests;
