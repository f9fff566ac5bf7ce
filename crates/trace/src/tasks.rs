//! Tasks of the main threads.

use std::collections::HashMap;

use crate::event::TraceEvent;
use crate::navigation::Thread;

/// One task of the main thread's scheduler, in wall time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    pub start_us: f64,
    pub dur_us: f64,
}

/// The tasks of the page's main threads in order of their start; of two that start together the
/// longer comes first.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    pub all: Vec<Task>,
    /// True if the threads have any task, even without a duration. Otherwise the trace was recorded
    /// without the categories that blocking time needs.
    pub recorded: bool,
}

/// Tasks of every thread of every process: the page's threads are known only at the end of the
/// trace.
#[derive(Debug, Default)]
pub(crate) struct TaskEvents {
    by_thread: HashMap<(i64, i64), Vec<Task>>,
}

impl TaskEvents {
    /// Records a task. Begin and end events of a task that ran while tracing started or stopped
    /// have no duration and do not count as work.
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        let tasks = self
            .by_thread
            .entry((event.process, event.thread))
            .or_default();
        if let Some(dur_us) = event.dur_us.filter(|dur_us| *dur_us != 0.0) {
            tasks.push(Task {
                start_us: event.ts_us,
                dur_us,
            });
        }
    }

    pub(crate) fn of_threads(mut self, threads: &[Thread]) -> Tasks {
        let mut tasks = Tasks::default();
        for thread in threads {
            if let Some(more) = self
                .by_thread
                .remove(&(thread.process_id, thread.thread_id))
            {
                tasks.recorded = true;
                tasks.all.extend(more);
            }
        }
        tasks.all.sort_by(|a, b| {
            let by_start = a.start_us.total_cmp(&b.start_us);
            by_start.then(b.dur_us.total_cmp(&a.dur_us))
        });
        tasks
    }
}
