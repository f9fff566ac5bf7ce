//! Decides whether an audit needs another visit, and which of its visits is reported.

use std::time::Duration;

use plumbline_model::report::{CpuConditions, CpuEmulationMethod, Report};
use plumbline_seam::VisitReason;

/// Default for the maximum number of visits of one audit. A page is visited again when the host was
/// busy or when the score is uncertain.
pub const MAX_VISITS: usize = 3;
/// Uncertainty of a score, in points, up to which one visit is enough.
const MAX_DOUBT: f64 = 0.6;
/// The difference in points up to which two scores confirm each other.
const MAX_DIFFERENCE: u8 = 1;
/// Time after which no further visit is made to confirm a score.
const MAX_CONFIRMATION_TIME: Duration = Duration::from_secs(15);

/// Fraction by which a core may be slower than at calibration, averaged over the load, if Chromium
/// throttles the page. The page is then as much slower than on the device.
const MAX_SLOWNESS: f64 = 0.15;
/// Fraction of the load that the main thread may wait for a core. Beyond it, more than the tasks of
/// the main thread is late: network and compositor wait as well.
const MAX_CONTENTION: f64 = 0.10;
/// Fraction of the main thread's runnable time that it may wait for a core, if a page clock
/// compensates for it. A wait is noticed only afterwards, so the clock cannot compensate for any
/// amount. Alone on two cores, threads of one browser take up to 0.4 from each other.
const MAX_SHARE_WITH_CLOCK: f64 = 0.7;
/// Uncertainty of a score, in points, up to which a page clock's errors do not matter: it is the
/// effect of 5 % more work, so a page that seems to do half as much again loses a point at most.
const INSENSITIVE_DOUBT: f64 = 0.1;
/// Waiting time that does not change any score. Chromium's own processes share the cores of a small
/// machine.
const NEGLIGIBLE_WAIT_MS: f64 = 60.0;

/// Decides when a page is visited again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatPolicy {
    /// Repeat only visits that the host disturbed, because the run will be compared with others.
    IfDisturbed,
    /// Repeat while the score is uncertain.
    UntilCertain,
}

/// The properties of a visit that decide whether it is repeated or reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Visit {
    measured: bool,
    /// How much the host disturbed the visit, relative to the acceptable disturbance; up to 1 is
    /// fine.
    disturbance: f64,
    score: Option<u8>,
    doubt: f64,
}

impl Visit {
    pub(crate) fn new(report: &Report) -> Self {
        Self {
            measured: report.error.is_none(),
            disturbance: disturbance(&report.conditions.cpu),
            score: report.scores.performance,
            doubt: report.conditions.cpu.score_uncertainty.unwrap_or(0.0),
        }
    }

    pub(crate) fn is_undisturbed(&self) -> bool {
        self.disturbance <= 1.0
    }

    pub(crate) fn is_reportable(&self) -> bool {
        self.measured && self.is_undisturbed()
    }

    fn is_certain(&self) -> bool {
        self.score.is_none() || self.doubt <= MAX_DOUBT
    }
}

/// Whether the audit can end with these visits, which took `elapsed` in total.
pub(crate) fn are_enough(
    visits: &[Visit],
    policy: RepeatPolicy,
    max_visits: usize,
    elapsed: Duration,
) -> bool {
    if visits.len() >= max_visits {
        return true;
    }
    // Another visit does not help a page that cannot be measured, unless it was measured before.
    if visits.iter().all(|visit| !visit.measured) {
        return !visits.is_empty();
    }
    let reportable = reportable(visits);
    if reportable.is_empty() {
        return false;
    }
    let one_more = elapsed / u32::try_from(visits.len()).unwrap_or(u32::MAX);
    policy == RepeatPolicy::IfDisturbed
        || reportable.iter().any(|(_, visit)| visit.is_certain())
        || is_confirmed(&reportable)
        || elapsed + one_more > MAX_CONFIRMATION_TIME
}

/// Returns the reason for another visit after these, which are not enough.
pub(crate) fn reason_for_next(visits: &[Visit]) -> VisitReason {
    if visits.is_empty() {
        VisitReason::First
    } else if reportable(visits).is_empty() {
        VisitReason::Disturbed
    } else {
        VisitReason::Uncertain
    }
}

