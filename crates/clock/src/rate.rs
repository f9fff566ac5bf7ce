//! The rate of a page clock from one moment to the next. Performs no IO.
//!
//! While the main thread of a page runs, the rate is the speed of the clock: the page time that a
//! unit of processor time lasts. It is lower while only other threads run, after moments in which a
//! thread of the browser was ready to run and had no core, so that page time passes as if it had
//! had one, and while the core itself is slower than it was when the host was calibrated.

use std::time::Duration;

/// The activity of a browser's threads between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ThreadActivity {
    /// The real time between the samples.
    pub elapsed: Duration,
    /// The longest time that the main thread of a page ran.
    pub main_ran: Duration,
    /// The longest time that the main thread of a page was ready and had no core.
    pub main_waited: Duration,
    /// The longest time that any other thread was ready and had no core.
    pub other_waited: Duration,
}

/// Fraction of a period from which the main thread of a page counts as busy.
const BUSY_FRACTION: f64 = 0.05;

/// The smallest rate. A clock that stands still would give the same time to events that follow each
/// other, and readers of a trace would not know their order.
const MIN_RATE: f64 = 0.01;

/// The largest rate relative to that of a page, at which a clock that is behind catches up.
const MAX_RATE_FACTOR: f64 = 2.0;

impl ThreadActivity {
    /// Returns whether the main thread of a page ran or waited for a core in a relevant part of the
    /// time.
    pub fn is_busy(&self) -> bool {
        self.main_ran + self.main_waited > self.elapsed.mul_f64(BUSY_FRACTION)
    }

    /// Returns the time by which the page was delayed because it had too few cores.
    ///
    /// A wait of the main thread delays the page. A wait of another thread delays it only as far as
    /// the main thread neither ran nor waited itself, because then it may have waited for that
    /// thread.
    fn delay(&self) -> Duration {
        let blocked = self
            .elapsed
            .saturating_sub(self.main_ran)
            .saturating_sub(self.main_waited);
        let other = self.other_waited.saturating_sub(self.main_waited);
        self.main_waited + other.min(blocked)
    }
}

/// Computes the rate of one clock.
///
/// Page time passes at the speed of the clock while the main thread of a page runs. While only
/// other threads run, such as those that draw, receive and decode, it passes no faster than real
/// time: Lighthouse does not slow them down either.
#[derive(Debug)]
pub struct RateControl {
    /// The rate of an undisturbed clock while the main thread of a page runs.
    speed: f64,
    period: Duration,
    /// The page time in seconds by which the clock is ahead; negative if it is behind.
    ahead_s: f64,
    /// All delays so far.
    delays: Duration,
}

impl RateControl {
    /// Creates a control for a clock of this speed whose rate is set once in a period.
    pub fn new(speed: f64, period: Duration) -> Self {
        Self {
            speed,
            period,
            ahead_s: 0.0,
            delays: Duration::ZERO,
        }
    }

    /// Returns the rate until the next sample. `rate` is the one since the previous sample, and
    /// `core_speed` the present speed of a core relative to the calibrated one.
    pub fn next_rate(&mut self, activity: ThreadActivity, rate: f64, core_speed: f64) -> f64 {
        let delay = activity.delay();
        self.delays += delay;
        let page_rate = self.speed * core_speed;
        let other_rate = page_rate.min(1.0);
        let elapsed_s = activity.elapsed.as_secs_f64();
        let ran_s = activity.main_ran.as_secs_f64();
        // A wait for a core becomes visible when it is over, so this may be negative.
        let other_s = elapsed_s - ran_s - delay.as_secs_f64();
        self.ahead_s += rate * elapsed_s - page_rate * ran_s - other_rate * other_s;
        let expected = if activity.is_busy() {
            page_rate
        } else {
            other_rate
        };
        let correction = self.ahead_s / self.period.as_secs_f64();
        (expected - correction)
            .min(MAX_RATE_FACTOR * page_rate)
            .max(MIN_RATE)
    }

    /// Forgets that the clock is ahead or behind: it has passed that time otherwise.
    pub fn clear_debt(&mut self) {
        self.ahead_s = 0.0;
    }

