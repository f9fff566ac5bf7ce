//! The CPU time of the page's main thread, from which task durations on the device are computed.
//!
//! The visit samples, per thread, the counters of Linux (CPU time, time waiting for a core:
//! `/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst) and the work done, as
//! time at the host's nominal speed. The duration of a task is the time that the device needs for
//! its work. Neither contention for the core nor phases in which the core was slow make it longer.
//!
//! Earlier versions slowed pages down by a pacer, a thread that occupied the core of the page.

use plumbline_trace::Trace;
use serde::Deserialize;

use super::MainTask;

/// The artifact's name in a bundle.
pub const ARTIFACT: &str = "scheduler";

/// The artifact as the browser writes it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SchedulerSamples {
    /// The part of the slowdown that the counters do not contain: 1, because the page's clock ran
    /// faster or Chromium kept the main thread busy. In bundles of earlier versions it is the rate
    /// of the pacer, or missing if Chromium throttled the page.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Entries of `[at_us, speed, …]`: the speed of the page's core, 1 being nominal, and the
    /// figures it was derived from.
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
    /// Entries of `[at_us, ran_us, waited_us, worked_us, held_us]`: the time on the trace's clock,
    /// then monotonic counters. Old bundles have only the first three. The last one is the time
    /// that a pacer occupied the core.
    pub samples: Vec<Vec<f64>>,
}

/// The main threads of one page, in milliseconds since the navigation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Processor {
    threads: Vec<Vec<Point>>,
    /// The slowdown besides the work; `None` if the work of threads was not sampled.
    rate: Option<f64>,
    /// Pairs of milliseconds since the navigation and the speed of the core.
    speeds: Vec<(f64, f64)>,
}

/// The counters of a thread at one time, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Point {
    at_ms: f64,
    ran_ms: f64,
    /// The time that the thread was ready without a core, for any reason.
    waited_ms: f64,
    /// The part of `waited_ms` that was not caused by the pacer.
    lost_ms: f64,
    /// The work done, in milliseconds at nominal speed.
    worked_ms: f64,
}

/// The length of the interval over which the speed at the end of the visit is averaged.
const FINAL_SPEED_MS: f64 = 200.0;

