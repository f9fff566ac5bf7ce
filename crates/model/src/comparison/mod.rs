//! Fair comparisons of two pages: figures of visits that were made in turn, and whether they
//! differ.
//!
//! Visits are made in pairs, one of each page, so that a host that becomes faster or slower affects
//! both. The differences within the pairs are tested by Student's t at a few numbers of pairs. The
//! confidence of each test is so high that all of them together show a difference between equal
//! pages in at most 2 of 100 comparisons, for each figure.

mod evidence;

use serde::{Deserialize, Serialize};

pub use evidence::{DifferentRequest, EvidenceRow, EvidenceUnit, different_requests, evidence};

use crate::interval::Interval;
use crate::report::{ReplayConditions, Report};
use crate::runs::{figure, median};

/// The number of pairs of visits after which a comparison can end.
pub const MIN_PAIRS: u32 = 4;

/// The most pairs of visits of one comparison.
pub const MAX_PAIRS: u32 = 10;

/// The probability with which the intervals of all tests of a figure contain its difference.
const LEVEL: f64 = 0.98;

/// A number of pairs at which the differences are tested.
struct Test {
    pairs: usize,
    /// The quantile of Student's t beyond which a difference is shown. The probabilities of the
    /// tests, 0.1, 0.3, 0.6 and 1 per cent, add up to 2 per cent.
    t: f64,
    /// The same quantile if no test follows, so that most of the probabilities of the later ones
    /// can be added to that of this one: 1.5, 1.3, 1.2 and 1 per cent. The differences of few pairs
    /// are not distributed normally, which takes up the rest.
    t_if_last: f64,
    /// The quantile for an interval that contains the difference with a probability of 90 %. A
    /// difference that it shows to be small is not measured more often.
    t_of_small: f64,
}

const TESTS: [Test; 4] = [
    test(4, 12.924, 5.047, 2.353),
    test(6, 5.376, 3.772, 2.015),
    test(8, 3.887, 3.365, 1.895),
    test(10, 3.250, 3.250, 1.833),
];

const fn test(pairs: usize, t: f64, t_if_last: f64, t_of_small: f64) -> Test {
    Test {
        pairs,
        t,
        t_if_last,
        t_of_small,
    }
}

/// Returns whether differences are tested again after so many pairs, if at most `max_pairs` are
/// made.
fn is_tested_later(pairs: usize, max_pairs: usize) -> bool {
    let mut tests = TESTS.iter();
    tests.any(|test| test.pairs > pairs && test.pairs <= max_pairs)
}

/// A figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Compared {
    name: &'static str,
    scale: Scale,
    /// The difference below which two pages count as equal: a fraction, or in units of the figure.
    negligible: f64,
    higher_is_better: bool,
}

/// The way in which a difference is expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// A fraction of the first page's value.
    Relative,
    /// A number of units of the figure, which may be 0.
    Absolute,
}

const COMPARED: [Compared; 7] = [
    Compared {
        name: "performance",
        scale: Scale::Absolute,
        negligible: 0.5,
        higher_is_better: true,
    },
    time("fcp"),
    time("lcp"),
    time("si"),
    Compared {
        name: "tbt",
        scale: Scale::Absolute,
        negligible: 10.0,
        higher_is_better: false,
    },
    Compared {
        name: "cls",
        scale: Scale::Absolute,
        negligible: 0.002,
        higher_is_better: false,
    },
    time("tti"),
];

const fn time(name: &'static str) -> Compared {
    Compared {
        name,
        scale: Scale::Relative,
        negligible: 0.01,
        higher_is_better: false,
    }
}

/// The comparison that the report of the first of two pages contains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparedPages {
    /// The URLs of the two pages.
    pub urls: [String; 2],
    /// The URLs of the measured documents, each if its request was redirected to another page.
    #[serde(default, skip_serializing_if = "has_no_redirect")]
    pub redirected_to: [Option<String>; 2],
    /// The recordings that were visited in place of the servers of each page, if there were any.
    #[serde(default, skip_serializing_if = "has_no_replay")]
    pub replays: [Option<ReplayConditions>; 2],
    /// The changes of an experiment, which make the second page, each in a few words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Sentences about what the advice of an experiment names and no change can follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The requests and the work of each page, in one visit.
    #[serde(default)]
    pub evidence: Vec<EvidenceRow>,
    /// The requests by which the pages differ.
    #[serde(default)]
    pub requests: Vec<DifferentRequest>,
}

fn has_no_redirect(redirected_to: &[Option<String>; 2]) -> bool {
    redirected_to.iter().all(Option::is_none)
}

fn has_no_replay(replays: &[Option<ReplayConditions>; 2]) -> bool {
    replays.iter().all(Option::is_none)
}

/// The result of a comparison of two pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The number of visits of each page.
    pub pairs: usize,
    pub figures: Vec<ComparedFigure>,
}

/// The answer for one figure: the second page relative to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Faster,
    Slower,
    NoDifferenceShown,
}

