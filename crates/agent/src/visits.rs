//! The visits of one audit: whether another is needed, and which of them stands for all.

use std::collections::HashSet;
use std::time::Duration;

use plumbline_engine::report::Report;

/// A page is visited again on a busy host, and where one visit leaves doubt about the score, but not for ever.
pub const MOST_VISITS: usize = 3;
/// By how many points one visit may be off and still stand alone.
const DOUBT_ALLOWED: f64 = 0.6;
/// Nobody waits longer than this for a score to be confirmed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A core that was this much slower than the device needs it, on the average of the load, could not
/// be held to the device's speed.
const SLOWNESS_ALLOWED: f64 = 0.15;
/// The part of the load in which the main thread stood without a core, beyond which more than its
/// tasks are late: what others do for the page (network, compositor) waits as well.
const CONTENTION_ALLOWED: f64 = 0.10;
/// Waiting that no score would show. Chromium's own processes take turns on a small machine.
const WAIT_UNSEEN_MS: f64 = 60.0;

/// How sure a score is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// As the first visit has it that the host did not spoil: others will be held beside it.
    Once,
    /// Visited again while there is doubt.
    Sure,
}

/// What counts of one visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seen {
    measured: bool,
    /// By how many times the visit exceeds what a host may disturb it; up to 1 is fine.
    spoiled: f64,
    score: Option<u8>,
    doubt: f64,
}

impl Seen {
    pub(crate) fn of(report: &Report) -> Self {
        Self {
            measured: report.error.is_none(),
            spoiled: spoiled_by(report),
            score: report.scores.performance,
            doubt: report.conditions.cpu.score_uncertainty.unwrap_or(0.0),
        }
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.spoiled <= 1.0
    }

    pub(crate) fn can_be_shown(&self) -> bool {
        self.measured && self.is_calm()
    }

    fn is_certain(&self) -> bool {
        self.score.is_none() || self.doubt <= DOUBT_ALLOWED
    }
}

/// Whether the audit can end with these visits, of at most so many, which took so long.
pub(crate) fn are_enough(visits: &[Seen], care: Care, most: usize, took: Duration) -> bool {
    if visits.len() >= most {
        return true;
    }
    // A page that cannot be measured is no better for another visit, unless it could be before.
    if visits.iter().all(|visit| !visit.measured) {
        return !visits.is_empty();
    }
    let calm = calm(visits);
    if calm.is_empty() {
        return false;
    }
    let one_more = took / u32::try_from(visits.len()).unwrap_or(u32::MAX);
    care == Care::Once
        || calm.iter().any(|(_, visit)| visit.is_certain())
        || confirmed(&calm)
        || took + one_more > PATIENCE
}

/// The visit that is the report: a certain one, else that in the middle; where none was calm, the calmest.
pub(crate) fn chosen(visits: &[Seen]) -> Option<usize> {
    let mut calm = calm(visits);
    if let Some((which, _)) = calm.iter().find(|(_, visit)| visit.is_certain()) {
        return Some(*which);
    }
    calm.sort_by(|(_, a), (_, b)| a.score.cmp(&b.score).then(a.doubt.total_cmp(&b.doubt)));
    match calm.as_slice() {
        [] => {
            let measured = (0..visits.len()).filter(|which| visits[*which].measured);
            let spoiled = |which: &usize| visits[*which].spoiled;
            let calmest = measured.min_by(|a, b| spoiled(a).total_cmp(&spoiled(b)));
            calmest.or(visits.len().checked_sub(1))
        }
        [(a, first), (b, second)] => Some(if first.doubt <= second.doubt { *a } else { *b }),
        more => Some(more[more.len() / 2].0),
    }
}

/// Those that were measured undisturbed, with their places.
fn calm(visits: &[Seen]) -> Vec<(usize, Seen)> {
    let all = visits.iter().copied().enumerate();
    all.filter(|(_, visit)| visit.can_be_shown()).collect()
}

/// Two of them have the same score.
fn confirmed(calm: &[(usize, Seen)]) -> bool {
    let mut scores = HashSet::new();
    !calm.iter().all(|(_, visit)| scores.insert(visit.score))
}