/// Returns the index of the visit to report: a certain one, else the median; if all were disturbed,
/// the least disturbed.
pub(crate) fn choose(visits: &[Visit]) -> Option<usize> {
    let mut reportable = reportable(visits);
    if let Some((index, _)) = reportable.iter().find(|(_, visit)| visit.is_certain()) {
        return Some(*index);
    }
    reportable.sort_by(|(_, a), (_, b)| a.score.cmp(&b.score).then(a.doubt.total_cmp(&b.doubt)));
    match reportable.as_slice() {
        [] => {
            let measured = (0..visits.len()).filter(|index| visits[*index].measured);
            let disturbance = |index: &usize| visits[*index].disturbance;
            let least = measured.min_by(|a, b| disturbance(a).total_cmp(&disturbance(b)));
            least.or(visits.len().checked_sub(1))
        }
        [(a, first), (b, second)] => Some(if first.doubt <= second.doubt { *a } else { *b }),
        more => Some(more[more.len() / 2].0),
    }
}

/// Whether a visit shows how much the reported one may vary: it was measured, and it was disturbed
/// only if the reported one was, too.
pub(crate) fn are_comparable(visit: &Visit, reported: &Visit) -> bool {
    visit.is_reportable() || visit.measured && !reported.is_undisturbed()
}

/// Returns the measured and undisturbed visits with their indices.
fn reportable(visits: &[Visit]) -> Vec<(usize, Visit)> {
    let all = visits.iter().copied().enumerate();
    all.filter(|(_, visit)| visit.is_reportable()).collect()
}

/// Whether two visits have scores that differ by [`MAX_DIFFERENCE`] at most.
fn is_confirmed(visits: &[(usize, Visit)]) -> bool {
    let mut scores: Vec<u8> = visits.iter().filter_map(|(_, visit)| visit.score).collect();
    scores.sort_unstable();
    let mut pairs = scores.windows(2);
    pairs.any(|pair| pair[1] - pair[0] <= MAX_DIFFERENCE)
}

