//! Decides when the next request may be sent. Pure: the time in, a decision out.
//!
//! One [`RateLimiter`] is shared by all queries. It enforces the quota, waits requested by the API,
//! an exponential backoff after failures, and a circuit breaker that opens when they continue.

use std::collections::VecDeque;
use std::time::Duration;

use plumbline_model::field::FieldReason;
use tokio::time::Instant;

/// Maximum number of requests in any window of a minute, both kinds together
/// (developer.chrome.com/docs/crux/api, on quota: 150 a minute and project).
pub(crate) const QUOTA: usize = 150;
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Minimum wait for the shared quota.
const MIN_QUOTA_WAIT: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Maximum wait that is accepted from a `Retry-After` header.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// Number of consecutive failures that opens the circuit.
const MAX_FAILURES: u32 = 5;
const MIN_OPEN: Duration = Duration::from_secs(30);
const MAX_OPEN: Duration = Duration::from_secs(10 * 60);
/// Time that one request has to test an open circuit before another may.
const PROBE_TIME: Duration = Duration::from_secs(15);

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Granted,
    Wait(Instant, FieldReason),
    /// The request would fail and must not be sent.
    Refused(FieldReason),
}

#[derive(Default)]
pub(crate) struct RateLimiter {
    /// Times of the requests of the last minute.
    sent: VecDeque<Instant>,
    not_before: Option<(Instant, FieldReason)>,
    failures: u32,
    open_until: Option<(Instant, FieldReason)>,
}

impl RateLimiter {
    /// Decides whether a request may be sent now; if so, counts it.
    pub(crate) fn admit(&mut self, now: Instant) -> Admission {
        if let Some((until, reason)) = self.open_until
            && now < until
        {
            return Admission::Refused(reason);
        }
        if let Some((until, reason)) = self.not_before
            && now < until
        {
            return Admission::Wait(until, reason);
        }
        while self.sent.front().is_some_and(|sent| *sent + WINDOW <= now) {
            self.sent.pop_front();
        }
        if let Some(oldest) = self.sent.front()
            && self.sent.len() >= QUOTA
        {
            return Admission::Wait(*oldest + WINDOW, FieldReason::Quota);
        }
        if let Some((until, _)) = &mut self.open_until {
            *until = now + PROBE_TIME;
        }
        self.sent.push_back(now);
        Admission::Granted
    }

    /// Takes back a granted request because others have used up the shared quota.
    pub(crate) fn withdraw(&mut self, now: Instant, wait: Duration) -> Admission {
        self.sent.pop_back();
        let until = now + wait.clamp(MIN_QUOTA_WAIT, MAX_BACKOFF);
        self.not_before = Some((until, FieldReason::Quota));
        Admission::Wait(until, FieldReason::Quota)
    }

    /// Records a valid response, including "not found". Waits requested in other responses still
    /// apply.
    pub(crate) fn record_success(&mut self) {
        self.failures = 0;
        self.open_until = None;
    }

    /// Records a server error, an invalid response or an unreachable server.
    pub(crate) fn record_failure(
        &mut self,
        now: Instant,
        reason: FieldReason,
        retry_after: Option<Duration>,
    ) {
        self.failures = self.failures.saturating_add(1);
        self.back_off(now, reason, retry_after);
        if let Some(beyond) = self.failures.checked_sub(MAX_FAILURES) {
            let open = doubled(MIN_OPEN, beyond, MAX_OPEN);
            self.open_until = Some((now + open, reason));
        }
    }

    /// Records a rate limit response. The API is available, so that the circuit stays closed.
    pub(crate) fn record_rate_limit(&mut self, now: Instant, retry_after: Option<Duration>) {
        self.failures = self.failures.saturating_add(1).min(MAX_FAILURES - 1);
        self.open_until = None;
        self.back_off(now, FieldReason::Quota, retry_after);
    }

    /// Records a rejected key, which opens the circuit for the maximum time.
    pub(crate) fn record_rejected_key(&mut self, now: Instant) {
        self.open_until = Some((now + MAX_OPEN, FieldReason::KeyRefused));
    }

    fn back_off(&mut self, now: Instant, reason: FieldReason, retry_after: Option<Duration>) {
        let backoff = doubled(MIN_BACKOFF, self.failures.saturating_sub(1), MAX_BACKOFF);
        let wait = retry_after.map_or(backoff, |retry_after| {
            retry_after.min(MAX_RETRY_AFTER).max(MIN_BACKOFF)
        });
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
        let (mut rate_limiter, start) = (RateLimiter::default(), Instant::now());
        for _ in 0..QUOTA {
            assert_eq!(rate_limiter.admit(start), Admission::Granted);
        }
        let later = start + seconds(59);
        let free_at = start + WINDOW;
        assert_eq!(
            rate_limiter.admit(later),
            Admission::Wait(free_at, FieldReason::Quota)
        );
        assert_eq!(rate_limiter.admit(free_at), Admission::Granted);
    }