fn spoiled_by(report: &Report) -> f64 {
    let cpu = &report.conditions.cpu;
    // A page that is not throttled runs as fast as the host does, whatever that is.
    let slowness = match (cpu.host_index, cpu.device_index) {
        (Some(host), Some(device)) if cpu.rate > 1.0 => 1.0 - host / f64::from(device),
        _ => 0.0,
    };
    let lost = match cpu.contention {
        Some(contention) if contention.until_ms > 0.0 => {
            (contention.waited_ms - WAIT_UNSEEN_MS).max(0.0) / contention.until_ms
        }
        _ => 0.0,
    };
    (slowness / SLOWNESS_ALLOWED).max(lost / CONTENTION_ALLOWED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn doubtful(score: u8) -> Seen {
        Seen {
            measured: true,
            spoiled: 0.2,
            score: Some(score),
            doubt: 1.5,
        }
    }

    fn certain(score: u8) -> Seen {
        Seen {
            doubt: 0.3,
            ..doubtful(score)
        }
    }

    fn spoiled(score: u8, spoiled: f64) -> Seen {
        Seen {
            spoiled,
            ..certain(score)
        }
    }

    fn failed() -> Seen {
        Seen {
            measured: false,
            spoiled: 0.0,
            score: None,
            doubt: 0.0,
        }
    }

    #[track_caller]
    fn goes_on(visits: &[Seen]) {
        assert!(
            !are_enough(visits, Care::Sure, MOST_VISITS, SOON),
            "{visits:?}"
        );
    }

    #[track_caller]
    fn ends(visits: &[Seen], with: usize) {
        assert!(
            are_enough(visits, Care::Sure, MOST_VISITS, SOON),
            "{visits:?}"
        );
        assert_eq!(chosen(visits), Some(with), "{visits:?}");
    }

    #[test]
    fn a_certain_visit_is_enough() {
        ends(&[certain(80)], 0);
        ends(&[doubtful(80), certain(84)], 1);
        let unscored = Seen {
            score: None,
            ..doubtful(0)
        };
        ends(&[unscored], 0);
    }

    #[test]
    fn two_of_one_score_confirm_each_other_and_the_surer_is_shown() {
        goes_on(&[doubtful(80)]);
        goes_on(&[doubtful(80), doubtful(81)]);
        let surer = |score| Seen {
            doubt: 1.0,
            ..doubtful(score)
        };
        ends(&[doubtful(80), surer(80)], 1);
        ends(&[surer(80), doubtful(80)], 0);
    }

    #[test]
    fn of_three_that_differ_the_middle_one_is_shown() {
        ends(&[doubtful(80), doubtful(84), doubtful(82)], 2);
        ends(&[doubtful(82), doubtful(80), doubtful(84)], 0);
    }

    #[test]
    fn a_spoiled_visit_is_repeated_and_never_shown_beside_a_calm_one() {
        goes_on(&[spoiled(80, 1.4)]);
        ends(&[spoiled(80, 1.4), certain(85)], 1);
        ends(&[spoiled(80, 1.4), doubtful(85), doubtful(85)], 1);
        ends(&[spoiled(80, 3.0), spoiled(70, 1.4), spoiled(60, 2.0)], 1);
    }

    #[test]
    fn a_page_that_cannot_be_measured_is_not_visited_again() {
        ends(&[failed()], 0);
        goes_on(&[doubtful(80), failed()]);
        ends(&[doubtful(80), failed(), doubtful(84)], 0);
        ends(&[spoiled(80, 2.0), failed(), failed()], 0);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let slow = Duration::from_secs(35);
        assert!(are_enough(&[doubtful(80)], Care::Sure, MOST_VISITS, slow));
        assert!(!are_enough(
            &[spoiled(80, 2.0)],
            Care::Sure,
            MOST_VISITS,
            slow
        ));
        assert_eq!(chosen(&[doubtful(80)]), Some(0));
        assert!(are_enough(&[spoiled(80, 2.0)], Care::Sure, 1, SOON));
        assert!(!are_enough(&[], Care::Sure, MOST_VISITS, Duration::ZERO));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn one_calm_visit_of_many_runs_is_enough() {
        assert!(are_enough(&[doubtful(80)], Care::Once, MOST_VISITS, SOON));
        assert!(!are_enough(
            &[spoiled(80, 2.0)],
            Care::Once,
            MOST_VISITS,
            SOON
        ));
    }
}
