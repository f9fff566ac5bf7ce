//! Total Blocking Time: the time by which the main thread's tasks exceed 50 ms between First
//! Contentful Paint and Time to Interactive.

use super::MainTask;

/// The duration from which a task blocks the main thread (web.dev/articles/tbt).
pub const BLOCKING_MS: f64 = 50.0;

/// Adds up the blocking time between two times. A task is first clipped to the interval, then its
/// time beyond 50 ms counts: only the part after the first paint can affect a user.
pub fn total_blocking_time(tasks: &[MainTask], from_ms: f64, until_ms: f64) -> f64 {
    if until_ms <= from_ms {
        return 0.0;
    }
    tasks
        .iter()
        .filter(|task| {
            task.duration_ms >= BLOCKING_MS && task.end_ms >= from_ms && task.start_ms <= until_ms
        })
        .map(|task| task.end_ms.min(until_ms) - task.start_ms.max(from_ms))
        .filter(|clipped_ms| *clipped_ms >= BLOCKING_MS)
        .map(|clipped_ms| clipped_ms - BLOCKING_MS)
        // Not `sum`, whose empty total is -0.0.
        .fold(0.0, |total_ms, blocked_ms| total_ms + blocked_ms)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn task(start_ms: f64, duration_ms: f64) -> MainTask {
        MainTask {
            start_ms,
            end_ms: start_ms + duration_ms,
            duration_ms,
        }
    }

    fn check(tasks: &[(f64, f64)], from_ms: f64, until_ms: f64, expected_ms: f64) {
        let tasks: Vec<_> = tasks
            .iter()
            .map(|(start, dur)| task(*start, *dur))
            .collect();
        let tbt_ms = total_blocking_time(&tasks, from_ms, until_ms);
        assert!(
            (tbt_ms - expected_ms).abs() < 1e-9,
            "{tbt_ms} is not {expected_ms}"
        );
    }

    #[test]
    fn only_the_time_above_fifty_milliseconds_blocks() {
        check(
            &[(100.0, 50.0), (200.0, 51.0), (300.0, 150.0)],
            0.0,
            1000.0,
            101.0,
        );
    }

    #[test]
    fn a_task_across_the_first_paint_counts_from_there() {
        check(&[(0.0, 150.0)], 50.0, 1000.0, 50.0);
        check(&[(0.0, 150.0)], 110.0, 1000.0, 0.0);
    }

    #[test]
    fn a_task_across_the_end_counts_until_there() {
        check(&[(900.0, 300.0)], 0.0, 1000.0, 50.0);
    }

    #[test]
    fn tasks_outside_the_window_do_not_count() {
        check(&[(0.0, 200.0), (2000.0, 200.0)], 500.0, 1500.0, 0.0);
    }

    #[test]
    fn a_page_interactive_at_its_first_paint_has_no_blocking_time() {
        check(&[(0.0, 900.0)], 500.0, 500.0, 0.0);
    }

    proptest! {
        #[test]
        fn blocking_time_never_exceeds_the_window(
            starts in proptest::collection::vec(0.0..5000.0_f64, 0..20),
            from_ms in 0.0..5000.0_f64,
            length_ms in 0.0..5000.0_f64,
        ) {
            let mut starts = starts;
            starts.sort_by(f64::total_cmp);
            let ends = starts.iter().skip(1).chain(std::iter::once(&9000.0));
            let tasks: Vec<_> = starts.iter().zip(ends).map(|(start, end)| task(*start, end - start)).collect();
            let tbt_ms = total_blocking_time(&tasks, from_ms, from_ms + length_ms);
            prop_assert!((0.0..=length_ms + 1e-6).contains(&tbt_ms));
        }
    }
}
