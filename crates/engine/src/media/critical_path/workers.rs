//! The workers that tasks of the main thread waited for.

use plumbline_trace::WorkerScript;

use super::chain::MAX_GAP_US;

/// The longest time between the script that sends a message and the task that receives it, on an
/// idle main thread (chosen, not measured).
const MAX_MESSAGE_US: f64 = 5_000.0;

/// The most scripts that are examined for one task, so that many scripts take no quadratic time.
const MAX_CANDIDATES: usize = 64;

/// Returns the URL of the script that ran in a worker until shortly before a task began, if the
/// main thread was idle meanwhile. The task most likely waited for its message; traces do not tell.
/// `scripts` are in the order of their ends.
pub(super) fn awaited_worker(
    scripts: &[WorkerScript],
    idle_since_us: f64,
    task_start_us: f64,
) -> Option<&str> {
    if task_start_us - idle_since_us <= MAX_GAP_US {
        return None;
    }
    let from_us = (task_start_us - MAX_MESSAGE_US).max(idle_since_us);
    let first = scripts.partition_point(|script| script.end_us <= from_us);
    let mut candidates = scripts[first..].iter().take(MAX_CANDIDATES);
    let script = candidates.find(|script| script.start_us < task_start_us)?;
    Some(&script.url)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn script(start_ms: f64, end_ms: f64, url: &str) -> WorkerScript {
        WorkerScript {
            start_us: start_ms * 1000.0,
            end_us: end_ms * 1000.0,
            url: Arc::from(url),
        }
    }

    #[test]
    fn a_task_waits_for_the_worker_that_was_busy_until_it_began() {
        let scripts = [
            script(100.0, 200.0, "early"),
            script(210.0, 398.0, "message"),
            script(390.0, 600.0, "longer"),
            script(700.0, 702.0, "late"),
        ];
        let awaited = |since_ms: f64, start_ms: f64| {
            awaited_worker(&scripts, since_ms * 1000.0, start_ms * 1000.0)
        };
        assert_eq!(awaited(50.0, 400.0), Some("message"));
        assert_eq!(awaited(50.0, 500.0), Some("longer"));
        assert_eq!(awaited(50.0, 204.0), Some("early"));
        // The script ended long before, or while the main thread was busy, or began later.
        assert_eq!(awaited(50.0, 206.0), None);
        assert_eq!(awaited(201.0, 204.0), None);
        assert_eq!(awaited(610.0, 650.0), None);
        // The main thread was not idle.
        assert_eq!(awaited(399.5, 400.0), None);
    }
}
