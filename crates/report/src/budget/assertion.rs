use serde_json::Value;

/// One thing that must hold, by Lighthouse CI's rules.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assertion {
    /// The audit, or `categories`, `resource-summary`, `user-timings` with properties.
    pub(super) audit: String,
    pub(super) properties: Vec<String>,
    pub(super) level: Level,
    pub(super) min_score: Option<f64>,
    pub(super) max_length: Option<f64>,
    pub(super) max_numeric_value: Option<f64>,
    pub(super) aggregation: Aggregation,
    pub(super) from_preset: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Error,
    Warn,
    Off,
}

/// How several runs make one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Aggregation {
    Median,
    /// The best of them.
    #[default]
    Optimistic,
    Pessimistic,
    /// The value of the run that stands for all.
    MedianRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    AuditRan,
    MinScore,
    MaxLength,
    MaxNumericValue,
}

/// What came of one assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// As it is asserted: `largest-contentful-paint`, `resource-summary:script:size`.
    pub key: String,
    pub kind: Kind,
    pub level: Level,
    pub expected: f64,
    /// None where there is no value to compare.
    pub actual: Option<f64>,
    /// Of every run that has one.
    pub values: Vec<f64>,
    /// What the value counts, as the audit says: `millisecond`, `byte` …
    pub unit: String,
    pub passed: bool,
    pub message: Option<String>,
}

/// Lighthouse CI's own where nothing is asked for.
const DEFAULT_MIN_SCORE: f64 = 0.9;

impl Level {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "error" => Self::Error,
            "warn" => Self::Warn,
            "off" => Self::Off,
            _ => return None,
        })
    }
}

