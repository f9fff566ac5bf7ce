//! When the next request may leave. Pure: the time in, a decision out.
//!
//! One [`Pace`] is shared by everybody who asks. It holds the quota, what the API told us to wait, a
//! growing wait after failures, and a circuit that opens when they go on.

use std::collections::VecDeque;
use std::time::Duration;

use plumbline_engine::field::FieldReason;
use tokio::time::Instant;

/// Requests in any window of a minute, both kinds together (developer.chrome.com/docs/crux/api, on
/// quota: 150 a minute and project).
pub(crate) const QUOTA: usize = 150;
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

const FIRST_WAIT: Duration = Duration::from_secs(1);
/// For others to have left something of the quota.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// An answer that tells us to stay away for longer is not believed for longer.
const LONGEST_TOLD: Duration = Duration::from_secs(60 * 60);
/// In a row; then the circuit opens.
const FAILURES: u32 = 5;
const FIRST_OPEN: Duration = Duration::from_secs(30);
const LONGEST_OPEN: Duration = Duration::from_secs(10 * 60);
/// How long one request that tries an open circuit keeps others from trying, too.
const PROBE: Duration = Duration::from_secs(15);

/// What somebody who wants to send is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Go,
    Wait(Instant, FieldReason),
    /// Not now: it would fail.
    Closed(FieldReason),
}

#[derive(Default)]
pub(crate) struct Pace {
    /// When the requests of the last minute left.
    sent: VecDeque<Instant>,
    not_before: Option<(Instant, FieldReason)>,
    failures: u32,
    open_until: Option<(Instant, FieldReason)>,
}

