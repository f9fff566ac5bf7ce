//! The steps that are shown for a chain of requests and tasks.

use std::collections::HashSet;

use plumbline_model::media::{PathStep, PathStepKind, PathTotal};
use plumbline_trace::{Resource, ResourceTiming};

use super::CriticalPath;
use super::chain::MAX_GAP_US;
use crate::media::to_us;

/// The shortest step that is kept.
const MIN_STEP_MS: f64 = 1.0;

/// The maximum number of steps; if there are more, the shortest are left out.
const MAX_STEPS: usize = 40;

pub(super) struct Steps {
    origin_us: f64,
    /// The end of the last step.
    at_us: f64,
    /// The end of the path.
    end_us: f64,
    steps: Vec<PathStep>,
}

impl Steps {
    pub(super) fn new(origin_us: f64, end_us: f64) -> Self {
        Self {
            origin_us,
            at_us: origin_us,
            end_us,
            steps: Vec::new(),
        }
    }

    /// Returns the end of the last step.
    pub(super) fn at_us(&self) -> f64 {
        self.at_us
    }

    /// Adds the part of a request up to `end_us`.
    pub(super) fn add_request(
        &mut self,
        start_us: f64,
        end_us: f64,
        resource: &Resource,
        is_redirect: bool,
    ) {
        let url = resource.url.as_str();
        self.add(PathStepKind::Waiting, start_us, "");
        if is_redirect {
            self.add(PathStepKind::Server, end_us, url);
            return;
        }
        if let Some(timing) = resource.timing() {
            let since_start_us = |us: f64| (timing.request_time_us + us.max(0.0)).min(end_us);
            if let Some(us) = connection_start_us(timing) {
                self.add(PathStepKind::Queued, since_start_us(us), url);
                self.add(
                    PathStepKind::Connection,
                    since_start_us(timing.send_start_us),
                    url,
                );
            }
            self.add(
                PathStepKind::Queued,
                since_start_us(timing.send_start_us),
                url,
            );
            let headers_us = since_start_us(timing.receive_headers_end_us);
            self.add(PathStepKind::Server, headers_us, url);
        }
        self.add(PathStepKind::Download, end_us, url);
    }

    /// Adds the part of a task up to `end_us`.
    pub(super) fn add_task(&mut self, start_us: f64, end_us: f64, kind: PathStepKind, url: &str) {
        if start_us - self.at_us > MAX_GAP_US {
            self.add(PathStepKind::Waiting, start_us, "");
        }
        self.add(kind, end_us, url);
    }

    /// Adds a step from the end of the last one to this time.
    pub(super) fn add(&mut self, kind: PathStepKind, until_us: f64, url: &str) {
        let until_us = until_us.min(self.end_us);
        if until_us <= self.at_us {
            return;
        }
        let ms = |us: f64| to_us((us - self.origin_us) / 1000.0);
        let (start_ms, end_ms) = (ms(self.at_us), ms(until_us));
        self.at_us = until_us;
        match self.steps.last_mut() {
            Some(last) if last.kind == kind && last.url == url => last.end_ms = end_ms,
            _ => self.steps.push(PathStep {
                kind,
                start_ms,
                end_ms,
                url: url.to_owned(),
            }),
        }
    }

    /// Returns the steps. Those that are too short to be shown, and the shortest of too many,
    /// become a part of the one before, or of the one after if there is none.
    pub(super) fn finish(self) -> CriticalPath {
        let totals = totals(&self.steps);
        let steps = merged(self.steps, |_, step| length_ms(step) <= MIN_STEP_MS);
        // Of equal steps, the last ones are left out.
        let mut shortest_first: Vec<usize> = (0..steps.len()).rev().collect();
        shortest_first.sort_by(|a, b| length_ms(&steps[*a]).total_cmp(&length_ms(&steps[*b])));
        shortest_first.truncate(steps.len().saturating_sub(MAX_STEPS));
        let left_out: HashSet<usize> = shortest_first.into_iter().collect();
        CriticalPath {
            steps: merged(steps, |index, _| left_out.contains(&index)),
            totals,
        }
    }
}