fn disturbance(cpu: &CpuConditions) -> f64 {
    if cpu.emulation == Some(CpuEmulationMethod::Clock) {
        if cpu
            .score_uncertainty
            .is_some_and(|doubt| doubt <= INSENSITIVE_DOUBT)
        {
            return 0.0;
        }
        let share = cpu.contention.map_or(0.0, |contention| contention.share);
        return share / MAX_SHARE_WITH_CLOCK;
    }
    // A page that is not throttled runs at the speed of the host, whatever that is.
    let slowness = match (cpu.host_index, cpu.nominal_index) {
        (Some(host), Some(nominal)) if cpu.rate > 1.0 => 1.0 - host / nominal,
        _ => 0.0,
    };
    let contention = match cpu.contention {
        Some(contention) if contention.until_ms > 0.0 => {
            (contention.waited_ms - NEGLIGIBLE_WAIT_MS).max(0.0) / contention.until_ms
        }
        _ => 0.0,
    };
    (slowness / MAX_SLOWNESS).max(contention / MAX_CONTENTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(4);

    fn doubtful(score: u8) -> Visit {
        Visit {
            measured: true,
            disturbance: 0.2,
            score: Some(score),
            doubt: 1.5,
        }
    }

    fn certain(score: u8) -> Visit {
        Visit {
            doubt: 0.3,
            ..doubtful(score)
        }
    }

    fn disturbed(score: u8, disturbance: f64) -> Visit {
        Visit {
            disturbance,
            ..certain(score)
        }
    }

    fn failed() -> Visit {
        Visit {
            measured: false,
            disturbance: 0.0,
            score: None,
            doubt: 0.0,
        }
    }

    #[track_caller]
    fn needs_another(visits: &[Visit]) {
        assert!(
            !are_enough(visits, RepeatPolicy::UntilCertain, MAX_VISITS, SHORT),
            "{visits:?}"
        );
    }

    #[track_caller]
    fn ends_with(visits: &[Visit], index: usize) {
        assert!(
            are_enough(visits, RepeatPolicy::UntilCertain, MAX_VISITS, SHORT),
            "{visits:?}"
        );
        assert_eq!(choose(visits), Some(index), "{visits:?}");
    }

    #[test]
    fn a_page_is_visited_again_because_of_the_host_or_of_the_score() {
        assert_eq!(reason_for_next(&[]), VisitReason::First);
        let busy = disturbed(80, 2.0);
        assert_eq!(reason_for_next(&[busy, busy]), VisitReason::Disturbed);
        let visits = [busy, doubtful(80)];
        assert_eq!(reason_for_next(&visits), VisitReason::Uncertain);
    }

    #[test]
    fn a_slow_core_disturbs_a_page_that_chromium_throttles() {
        let on_core_with_index = |host_index, emulation, rate| {
            disturbance(&CpuConditions {
                emulation: Some(emulation),
                rate,
                device_index: Some(500),
                nominal_index: Some(2000.0),
                host_index: Some(host_index),
                ..CpuConditions::default()
            })
        };
        let by_chromium = CpuEmulationMethod::Chromium;
        assert!(on_core_with_index(1600.0, by_chromium, 4.0) > 1.0);
        assert!(on_core_with_index(1800.0, by_chromium, 4.0) < 1.0);
        // A page that is not throttled has the speed of the host, and a clock follows the core.
        assert_eq!(on_core_with_index(1600.0, by_chromium, 1.0), 0.0);
        assert_eq!(
            on_core_with_index(1600.0, CpuEmulationMethod::Clock, 4.0),
            0.0
        );
    }

    #[test]
    fn a_certain_visit_is_enough() {
        ends_with(&[certain(80)], 0);
        ends_with(&[doubtful(80), certain(84)], 1);
        let unscored = Visit {
            score: None,
            ..doubtful(0)
        };
        ends_with(&[unscored], 0);
    }

    #[test]
    fn two_visits_within_a_point_confirm_each_other_and_the_more_certain_is_reported() {
        needs_another(&[doubtful(80)]);
        needs_another(&[doubtful(80), doubtful(82)]);
        needs_another(&[doubtful(82), doubtful(80)]);
        let more_certain = |score| Visit {
            doubt: 1.0,
            ..doubtful(score)
        };
        ends_with(&[doubtful(80), more_certain(80)], 1);
        ends_with(&[more_certain(80), doubtful(80)], 0);
        ends_with(&[doubtful(81), more_certain(80)], 1);
    }

    #[test]
    fn the_median_of_three_different_scores_is_reported() {
        ends_with(&[doubtful(80), doubtful(84), doubtful(82)], 2);
        ends_with(&[doubtful(82), doubtful(80), doubtful(84)], 0);
    }

    #[test]
    fn a_disturbed_visit_is_repeated_and_not_reported_if_there_is_an_undisturbed_one() {
        needs_another(&[disturbed(80, 1.4)]);
        ends_with(&[disturbed(80, 1.4), certain(85)], 1);
        ends_with(&[disturbed(80, 1.4), doubtful(85), doubtful(85)], 1);
        ends_with(
            &[disturbed(80, 3.0), disturbed(70, 1.4), disturbed(60, 2.0)],
            1,
        );
    }

    #[test]
    fn a_disturbed_visit_says_nothing_about_an_undisturbed_one() {
        let busy = disturbed(80, 1.4);
        assert!(are_comparable(&certain(80), &certain(81)));
        assert!(!are_comparable(&busy, &certain(81)));
        assert!(are_comparable(&busy, &disturbed(70, 1.2)));
        assert!(!are_comparable(&failed(), &busy));
    }

    #[test]
    fn a_page_that_cannot_be_measured_is_not_visited_again() {
        ends_with(&[failed()], 0);
        needs_another(&[doubtful(80), failed()]);
        ends_with(&[doubtful(80), failed(), doubtful(84)], 0);
        ends_with(&[disturbed(80, 2.0), failed(), failed()], 0);
    }

    #[test]
    fn the_number_of_visits_and_their_time_are_limited() {
        let slow = Duration::from_secs(8);
        assert!(are_enough(
            &[doubtful(80)],
            RepeatPolicy::UntilCertain,
            MAX_VISITS,
            slow
        ));
        assert!(!are_enough(
            &[disturbed(80, 2.0)],
            RepeatPolicy::UntilCertain,
            MAX_VISITS,
            slow
        ));
        assert_eq!(choose(&[doubtful(80)]), Some(0));
        assert!(are_enough(
            &[disturbed(80, 2.0)],
            RepeatPolicy::UntilCertain,
            1,
            SHORT
        ));
        assert!(!are_enough(
            &[],
            RepeatPolicy::UntilCertain,
            MAX_VISITS,
            Duration::ZERO
        ));
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn one_undisturbed_visit_is_enough_for_one_of_many_runs() {
        assert!(are_enough(
            &[doubtful(80)],
            RepeatPolicy::IfDisturbed,
            MAX_VISITS,
            SHORT
        ));
        assert!(!are_enough(
            &[disturbed(80, 2.0)],
            RepeatPolicy::IfDisturbed,
            MAX_VISITS,
            SHORT
        ));
    }
}