impl Aggregation {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "median" => Self::Median,
            "optimistic" => Self::Optimistic,
            "pessimistic" => Self::Pessimistic,
            "median-run" => Self::MedianRun,
            _ => return None,
        })
    }

    /// None of no values.
    fn of(self, values: &[f64], kind: Kind) -> Option<f64> {
        if self == Self::Median {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted.len().checked_sub(1)? / 2;
            return Some(match sorted.len() % 2 {
                1 => sorted[middle],
                _ => (sorted[middle] + sorted[middle + 1]) / 2.0,
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

    fn name(self) -> &'static str {
        match self {
            Self::AuditRan => "auditRan",
            Self::MinScore => "minScore",
            Self::MaxLength => "maxLength",
            Self::MaxNumericValue => "maxNumericValue",
        }
    }

    fn value(self, measured: &Measured) -> Option<f64> {
        match self {
            Self::AuditRan => Some(1.0),
            Self::MinScore => match (measured.score, measured.mode) {
                (Some(score), _) => Some(score),
                (None, "notApplicable") => Some(1.0),
                (None, "informative") => Some(0.0),
                _ => None,
            },
            Self::MaxLength => Some(measured.length),
            Self::MaxNumericValue => measured.numeric_value,
        }
    }
}

/// What of an audit can be asserted.
#[derive(Default)]
struct Measured<'a> {
    score: Option<f64>,
    mode: &'a str,
    length: f64,
    numeric_value: Option<f64>,
    unit: &'a str,
}

impl Assertion {
    /// `audit`, `audit:property` or `audit.property`; names in camel case are the same in kebab case.
    pub(super) fn of(key: &str, level: Level) -> Self {
        let key = kebab_case(key);
        let mut parts = key
            .split(['.', ':'])
            .filter(|part| !part.is_empty())
            .map(str::to_owned);
        Self {
            audit: parts.next().unwrap_or_default(),
            properties: parts.collect(),
            level,
            min_score: None,
            max_length: None,
            max_numeric_value: None,
            aggregation: Aggregation::default(),
            from_preset: false,
        }
    }

    pub(super) fn key(&self) -> String {
        let parts: Vec<&str> = std::iter::once(self.audit.as_str())
            .chain(self.properties.iter().map(String::as_str))
            .collect();
        parts.join(":")
    }

    pub(super) fn names_what_is_there(&self, runs: &[Value]) -> bool {
        runs.iter()
            .any(|run| run["audits"].get(&self.audit).is_some())
    }

    pub(super) fn check(&self, runs: &[Value], median: Option<&Value>) -> Vec<Finding> {
        if self.level == Level::Off {
            return Vec::new();
        }
        let runs: Vec<&Value> = match (self.aggregation, median) {
            (Aggregation::MedianRun, Some(median)) => vec![median],
            _ => runs.iter().collect(),
        };
        let found: Vec<Option<Measured>> = runs.iter().map(|run| self.look_up(run)).collect();
        let ran: Vec<f64> = found
            .iter()
            .map(|found| f64::from(u8::from(found.is_some())))
            .collect();
        let Some(measured) = found.into_iter().collect::<Option<Vec<Measured>>>() else {
            let message = Some(format!("the report has no `{}`", self.key()));
            return vec![Finding {
                values: ran,
                ..self.finding(Kind::AuditRan, 1.0, Some(0.0), message)
            }];
        };
        let asked = [
            (Kind::MaxLength, self.max_length),
            (Kind::MaxNumericValue, self.max_numeric_value),
            (Kind::MinScore, self.min_score),
        ];
        let mut asked: Vec<(Kind, f64)> = asked
            .into_iter()
            .filter_map(|(kind, value)| Some((kind, value?)))
            .collect();
        if asked.is_empty() {
            asked.push((Kind::MinScore, DEFAULT_MIN_SCORE));
        }
        asked
            .into_iter()
            .map(|(kind, expected)| self.judge(kind, expected, &measured))
            .collect()
    }

    fn judge(&self, kind: Kind, expected: f64, measured: &[Measured]) -> Finding {
        let values: Vec<f64> = measured
            .iter()
            .filter_map(|measured| kind.value(measured))
            .filter(|value| value.is_finite())
            .collect();
        // A pessimist does not take the word of some for all.
        let is_enough = match self.aggregation {
            Aggregation::Pessimistic => values.len() == measured.len(),
            _ => !values.is_empty(),
        };
        let actual = self.aggregation.of(&values, kind).filter(|_| is_enough);
        let message = actual.is_none().then(|| {
            format!(
                "`{}` gives no value that `{}` could be held against",
                self.key(),
                kind.name()
            )
        });
        let unit = match kind {
            Kind::MaxNumericValue => measured.first().map_or("", |measured| measured.unit),
            _ => "",
        };
        Finding {
            values,
            unit: unit.to_owned(),
            ..self.finding(kind, expected, actual, message)
        }
    }

    fn finding(
        &self,
        kind: Kind,
        expected: f64,
        actual: Option<f64>,
        message: Option<String>,
    ) -> Finding {
        Finding {
            key: self.key(),
            kind,
            level: self.level,
            expected,
            actual,
            values: Vec::new(),
            unit: String::new(),
            passed: actual.is_some_and(|actual| kind.holds(actual, expected)),
            message,
        }
    }

    fn look_up<'a>(&self, run: &'a Value) -> Option<Measured<'a>> {
        let properties: Vec<&str> = self.properties.iter().map(String::as_str).collect();
        let audit = run["audits"].get(&self.audit);
        match (self.audit.as_str(), &properties[..]) {
            ("categories", [category]) => {
                let category = run["categories"].get(category)?;
                Some(Measured {
                    score: category["score"].as_f64(),
                    ..Measured::default()
                })
            }
            ("resource-summary", [kind, what]) => {
                let item = items(audit?).find(|item| item["resourceType"] == **kind)?;
                let (member, unit) = match *what {
                    "size" => ("transferSize", "byte"),
                    _ => ("requestCount", ""),
                };
                let numeric_value = item[member].as_f64();
                Some(Measured {
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
                        .is_some_and(|given| words(given) == words(&name))
                })?;
                let numeric_value = item["duration"].as_f64().or(item["startTime"].as_f64());
                Some(Measured {
                    numeric_value,
                    unit: "millisecond",
                    ..measured(audit?)
                })
            }
            _ => audit.map(measured),
        }
    }
}

fn measured(audit: &Value) -> Measured<'_> {
    Measured {
        score: audit["score"].as_f64(),
        mode: audit["scoreDisplayMode"].as_str().unwrap_or_default(),
        length: items(audit).count() as f64,
        numeric_value: audit["numericValue"].as_f64(),
        unit: audit["numericUnit"].as_str().unwrap_or_default(),
    }
}

fn items(audit: &Value) -> impl Iterator<Item = &Value> {
    audit["details"]["items"].as_array().into_iter().flatten()
}

/// As Lighthouse CI writes keys: a dash between a lower-case letter and a capital, then all lower case.
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

/// A name as Lighthouse CI compares user timings: words of letters and digits, joined by dashes.
fn words(text: &str) -> String {
    let text = kebab_case(text);
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