impl Pace {
    /// Whether a request may leave now; one that may counts as sent.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        if let Some((until, reason)) = self.open_until
            && now < until
        {
            return Turn::Closed(reason);
        }
        if let Some((until, reason)) = self.not_before
            && now < until
        {
            return Turn::Wait(until, reason);
        }
        while self.sent.front().is_some_and(|sent| *sent + WINDOW <= now) {
            self.sent.pop_front();
        }
        if let Some(oldest) = self.sent.front()
            && self.sent.len() >= QUOTA
        {
            return Turn::Wait(*oldest + WINDOW, FieldReason::Quota);
        }
        if let Some((until, _)) = &mut self.open_until {
            *until = now + PROBE;
        }
        self.sent.push_back(now);
        Turn::Go
    }

    /// The one that was told to go did not leave: others have used up the quota for now.
    pub(crate) fn held_back(&mut self, now: Instant, wait: Duration) -> Turn {
        self.sent.pop_back();
        let until = now + wait.clamp(SHORTEST_WAIT, LONGEST_WAIT);
        self.not_before = Some((until, FieldReason::Quota));
        Turn::Wait(until, FieldReason::Quota)
    }

    /// The API answered as it should, if only that it has nothing. What it told somebody else to wait stands.
    pub(crate) fn answered(&mut self) {
        self.failures = 0;
        self.open_until = None;
    }

    /// The API had a fault, said nonsense, or was not there.
    pub(crate) fn failed(&mut self, now: Instant, reason: FieldReason, told: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        self.wait(now, reason, told);
        if let Some(beyond) = self.failures.checked_sub(FAILURES) {
            let open = doubled(FIRST_OPEN, beyond, LONGEST_OPEN);
            self.open_until = Some((now + open, reason));
        }
    }

    /// The API said that we ask too much. It is there: the circuit stays closed.
    pub(crate) fn too_many(&mut self, now: Instant, told: Option<Duration>) {
        self.failures = self.failures.saturating_add(1).min(FAILURES - 1);
        self.open_until = None;
        self.wait(now, FieldReason::Quota, told);
    }

    /// The key is not accepted, and will not be in a second.
    pub(crate) fn refused(&mut self, now: Instant) {
        self.open_until = Some((now + LONGEST_OPEN, FieldReason::KeyRefused));
    }

    fn wait(&mut self, now: Instant, reason: FieldReason, told: Option<Duration>) {
        let own = doubled(FIRST_WAIT, self.failures.saturating_sub(1), LONGEST_WAIT);
        let wait = told.map_or(own, |told| told.min(LONGEST_TOLD).max(FIRST_WAIT));
        let until = now + wait;
        if self.not_before.is_none_or(|(before, _)| before < until) {
            self.not_before = Some((until, reason));
        }
    }
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(times))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_quota_is_a_sliding_window() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for _ in 0..QUOTA {
            assert_eq!(pace.turn(start), Turn::Go);
        }
        let later = start + seconds(59);
        let free_at = start + WINDOW;
        assert_eq!(pace.turn(later), Turn::Wait(free_at, FieldReason::Quota));
        assert_eq!(pace.turn(free_at), Turn::Go);
    }

    #[test]
    fn what_the_api_tells_us_to_wait_is_waited_by_everybody() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        pace.too_many(start, Some(seconds(17)));
        let until = start + seconds(17);
        assert_eq!(pace.turn(start), Turn::Wait(until, FieldReason::Quota));
        assert_eq!(pace.turn(until), Turn::Go);
    }

    #[test]
    fn what_is_held_back_for_others_sake_has_not_left() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for _ in 1..QUOTA {
            assert_eq!(pace.turn(start), Turn::Go);
        }
        assert_eq!(pace.turn(start), Turn::Go);
        let until = start + seconds(2);
        let wait = Turn::Wait(until, FieldReason::Quota);
        assert_eq!(pace.held_back(start, seconds(2)), wait);
        assert_eq!(pace.turn(start), wait);
        assert_eq!(pace.turn(until), Turn::Go);
        let full = Turn::Wait(start + WINDOW, FieldReason::Quota);
        assert_eq!(pace.turn(until), full);
    }

    #[test]
    fn waits_double_and_an_answer_ends_them() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        for expected in [1, 2, 4, 8, 8, 8] {
            pace.too_many(now, None);
            let until = now + seconds(expected);
            assert_eq!(pace.turn(now), Turn::Wait(until, FieldReason::Quota));
            now = until;
        }
        pace.answered();
        pace.too_many(now, None);
        assert_eq!(
            pace.turn(now),
            Turn::Wait(now + seconds(1), FieldReason::Quota)
        );
    }

    #[test]
    fn a_longer_wait_is_not_cut_short_by_a_later_failure() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.too_many(now, Some(seconds(100)));
        pace.failed(now, FieldReason::Unavailable, None);
        let until = now + seconds(100);
        assert_eq!(pace.turn(now), Turn::Wait(until, FieldReason::Quota));
    }

    #[test]
    fn after_five_failures_in_a_row_nobody_asks_for_a_while_and_then_one_tries() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for _ in 0..FAILURES {
            pace.failed(now, FieldReason::Unavailable, None);
        }
        let closed = Turn::Closed(FieldReason::Unavailable);
        assert_eq!(pace.turn(now + seconds(29)), closed);
        let later = now + seconds(31);
        assert_eq!(pace.turn(later), Turn::Go);
        assert_eq!(pace.turn(later), closed, "one tries, the others do not");
        pace.answered();
        assert_eq!(pace.turn(later), Turn::Go);
    }

    #[test]
    fn a_circuit_that_stays_open_is_tried_less_and_less_often() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for _ in 0..40 {
            pace.failed(now, FieldReason::Unavailable, None);
        }
        let closed = Turn::Closed(FieldReason::Unavailable);
        assert_eq!(pace.turn(now + LONGEST_OPEN - seconds(1)), closed);
        assert_eq!(pace.turn(now + LONGEST_OPEN), Turn::Go);
    }

    #[test]
    fn a_refused_key_is_not_tried_at_once_again() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.refused(now);
        let closed = Turn::Closed(FieldReason::KeyRefused);
        assert_eq!(pace.turn(now + seconds(599)), closed);
        assert_eq!(pace.turn(now + seconds(600)), Turn::Go);
    }

    proptest! {
        #[test]
        fn no_minute_has_more_requests_than_the_quota(
            steps in prop::collection::vec((0_u64..2_000, 0_u8..20), 0..2_000),
        ) {
            let (mut pace, mut now) = (Pace::default(), Instant::now());
            let mut sent = VecDeque::new();
            for (ms, what) in steps {
                now += Duration::from_millis(ms);
                match what {
                    0 => pace.too_many(now, None),
                    1 => pace.failed(now, FieldReason::Unavailable, None),
                    2 | 3 => pace.answered(),
                    _ => if pace.turn(now) == Turn::Go {
                        sent.push_back(now);
                    },
                }
                while sent.front().is_some_and(|at| *at + WINDOW <= now) {
                    sent.pop_front();
                }
                prop_assert!(sent.len() <= QUOTA);
            }
        }
    }
}
