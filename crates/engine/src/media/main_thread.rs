//! The main thread's activity in time slices for a chart, with its totals and long tasks.
//!
//! All durations are those on the emulated device, as in the metrics and checks. The figures of the
//! trace itself, which include CPU contention, are kept beside them.

use plumbline_model::media::{MainThread, TracedMainThread, WORK_KINDS};
use plumbline_trace::{Activity, Trace, WorkKind, WorkSpan};

use crate::facts::{DeviceWork, long_tasks};

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

pub(super) fn main_thread(trace: &Trace, work: &DeviceWork, end_ms: f64) -> MainThread {
    let slice_ms = (end_ms / SLICES as f64).max(1.0);
    let mut slices = vec![[0.0_f64; WORK_KINDS.len()]; SLICES];
    for span in &trace.activity {
        let kind = index_of(span.activity);
        let factor = work.factor_at(span.start_us);
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
            slices[slice][kind] += (until - from) * factor;
            from = until;
        }
    }
    let long: Vec<(f64, f64)> = work
        .long_tasks()
        .map(|task| {
            let start_ms = trace.since_origin_ms(task.start_us);
            (start_ms.round(), duration_ms(task).round())
        })
        .collect();
    let traced: Vec<f64> = long_tasks(&trace.work).map(duration_ms).collect();
    MainThread {
        slice_ms: super::to_us(slice_ms),
        slices: slices
            .iter()
            .map(|slice| slice.map(|ms| ms.round() as u32))
            .collect(),
        total_ms: totals(&work.spans),
        long_task_count: long.len(),
        long_tasks: long.into_iter().take(MAX_LONG_TASKS).collect(),
        as_traced: Some(TracedMainThread {
            total_ms: totals(&trace.work),
            long_task_count: traced.len(),
            longest_task_ms: traced.into_iter().fold(0.0, f64::max).round(),
        }),
    }
}

fn duration_ms(work: &WorkSpan) -> f64 {
    work.duration_us() / 1000.0
}

/// Returns the time per kind of work.
fn totals(spans: &[WorkSpan]) -> [f64; WORK_KINDS.len()] {
    let mut total_ms = [0.0; WORK_KINDS.len()];
    for span in spans {
        let activity = match span.kind {
            WorkKind::ScriptParsing | WorkKind::ScriptEvaluation | WorkKind::GarbageCollection => {
                Activity::Script
            }
            WorkKind::StyleAndLayout => Activity::StyleAndLayout,
            WorkKind::Rendering => Activity::Paint,
            WorkKind::ParseHtml => Activity::Parse,
            WorkKind::Other => Activity::Other,
        };
        total_ms[index_of(activity)] += span.self_us / 1000.0;
    }
    total_ms.map(f64::round)
}

fn index_of(activity: Activity) -> usize {
    let mut activities = ACTIVITIES.iter();
    let index = activities.position(|other| *other == activity);
    index.unwrap_or(ACTIVITIES.len() - 1)
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
