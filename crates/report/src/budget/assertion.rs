//! Assertions with the rules of Lighthouse CI.

use serde_json::Value;

use super::table::Row;
use crate::lighthouse::{CATEGORIES, INTERVAL, is_audit_besides_checks};

/// An assertion about an audit of a Lighthouse result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assertion {
    /// The name in the budget file, such as `lcp-ms`.
    pub(super) name: String,
    /// The id of the audit, or `categories`, `resource-summary` or `user-timings` with properties.
    pub(super) audit: String,
    pub(super) properties: Vec<String>,
    pub(super) level: Level,
    pub(super) min_score: Option<f64>,
    pub(super) max_length: Option<f64>,
    pub(super) max_numeric_value: Option<f64>,
    pub(super) aggregation: Aggregation,
    pub(super) judge: Judge,
    pub(super) from_preset: bool,
}

/// The value that decides whether a limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Judge {
    /// The measured value.
    #[default]
    Value,
    /// The interval of the value: the limit is exceeded only if all of the interval exceeds it.
    Interval,
}

/// The severity of a failed assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Error,
    Warn,
    Off,
}

/// The way the values of several runs are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Aggregation {
    Median,
    /// The best value.
    #[default]
    Optimistic,
    /// The worst value.
    Pessimistic,
    /// The value of the median run.
    MedianRun,
}

/// The comparison that an assertion makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    AuditRan,
    MinScore,
    MaxLength,
    MaxNumericValue,
}

/// The result of one assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct AssertionResult {
    /// The name in the budget file, such as `lcp-ms`.
    pub name: String,
    /// The key, such as `largest-contentful-paint` or `resource-summary:script:size`.
    pub key: String,
    pub kind: Kind,
    pub level: Level,
    pub expected: f64,
    /// The combined value; `None` if there is no value to compare.
    pub actual: Option<f64>,
    /// The values of all runs that have one.
    pub values: Vec<f64>,
    /// The unit of the value: `millisecond`, `byte`, `request`, or that of the audit.
    pub unit: String,
    /// Whether the file has no number: the audit must pass.
    pub is_verdict: bool,
    pub passed: bool,
    /// Whether the value exceeds the limit, but not all of its interval does, by which the
    /// assertion is judged.
    pub is_within_interval: bool,
}

/// The minimum score of an assertion without options, as in Lighthouse CI.
const DEFAULT_MIN_SCORE: f64 = 0.9;

impl AssertionResult {
    /// Returns the assertion as texts.
    pub(crate) fn row(&self) -> Row {
        Row::of(self)
    }
}

impl Level {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "error" => Self::Error,
            "warn" => Self::Warn,
            "off" => Self::Off,
            _ => return None,
        })
    }
}

impl Judge {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "value" => Self::Value,
            "interval" => Self::Interval,
            _ => return None,
        })
    }
}

impl Aggregation {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "median" => Self::Median,
            "optimistic" => Self::Optimistic,
            "pessimistic" => Self::Pessimistic,
            "median-run" => Self::MedianRun,
            _ => return None,
        })
    }

    /// Combines values; `None` if there are none.
    fn combine(self, values: &[f64], kind: Kind) -> Option<f64> {
        if self == Self::Median {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted.len().checked_sub(1)? / 2;
            return Some(if sorted.len() % 2 == 1 {
                sorted[middle]
            } else {
                (sorted[middle] + sorted[middle + 1]) / 2.0
            });
        }
        let is_max = matches!(kind, Kind::MaxLength | Kind::MaxNumericValue);
        let smallest_is_best = is_max == (self != Self::Pessimistic);
        let pick = if smallest_is_best && kind != Kind::AuditRan {
            f64::min
        } else {
            f64::max
        };
        values.iter().copied().reduce(pick)
    }
}

impl Kind {
    fn holds(self, actual: f64, expected: f64) -> bool {
        match self {
            Self::AuditRan | Self::MinScore => actual >= expected,
            Self::MaxLength | Self::MaxNumericValue => actual <= expected,
        }
    }

    fn value(self, audit: &AuditValues) -> Option<f64> {
        match self {
            Self::AuditRan => Some(1.0),
            Self::MinScore => match (audit.score, audit.mode) {
                (Some(score), _) => Some(score),
                (None, "notApplicable") => Some(1.0),
                (None, "informative") => Some(0.0),
                _ => None,
            },
            Self::MaxLength => Some(audit.length),
            Self::MaxNumericValue => audit.numeric_value,
        }
    }
}