impl Processor {
    /// Selects the threads that are the page's main threads according to the trace.
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
        let has_work_counters = samples
            .threads
            .iter()
            .flat_map(|thread| &thread.samples)
            .all(|sample| sample.len() >= 5);
        Self {
            threads,
            rate: samples.rate.filter(|_| has_work_counters),
            speeds: samples
                .speeds
                .iter()
                .filter_map(|entry| match entry.as_slice() {
                    [at_us, speed, ..] => Some((since_origin(*at_us), *speed)),
                    _ => None,
                })
                .collect(),
        }
    }

    /// Returns the part of the slowdown rate that the CPU time of threads in the trace does not
    /// contain: none of it (1), or all of it in bundles of a pacer. `None` if the work of threads
    /// was not sampled.
    pub fn rate_beside_cpu_time(&self) -> Option<f64> {
        self.rate
    }

    /// Returns the CPU contention: the fraction of the main thread's runnable time, from 0 to 1, in
    /// which others had its core. `None` if it was not sampled in the interval.
    pub fn share_lost(&self, from_ms: f64, until_ms: f64) -> Option<f64> {
        let (mut wanted_ms, mut lost_ms) = (0.0, 0.0);
        for thread in &self.threads {
            let used = used(thread, from_ms, until_ms);
            wanted_ms += used.ran_ms + used.waited_ms;
            lost_ms += used.lost_ms;
        }
        (wanted_ms > 0.0).then(|| lost_ms / wanted_ms)
    }

    /// Returns the time that the main thread was runnable while others had its core.
    pub fn lost_ms(&self, from_ms: f64, until_ms: f64) -> f64 {
        self.busiest(from_ms, until_ms).lost_ms
    }

    /// Returns the core's mean speed in the interval, 1 being nominal.
    pub fn speed(&self, from_ms: f64, until_ms: f64) -> Option<f64> {
        mean(&self.speeds_within(from_ms, until_ms).collect::<Vec<f64>>())
    }

    /// Returns the core's mean speed at the end of the visit, 1 being nominal.
    pub fn speed_afterwards(&self) -> Option<f64> {
        let (end_ms, _) = self.speeds.last()?;
        self.speed(end_ms - FINAL_SPEED_MS, *end_ms)
    }

    /// Returns the deviation of the core from its nominal speed in the interval, as the root mean
    /// square of the logarithm: 0.1 if it was about a tenth faster or slower all the time.
    pub fn speed_variation(&self, from_ms: f64, until_ms: f64) -> Option<f64> {
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

    /// Returns the tasks with the durations that they would have had on the device without
    /// contention.
    pub fn on_device(&self, tasks: &[MainTask]) -> Vec<MainTask> {
        tasks
            .iter()
            .map(|task| {
                let used = self.busiest(task.start_ms, task.end_ms);
                let length_ms = (task.end_ms - task.start_ms).max(0.0);
                let on_device_ms = match self.rate {
                    // The thread slept in the rest of the task.
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

    /// Returns the counters of the busiest thread in the interval; the page may have changed
    /// processes.
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
        let held_since_ms = (held_ms - held_before_ms).max(0.0);
        held_before_ms = held_ms;
        points.push(Point {
            at_ms: since_origin_ms(at_us),
            ran_ms: ran_us / 1000.0,
            waited_ms,
            lost_ms: before.lost_ms + (waited_ms - before.waited_ms - held_since_ms).max(0.0),
            worked_ms: rest.first().map_or(0.0, |worked_us| worked_us / 1000.0),
        });
    }
    points
}

/// Returns the increase of the counters between two times, interpolated between samples.
fn used(points: &[Point], from_ms: f64, until_ms: f64) -> Point {
    let (from, until) = (interpolate(points, from_ms), interpolate(points, until_ms));
    Point {
        at_ms: until_ms,
        ran_ms: (until.ran_ms - from.ran_ms).max(0.0),
        waited_ms: (until.waited_ms - from.waited_ms).max(0.0),
        lost_ms: (until.lost_ms - from.lost_ms).max(0.0),
        worked_ms: (until.worked_ms - from.worked_ms).max(0.0),
    }
}

fn interpolate(points: &[Point], ms: f64) -> Point {
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
        (Some(last), _) => last,
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

    /// A thread that runs until 100 ms, waits for a core until 150 ms, and runs again, as in
    /// bundles from before work was sampled.
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

    /// A thread that a pacer slows down to a fourth. From 100 ms on the core is half as fast, so
    /// the page gets twice as much of it; from 200 ms on it is fast again, and another process has
    /// it half of the time.
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
    fn a_task_whose_counters_contain_the_slowdown_is_as_long_as_its_work() {
        let slow_core = processor(&[&[0.0; 5], &[100.0, 80.0, 20.0, 60.0, 0.0]], Some(1.0));
        let tasks = slow_core.on_device(&[task(0.0, 100.0)]);
        assert_eq!(tasks, vec![task(0.0, 60.0)]);
    }

    #[test]
    fn the_sleep_time_of_a_task_is_not_scaled() {
        let asleep = processor(&[&[0.0; 5], &[50.0, 10.0, 30.0, 10.0, 30.0]], Some(4.0));
        let tasks = asleep.on_device(&[task(0.0, 50.0)]);
        assert_eq!(tasks, vec![task(0.0, 50.0)]);
    }

    #[test]
    fn the_share_is_relative_to_the_runnable_time() {
        let waits = interrupted();
        assert_eq!(waits.share_lost(100.0, 150.0), Some(1.0));
        assert_eq!(waits.share_lost(50.0, 150.0), Some(0.5));
        assert_eq!(waits.share_lost(0.0, 100.0), Some(0.0));
    }

    #[test]
    fn time_held_by_the_pacer_is_not_contention() {
        assert_eq!(paced().share_lost(0.0, 200.0), Some(0.0));
        assert_eq!(paced().share_lost(200.0, 300.0), Some(0.5));
        assert_eq!(paced().lost_ms(0.0, 300.0), 50.0);
    }

    #[test]
    fn the_speed_is_a_mean_weighted_by_time() {
        assert_eq!(paced().speed(0.0, 150.0), Some(0.75));
        assert_eq!(paced().speed(500.0, 600.0), None);
        assert_eq!(paced().speed_afterwards(), Some(2.0));
    }

    #[test]
    fn a_core_at_its_nominal_speed_does_not_vary() {
        assert_eq!(paced().speed_variation(0.0, 50.0), Some(0.0));
        let half_the_speed = paced().speed_variation(50.0, 150.0).unwrap();
        assert!((half_the_speed - 2.0_f64.ln()).abs() < 1e-9);
        assert_eq!(paced().speed_variation(500.0, 600.0), None);
    }

    #[test]
    fn without_samples_there_are_no_values() {
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