    #[test]
    fn a_wait_requested_by_the_api_applies_to_all_requests() {
        let (mut rate_limiter, start) = (RateLimiter::default(), Instant::now());
        rate_limiter.record_rate_limit(start, Some(seconds(17)));
        let until = start + seconds(17);
        assert_eq!(
            rate_limiter.admit(start),
            Admission::Wait(until, FieldReason::Quota)
        );
        assert_eq!(rate_limiter.admit(until), Admission::Granted);
    }

    #[test]
    fn a_withdrawn_request_does_not_count() {
        let (mut rate_limiter, start) = (RateLimiter::default(), Instant::now());
        for _ in 1..QUOTA {
            assert_eq!(rate_limiter.admit(start), Admission::Granted);
        }
        assert_eq!(rate_limiter.admit(start), Admission::Granted);
        let until = start + seconds(2);
        let wait = Admission::Wait(until, FieldReason::Quota);
        assert_eq!(rate_limiter.withdraw(start, seconds(2)), wait);
        assert_eq!(rate_limiter.admit(start), wait);
        assert_eq!(rate_limiter.admit(until), Admission::Granted);
        let full = Admission::Wait(start + WINDOW, FieldReason::Quota);
        assert_eq!(rate_limiter.admit(until), full);
    }

    #[test]
    fn backoff_doubles_until_a_response_resets_it() {
        let (mut rate_limiter, mut now) = (RateLimiter::default(), Instant::now());
        for expected in [1, 2, 4, 8, 8, 8] {
            rate_limiter.record_rate_limit(now, None);
            let until = now + seconds(expected);
            assert_eq!(
                rate_limiter.admit(now),
                Admission::Wait(until, FieldReason::Quota)
            );
            now = until;
        }
        rate_limiter.record_success();
        rate_limiter.record_rate_limit(now, None);
        assert_eq!(
            rate_limiter.admit(now),
            Admission::Wait(now + seconds(1), FieldReason::Quota)
        );
    }

    #[test]
    fn a_longer_wait_is_not_cut_short_by_a_later_failure() {
        let (mut rate_limiter, now) = (RateLimiter::default(), Instant::now());
        rate_limiter.record_rate_limit(now, Some(seconds(100)));
        rate_limiter.record_failure(now, FieldReason::Unavailable, None);
        let until = now + seconds(100);
        assert_eq!(
            rate_limiter.admit(now),
            Admission::Wait(until, FieldReason::Quota)
        );
    }

    #[test]
    fn five_consecutive_failures_open_the_circuit_until_one_probe_succeeds() {
        let (mut rate_limiter, now) = (RateLimiter::default(), Instant::now());
        for _ in 0..MAX_FAILURES {
            rate_limiter.record_failure(now, FieldReason::Unavailable, None);
        }
        let closed = Admission::Refused(FieldReason::Unavailable);
        assert_eq!(rate_limiter.admit(now + seconds(29)), closed);
        let later = now + seconds(31);
        assert_eq!(rate_limiter.admit(later), Admission::Granted);
        assert_eq!(rate_limiter.admit(later), closed, "only one request probes");
        rate_limiter.record_success();
        assert_eq!(rate_limiter.admit(later), Admission::Granted);
    }

    #[test]
    fn an_open_circuit_is_probed_less_and_less_often() {
        let (mut rate_limiter, now) = (RateLimiter::default(), Instant::now());
        for _ in 0..40 {
            rate_limiter.record_failure(now, FieldReason::Unavailable, None);
        }
        let closed = Admission::Refused(FieldReason::Unavailable);
        assert_eq!(rate_limiter.admit(now + MAX_OPEN - seconds(1)), closed);
        assert_eq!(rate_limiter.admit(now + MAX_OPEN), Admission::Granted);
    }

    #[test]
    fn a_rejected_key_opens_the_circuit_for_the_maximum_time() {
        let (mut rate_limiter, now) = (RateLimiter::default(), Instant::now());
        rate_limiter.record_rejected_key(now);
        let closed = Admission::Refused(FieldReason::KeyRefused);
        assert_eq!(rate_limiter.admit(now + seconds(599)), closed);
        assert_eq!(rate_limiter.admit(now + seconds(600)), Admission::Granted);
    }

    proptest! {
        #[test]
        fn no_minute_has_more_requests_than_the_quota(
            steps in prop::collection::vec((0_u64..2_000, 0_u8..20), 0..2_000),
        ) {
            let (mut rate_limiter, mut now) = (RateLimiter::default(), Instant::now());
            let mut sent = VecDeque::new();
            for (ms, step) in steps {
                now += Duration::from_millis(ms);
                match step {
                    0 => rate_limiter.record_rate_limit(now, None),
                    1 => rate_limiter.record_failure(now, FieldReason::Unavailable, None),
                    2 | 3 => rate_limiter.record_success(),
                    _ => if rate_limiter.admit(now) == Admission::Granted {
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