/// The values of an audit that assertions can compare.
#[derive(Default)]
struct AuditValues<'a> {
    score: Option<f64>,
    mode: &'a str,
    length: f64,
    numeric_value: Option<f64>,
    unit: &'a str,
    /// The interval of the score of a category or of the number of a metric.
    interval: Option<[f64; 2]>,
}

impl Assertion {
    /// Parses a key: `audit`, `audit:property` or `audit.property`. Camel case is converted to
    /// kebab case.
    pub(super) fn of(key: &str, level: Level) -> Self {
        let name = key.to_owned();
        let key = kebab_case(key);
        let mut parts = key
            .split(['.', ':'])
            .filter(|part| !part.is_empty())
            .map(str::to_owned);
        Self {
            name,
            audit: parts.next().unwrap_or_default(),
            properties: parts.collect(),
            level,
            min_score: None,
            max_length: None,
            max_numeric_value: None,
            aggregation: Aggregation::default(),
            judge: Judge::default(),
            from_preset: false,
        }
    }

    pub(super) fn key(&self) -> String {
        let parts: Vec<&str> = std::iter::once(self.audit.as_str())
            .chain(self.properties.iter().map(String::as_str))
            .collect();
        parts.join(":")
    }

    /// Whether reports can have the audit or category, given the ids of all checks.
    pub(super) fn can_be_known(&self, checks: &[&str]) -> bool {
        match (self.audit.as_str(), &self.properties[..]) {
            ("categories", [category]) => CATEGORIES.contains(&category.as_str()),
            (audit, _) => checks.contains(&audit) || is_audit_besides_checks(audit),
        }
    }

    /// Whether any run has the audit or category. An assertion that is off needs none.
    pub(super) fn is_known(&self, runs: &[Value]) -> bool {
        let exists = |run: &Value| match (self.audit.as_str(), &self.properties[..]) {
            ("categories", [category]) => run["categories"].get(category).is_some(),
            _ => run["audits"].get(&self.audit).is_some(),
        };
        self.level == Level::Off || runs.iter().any(exists)
    }

    /// Checks the assertion against all runs.
    pub(super) fn check(&self, runs: &[Value], median: Option<&Value>) -> Vec<AssertionResult> {
        if self.level == Level::Off {
            return Vec::new();
        }
        let interval = median.and_then(|run| self.look_up(run)?.interval);
        let runs: Vec<&Value> = match (self.aggregation, median) {
            (Aggregation::MedianRun, Some(median)) => vec![median],
            _ => runs.iter().collect(),
        };
        let audits: Vec<Option<AuditValues>> = runs.iter().map(|run| self.look_up(run)).collect();
        let ran: Vec<f64> = audits
            .iter()
            .map(|audit| f64::from(u8::from(audit.is_some())))
            .collect();
        let Some(audits) = audits.into_iter().collect::<Option<Vec<AuditValues>>>() else {
            return vec![AssertionResult {
                values: ran,
                ..self.result(Kind::AuditRan, 1.0, Some(0.0))
            }];
        };
        let limits = [
            (Kind::MaxLength, self.max_length),
            (Kind::MaxNumericValue, self.max_numeric_value),
            (Kind::MinScore, self.min_score),
        ];
        let mut limits: Vec<(Kind, f64)> = limits
            .into_iter()
            .filter_map(|(kind, value)| Some((kind, value?)))
            .collect();
        let is_verdict = limits.is_empty() && self.audit != "categories";
        if limits.is_empty() {
            limits.push((Kind::MinScore, DEFAULT_MIN_SCORE));
        }
        let compare = |(kind, expected)| AssertionResult {
            is_verdict,
            ..self.compare(kind, expected, &audits, interval)
        };
        limits.into_iter().map(compare).collect()
    }

