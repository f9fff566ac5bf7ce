//! The main thread's tasks on the load's own clock.

use plumbline_trace::Trace;

/// One task of the main thread, in milliseconds since the time origin. Blocking time and interactivity are
/// judged on a list of these, so that tasks corrected for a busy host can be judged by the same rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MainTask {
    pub start_ms: f64,
    pub end_ms: f64,
    /// As recorded: longer than from start to end where Chromium let the next task overlap.
    pub duration_ms: f64,
}

/// What keeps two tasks apart where Chromium recorded them as overlapping.
const OVERLAP_GAP_MS: f64 = 0.001;

/// The page's tasks that had not ended before the navigation began, in order of their start. A task that
/// overlaps the next ends right before it (Lighthouse, trace-processor.js, `getMainThreadTopLevelEvents`;
/// Chromium bug 329678173).
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
