//! The uncertainty of one visit's performance score, which comes from the uncertainty of the core's
//! speed.
//!
//! A task's duration is its amount of work at the device's speed, and the amount of work is
//! measured by a program that runs next to the page. Other loads on the same physical core slow
//! pages down somewhat differently from that program, and differently from visit to visit. The
//! effect in points is computed on the load itself, by making all of its work a little longer and a
//! little shorter.

use plumbline_catalog::Mode;

use super::{MainTask, Measured, MetricError, tbt};
use crate::scoring::smooth_performance_score;

/// The relative uncertainty of a page's work on a core that is shared with other loads (decision
/// 0021).
const SHARED_CORE_UNCERTAINTY: f64 = 0.05;
/// The relative uncertainty of work per unit of
/// [`Processor::speed_variation`](super::processor::Processor::speed_variation), up to
/// [`SHARED_CORE_UNCERTAINTY`]. A core that always has its nominal speed is not shared. The factor
/// is a guess: all hosts measured so far shared their cores.
const UNCERTAINTY_PER_SPEED_VARIATION: f64 = 0.5;

/// Returns the uncertainty of the score in points, up or down, or `None` if the page has no score.
pub(crate) fn score_uncertainty(
    mode: Mode,
    measured: &Measured,
    tasks: &[MainTask],
    speed_variation: f64,
) -> Option<f64> {
    let uncertainty =
        (UNCERTAINTY_PER_SPEED_VARIATION * speed_variation).min(SHARED_CORE_UNCERTAINTY);
    let score_if = |lengthening: f64| {
        let load = LengthenedLoad::new(tasks, lengthening);
        smooth_performance_score(mode, &load.measured(measured))
    };
    Some((score_if(-uncertainty)? - score_if(uncertainty)?).abs() * 100.0 / 2.0)
}

/// The load with the main thread's work lengthened by a fraction; everything else is delayed by it.
struct LengthenedLoad<'a> {
    tasks: &'a [MainTask],
    lengthening: f64,
    /// The time that the thread had been busy before each task.
    busy_before_ms: Vec<f64>,
}

impl<'a> LengthenedLoad<'a> {
    fn new(tasks: &'a [MainTask], lengthening: f64) -> Self {
        let mut busy_ms = 0.0;
        let busy_before_ms = tasks
            .iter()
            .map(|task| {
                let before_ms = busy_ms;
                busy_ms += task.end_ms - task.start_ms;
                before_ms
            })
            .collect();
        Self {
            tasks,
            lengthening,
            busy_before_ms,
        }
    }

    /// Returns the new time of an event.
    fn at(&self, ms: f64) -> f64 {
        let next = self.tasks.partition_point(|task| task.start_ms < ms);
        let Some(last) = next.checked_sub(1) else {
            return ms;
        };
        let task = &self.tasks[last];
        let busy_ms = self.busy_before_ms[last] + ms.min(task.end_ms) - task.start_ms;
        ms + busy_ms * self.lengthening
    }

    fn measured(&self, measured: &Measured) -> Measured {
        let at = |metric: Result<f64, MetricError>| metric.map(|ms| self.at(ms));
        let tasks: Vec<MainTask> = self.tasks.iter().map(|task| self.task(task)).collect();
        let until_ms = self.at(measured.tti.unwrap_or(measured.trace_end_ms));
        let blocked = |fcp_ms: f64| tbt::total_blocking_time(&tasks, self.at(fcp_ms), until_ms);
        Measured {
            fcp: at(measured.fcp),
            lcp: at(measured.lcp),
            si: at(measured.si),
            tbt: measured.tbt.and(measured.fcp.map(blocked)),
            ..measured.clone()
        }
    }

    fn task(&self, task: &MainTask) -> MainTask {
        let start_ms = self.at(task.start_ms);
        let end_ms = start_ms + (task.end_ms - task.start_ms) * (1.0 + self.lengthening);
        MainTask {
            start_ms,
            end_ms,
            duration_ms: end_ms - start_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(fcp_ms: f64, tbt_ms: f64) -> Measured {
        Measured {
            fcp: Ok(fcp_ms),
            lcp: Ok(fcp_ms),
            cls: Ok(0.0),
            tbt: Ok(tbt_ms),
            tti: Ok(3000.0),
            si: Ok(fcp_ms),
            first_paint_ms: None,
            dom_content_loaded_ms: None,
            load_ms: None,
            trace_end_ms: 9000.0,
        }
    }

    fn task(start_ms: f64, end_ms: f64) -> MainTask {
        MainTask {
            start_ms,
            end_ms,
            duration_ms: end_ms - start_ms,
        }
    }

    fn doubt(measured: &Measured, tasks: &[MainTask], speed_variation: f64) -> f64 {
        score_uncertainty(Mode::Mobile, measured, tasks, speed_variation).unwrap()
    }

    #[test]
    fn events_that_wait_for_the_main_thread_move_with_its_work() {
        let tasks = [task(100.0, 300.0), task(400.0, 500.0)];
        let slower = LengthenedLoad::new(&tasks, 0.1);
        for (ms, later_ms) in [(50.0, 50.0), (200.0, 210.0), (350.0, 370.0), (900.0, 930.0)] {
            assert!((slower.at(ms) - later_ms).abs() < 1e-9, "{ms}");
        }
        let moved = slower.measured(&measured(350.0, 200.0));
        assert_eq!(moved.fcp, Ok(370.0));
        assert!((moved.tbt.unwrap() - 60.0).abs() < 1e-9, "{:?}", moved.tbt);
    }

    #[test]
    fn unchanged_speed_gives_unchanged_metrics() {
        let tasks = [task(100.0, 300.0), task(400.0, 500.0)];
        let before = measured(350.0, 50.0);
        assert_eq!(LengthenedLoad::new(&tasks, 0.0).measured(&before), before);
    }

    #[test]
    fn the_score_of_a_page_without_work_is_certain_on_any_core() {
        assert_eq!(doubt(&measured(2000.0, 0.0), &[], 1.0), 0.0);
    }

    #[test]
    fn a_core_at_its_nominal_speed_causes_no_uncertainty() {
        let tasks = [task(1000.0, 1600.0)];
        assert_eq!(doubt(&measured(900.0, 550.0), &tasks, 0.0), 0.0);
    }

    #[test]
    fn a_core_of_varying_speed_causes_more_uncertainty_for_more_work() {
        let (little, much) = ([task(1000.0, 1100.0)], [task(1000.0, 1600.0)]);
        let of_little = doubt(&measured(900.0, 50.0), &little, 0.25);
        let of_much = doubt(&measured(900.0, 550.0), &much, 0.25);
        assert!(of_little < 0.1, "{of_little}");
        assert!((0.5..2.0).contains(&of_much), "{of_much}");
        assert!(of_much > doubt(&measured(900.0, 550.0), &much, 0.05));
    }

    #[test]
    fn a_page_without_a_score_has_no_uncertainty() {
        let unpainted = Measured {
            lcp: Err(MetricError::NoLargestContentfulPaint),
            ..measured(900.0, 0.0)
        };
        assert_eq!(score_uncertainty(Mode::Mobile, &unpainted, &[], 0.2), None);
    }
}
