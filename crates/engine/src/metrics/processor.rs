//! What the page's main thread got of its core: judged as the device would have run it.
//!
//! The visit samples, per thread, what Linux counts (time run, time ready without a core:
//! `/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst) and what its pacer knows: how
//! much work that was at the host's nominal speed, and how long the pacer itself kept the core. A task
//! is then as long as its work takes the device. Neither neighbours that took the core, nor moments
//! in which the core was slow, make it longer.

use plumbline_trace::Trace;
use serde::Deserialize;

use super::MainTask;

/// The artifact's name in a bundle.
pub const ARTIFACT: &str = "scheduler";

/// The artifact as the browser writes it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SchedulerSamples {
    /// How many times slower than nominal the page was held.
    #[serde(default)]
    pub rate: Option<f64>,
    /// `[at_us, speed, …]`: the speed of the page's core, 1 being nominal, and what it was read from.
    #[serde(default)]
    pub speeds: Vec<Vec<f64>>,
    /// The main thread of every renderer of the visit.
    #[serde(default)]
    pub threads: Vec<ThreadSamples>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSamples {
    pub process_id: i64,
    /// `[at_us, ran_us, waited_us, worked_us, held_us]`: the trace's clock, then counters that only
    /// grow. Bundles from before there was a pacer have the first three.
    pub samples: Vec<Vec<f64>>,
}

/// The main threads of one page, on the load's own clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Processor {
    threads: Vec<Vec<Point>>,
    /// None where the work of threads was not followed.
    rate: Option<f64>,
    /// Milliseconds since the navigation, and the speed of the core.
    speeds: Vec<(f64, f64)>,
}

/// Counters, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Point {
    at_ms: f64,
    ran_ms: f64,
    /// Ready, and without a core for whatever reason.
    waited_ms: f64,
    /// The part of it that went to others than the pacer.
    lost_ms: f64,
    /// At nominal speed.
    worked_ms: f64,
}

/// The speed right after the load is that of this much time.
const AFTERWARDS_MS: f64 = 200.0;

impl Processor {
    /// Picks the threads that the trace names as the page's own.
    pub fn of(samples: &SchedulerSamples, trace: &Trace) -> Self {
        let since_origin = |at_us: f64| trace.since_origin_ms(at_us);
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
            .map(|sampled| points(&sampled.samples, since_origin))
            .collect();
        let followed = samples
            .threads
            .iter()
            .flat_map(|thread| &thread.samples)
            .all(|sample| sample.len() >= 5);
        Self {
            threads,
            rate: samples.rate.filter(|_| followed),
            speeds: samples
                .speeds
                .iter()
                .filter_map(|told| match told.as_slice() {
                    [at_us, speed, ..] => Some((since_origin(*at_us), *speed)),
                    _ => None,
                })
                .collect(),
        }
    }

    /// Whether a pacer held the page to its speed: the thread's own clock then runs as on the bare host.
    pub fn is_paced(&self) -> bool {
        self.rate.is_some()
    }

    /// The part of the time in which the main thread wanted a core and others had it, from 0 to 1;
    /// nothing when it was not sampled in that time.
    pub fn share_lost(&self, from_ms: f64, until_ms: f64) -> Option<f64> {
        let (mut wanted_ms, mut lost_ms) = (0.0, 0.0);
        for thread in &self.threads {
            let used = used(thread, from_ms, until_ms);
            wanted_ms += used.ran_ms + used.waited_ms;
            lost_ms += used.lost_ms;
        }
        (wanted_ms > 0.0).then(|| lost_ms / wanted_ms)
    }

    /// How long the main thread stood ready while others had its core.
    pub fn lost_ms(&self, from_ms: f64, until_ms: f64) -> f64 {
        self.busiest(from_ms, until_ms).lost_ms
    }

    /// The core's mean speed in this time, 1 being nominal.
    pub fn speed(&self, from_ms: f64, until_ms: f64) -> Option<f64> {
        mean(&self.speeds_within(from_ms, until_ms).collect::<Vec<f64>>())
    }

    /// And the one with which the visit ended.
    pub fn speed_afterwards(&self) -> Option<f64> {
        let (end_ms, _) = self.speeds.last()?;
        self.speed(end_ms - AFTERWARDS_MS, *end_ms)
    }