fn length_ms(step: &PathStep) -> f64 {
    step.end_ms - step.start_ms
}

/// Returns the time of each kind of step, in the order in which they first occur.
fn totals(steps: &[PathStep]) -> Vec<PathTotal> {
    let mut totals: Vec<PathTotal> = Vec::new();
    for step in steps {
        match totals.iter_mut().find(|total| total.kind == step.kind) {
            Some(total) => total.ms += length_ms(step),
            None => totals.push(PathTotal {
                kind: step.kind,
                ms: length_ms(step),
            }),
        }
    }
    for total in &mut totals {
        total.ms = to_us(total.ms);
    }
    totals
}

/// Makes some steps, given by index and step, a part of the one before, or of the first one that
/// remains.
fn merged(steps: Vec<PathStep>, is_left_out: impl Fn(usize, &PathStep) -> bool) -> Vec<PathStep> {
    let mut remaining: Vec<PathStep> = Vec::new();
    let mut has_only_left_out = true;
    for (index, step) in steps.into_iter().enumerate() {
        let is_left_out = is_left_out(index, &step);
        match remaining.last_mut() {
            Some(last) if is_left_out => last.end_ms = step.end_ms,
            Some(first) if has_only_left_out => {
                *first = PathStep {
                    start_ms: first.start_ms,
                    ..step
                };
            }
            Some(last) if is_same(last, &step) => last.end_ms = step.end_ms,
            _ => remaining.push(step),
        }
        has_only_left_out &= is_left_out;
    }
    remaining
}

fn is_same(a: &PathStep, b: &PathStep) -> bool {
    a.kind == b.kind && a.url == b.url
}

