//! The progress of a running audit, as its agent reports it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The assumed duration of a run until one was seen. The audits of the repeatability benchmark in
/// `docs/benchmarks.md` took 31 s on average.
pub const ASSUMED_RUN: Duration = Duration::from_secs(30);

/// The position of a visit within its audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisitNumber {
    /// The run, from 1.
    pub run: u32,
    /// The visit within the run, from 1.
    pub number: u32,
    /// The maximum number of visits of a run.
    pub max: u32,
    pub reason: VisitReason,
}

impl VisitNumber {
    /// Describes the visit within an audit of so many runs, or within a comparison of at most so
    /// many pairs.
    pub fn text(&self, runs: u32, is_comparison: bool) -> String {
        let Self {
            run, number, max, ..
        } = self;
        let place = match (is_comparison, runs > 1, *max > 1) {
            (true, _, _) => format!("Pair {run} of at most {runs}"),
            (false, true, true) => format!("Run {run} of {runs}, visit {number} of at most {max}"),
            (false, true, false) => format!("Run {run} of {runs}"),
            (false, false, true) => format!("Visit {number} of at most {max}"),
            (false, false, false) => format!("Visit {number} of {max}"),
        };
        place + self.reason.suffix()
    }
}

/// The reason why a page is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VisitReason {
    /// The page was not visited before in this run.
    First,
    /// The machine was busy during all visits so far.
    Disturbed,
    /// The score is uncertain.
    Uncertain,
}

impl VisitReason {
    /// Returns what follows the number of a visit.
    fn suffix(self) -> &'static str {
        match self {
            Self::First => "",
            Self::Disturbed => ": the machine was busy before",
            Self::Uncertain => ": confirming the score",
        }
    }
}

/// Describes how long an audit has taken so far, and how much longer it will probably take.
pub fn times_text(elapsed_seconds: u64, remaining_seconds: Option<u64>) -> String {
    let elapsed = duration_text(elapsed_seconds);
    match remaining_seconds {
        Some(seconds) => format!("{elapsed} so far, about {} left", estimate_text(seconds)),
        None => format!("{elapsed} so far"),
    }
}

/// Returns an estimated duration, which is not more precise than the estimate.
fn estimate_text(seconds: u64) -> String {
    match seconds.next_multiple_of(5) {
        rounded @ 0..60 => format!("{rounded} s"),
        _ => format!("{} min", (seconds + 30) / 60),
    }
}

fn duration_text(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes @ 1..10, seconds) => format!("{minutes} min {seconds} s"),
        (minutes, _) => format!("{minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_rounded() {
        for (seconds, text) in [
            (1, "5 s"),
            (15, "15 s"),
            (52, "55 s"),
            (56, "1 min"),
            (89, "1 min"),
            (119, "2 min"),
            (151, "3 min"),
        ] {
            assert_eq!(estimate_text(seconds), text);
        }
        assert_eq!(times_text(5, Some(14)), "5 s so far, about 15 s left");
        assert_eq!(times_text(75, None), "1 min 15 s so far");
    }

    #[test]
    fn durations_are_seconds_then_minutes() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (3_599, "59 min"),
        ] {
            assert_eq!(duration_text(seconds), text);
        }
    }

    #[test]
    fn a_visit_is_described_by_run_or_pair_and_by_its_reason() {
        use VisitReason::{Disturbed, First, Uncertain};
        for (run, number, max, reason, runs, is_comparison, text) in [
            (1, 1, 3, First, 1, false, "Visit 1 of at most 3"),
            (
                1,
                2,
                3,
                Uncertain,
                1,
                false,
                "Visit 2 of at most 3: confirming the score",
            ),
            (
                2,
                2,
                3,
                Disturbed,
                5,
                false,
                "Run 2 of 5, visit 2 of at most 3: the machine was busy before",
            ),
            (1, 1, 1, First, 1, false, "Visit 1 of 1"),
            (2, 1, 1, First, 3, false, "Run 2 of 3"),
            (3, 1, 1, First, 10, true, "Pair 3 of at most 10"),
        ] {
            let visit = VisitNumber {
                run,
                number,
                max,
                reason,
            };
            assert_eq!(visit.text(runs, is_comparison), text);
        }
    }
}
