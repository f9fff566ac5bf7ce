//! Field data: how real visitors experienced a page, next to the lab metrics.

use jiff::civil::Date;
use plumbline_catalog::FormFactor;
use plumbline_model::field::{FieldData, FieldKind, FieldReason, Period, RecordScope, Shares};
use plumbline_model::report::{Metric, Report};

use super::charts;
use super::figures::{Grade, ms};

/// A report's field data as a page shows it.
pub(super) enum FieldView {
    Available(Box<FieldDataView>),
    /// There is no field data; the sentence says why.
    Missing(String),
}

pub(super) struct FieldDataView {
    /// The record, form factor and period that the data is about.
    pub(super) scope: String,
    pub(super) subject: String,
    pub(super) metrics: Vec<MetricView>,
}

pub(super) struct MetricView {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) class: &'static str,
    pub(super) grade: &'static str,
    /// The value of the same metric in this audit, if it was measured.
    pub(super) lab: Option<String>,
    pub(super) bar: Option<String>,
    /// The class and text of each part of the distribution.
    pub(super) parts: Vec<(&'static str, String)>,
}

pub(super) fn field_view(report: &Report) -> FieldView {
    match (&report.field_data, report.field_data_reason) {
        (Some(data), _) => FieldView::Available(Box::new(data_view(data, report))),
        (None, Some(reason)) => FieldView::Missing(sentence(reason).to_owned()),
        (None, None) => {
            FieldView::Missing("It was not requested when this report was made.".into())
        }
    }
}

fn data_view(data: &FieldData, report: &Report) -> FieldDataView {
    let mut scope = vec![match data.record {
        RecordScope::Url => "This page".to_owned(),
        RecordScope::Origin => {
            "All pages of this origin, because the dataset has too few visits to this page"
                .to_owned()
        }
    }];
    scope.push(visitors(data.form_factor).to_owned());
    scope.extend(data.collection_period.as_ref().map(days));
    let metrics = report.metrics.as_ref();
    FieldDataView {
        scope: scope.join(" · "),
        subject: data.subject.clone(),
        metrics: ORDER
            .into_iter()
            .filter_map(|(kind, name)| {
                let metric = data.metrics.get(kind)?;
                let grade = grade(kind, metric.p75);
                let lab: Option<Metric> = match kind {
                    FieldKind::Fcp => metrics.and_then(|m| m.fcp),
                    FieldKind::Lcp => metrics.and_then(|m| m.lcp),
                    FieldKind::Cls => metrics.and_then(|m| m.cls),
                    FieldKind::Fid | FieldKind::Inp | FieldKind::Ttfb => None,
                };
                Some(MetricView {
                    name,
                    value: value_text(kind, metric.p75),
                    class: grade.class(),
                    grade: grade.label(),
                    lab: lab.map(|lab| value_text(kind, lab.value)),
                    bar: metric.shares.map(|shares| bar(name, shares)),
                    parts: metric.shares.map(parts).unwrap_or_default(),
                })
            })
            .collect(),
    }
}

/// The metrics in the order shown, the three Core Web Vitals first.
pub const ORDER: [(FieldKind, &str); 6] = [
    (FieldKind::Lcp, "Largest Contentful Paint"),
    (FieldKind::Inp, "Interaction to Next Paint"),
    (FieldKind::Cls, "Cumulative Layout Shift"),
    (FieldKind::Fcp, "First Contentful Paint"),
    (FieldKind::Ttfb, "Time to First Byte"),
    (FieldKind::Fid, "First Input Delay"),
];

fn bar(name: &str, shares: Shares) -> String {
    let parts = parts(shares);
    let parts: Vec<&str> = parts.iter().map(|(_, text)| text.as_str()).collect();
    charts::distribution(shares, &format!("{name}, visits: {}", parts.join(", ")))
}

/// Returns the shares of good, middling and poor visits in whole per cents that add up to 100.
fn parts(shares: Shares) -> Vec<(&'static str, String)> {
    let all = shares.good + shares.needs_improvement + shares.poor;
    let all = if all > 0.0 { all } else { 1.0 };
    let percent = |share: f64| (share / all * 100.0).round() as i64;
    let good = percent(shares.good);
    // Both can be rounded up.
    let poor = percent(shares.poor).min(100 - good);
    let middling = 100 - good - poor;
    [
        (Grade::Good, good),
        (Grade::Middling, middling),
        (Grade::Poor, poor),
    ]
    .into_iter()
    .map(|(grade, percent)| {
        let text = format!("{percent}\u{a0}% {}", grade.label());
        (grade.class(), text)
    })
    .collect()
}