    /// How far from its nominal speed the core was in this time, as a logarithm, root mean square: 0.1 where it was
    /// about a tenth faster or slower all the time.
    pub fn restlessness(&self, from_ms: f64, until_ms: f64) -> Option<f64> {
        let squares: Vec<f64> = self
            .speeds_within(from_ms, until_ms)
            .filter(|speed| *speed > 0.0)
            .map(|speed| speed.ln().powi(2))
            .collect();
        mean(&squares).map(f64::sqrt)
    }

    fn speeds_within(&self, from_ms: f64, until_ms: f64) -> impl Iterator<Item = f64> + '_ {
        let within = move |at_ms: &f64| (from_ms..=until_ms).contains(at_ms);
        self.speeds
            .iter()
            .filter(move |(at_ms, _)| within(at_ms))
            .map(|(_, speed)| *speed)
    }

    /// The tasks as long as they would have been on the device, with a core always free.
    pub fn on_device(&self, tasks: &[MainTask]) -> Vec<MainTask> {
        tasks
            .iter()
            .map(|task| {
                let used = self.busiest(task.start_ms, task.end_ms);
                let length_ms = (task.end_ms - task.start_ms).max(0.0);
                let on_device_ms = match self.rate {
                    // What is left of the length, the thread slept.
                    Some(rate) => {
                        let slept_ms = (length_ms - used.ran_ms - used.waited_ms).max(0.0);
                        slept_ms + used.worked_ms * rate
                    }
                    None => (length_ms - used.lost_ms).max(0.0),
                };
                MainTask {
                    start_ms: task.start_ms,
                    end_ms: task.start_ms + on_device_ms,
                    duration_ms: task.duration_ms + on_device_ms - length_ms,
                }
            })
            .collect()
    }

    /// Of the thread that did most in this time: the page may have changed processes.
    fn busiest(&self, from_ms: f64, until_ms: f64) -> Point {
        self.threads
            .iter()
            .map(|thread| used(thread, from_ms, until_ms))
            .max_by(|a, b| (a.ran_ms + a.waited_ms).total_cmp(&(b.ran_ms + b.waited_ms)))
            .unwrap_or_default()
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn points(samples: &[Vec<f64>], since_origin_ms: impl Fn(f64) -> f64) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::with_capacity(samples.len());
    let mut held_before_ms = 0.0;
    for sample in samples {
        let &[at_us, ran_us, waited_us, ref rest @ ..] = sample.as_slice() else {
            continue;
        };
        let waited_ms = waited_us / 1000.0;
        let held_ms = rest.get(1).map_or(0.0, |held_us| held_us / 1000.0);
        let before = points.last().copied().unwrap_or(Point {
            waited_ms,
            ..Point::default()
        });
        let kept_ms = (held_ms - held_before_ms).max(0.0);
        held_before_ms = held_ms;
        points.push(Point {
            at_ms: since_origin_ms(at_us),
            ran_ms: ran_us / 1000.0,
            waited_ms,
            lost_ms: before.lost_ms + (waited_ms - before.waited_ms - kept_ms).max(0.0),
            worked_ms: rest.first().map_or(0.0, |worked_us| worked_us / 1000.0),
        });
    }
    points
}

/// By how much the counters grew between two times, read off between the samples around them.
fn used(points: &[Point], from_ms: f64, until_ms: f64) -> Point {
    let (from, until) = (at(points, from_ms), at(points, until_ms));
    Point {
        at_ms: until_ms,
        ran_ms: (until.ran_ms - from.ran_ms).max(0.0),
        waited_ms: (until.waited_ms - from.waited_ms).max(0.0),
        lost_ms: (until.lost_ms - from.lost_ms).max(0.0),
        worked_ms: (until.worked_ms - from.worked_ms).max(0.0),
    }
}

