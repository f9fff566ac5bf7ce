//! The main thread's tasks in milliseconds since the time origin.

use plumbline_trace::Trace;

/// One task of the main thread, in milliseconds since the time origin. Blocking time and
/// interactivity are computed from a list of these, so that tasks corrected for CPU contention
/// follow the same rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MainTask {
    pub start_ms: f64,
    pub end_ms: f64,
    /// The recorded duration, which is longer than from start to end if the next task overlaps.
    pub duration_ms: f64,
}

/// The gap that is inserted between tasks that Chromium recorded as overlapping.
const OVERLAP_GAP_MS: f64 = 0.001;

/// Returns the page's tasks that ended after the start of the navigation, in the order of their
/// start. A task that overlaps the next ends right before it (Lighthouse, trace-processor.js,
/// `getMainThreadTopLevelEvents`; Chromium bug 329678173).
pub fn main_tasks(trace: &Trace) -> Vec<MainTask> {
    let mut tasks: Vec<MainTask> = Vec::new();
    for task in &trace.tasks.all {
        let start_ms = trace.since_origin_ms(task.start_us);
        let end_ms = trace.since_origin_ms(task.start_us + task.dur_us);
        if end_ms < 0.0 {
            continue;
        }
        if let Some(previous) = tasks.last_mut()
            && start_ms < previous.end_ms
        {
            previous.end_ms = start_ms - OVERLAP_GAP_MS;
        }
        tasks.push(MainTask {
            start_ms,
            end_ms,
            duration_ms: task.dur_us / 1000.0,
        });
    }
    tasks
}