/// One figure of both pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparedFigure {
    /// The short name, such as `lcp`, or `performance` for the score.
    pub name: String,
    /// The medians of the two pages.
    pub medians: [f64; 2],
    /// The difference of the second page from the first: a fraction if `is_relative`, else in units
    /// of the figure.
    pub shift: f64,
    pub is_relative: bool,
    /// The interval of the shift, as wide as the test requires: it excludes 0 if a difference is
    /// shown.
    pub interval: Interval,
    pub answer: Answer,
    /// Whether the difference is surely less than twice the one that counts as none.
    #[serde(skip)]
    pub is_surely_small: bool,
}

impl Comparison {
    /// Compares pages by the pairs of reports that were made so far. Returns `None` if their number
    /// is none at which differences are tested.
    pub fn of(pairs: &[[Report; 2]], max_pairs: usize) -> Option<Self> {
        let test = TESTS.iter().find(|test| test.pairs == pairs.len())?;
        let t = test.quantile(max_pairs);
        let figures = COMPARED.iter().filter_map(|compared| {
            let values = pairs.iter().map(|pair| {
                let [first, second] = pair;
                Some([
                    figure(first, compared.name)?,
                    figure(second, compared.name)?,
                ])
            });
            // A figure that a visit lacks cannot be compared.
            let values: Option<Vec<[f64; 2]>> = values.collect();
            compared.compare(&values?, t, test.t_of_small)
        });
        Some(Self {
            pairs: pairs.len(),
            figures: figures.collect(),
        })
    }

    /// Returns whether further pairs are not needed: each figure differs, or any difference is so
    /// small that it does not matter.
    pub fn is_decided(&self) -> bool {
        self.figures
            .iter()
            .all(|figure| figure.answer != Answer::NoDifferenceShown || figure.is_surely_small)
    }

    /// Returns whether differences would be tested once more with at most so many pairs.
    pub fn can_continue(&self, max_pairs: usize) -> bool {
        is_tested_later(self.pairs, max_pairs)
    }

    /// Returns whether at least one figure has this answer.
    pub fn shows(&self, answer: Answer) -> bool {
        self.figures.iter().any(|figure| figure.answer == answer)
    }
}

impl Test {
    /// Returns the quantile beyond which a difference is shown if at most `max_pairs` are made.
    fn quantile(&self, max_pairs: usize) -> f64 {
        if is_tested_later(self.pairs, max_pairs) {
            self.t
        } else {
            self.t_if_last
        }
    }
}

impl Compared {
    /// Compares a figure of both pages. A difference is shown if it is more than `t` standard
    /// errors away from 0.
    fn compare(self, values: &[[f64; 2]], t: f64, t_of_small: f64) -> Option<ComparedFigure> {
        let difference = |[first, second]: &[f64; 2]| match self.scale {
            Scale::Absolute => Some(second - first),
            Scale::Relative => (*first > 0.0 && *second > 0.0).then(|| (second / first).ln()),
        };
        let differences: Option<Vec<f64>> = values.iter().map(difference).collect();
        let differences = differences?;
        let count = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let squares = differences.iter().map(|it| (it - mean) * (it - mean));
        let error = (squares.sum::<f64>() / (count - 1.0) / count).sqrt();
        let shown = |shift: f64| match self.scale {
            Scale::Absolute => shift,
            // Differences of logarithms are ratios.
            Scale::Relative => shift.exp() - 1.0,
        };
        let shift = shown(mean);
        let is_shown = mean.abs() > t * error && shift.abs() >= self.negligible;
        let answer = match (is_shown, (shift > 0.0) == self.higher_is_better) {
            (false, _) => Answer::NoDifferenceShown,
            (true, true) => Answer::Faster,
            (true, false) => Answer::Slower,
        };
        let limits = |t: f64| [shown(mean - t * error), shown(mean + t * error)];
        let [low, high] = limits(t);
        let of_page = |page: usize| median(values.iter().map(|pair| pair[page]).collect());
        Some(ComparedFigure {
            name: self.name.to_owned(),
            medians: [of_page(0)?, of_page(1)?],
            shift,
            is_relative: self.scale == Scale::Relative,
            interval: Interval {
                low,
                high,
                level: LEVEL,
                basis: "pairs of visits".to_owned(),
            },
            answer,
            is_surely_small: limits(t_of_small)
                .iter()
                .all(|limit| limit.abs() <= 2.0 * self.negligible),
        })
    }
}

