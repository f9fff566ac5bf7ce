//! Several runs of one page: the choice of the representative run, and the spread of the figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::interval::intervals;
use crate::report::Report;
use crate::scoring::MetricKind;

/// The runs from which a report was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Runs {
    /// The number of requested runs.
    pub count: u32,
    /// The number of the chosen run, counted from 1.
    pub chosen: u32,
    /// The unrounded metrics by short name, in milliseconds; layout shift has no unit.
    pub metrics: BTreeMap<String, Spread>,
    /// The scores by category, from 0 to 100.
    pub scores: BTreeMap<String, Spread>,
}

/// One figure over all runs. The statistics include the runs that have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The values in the order of the runs; null for a run without the figure.
    pub values: Vec<Option<f64>>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub median: Option<f64>,
    /// The sample standard deviation (divided by n - 1); `None` for fewer than two values.
    pub standard_deviation: Option<f64>,
}

/// Returns the run closest to the median of First Contentful Paint and Time to Interactive, and the
/// one that is interactive earlier if two are equally close. Returns `None` if no run was measured.
///
/// Source: Lighthouse 13.5, core/lib/median-run.js (and Lighthouse CI's representative run). There
/// a run without one of the two is an error; here it is skipped if other runs have both, and if
/// none has both, the available one decides.
pub fn representative(runs: &[Report]) -> Option<usize> {
    let measured = |run: &Report| run.error.is_none() && run.metrics.is_some();
    let runs_with = |names: &[&str]| -> Vec<usize> {
        let has_all = |run: &Report| names.iter().all(|name| figure(run, name).is_some());
        (0..runs.len())
            .filter(|run| measured(&runs[*run]) && has_all(&runs[*run]))
            .collect()
    };
    let decisive: [&[&str]; 4] = [&["fcp", "tti"], &["fcp"], &["tti"], &[]];
    let (names, candidates) = decisive
        .into_iter()
        .map(|names| (names, runs_with(names)))
        .find(|(_, candidates)| !candidates.is_empty())?;
    let medians: Vec<(&str, f64)> = names
        .iter()
        .filter_map(|name| {
            let values = candidates
                .iter()
                .filter_map(|run| figure(&runs[*run], name));
            Some((*name, median(values.collect())?))
        })
        .collect();
    let distance = |run: usize| -> f64 {
        let from =
            |(name, median): &(&str, f64)| figure(&runs[run], name).unwrap_or(*median) - median;
        medians
            .iter()
            .map(from)
            .map(|deviation| deviation * deviation)
            .sum()
    };
    let tti = |run: usize| figure(&runs[run], "tti").unwrap_or(f64::MAX);
    candidates.into_iter().min_by(|a, b| {
        let by_distance = distance(*a).total_cmp(&distance(*b));
        by_distance.then(tti(*a).total_cmp(&tti(*b)))
    })
}

/// Adds the spread of all runs and the intervals that follow from them to the report of the chosen
/// run; `requested` may exceed the number of runs if the remaining ones were skipped.
pub fn add_runs(chosen: &mut Report, runs: &[Report], requested: u32, index: usize) {
    let measured: Vec<&Report> = runs.iter().filter(|run| run.error.is_none()).collect();
    chosen.intervals = intervals(chosen, &measured);
    chosen.runs = Some(spread(runs, requested, index));
}

/// Returns the figures of every run; `requested` may exceed the number of runs if the remaining
/// ones were skipped.
pub fn spread(runs: &[Report], requested: u32, chosen: usize) -> Runs {
    let over_all = |names: &[&str]| -> BTreeMap<String, Spread> {
        let of = |name: &&str| {
            let values = runs.iter().map(|run| figure(run, name)).collect();
            ((*name).to_owned(), Spread::of(values))
        };
        names.iter().map(of).collect()
    };
    Runs {
        count: requested,
        chosen: u32::try_from(chosen + 1).unwrap_or(u32::MAX),
        metrics: over_all(&["fcp", "lcp", "tbt", "cls", "si", "tti"]),
        scores: over_all(&[
            "performance",
            "accessibility",
            "bestPractices",
            "seo",
            "pwa",
        ]),
    }
}

impl Runs {
    /// Returns the smallest and the largest value of a metric; `None` if no run has it.
    pub fn range(&self, metric: MetricKind) -> Option<(f64, f64)> {
        let spread = self.metrics.get(metric.as_str())?;
        Some((spread.min?, spread.max?))
    }
}

/// Returns a figure of a run by its short name.
pub(crate) fn figure(run: &Report, name: &str) -> Option<f64> {
    let metric = |metric: Option<crate::report::Metric>| metric.map(|metric| metric.value);
    let metrics = run.metrics.as_ref();
    let score = |score: Option<u8>| score.map(f64::from);
    match name {
        "fcp" => metric(metrics?.fcp),
        "lcp" => metric(metrics?.lcp),
        "tbt" => metric(metrics?.tbt),
        "cls" => metric(metrics?.cls),
        "si" => metric(metrics?.si),
        "tti" => metric(metrics?.tti),
        "performance" => score(run.scores.performance),
        "accessibility" => score(run.scores.accessibility),
        "bestPractices" => score(run.scores.best_practices),
        "seo" => score(run.scores.seo),
        "pwa" => score(run.scores.pwa),
        _ => None,
    }
}