    /// Compares the values of all runs with a limit. `interval` is that of the median run, which
    /// contains what all runs say.
    fn compare(
        &self,
        kind: Kind,
        expected: f64,
        audits: &[AuditValues],
        interval: Option<[f64; 2]>,
    ) -> AssertionResult {
        let values: Vec<f64> = audits
            .iter()
            .filter_map(|audit| kind.value(audit))
            .filter(|value| value.is_finite())
            .collect();
        // The worst value is only known if all runs have one.
        let is_enough = match self.aggregation {
            Aggregation::Pessimistic => values.len() == audits.len(),
            _ => !values.is_empty(),
        };
        let actual = self
            .aggregation
            .combine(&values, kind)
            .filter(|_| is_enough);
        let unit = match kind {
            Kind::MaxNumericValue => audits.first().map_or("", |audit| audit.unit),
            _ => "",
        };
        let result = self.result(kind, expected, actual);
        // The interval of a metric is not that of its score.
        let interval = interval.filter(|_| {
            let is_category = self.audit == "categories";
            self.judge == Judge::Interval && is_category == (kind == Kind::MinScore)
        });
        let may_hold = |bounds: [f64; 2]| bounds.iter().any(|it| kind.holds(*it, expected));
        let is_within_interval =
            !result.passed && actual.is_some() && interval.is_some_and(may_hold);
        AssertionResult {
            values,
            unit: unit.to_owned(),
            passed: result.passed || is_within_interval,
            is_within_interval,
            ..result
        }
    }

    fn result(&self, kind: Kind, expected: f64, actual: Option<f64>) -> AssertionResult {
        AssertionResult {
            name: self.name.clone(),
            key: self.key(),
            kind,
            level: self.level,
            expected,
            actual,
            values: Vec::new(),
            unit: String::new(),
            is_verdict: false,
            passed: actual.is_some_and(|actual| kind.holds(actual, expected)),
            is_within_interval: false,
        }
    }

    fn look_up<'a>(&self, run: &'a Value) -> Option<AuditValues<'a>> {
        let properties: Vec<&str> = self.properties.iter().map(String::as_str).collect();
        let audit = run["audits"].get(&self.audit);
        match (self.audit.as_str(), &properties[..]) {
            ("categories", [category]) => {
                let category = run["categories"].get(category)?;
                Some(AuditValues {
                    score: category["score"].as_f64(),
                    interval: interval(category),
                    ..AuditValues::default()
                })
            }
            ("resource-summary", [kind, property]) => {
                let item = items(audit?).find(|item| item["resourceType"] == **kind)?;
                let (member, unit) = match *property {
                    "size" => ("transferSize", "byte"),
                    _ => ("requestCount", "request"),
                };
                let numeric_value = item[member].as_f64();
                Some(AuditValues {
                    numeric_value,
                    unit,
                    ..measured(audit?)
                })
            }
            ("user-timings", [_, ..]) => {
                let name = properties.join("-");
                let item = items(audit?).find(|item| {
                    item["name"]
                        .as_str()
                        .is_some_and(|other| dashed_words(other) == dashed_words(&name))
                })?;
                let numeric_value = item["duration"].as_f64().or(item["startTime"].as_f64());
                Some(AuditValues {
                    numeric_value,
                    unit: "millisecond",
                    ..measured(audit?)
                })
            }
            _ => audit.map(measured),
        }
    }
}

fn measured(audit: &Value) -> AuditValues<'_> {
    AuditValues {
        score: audit["score"].as_f64(),
        mode: audit["scoreDisplayMode"].as_str().unwrap_or_default(),
        length: items(audit).count() as f64,
        numeric_value: audit["numericValue"].as_f64(),
        unit: audit["numericUnit"].as_str().unwrap_or_default(),
        interval: interval(audit),
    }
}

fn interval(value: &Value) -> Option<[f64; 2]> {
    let interval = &value[INTERVAL];
    Some([interval["low"].as_f64()?, interval["high"].as_f64()?])
}

fn items(audit: &Value) -> impl Iterator<Item = &Value> {
    audit["details"]["items"].as_array().into_iter().flatten()
}

/// Converts camel case to kebab case like Lighthouse CI: a dash between a lower-case letter and a
/// capital, then all lower case.
pub(super) fn kebab_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut after_lower = false;
    for c in text.chars() {
        if after_lower && c.is_ascii_uppercase() {
            out.push('-');
        }
        after_lower = c.is_ascii_lowercase();
        out.extend(c.to_lowercase());
    }
    out
}

/// Converts a name to words joined by dashes, as Lighthouse CI does to compare user timings.
fn dashed_words(text: &str) -> String {
    let text = kebab_case(text);
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