    /// Returns the sum of all delays.
    pub fn delays(&self) -> Duration {
        self.delays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(2);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const IDLE: ThreadActivity = ThreadActivity {
        elapsed: PERIOD,
        main_ran: Duration::ZERO,
        main_waited: Duration::ZERO,
        other_waited: Duration::ZERO,
    };

    const BUSY: ThreadActivity = ThreadActivity {
        main_ran: PERIOD,
        ..IDLE
    };

    /// Returns the page time that passes while the samples of `activities` are taken. Idle periods
    /// follow until the clock is neither ahead nor behind; their own time is not counted.
    fn page_time(speed: f64, activities: &[ThreadActivity]) -> f64 {
        let mut control = RateControl::new(speed, PERIOD);
        let (mut rate, mut page_s) = (speed, 0.0);
        for activity in activities.iter().chain(std::iter::repeat_n(&IDLE, 1000)) {
            page_s += rate * activity.elapsed.as_secs_f64();
            rate = control.next_rate(*activity, rate, 1.0);
        }
        page_s - speed.min(1.0) * 1000.0 * PERIOD.as_secs_f64()
    }

    #[test]
    fn the_clock_of_a_busy_page_runs_at_its_speed() {
        let mut control = RateControl::new(3.0, PERIOD);
        for _ in 0..10 {
            assert_eq!(control.next_rate(BUSY, 3.0, 1.0), 3.0);
        }
        assert_eq!(control.delays(), Duration::ZERO);
    }

    #[test]
    fn other_threads_run_in_real_time_unless_the_host_is_slower_than_the_device() {
        let page_s = page_time(3.0, &[IDLE; 100]);
        assert!((page_s - 0.200).abs() < 1e-9, "{page_s}");
        let page_s = page_time(0.5, &[IDLE; 100]);
        assert!((page_s - 0.100).abs() < 1e-9, "{page_s}");
    }

    #[test]
    fn work_counts_at_the_speed_of_the_clock_wherever_it_begins_in_a_period() {
        let begins = ThreadActivity {
            main_ran: ms(1),
            ..IDLE
        };
        let page_s = page_time(3.0, &[IDLE, IDLE, begins, BUSY, BUSY, begins, IDLE]);
        // 6 ms of work and 8 ms of other threads.
        assert!((page_s - (3.0 * 0.006 + 0.008)).abs() < 1e-9, "{page_s}");
    }

    #[test]
    fn a_slower_core_makes_a_slower_clock() {
        let mut control = RateControl::new(4.0, PERIOD);
        assert_eq!(control.next_rate(BUSY, 2.0, 0.5), 2.0);
    }

    #[test]
    fn time_without_a_core_does_not_pass_on_the_page_clock() {
        // Half of the time another program has the core.
        let shared = ThreadActivity {
            main_ran: ms(1),
            main_waited: ms(1),
            ..IDLE
        };
        let page_s = page_time(3.0, &[shared; 100]);
        assert!((page_s - 3.0 * 0.100).abs() < 1e-9, "{page_s}");
    }

    #[test]
    fn a_long_wait_is_compensated_over_several_periods() {
        // A wait becomes visible when it is over.
        let late = ThreadActivity {
            main_waited: ms(50),
            ..IDLE
        };
        let mut activities = vec![IDLE; 24];
        activities.push(late);
        let page_s = page_time(2.0, &activities);
        assert!(page_s.abs() < 1e-9, "{page_s}");
    }

    #[test]
    fn other_threads_delay_a_page_only_while_its_main_thread_is_blocked() {
        let activity = |main_ran, main_waited, other_waited| ThreadActivity {
            elapsed: ms(10),
            main_ran: ms(main_ran),
            main_waited: ms(main_waited),
            other_waited: ms(other_waited),
        };
        // The main thread had a core all the time.
        assert_eq!(activity(10, 0, 8).delay(), ms(0));
        // It was blocked all the time.
        assert_eq!(activity(0, 0, 8).delay(), ms(8));
        // Both waited at the same time.
        assert_eq!(activity(2, 8, 8).delay(), ms(8));
        // It ran for a part of the time.
        assert_eq!(activity(6, 1, 9).delay(), ms(4));
    }

    #[test]
    fn the_rate_is_never_negative_and_has_a_maximum() {
        let mut control = RateControl::new(3.0, PERIOD);
        let mut rate = 3.0;
        for waited in [0, 1, 100, 0, 0, 7, 0, 1000, 0] {
            let activity = ThreadActivity {
                main_waited: ms(waited),
                ..IDLE
            };
            rate = control.next_rate(activity, rate, 1.0);
            assert!((MIN_RATE..=6.0).contains(&rate), "{rate}");
        }
    }

    #[test]
    fn forgotten_delays_are_not_compensated() {
        let mut control = RateControl::new(3.0, PERIOD);
        let activity = ThreadActivity {
            main_waited: ms(2),
            ..IDLE
        };
        assert_eq!(control.next_rate(activity, 3.0, 1.0), MIN_RATE);
        control.clear_debt();
        assert_eq!(control.next_rate(BUSY, 3.0, 1.0), 3.0);
    }
}