/// Returns whether the second page is visited first in a pair: the order alternates, so that a
/// steady change of the host's speed affects both pages equally.
pub fn is_second_first(pair: usize) -> bool {
    pair % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LCP: Compared = time("lcp");
    const TBT: Compared = COMPARED[4];
    const SCORE: Compared = COMPARED[0];

    fn compare(compared: Compared, values: &[[f64; 2]], max_pairs: u32) -> ComparedFigure {
        let test = TESTS.iter().find(|test| test.pairs == values.len());
        let test = test.unwrap();
        let t = test.quantile(max_pairs as usize);
        compared.compare(values, t, test.t_of_small).unwrap()
    }

    /// Returns pseudo-random numbers between -1 and 1.
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        std::iter::repeat_with(move || {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
    }

    /// Returns the answer of a comparison that ends as soon as a difference is shown.
    fn answer(seed: u64, slowdown: f64, max_pairs: u32) -> Answer {
        let mut noise = noise(seed);
        let mut next = || 1.0 + 0.04 * noise.next().unwrap();
        let mut values = Vec::new();
        for test in TESTS.iter().filter(|test| test.pairs <= max_pairs as usize) {
            while values.len() < test.pairs {
                values.push([2000.0 * next(), 2000.0 * slowdown * next()]);
            }
            let figure = compare(LCP, &values, max_pairs);
            if figure.answer != Answer::NoDifferenceShown {
                return figure.answer;
            }
        }
        Answer::NoDifferenceShown
    }

    #[test]
    fn equal_pages_show_a_difference_in_at_most_two_of_a_hundred_comparisons() {
        for max_pairs in [4, 5, 6, 8, 10] {
            let shown = (1..=2000)
                .filter(|seed| answer(*seed, 1.0, max_pairs) != Answer::NoDifferenceShown);
            let shown = shown.count();
            assert!(shown <= 40, "{shown} of 2000 with {max_pairs} pairs");
        }
    }

    #[test]
    fn a_page_that_is_five_per_cent_slower_is_found() {
        // The values of one page vary by 2.3 per cent (standard deviation).
        let found = (1..=500).filter(|seed| answer(*seed, 1.05, MAX_PAIRS) == Answer::Slower);
        let found = found.count();
        assert!(found >= 450, "{found} of 500");
    }

    #[test]
    fn an_interval_excludes_zero_if_a_difference_is_shown() {
        let mut shown = 0;
        for seed in 0..400 {
            let mut noise = noise(seed);
            let mut next = || 1.0 + 0.04 * noise.next().unwrap();
            let slowdown = 1.0 + 0.05 * (seed % 4) as f64 / 3.0;
            let values: Vec<[f64; 2]> = std::iter::repeat_with(|| [next(), slowdown * next()])
                .map(|pair| pair.map(|value| 2000.0 * value))
                .take(10)
                .collect();
            for pairs in [4, 6, 8, 10] {
                let figure = compare(LCP, &values[..pairs], MAX_PAIRS);
                let excludes_zero = figure.interval.low > 0.0 || figure.interval.high < 0.0;
                let is_shown = figure.answer != Answer::NoDifferenceShown;
                let is_negligible = figure.shift.abs() < LCP.negligible;
                assert_eq!(is_shown, excludes_zero && !is_negligible, "{figure:?}");
                shown += usize::from(is_shown);
            }
        }
        assert!((100..1500).contains(&shown), "{shown}");
    }

    #[test]
    fn a_higher_time_is_slower_and_a_higher_score_faster() {
        let values = [
            [1000.0, 1200.0],
            [1010.0, 1190.0],
            [990.0, 1205.0],
            [1000.0, 1210.0],
        ];
        let slower = compare(LCP, &values, MAX_PAIRS);
        assert_eq!(slower.answer, Answer::Slower);
        assert!((slower.shift - 0.2).abs() < 0.02, "{}", slower.shift);
        assert!(slower.interval.low < slower.shift && slower.shift < slower.interval.high);
        assert_eq!(slower.medians, [1000.0, 1202.5]);
        let values = values.map(|[first, second]| [second, first]);
        assert_eq!(compare(LCP, &values, MAX_PAIRS).answer, Answer::Faster);
        let scores = [[80.0, 90.0], [81.0, 90.0], [80.0, 91.0], [80.0, 90.0]];
        assert_eq!(compare(SCORE, &scores, MAX_PAIRS).answer, Answer::Faster);
    }

    #[test]
    fn a_clear_difference_is_shown_also_if_few_pairs_are_made() {
        // The values of one page vary by 2.3 per cent (standard deviation).
        let found = (1..=500).filter(|seed| answer(*seed, 1.25, MIN_PAIRS) == Answer::Slower);
        let found = found.count();
        assert!(found >= 495, "{found} of 500");
    }

    #[test]
    fn a_figure_without_variation_and_difference_is_equal() {
        let figure = compare(TBT, &[[0.0, 0.0]; 4], MAX_PAIRS);
        assert_eq!(figure.answer, Answer::NoDifferenceShown);
        assert!(figure.is_surely_small);
        let figure = compare(LCP, &[[1000.0, 1000.0]; 4], MAX_PAIRS);
        assert!(figure.is_surely_small);
    }

    #[test]
    fn a_difference_that_does_not_matter_is_not_shown() {
        let figure = compare(LCP, &[[1000.0, 1001.0]; 4], MAX_PAIRS);
        assert_eq!(figure.answer, Answer::NoDifferenceShown);
        let figure = compare(LCP, &[[1000.0, 1050.0]; 4], MAX_PAIRS);
        assert_eq!(figure.answer, Answer::Slower);
    }

    #[test]
    fn the_pages_take_turns_in_being_first() {
        let order: Vec<bool> = (0..4).map(is_second_first).collect();
        assert_eq!(order, [false, true, false, true]);
        assert_eq!(
            TESTS.map(|test| test.pairs),
            [MIN_PAIRS as usize, 6, 8, MAX_PAIRS as usize]
        );
    }
}
