use plumbline_model::check::{Cell, Findings, Row, SourceLocation, Unit};
use plumbline_trace::{FeatureUse, Trace};
use plumbline_vendored::features::{self, Baseline};

use crate::checks::seo::date;
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, MainResource, Missing};

check! {
    /// # What
    /// Lists the web platform features that the page uses, and which browsers have them.
    ///
    /// # Why
    /// A feature with limited availability does not work in all browsers of your visitors.
    ///
    /// # Scored
    /// Never scored. A feature is newly available when Chrome, Edge, Firefox and Safari have it,
    /// and widely available 30 months later.
    ///
    /// # Fix
    /// Check that the page works without the features of limited availability. The status of each
    /// is at webstatus.dev.
    ///
    /// # Source
    /// Lighthouse 13.5, `baseline`; web-features.
    id: "baseline",
    pass: "Baseline status of the features in use",
    fail: "Baseline status of the features in use",
    learn: "https://webstatus.dev/",
    run: run,
}

/// The time after which a newly available feature is widely available, in months.
const MONTHS_UNTIL_WIDE: i64 = 30;

/// The availability of a feature at the time of the visit, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Availability {
    Limited,
    Newly,
    Widely,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let main = facts.get::<MainResource>()?;
    let visited_at_s = main.0.exchange.wall_time_s.unwrap_or_default();
    let mut uses: Vec<(Availability, &str, &FeatureUse)> = trace
        .feature_uses
        .iter()
        .filter_map(|used| {
            let baseline = features::baseline(&used.feature)?;
            let since = match baseline {
                Baseline::Limited => "",
                Baseline::Since(date) => date,
            };
            Some((availability(baseline, visited_at_s), since, used))
        })
        .collect();
    // The newest first within each availability.
    uses.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(one.1)));
    let limited = uses
        .iter()
        .filter(|(availability, ..)| *availability == Availability::Limited)
        .count();
    let mut summary = count(uses.len(), "feature", "features");
    if limited > 0 {
        summary.push_str(&format!(", {limited} with limited availability"));
    } else if let Some((_, since, newest)) = uses.first() {
        summary.push_str(&format!("; the newest is `{}` ({since})", newest.feature));
    }
    let columns = [
        ("featureId", "Feature", Unit::Text),
        ("displayStatus", "Status", Unit::Text),
        ("source", "Source", Unit::Source),
    ];
    let rows = uses.iter().map(|(availability, since, used)| {
        let status = match availability {
            Availability::Limited => "Limited availability".to_owned(),
            Availability::Newly => format!("Newly available ({since})"),
            Availability::Widely => format!("Widely available ({since})"),
        };
        let source = if used.url.is_empty() {
            Cell::Nothing
        } else {
            Cell::Source(SourceLocation {
                url: used.url.clone(),
                line: used.line,
                column: used.column,
                ..SourceLocation::default()
            })
        };
        Row::new([Cell::text(&used.feature), Cell::text(status), source])
    });
    Ok(Outcome::informative(summary).with(Findings::new(columns).rows(rows).into()))
}

fn availability(baseline: Baseline, visited_at_s: f64) -> Availability {
    match baseline {
        Baseline::Limited => Availability::Limited,
        Baseline::Since(date) => match widely_available_at_s(date) {
            Some(widely_at_s) if widely_at_s <= visited_at_s => Availability::Widely,
            _ => Availability::Newly,
        },
    }
}

/// Returns the time at which a feature of this date becomes widely available.
fn widely_available_at_s(date: &str) -> Option<f64> {
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let months = year.parse::<i64>().ok()? * 12 + month.parse::<i64>().ok()? - 1;
    let months = months + MONTHS_UNTIL_WIDE;
    date::parse_s(&format!("{:04}-{:02}-{day}", months / 12, months % 12 + 1))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Details, Verdict};
    use serde_json::json;

    use super::*;
    use crate::checks::testing::{PAGE, Visit, verdict_without_evidence};

    /// Returns the trace of a page with additional events.
    fn page_trace(events: &[serde_json::Value]) -> serde_json::Value {
        let page = [
            json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": 1, "tid": 1,
                "args": {"name": "CrRendererMain"}}),
            json!({"name": "TracingStartedInBrowser", "cat": "devtools.timeline", "ph": "I", "ts": 1,
                "pid": 1, "tid": 1,
                "args": {"data": {"frames": [{"frame": "F", "url": PAGE, "processId": 1}]}}}),
            json!({"name": "navigationStart", "cat": "blink.user_timing", "ph": "R", "ts": 1000,
                "pid": 1, "tid": 1, "args": {"frame": "F", "data": {"documentLoaderURL": PAGE,
                "navigationId": "N", "isLoadingMainFrame": true}}}),
        ];
        json!([page.as_slice(), events].concat())
    }

    /// The date of the visit that [`Visit`] builds is 14 November 2023.
    #[test]
    fn features_are_listed_by_availability_and_the_newest_first() {
        let used = |feature: &str, url: &str| {
            json!({"cat": "blink.webdx_feature_usage", "name": "WebDXFeatureUsage", "ph": "I",
                "pid": 1, "tid": 1, "ts": 2000,
                "args": {"feature": feature, "url": url, "lineNumber": 3, "columnNumber": -1}})
        };
        let trace = page_trace(&[
            used("a", ""),
            used("array-at", "https://example.test/a.js"),
            used("nesting", ""),
            used("accelerometer", ""),
            used("a", "https://example.test/late.js"),
            used("no-such-feature", ""),
        ]);
        let outcome = Visit::new().trace(&trace).judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Informative);
        let summary = outcome.summary.as_deref();
        assert_eq!(summary, Some("4 features, 1 with limited availability"));
        let Some(Details::Findings(findings)) = outcome.details else {
            panic!("findings");
        };
        let rows: Vec<_> = findings
            .rows
            .iter()
            .map(|row| row.cells[..2].to_vec())
            .collect();
        let expected = [
            ("accelerometer", "Limited availability"),
            ("nesting", "Newly available (2023-12-11)"),
            ("array-at", "Newly available (2022-03-14)"),
            ("a", "Widely available (2015-07-29)"),
        ];
        assert_eq!(
            rows,
            expected.map(|(id, status)| vec![Cell::text(id), Cell::text(status)])
        );
    }

    #[test]
    fn a_feature_is_widely_available_after_thirty_months() {
        let at =
            |date: &str| availability(Baseline::Since("2022-03-14"), date::parse_s(date).unwrap());
        assert_eq!(at("2024-09-13"), Availability::Newly);
        assert_eq!(at("2024-09-14"), Availability::Widely);
    }

    #[test]
    fn without_a_trace_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