/// Returns the grade of a value by the thresholds of its metric.
pub fn grade(kind: FieldKind, value: f64) -> Grade {
    let [good, poor] = kind.limits();
    if value <= good {
        Grade::Good
    } else if value <= poor {
        Grade::Middling
    } else {
        Grade::Poor
    }
}

/// Formats a value of a metric.
pub fn value_text(kind: FieldKind, value: f64) -> String {
    match kind {
        FieldKind::Cls => format!("{value:.2}"),
        _ => ms(value),
    }
}

/// Returns the words for visitors with this kind of device.
pub fn visitors(form_factor: FormFactor) -> &'static str {
    match form_factor {
        FormFactor::Phone => "visitors on phones",
        FormFactor::Tablet => "visitors on tablets",
        FormFactor::Desktop => "visitors on desktops",
    }
}

/// Formats a period, for instance as `15 Oct to 11 Nov 2026`.
pub fn days(period: &Period) -> String {
    let (first, last) = (&period.first_date, &period.last_date);
    let same_year = first.get(..4) == last.get(..4);
    format!(
        "{} to {}",
        date(first, if same_year { "%-d %b" } else { "%-d %b %Y" }),
        date(last, "%-d %b %Y")
    )
}

/// Formats a date. Charts contain it unescaped, so anything that is not a date becomes `?`.
pub fn date(text: &str, format: &str) -> String {
    let date: Result<Date, _> = text.parse();
    date.map_or_else(|_| "?".to_owned(), |date| date.strftime(format).to_string())
}

/// Explains to users why there is no field data.
pub fn sentence(reason: FieldReason) -> &'static str {
    match reason {
        FieldReason::NoKey => {
            "Field data is not enabled on this service. To enable it, set a Chrome UX Report API key with --crux-key."
        }
        FieldReason::NotPublic => {
            "This URL is not public, so the Chrome UX Report was not queried."
        }
        FieldReason::NotInDataset => {
            "The Chrome UX Report has too few visits to this page and its origin from this type of device."
        }
        FieldReason::TimedOut => {
            "The Chrome UX Report API had not responded when the visit ended. The next audit can use its response."
        }
        FieldReason::Quota => {
            "The rate limit of the Chrome UX Report API was reached. Try again later."
        }
        FieldReason::KeyRefused => {
            "The Chrome UX Report API refused this service's key. Tell the operator of this service."
        }
        FieldReason::Rejected => "The Chrome UX Report API does not accept this URL.",
        FieldReason::BadAnswer => "The response of the Chrome UX Report API could not be read.",
        FieldReason::Unavailable => {
            "The Chrome UX Report API could not be reached. Try again later."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_a_hundred() {
        let text = |good: f64, needs_improvement: f64, poor: f64| -> Vec<String> {
            let shares = Shares {
                good,
                needs_improvement,
                poor,
            };
            parts(shares).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(
            text(0.335, 0.33, 0.335),
            [
                "34\u{a0}% good",
                "32\u{a0}% needs improvement",
                "34\u{a0}% poor"
            ]
        );
        assert_eq!(
            text(0.505, 0.0, 0.495),
            [
                "51\u{a0}% good",
                "0\u{a0}% needs improvement",
                "49\u{a0}% poor"
            ]
        );
        assert_eq!(text(1.0, 0.0, 0.0)[0], "100\u{a0}% good");
        assert_eq!(text(0.0, 0.0, 0.0)[0], "0\u{a0}% good");
    }

    #[test]
    fn a_value_at_a_limit_is_on_its_good_side() {
        assert_eq!(grade(FieldKind::Lcp, 2500.0), Grade::Good);
        assert_eq!(grade(FieldKind::Lcp, 2501.0), Grade::Middling);
        assert_eq!(grade(FieldKind::Cls, 0.26), Grade::Poor);
    }

    #[test]
    fn a_period_names_the_year_once_if_it_can() {
        let period = |first: &str, last: &str| Period {
            first_date: first.to_owned(),
            last_date: last.to_owned(),
        };
        assert_eq!(
            days(&period("2026-10-15", "2026-11-11")),
            "15 Oct to 11 Nov 2026"
        );
        assert_eq!(
            days(&period("2026-12-15", "2027-01-11")),
            "15 Dec 2026 to 11 Jan 2027"
        );
        assert_eq!(days(&period("<b>", "y")), "? to ?");
    }
}
