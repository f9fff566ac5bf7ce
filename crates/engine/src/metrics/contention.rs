//! What the neighbours took: how long the page's main thread stood ready and had no core.
//!
//! Linux counts per thread the time it ran and the time it waited to run
//! (`/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst). The visit samples both;
//! here the waiting is taken out of tasks, so that a busy host does not look like a slow page.

use plumbline_trace::Trace;
use serde::Deserialize;

use super::MainTask;

/// The artifact's name in a bundle.
pub const ARTIFACT: &str = "scheduler";

/// The artifact as the browser writes it: the main thread of every renderer of the visit.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SchedulerSamples {
    #[serde(default)]
    pub threads: Vec<ThreadSamples>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSamples {
    pub process_id: i64,
    /// `[at_us, ran_us, waited_us]`: the trace's clock, then two counters that only grow.
    pub samples: Vec<[f64; 3]>,
}

/// The waiting of one page's main threads, on the load's own clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits {
    threads: Vec<Vec<Point>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    at_ms: f64,
    ran_ms: f64,
    waited_ms: f64,
}

impl Waits {
    /// Picks the threads that the trace names as the page's own.
    pub fn of(samples: &SchedulerSamples, trace: &Trace) -> Self {
        let threads = trace
            .navigation
            .main_threads
            .iter()
            .filter_map(|thread| {
                samples
                    .threads
                    .iter()
                    .find(|sampled| sampled.process_id == thread.process_id)
            })
            .map(|sampled| {
                sampled
                    .samples
                    .iter()
                    .map(|[at_us, ran_us, waited_us]| Point {
                        at_ms: trace.since_origin_ms(*at_us),
                        ran_ms: ran_us / 1000.0,
                        waited_ms: waited_us / 1000.0,
                    })
                    .collect()
            })
            .collect();
        Self { threads }
    }

    /// The part of the time in which the main thread wanted a core and had none, from 0 to 1;
    /// nothing when it was not sampled in that time.
    pub fn share(&self, from_ms: f64, until_ms: f64) -> Option<f64> {
        let (mut ran_ms, mut waited_ms) = (0.0, 0.0);
        for thread in &self.threads {
            ran_ms += grown(thread, from_ms, until_ms, |point| point.ran_ms);
            waited_ms += grown(thread, from_ms, until_ms, |point| point.waited_ms);
        }
        let wanted_ms = ran_ms + waited_ms;
        (wanted_ms > 0.0).then(|| waited_ms / wanted_ms)
    }

    /// How long the main thread waited for a core in this time.
    pub fn waited_ms(&self, from_ms: f64, until_ms: f64) -> f64 {
        self.threads
            .iter()
            .map(|thread| grown(thread, from_ms, until_ms, |point| point.waited_ms))
            .fold(0.0, f64::max)
    }

    /// The tasks as long as they would have been with a core always free.
    pub fn taken_out_of(&self, tasks: &[MainTask]) -> Vec<MainTask> {
        tasks
            .iter()
            .map(|task| {
                let length_ms = task.end_ms - task.start_ms;
                let waited_ms = self
                    .waited_ms(task.start_ms, task.end_ms)
                    .clamp(0.0, length_ms.max(0.0));
                MainTask {
                    start_ms: task.start_ms,
                    end_ms: task.end_ms - waited_ms,
                    duration_ms: task.duration_ms - waited_ms,
                }
            })
            .collect()
    }
}

/// By how much a counter grew between two times, read off between the samples around them.
fn grown(points: &[Point], from_ms: f64, until_ms: f64, counter: fn(&Point) -> f64) -> f64 {
    let at = |ms: f64| {
        let after = points.partition_point(|point| point.at_ms < ms);
        match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
            (Some(before), Some(next)) if next.at_ms > before.at_ms => {
                let part = (ms - before.at_ms) / (next.at_ms - before.at_ms);
                counter(&before) + part * (counter(next) - counter(&before))
            }
            (Some(only), _) => counter(&only),
            (None, Some(first)) => counter(first),
            (None, None) => 0.0,
        }
    };
    (at(until_ms) - at(from_ms)).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A thread that runs until 100 ms, waits for a core until 150 ms, and runs again.
    fn interrupted() -> Waits {
        let point = |at_ms, ran_ms, waited_ms| Point {
            at_ms,
            ran_ms,
            waited_ms,
        };
        Waits {
            threads: vec![vec![
                point(0.0, 0.0, 0.0),
                point(100.0, 100.0, 0.0),
                point(150.0, 100.0, 50.0),
                point(300.0, 250.0, 50.0),
            ]],
        }
    }

    fn task(start_ms: f64, end_ms: f64) -> MainTask {
        MainTask {
            start_ms,
            end_ms,
            duration_ms: end_ms - start_ms,
        }
    }

    #[test]
    fn a_task_that_was_preempted_is_no_longer_than_its_work() {
        let tasks = interrupted().taken_out_of(&[task(60.0, 180.0), task(200.0, 280.0)]);
        assert_eq!(tasks, vec![task(60.0, 130.0), task(200.0, 280.0)]);
    }

    #[test]
    fn the_share_is_of_the_time_in_which_the_thread_wanted_to_run() {
        let waits = interrupted();
        assert_eq!(waits.share(100.0, 150.0), Some(1.0));
        assert_eq!(waits.share(50.0, 150.0), Some(0.5));
        assert_eq!(waits.share(0.0, 100.0), Some(0.0));
    }

    #[test]
    fn nothing_sampled_says_nothing() {
        let none = Waits::default();
        assert_eq!(none.share(0.0, 100.0), None);
        assert_eq!(none.taken_out_of(&[task(0.0, 80.0)]), vec![task(0.0, 80.0)]);
    }

    proptest! {
        #[test]
        fn no_task_grows_or_ends_before_it_starts(start in 0.0..400.0, length in 0.0..400.0) {
            let before = task(start, start + length);
            let after = interrupted().taken_out_of(&[before])[0];
            prop_assert!(after.end_ms <= before.end_ms && after.end_ms >= after.start_ms);
        }
    }
}