/// Returns the time at which the browser began to make a connection, if it did for this request.
fn connection_start_us(timing: &ResourceTiming) -> Option<f64> {
    [timing.dns_start_us, timing.connect_start_us]
        .into_iter()
        .filter(|us| *us >= 0.0)
        .reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plumbline_trace::{Exchange, Response};

    use super::*;

    const URL: &str = "https://a.test/";

    fn kinds_and_ends(steps: Steps) -> Vec<(PathStepKind, f64)> {
        let steps = steps.finish().steps.into_iter();
        steps.map(|step| (step.kind, step.end_ms)).collect()
    }

    /// Returns a request that is processed 3 ms after the start, sent 20 ms and answered 50 ms
    /// later, with a connection that begins this long after the processing, or none (-1).
    fn request(connect_start_us: f64) -> Resource {
        let timing = ResourceTiming {
            request_time_us: 3_000.0,
            dns_start_us: -1.0,
            connect_start_us,
            send_start_us: 20_000.0,
            receive_headers_end_us: 50_000.0,
            ..ResourceTiming::default()
        };
        let response = Response {
            timing: Some(timing),
            ..Response::default()
        };
        Resource {
            exchange: Arc::new(Exchange {
                url: URL.to_owned(),
                response: Some(response),
                ..Exchange::default()
            }),
            ..Resource::default()
        }
    }

    #[test]
    fn a_request_is_queued_before_its_connection_is_made() {
        let mut steps = Steps::new(0.0, 100_000.0);
        steps.add_request(0.0, 80_000.0, &request(4_000.0), false);
        assert_eq!(
            kinds_and_ends(steps),
            [
                (PathStepKind::Queued, 7.0),
                (PathStepKind::Connection, 23.0),
                (PathStepKind::Server, 53.0),
                (PathStepKind::Download, 80.0),
            ]
        );
    }

    #[test]
    fn a_request_on_an_existing_connection_is_only_queued() {
        let mut steps = Steps::new(0.0, 100_000.0);
        steps.add_request(0.0, 80_000.0, &request(-1.0), false);
        assert_eq!(
            kinds_and_ends(steps),
            [
                (PathStepKind::Queued, 23.0),
                (PathStepKind::Server, 53.0),
                (PathStepKind::Download, 80.0),
            ]
        );
    }

    #[test]
    fn only_the_longest_of_many_steps_are_kept() {
        let mut steps = Steps::new(0.0, 20_000_000.0);
        for task in 0..200 {
            let length_us = if task % 10 == 0 { 99_000.0 } else { 98_500.0 };
            let start_us = f64::from(task) * 100_000.0;
            let url = format!("{URL}{task}.js");
            steps.add_task(
                start_us,
                start_us + length_us,
                PathStepKind::Evaluation,
                &url,
            );
        }
        steps.add(PathStepKind::Rendering, 20_000_000.0, "");
        let steps = steps.finish().steps;
        assert!(steps.len() <= MAX_STEPS, "{}", steps.len());
        assert_eq!(steps.first().unwrap().start_ms, 0.0);
        assert_eq!(steps.last().unwrap().end_ms, 20_000.0);
    }

    #[test]
    fn totals_include_the_steps_that_are_left_out() {
        let mut steps = Steps::new(0.0, 2_300_500.0);
        for pair in 0..100 {
            let start_us = f64::from(pair) * 23_000.0;
            let url = format!("{URL}{pair}.js");
            steps.add_task(
                start_us,
                start_us + 12_000.0,
                PathStepKind::Evaluation,
                &url,
            );
            steps.add_task(
                start_us + 12_000.0,
                start_us + 23_000.0,
                PathStepKind::Rendering,
                "",
            );
        }
        steps.add(PathStepKind::Other, 2_300_500.0, "");
        let path = steps.finish();
        let totals = path.totals.iter().map(|total| (total.kind, total.ms));
        assert_eq!(
            totals.collect::<Vec<_>>(),
            [
                (PathStepKind::Evaluation, 1_200.0),
                (PathStepKind::Rendering, 1_100.0),
                (PathStepKind::Other, 0.5),
            ]
        );
        assert_eq!(path.steps.len(), MAX_STEPS);
        assert_eq!(path.steps[0].start_ms, 0.0);
        assert_eq!(path.steps[MAX_STEPS - 1].end_ms, 2_300.5);
    }

    #[test]
    fn as_many_of_equally_long_steps_are_kept_as_may_be_shown() {
        let mut steps = Steps::new(0.0, 500_000.0);
        for task in 0..50 {
            let end_us = f64::from(task + 1) * 10_000.0;
            steps.add(PathStepKind::Evaluation, end_us, &format!("{URL}{task}.js"));
        }
        assert_eq!(steps.finish().steps.len(), MAX_STEPS);
    }

    #[test]
    fn a_short_first_step_is_a_part_of_the_next_one() {
        let mut steps = Steps::new(0.0, 100_000.0);
        steps.add(PathStepKind::Waiting, 100.0, "");
        steps.add(PathStepKind::Server, 50_000.0, URL);
        let steps = steps.finish().steps;
        assert_eq!((steps.len(), steps[0].start_ms), (1, 0.0));
        assert_eq!(steps[0].kind, PathStepKind::Server);
    }

    #[test]
    fn short_breaks_between_tasks_are_no_waiting() {
        let mut steps = Steps::new(0.0, 100_000.0);
        steps.add_task(0.0, 10_000.0, PathStepKind::Evaluation, URL);
        steps.add_task(10_900.0, 20_000.0, PathStepKind::Rendering, "");
        steps.add_task(40_000.0, 50_000.0, PathStepKind::Rendering, "");
        assert_eq!(
            kinds_and_ends(steps),
            [
                (PathStepKind::Evaluation, 10.0),
                (PathStepKind::Rendering, 20.0),
                (PathStepKind::Waiting, 40.0),
                (PathStepKind::Rendering, 50.0),
            ]
        );
    }

    #[test]
    fn a_paint_before_the_end_of_a_task_ends_the_path() {
        let mut steps = Steps::new(0.0, 60_000.0);
        steps.add_task(40_000.0, 90_000.0, PathStepKind::Evaluation, URL);
        steps.add(PathStepKind::Rendering, 60_000.0, "");
        let last = steps.finish().steps.pop().unwrap();
        assert_eq!((last.end_ms, last.kind), (60.0, PathStepKind::Evaluation));
    }
}