fn at(points: &[Point], ms: f64) -> Point {
    let after = points.partition_point(|point| point.at_ms < ms);
    match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
        (Some(before), Some(next)) if next.at_ms > before.at_ms => {
            let part = (ms - before.at_ms) / (next.at_ms - before.at_ms);
            let between = |counter: fn(&Point) -> f64| {
                counter(&before) + part * (counter(next) - counter(&before))
            };
            Point {
                at_ms: ms,
                ran_ms: between(|point| point.ran_ms),
                waited_ms: between(|point| point.waited_ms),
                lost_ms: between(|point| point.lost_ms),
                worked_ms: between(|point| point.worked_ms),
            }
        }
        (Some(only), _) => only,
        (None, Some(first)) => *first,
        (None, None) => Point::default(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn processor(samples: &[&[f64]], rate: Option<f64>) -> Processor {
        let samples: Vec<Vec<f64>> = samples
            .iter()
            .map(|sample| sample.iter().map(|ms| ms * 1000.0).collect())
            .collect();
        Processor {
            threads: vec![points(&samples, |at_us| at_us / 1000.0)],
            rate,
            speeds: vec![(0.0, 1.0), (100.0, 0.5), (400.0, 2.0)],
        }
    }

    /// A thread that runs until 100 ms, waits for a core until 150 ms, and runs again: as bundles had
    /// it before there was a pacer.
    fn interrupted() -> Processor {
        processor(
            &[
                &[0.0, 0.0, 0.0],
                &[100.0, 100.0, 0.0],
                &[150.0, 100.0, 50.0],
                &[300.0, 250.0, 50.0],
            ],
            None,
        )
    }

    /// Held to a fourth. From 100 ms on the core is half as fast, so the page is given twice as much of
    /// it; from 200 ms on it is fast again, and a neighbour has it half of the time.
    fn paced() -> Processor {
        processor(
            &[
                &[0.0, 0.0, 0.0, 0.0, 0.0],
                &[100.0, 25.0, 75.0, 25.0, 75.0],
                &[200.0, 75.0, 125.0, 50.0, 125.0],
                &[300.0, 87.5, 212.5, 62.5, 162.5],
            ],
            Some(4.0),
        )
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
        let tasks = interrupted().on_device(&[task(60.0, 180.0), task(200.0, 280.0)]);
        assert_eq!(tasks, vec![task(60.0, 130.0), task(200.0, 280.0)]);
    }

    #[test]
    fn a_paced_task_is_as_long_as_its_work_takes_the_device() {
        let tasks = paced().on_device(&[task(0.0, 100.0), task(100.0, 200.0), task(200.0, 300.0)]);
        let ends: Vec<f64> = tasks.iter().map(|task| task.end_ms).collect();
        assert_eq!(ends, [100.0, 200.0, 250.0]);
    }

    #[test]
    fn what_a_task_slept_stays() {
        let asleep = processor(&[&[0.0; 5], &[50.0, 10.0, 30.0, 10.0, 30.0]], Some(4.0));
        let tasks = asleep.on_device(&[task(0.0, 50.0)]);
        assert_eq!(tasks, vec![task(0.0, 50.0)]);
    }

    #[test]
    fn the_share_is_of_the_time_in_which_the_thread_wanted_to_run() {
        let waits = interrupted();
        assert_eq!(waits.share_lost(100.0, 150.0), Some(1.0));
        assert_eq!(waits.share_lost(50.0, 150.0), Some(0.5));
        assert_eq!(waits.share_lost(0.0, 100.0), Some(0.0));
    }

    #[test]
    fn what_the_pacer_kept_is_not_lost() {
        assert_eq!(paced().share_lost(0.0, 200.0), Some(0.0));
        assert_eq!(paced().share_lost(200.0, 300.0), Some(0.5));
        assert_eq!(paced().lost_ms(0.0, 300.0), 50.0);
    }

    #[test]
    fn the_speed_is_the_mean_of_its_time() {
        assert_eq!(paced().speed(0.0, 150.0), Some(0.75));
        assert_eq!(paced().speed(500.0, 600.0), None);
        assert_eq!(paced().speed_afterwards(), Some(2.0));
    }

    #[test]
    fn a_core_at_its_nominal_speed_is_not_restless() {
        assert_eq!(paced().restlessness(0.0, 50.0), Some(0.0));
        let half_the_speed = paced().restlessness(50.0, 150.0).unwrap();
        assert!((half_the_speed - 2.0_f64.ln()).abs() < 1e-9);
        assert_eq!(paced().restlessness(500.0, 600.0), None);
    }

    #[test]
    fn nothing_sampled_says_nothing() {
        let none = Processor::default();
        assert_eq!(none.share_lost(0.0, 100.0), None);
        assert_eq!(none.on_device(&[task(0.0, 80.0)]), vec![task(0.0, 80.0)]);
    }

    proptest! {
        #[test]
        fn no_task_grows_or_ends_before_it_starts(start in 0.0..400.0, length in 0.0..400.0) {
            let before = task(start, start + length);
            for processor in [interrupted(), paced()] {
                let after = processor.on_device(&[before])[0];
                prop_assert!(after.end_ms <= before.end_ms + 1e-9 && after.end_ms >= after.start_ms);
            }
        }
    }
}
