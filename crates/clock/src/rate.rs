//! The rate of a page clock from one moment to the next. Performs no IO.
//!
//! On an undisturbed host the rate is the speed of the clock: the page time that a unit of
//! processor time lasts. It is lower after moments in which a thread of the browser was ready to
//! run and had no core, so that page time passes as if it had had one, and while the core itself is
//! slower than it was when the host was calibrated.

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

impl ThreadActivity {
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
#[derive(Debug)]
pub struct RateControl {
    /// The rate of an undisturbed clock.
    speed: f64,
    period: Duration,
    /// Delays that have not been compensated yet.
    debt: Duration,
    /// The part of the debt that the present rate compensates in one period.
    planned: Duration,
    /// All delays so far.
    delays: Duration,
}

impl RateControl {
    /// Creates a control for a clock of this speed whose rate is set once in a period.
    pub fn new(speed: f64, period: Duration) -> Self {
        Self {
            speed,
            period,
            debt: Duration::ZERO,
            planned: Duration::ZERO,
            delays: Duration::ZERO,
        }
    }

    /// Returns the rate until the next sample. `core_speed` is the present speed of a core relative
    /// to the calibrated one.
    pub fn next_rate(&mut self, activity: ThreadActivity, core_speed: f64) -> f64 {
        let delay = activity.delay();
        self.delays += delay;
        // Samples are not taken exactly in time: a longer period has compensated more.
        let periods = activity.elapsed.div_duration_f64(self.period);
        let compensated = self.planned.mul_f64(periods);
        self.debt = (self.debt + delay).saturating_sub(compensated);
        self.planned = self.debt.min(self.period);
        let running = 1.0 - self.planned.div_duration_f64(self.period);
        self.speed * core_speed * running
    }

    /// Forgets delays that have not been compensated yet: the clock has passed them otherwise.
    pub fn clear_debt(&mut self) {
        self.debt = Duration::ZERO;
        self.planned = Duration::ZERO;
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

    /// Returns the page time that passes while the samples of `activities` are taken, and in idle
    /// periods until the debt is compensated.
    fn page_time(speed: f64, activities: &[ThreadActivity]) -> f64 {
        let mut control = RateControl::new(speed, PERIOD);
        let (mut rate, mut page_s) = (speed, 0.0);
        let idle = ThreadActivity {
            elapsed: PERIOD,
            ..ThreadActivity::default()
        };
        for activity in activities.iter().chain(std::iter::repeat_n(&idle, 1000)) {
            page_s += rate * activity.elapsed.as_secs_f64();
            rate = control.next_rate(*activity, 1.0);
        }
        page_s - speed * 1000.0 * PERIOD.as_secs_f64()
    }

    #[test]
    fn an_undisturbed_clock_runs_at_its_speed() {
        let busy = ThreadActivity {
            elapsed: PERIOD,
            main_ran: PERIOD,
            ..ThreadActivity::default()
        };
        let mut control = RateControl::new(3.0, PERIOD);
        for _ in 0..10 {
            assert_eq!(control.next_rate(busy, 1.0), 3.0);
        }
        assert_eq!(control.delays(), Duration::ZERO);
    }

    #[test]
    fn a_slower_core_makes_a_slower_clock() {
        let mut control = RateControl::new(4.0, PERIOD);
        let idle = ThreadActivity {
            elapsed: PERIOD,
            ..ThreadActivity::default()
        };
        assert_eq!(control.next_rate(idle, 0.5), 2.0);
    }

    #[test]
    fn time_without_a_core_does_not_pass_on_the_page_clock() {
        // Half of the time another program has the core.
        let shared = ThreadActivity {
            elapsed: ms(2),
            main_ran: ms(1),
            main_waited: ms(1),
            other_waited: ms(0),
        };
        let page_s = page_time(3.0, &[shared; 100]);
        assert!((page_s - 3.0 * 0.100).abs() < 1e-9, "{page_s}");
    }

    #[test]
    fn a_long_wait_is_compensated_over_several_periods() {
        // A wait becomes visible when it is over.
        let late = ThreadActivity {
            elapsed: ms(2),
            main_ran: ms(0),
            main_waited: ms(50),
            other_waited: ms(0),
        };
        let blocked = ThreadActivity {
            elapsed: ms(2),
            ..ThreadActivity::default()
        };
        let mut activities = vec![blocked; 24];
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
    fn the_rate_is_never_negative_and_never_above_the_speed() {
        let mut control = RateControl::new(3.0, PERIOD);
        for waited in [0, 1, 100, 0, 0, 7, 0, 1000, 0] {
            let activity = ThreadActivity {
                elapsed: ms(2),
                main_waited: ms(waited),
                ..ThreadActivity::default()
            };
            let rate = control.next_rate(activity, 1.0);
            assert!((0.0..=3.0).contains(&rate), "{rate}");
        }
    }

    #[test]
    fn forgotten_delays_are_not_compensated() {
        let mut control = RateControl::new(3.0, PERIOD);
        let activity = ThreadActivity {
            elapsed: ms(2),
            main_waited: ms(2),
            ..ThreadActivity::default()
        };
        assert_eq!(control.next_rate(activity, 1.0), 0.0);
        control.clear_debt();
        let idle = ThreadActivity {
            elapsed: ms(2),
            ..ThreadActivity::default()
        };
        assert_eq!(control.next_rate(idle, 1.0), 3.0);
    }
}