impl Spread {
    fn of(values: Vec<Option<f64>>) -> Self {
        let available: Vec<f64> = values.iter().copied().flatten().collect();
        Self {
            min: available.iter().copied().reduce(f64::min),
            max: available.iter().copied().reduce(f64::max),
            standard_deviation: standard_deviation(&available),
            median: median(available),
            values,
        }
    }
}

fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (count - 1.0)).sqrt())
}

/// Returns the median: the mean of the two middle values for an even number.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(fcp: Option<f64>, tti: Option<f64>) -> Report {
        let metric = |value: Option<f64>| {
            value.map_or(
                serde_json::Value::Null,
                |value| serde_json::json!({ "value": value, "score": 1.0 }),
            )
        };
        let report = serde_json::json!({
            "format": 1, "requestedUrl": "https://example.com/", "finalUrl": null,
            "conditions": {
                "device": { "id": "d", "name": "D", "mode": "mobile" },
                "network": { "id": "n", "name": "N", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
                "location": { "id": "l", "name": "L", "mode": "agent", "addedRttMs": 0.0 },
                "cpu": { "rate": 1.0 },
            },
            "scores": {
                "performance": null, "accessibility": null, "seo": null, "bestPractices": null,
                "pwa": null,
            },
            "metrics": {
                "fcp": metric(fcp), "lcp": null, "tbt": null, "cls": null, "si": null,
                "tti": metric(tti),
            },
            "error": null, "document": null, "browser": null,
        });
        serde_json::from_value(report).unwrap()
    }

    fn failed() -> Report {
        Report {
            error: Some(plumbline_bundle::Failure::new(
                plumbline_bundle::FailureCode::Timeout,
                "late",
            )),
            metrics: None,
            ..run(None, None)
        }
    }

    #[track_caller]
    fn check(runs: &[(f64, f64)], expected: usize) {
        let runs: Vec<_> = runs
            .iter()
            .map(|(fcp, tti)| run(Some(*fcp), Some(*tti)))
            .collect();
        assert_eq!(representative(&runs), Some(expected));
    }

    #[test]
    fn the_run_closest_to_both_medians_is_chosen() {
        check(&[(1000.0, 5000.0)], 0);
        check(&[(900.0, 4000.0), (1000.0, 5000.0), (1100.0, 6000.0)], 1);
        // The medians are 1000 and 5000: the third run deviates by 100 and 100, the others by more.
        check(&[(1000.0, 9000.0), (500.0, 5000.0), (1100.0, 4900.0)], 2);
        // Two runs are equally close to the median between them: the one that is interactive
        // earlier is chosen.
        check(&[(1000.0, 6000.0), (1000.0, 5000.0)], 1);
    }

    #[test]
    fn runs_without_measurements_are_ignored() {
        let good = || run(Some(1000.0), Some(5000.0));
        assert_eq!(representative(&[failed(), good(), failed()]), Some(1));
        assert_eq!(representative(&[failed(), failed()]), None);
        assert_eq!(representative(&[]), None);
        // A page that never becomes idle has no Time to Interactive in any run.
        let restless = [900.0, 1000.0, 1300.0].map(|fcp| run(Some(fcp), None));
        assert_eq!(representative(&restless), Some(1));
        assert_eq!(representative(&[run(Some(1.0), None), good()]), Some(1));
        assert_eq!(representative(&[run(None, None)]), Some(0));
    }

    #[test]
    fn the_spread_has_every_value_and_its_statistics() {
        let runs = [
            run(Some(1000.0), None),
            failed(),
            run(Some(1300.0), Some(5.0)),
        ];
        let spread = spread(&runs, 3, 0);
        assert_eq!((spread.count, spread.chosen), (3, 1));
        let fcp = &spread.metrics["fcp"];
        assert_eq!(fcp.values, [Some(1000.0), None, Some(1300.0)]);
        assert_eq!((fcp.min, fcp.max), (Some(1000.0), Some(1300.0)));
        assert_eq!(fcp.median, Some(1150.0));
        let deviation = fcp.standard_deviation.unwrap();
        assert!((deviation - 212.132).abs() < 0.001, "{deviation}");
        assert_eq!(spread.metrics["tti"].standard_deviation, None);
        assert_eq!(spread.range(MetricKind::Fcp), Some((1000.0, 1300.0)));
        assert_eq!(spread.range(MetricKind::Lcp), None);
        assert_eq!(spread.scores["seo"].values, [None; 3]);
    }
}
