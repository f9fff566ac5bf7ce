//! Simulated audits of pages with known variation, for the tests of intervals.

use serde_json::{Value, json};

use super::{Coverage, FURTHER_AUDITS, Origin, ResidualTable, coverage, intervals_by};
use crate::report::Report;
use crate::runs::representative;
use crate::scoring::{MetricKind, PERFORMANCE_WEIGHTS};
use plumbline_catalog::Mode;

/// Returns the report of a visit with these metrics, in the order of [`MetricKind::ALL`].
pub(super) fn report(values: [f64; 6]) -> Report {
    let mut metrics = serde_json::Map::new();
    for (kind, value) in MetricKind::ALL.into_iter().zip(values) {
        let score = kind.score(Mode::Mobile, value);
        let metric = json!({ "value": value, "score": score });
        metrics.insert(kind.as_str().to_owned(), metric);
    }
    let score: f64 = PERFORMANCE_WEIGHTS
        .iter()
        .map(|(kind, weight)| {
            let score = metrics[kind.as_str()]["score"].as_f64();
            score.unwrap_or_default() * weight
        })
        .sum();
    let report = json!({
        "format": 1, "requestedUrl": "https://example.com/", "finalUrl": null,
        "conditions": {
            "device": { "id": "d", "name": "D", "mode": "mobile" },
            "network": { "id": "n", "name": "N", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
            "location": { "id": "l", "name": "L", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 1.0 },
        },
        "scores": {
            "performance": score.round() as u8, "accessibility": null, "seo": null,
            "bestPractices": null, "pwa": null,
        },
        "metrics": Value::Object(metrics),
        "error": null, "document": null, "browser": null,
    });
    serde_json::from_value(report).unwrap()
}

/// A generator of pseudo-random numbers.
struct Generator(u64);

impl Generator {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number from 0 to 1.
    fn uniform(&mut self) -> f64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number of the standard normal distribution, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A page whose visits vary around fixed values.
struct Page {
    values: [f64; 6],
    /// The relative standard deviation of what delays all metrics together.
    common: f64,
    /// The relative standard deviation of each metric.
    own: f64,
}

impl Page {
    /// Returns a page of the corpus: about half of the pages have little work, and the standard
    /// deviations of pages differ by a factor of ten.
    fn any(random: &mut Generator) -> Self {
        let fcp = 500.0 + 2500.0 * random.uniform();
        let tbt = (random.uniform() - 0.4).max(0.0) * 2000.0;
        let cls = (random.uniform() - 0.5).max(0.0) * 0.4;
        let deviation = 0.01 * (1.15 * random.normal()).exp().clamp(0.3, 4.0);
        Self {
            values: [fcp, fcp * 1.4, tbt, cls, fcp * 1.2, fcp * 2.0 + tbt],
            common: deviation * random.uniform(),
            own: deviation,
        }
    }

    fn visit(&self, random: &mut Generator) -> Report {
        let common = self.common * random.normal();
        report(
            self.values
                .map(|value| (value * (1.0 + common + self.own * random.normal())).max(0.0)),
        )
    }

    fn visits(&self, plan: Visits, random: &mut Generator) -> Vec<Report> {
        let mut visits = vec![self.visit(random)];
        while !plan.are_enough(&visits) {
            visits.push(self.visit(random));
        }
        visits
    }

    /// Returns the report of an audit with its intervals.
    fn audit(&self, plan: Visits, table: &ResidualTable, random: &mut Generator) -> Report {
        let visits = self.visits(plan, random);
        let chosen = representative(&visits).unwrap();
        let all: Vec<&Report> = visits.iter().collect();
        Report {
            intervals: intervals_by(table, &visits[chosen], &all),
            ..visits[chosen].clone()
        }
    }
}

/// The number of visits of an audit.
#[derive(Debug, Clone, Copy)]
enum Visits {
    Fixed(usize),
    /// Visits are made until two have scores within a point, at most three.
    UntilConfirmed,
}

impl Visits {
    fn are_enough(self, visits: &[Report]) -> bool {
        match self {
            Self::Fixed(count) => visits.len() >= count,
            Self::UntilConfirmed => {
                let score = |visit: &Report| visit.scores.performance.unwrap_or_default();
                let is_close = |two: &[Report]| score(&two[0]).abs_diff(score(&two[1])) <= 1;
                visits.len() >= 3 || visits.windows(2).any(is_close)
            }
        }
    }
}

/// Returns the coverage of all figures for audits with these visits, with a table that was measured
/// on other pages.
fn simulated_coverage(plan: Visits) -> Vec<(&'static str, Coverage)> {
    let random = &mut Generator::new(1);
    let corpus = (0..60).map(|_| Page::any(random).visits(Visits::Fixed(8), random));
    let table = ResidualTable::measured(&corpus.collect::<Vec<_>>(), Origin::default());
    let (mut audits, mut further) = (Vec::new(), Vec::new());
    for _ in 0..PAGES {
        let page = Page::any(random);
        audits.push(vec![page.audit(plan, &table, random)]);
        let others = 0..FURTHER_AUDITS;
        further.push(others.map(|_| page.audit(plan, &table, random)).collect());
    }
    coverage(&audits, &further).into_iter().collect()
}

/// The number of simulated pages.
const PAGES: usize = 300;

#[test]
fn nine_of_ten_intervals_contain_the_mean_of_twenty_further_audits() {
    let plans = [1, 2, 3, 5].map(Visits::Fixed);
    for plan in plans.into_iter().chain([Visits::UntilConfirmed]) {
        let figures = simulated_coverage(plan);
        let all = figures
            .iter()
            .fold(Coverage::default(), |sum, (_, it)| Coverage {
                intervals: sum.intervals + it.intervals,
                containing: sum.containing + it.containing,
            });
        assert_eq!(all.intervals, 7 * PAGES);
        let share = all.share();
        assert!(
            (0.85..=0.95).contains(&share),
            "{plan:?}: {share} {figures:?}"
        );
    }
}
