//! The main thread's activity in time slices for a chart.

use plumbline_model::media::{MainThread, WORK_KINDS};
use plumbline_trace::{Activity, Trace};

/// The activity of each of the [`WORK_KINDS`].
const ACTIVITIES: [Activity; WORK_KINDS.len()] = [
    Activity::Script,
    Activity::StyleAndLayout,
    Activity::Paint,
    Activity::Parse,
    Activity::Other,
];

/// The number of slices that a wide screen can resolve.
const SLICES: usize = 200;
const LONG_TASK_MS: f64 = 50.0;
const MAX_LONG_TASKS: usize = 200;

pub(super) fn main_thread(trace: &Trace, end_ms: f64) -> MainThread {
    let slice_ms = (end_ms / SLICES as f64).max(1.0);
    let mut slices = vec![[0.0_f64; 5]; SLICES];
    let mut total_ms = [0.0; 5];
    for span in &trace.activity {
        let kind = ACTIVITIES
            .iter()
            .position(|activity| *activity == span.activity)
            .unwrap_or(4);
        let mut from = trace.since_origin_ms(span.start_us).max(0.0);
        let to = trace.since_origin_ms(span.end_us).min(end_ms);
        while from < to {
            let slice = ((from / slice_ms) as usize).min(SLICES - 1);
            let until = if slice == SLICES - 1 {
                to
            } else {
                to.min((slice + 1) as f64 * slice_ms)
            };
            // Rounding at the edge of a slice must not stop the loop from advancing.
            let until = until.max(from + 1e-6);
            slices[slice][kind] += until - from;
            total_ms[kind] += until - from;
            from = until;
        }
    }
    let long = trace.tasks.all.iter().filter_map(|task| {
        let start_ms = trace.since_origin_ms(task.start_us);
        let dur_ms = task.dur_us / 1000.0;
        (dur_ms > LONG_TASK_MS && start_ms >= 0.0).then_some((start_ms.round(), dur_ms.round()))
    });
    MainThread {
        slice_ms: super::to_us(slice_ms),
        slices: slices
            .iter()
            .map(|slice| slice.map(|ms| ms.round() as u32))
            .collect(),
        total_ms: total_ms.map(|ms: f64| ms.round()),
        long_tasks: long.take(MAX_LONG_TASKS).collect(),
    }
}

/// Returns the end of the last long task.
pub(super) fn last_work_ms(trace: &Trace) -> f64 {
    let long = trace
        .tasks
        .all
        .iter()
        .filter(|task| task.dur_us > LONG_TASK_MS * 1000.0);
    long.map(|task| trace.since_origin_ms(task.start_us + task.dur_us))
        .fold(0.0, f64::max)
}
