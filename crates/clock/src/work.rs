//! The record of the work of a page's main threads, in page time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{CorePace, PageTime, Sample, ThreadActivity};

/// The real time between two recorded speeds of the core.
const SPEED_INTERVAL: Duration = Duration::from_millis(20);

/// The work of main threads, and the speed of their cores.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkRecord {
    /// Samples by the process id.
    pub threads: BTreeMap<i32, Vec<WorkSample>>,
    pub speeds: Vec<SpeedSample>,
    /// The sums for the mean speed, weighted by the time that a main thread ran.
    turns_ns: f64,
    ran_s: f64,
    since_speed: Duration,
}

/// Counters of a main thread at a page time. They count page time as well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkSample {
    pub at: PageTime,
    /// The page time that passed while the thread ran.
    pub ran_us: f64,
    /// The page time that passed while the thread was ready and had no core.
    pub waited_us: f64,
    /// The time that the device needs for the work of the thread.
    pub worked_us: f64,
}

/// The speed of the page's core, relative to the nominal one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedSample {
    pub at: PageTime,
    pub speed: f64,
    pub pace: CorePace,
}

impl WorkRecord {
    /// Adds the activity since the previous sample, while the clock ran at `rate`. At `device_rate`
    /// processor time passes as on the device.
    pub(crate) fn add(&mut self, at: PageTime, sample: &Sample, rate: f64, device_rate: f64) {
        for thread in &sample.main_threads {
            let samples = self.threads.entry(thread.process).or_default();
            let last = samples.last().copied().unwrap_or(WorkSample {
                at,
                ran_us: 0.0,
                waited_us: 0.0,
                worked_us: 0.0,
            });
            let (ran, waited) = (micros(thread.ran), micros(thread.waited));
            samples.push(WorkSample {
                at,
                ran_us: last.ran_us + ran * rate,
                waited_us: last.waited_us + waited * rate,
                worked_us: last.worked_us + ran * device_rate,
            });
        }
        let is_idle = |process: &i32| {
            let mut active = sample.main_threads.iter();
            active.all(|thread| thread.process != *process)
        };
        for (process, samples) in &mut self.threads {
            if is_idle(process) {
                push_idle(samples, at);
            }
        }
    }

    /// Adds that no thread has run until this time.
    pub(crate) fn add_idle(&mut self, at: PageTime) {
        for samples in self.threads.values_mut() {
            push_idle(samples, at);
        }
    }

    /// Adds the present speed of the page's core.
    pub(crate) fn add_pace(
        &mut self,
        at: PageTime,
        pace: CorePace,
        speed: f64,
        activity: ThreadActivity,
    ) {
        if pace.turn_ns > 0.0 {
            let ran_s = activity.main_ran.as_secs_f64();
            self.turns_ns += pace.turn_ns * ran_s;
            self.ran_s += ran_s;
            self.since_speed += activity.elapsed;
            if self.since_speed >= SPEED_INTERVAL {
                self.since_speed = Duration::ZERO;
                self.speeds.push(SpeedSample { at, speed, pace });
            }
        }
    }

    /// Returns the mean speed of the core while a main thread ran.
    pub fn mean_pace(&self) -> CorePace {
        if self.ran_s <= 0.0 {
            return CorePace::default();
        }
        CorePace {
            turn_ns: self.turns_ns / self.ran_s,
        }
    }
}

/// Extends the idle time of a thread, of which only the first and the last sample are kept.
fn push_idle(samples: &mut Vec<WorkSample>, at: PageTime) {
    let Some(last) = samples.last().copied() else {
        return;
    };
    let idle = WorkSample { at, ..last };
    match samples.as_mut_slice() {
        [.., before, last] if WorkSample { at, ..*before } == idle => *last = idle,
        _ => samples.push(idle),
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::MainThread;

    fn at(ms: i64) -> PageTime {
        PageTime::from_nanos(ms * 1_000_000)
    }

    fn sample(ran_ms: u64, waited_ms: u64) -> Sample {
        Sample {
            main_threads: vec![MainThread {
                process: 7,
                ran: Duration::from_millis(ran_ms),
                waited: Duration::from_millis(waited_ms),
                core: Some(0),
            }],
            ..Sample::default()
        }
    }

    #[test]
    fn work_counts_at_the_speed_of_the_device_and_waiting_at_that_of_the_clock() {
        let mut record = WorkRecord::default();
        record.add(at(6), &sample(2, 0), 3.0, 3.0);
        // The clock was slow, because an earlier wait was compensated.
        record.add(at(8), &sample(2, 1), 1.0, 3.0);
        let last = record.threads[&7].last().unwrap();
        assert_eq!(last.ran_us, 8_000.0);
        assert_eq!(last.waited_us, 1_000.0);
        assert_eq!(last.worked_us, 12_000.0);
    }

    #[test]
    fn idle_time_leaves_two_samples() {
        let mut record = WorkRecord::default();
        record.add(at(2), &sample(2, 0), 1.0, 1.0);
        for ms in 3..100 {
            record.add(at(ms), &Sample::default(), 1.0, 1.0);
        }
        record.add_idle(at(5_000));
        let samples = &record.threads[&7];
        assert_eq!(samples.len(), 2);
        assert_eq!((samples[0].at, samples[1].at), (at(2), at(5_000)));
        record.add(at(5_002), &sample(1, 0), 1.0, 1.0);
        assert_eq!(record.threads[&7].len(), 3);
    }

    #[test]
    fn the_mean_speed_is_that_of_the_time_that_a_main_thread_ran() {
        let pace = |turn_ns| CorePace { turn_ns };
        let ran = |ms| ThreadActivity {
            elapsed: Duration::from_millis(2),
            main_ran: Duration::from_millis(ms),
            ..ThreadActivity::default()
        };
        let mut record = WorkRecord::default();
        assert_eq!(record.mean_pace(), CorePace::default());
        record.add_pace(at(2), pace(20_000.0), 1.0, ran(2));
        record.add_pace(at(4), pace(26_000.0), 0.7, ran(1));
        record.add_pace(at(6), pace(90_000.0), 0.3, ran(0));
        assert!((record.mean_pace().turn_ns - 22_000.0).abs() < 1e-6);
    }
}
