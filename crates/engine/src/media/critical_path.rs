//! The steps that the largest content waited for, from the navigation to its paint.

use plumbline_model::media::{PathStep, PathStepKind};
use plumbline_trace::Resource;

use super::to_us;
use crate::replay::{Graph, GraphNode};

/// The shortest step that is kept.
const MIN_STEP_MS: f64 = 0.5;

/// The maximum number of steps. The shortest of more are left out.
const MAX_STEPS: usize = 40;

/// Returns the steps up to a paint at `paint_us`, in order of time. Each begins where the previous
/// one ends; together they last until the paint. `image` is the request of the painted image.
///
/// A request or task is preceded by the one that it waited for last: a dependency, or the task that
/// kept the main thread busy before it.
pub(super) fn critical_path(
    graph: &Graph,
    resources: &[Resource],
    origin_us: f64,
    paint_us: f64,
    image: Option<&Resource>,
) -> Vec<PathStep> {
    let mut steps = Steps {
        origin_us,
        at_us: origin_us,
        end_us: paint_us,
        steps: Vec::new(),
    };
    for at in nodes_to(graph, paint_us, image) {
        let node = &graph.nodes[at];
        match (node.request(), node.task()) {
            (Some(request), _) => {
                let resource = &resources[request.resource];
                steps.add_request(node, resource, request.is_redirect);
            }
            (_, Some(task)) => {
                steps.add(PathStepKind::Waiting, node.start_us, "");
                let (kind, url) = match task.evaluated_urls.first() {
                    Some(url) => (PathStepKind::Evaluation, url.as_str()),
                    None => (PathStepKind::Rendering, ""),
                };
                steps.add(kind, node.end_us, url);
            }
            (None, None) => {}
        }
    }
    steps.add(PathStepKind::Rendering, paint_us, "");
    steps.finish()
}

/// Returns the requests and tasks from the document to the paint.
fn nodes_to(graph: &Graph, paint_us: f64, image: Option<&Resource>) -> Vec<usize> {
    let image = image.and_then(|image| graph.by_id(&image.id));
    let last = image.or_else(|| last_task(graph, paint_us));
    let tasks = tasks_by_end(graph);
    let mut path = Vec::new();
    let mut next = last.or(Some(graph.document));
    while let Some(at) = next {
        path.push(at);
        next = predecessor(graph, &tasks, at);
    }
    path.reverse();
    path
}

/// Returns the tasks that depend on the document.
fn tasks(graph: &Graph) -> impl Iterator<Item = usize> {
    let nodes = graph.nodes.iter().enumerate();
    let tasks = nodes.filter(|(_, node)| node.task().is_some() && !node.needs.is_empty());
    tasks.map(|(at, _)| at)
}

fn tasks_by_end(graph: &Graph) -> Vec<usize> {
    let mut tasks: Vec<usize> = tasks(graph).collect();
    tasks.sort_by(|a, b| graph.nodes[*a].end_us.total_cmp(&graph.nodes[*b].end_us));
    tasks
}

/// Returns the last task that began before the paint.
fn last_task(graph: &Graph, paint_us: f64) -> Option<usize> {
    let start_us = |at: usize| graph.nodes[at].start_us;
    tasks(graph)
        .filter(|at| start_us(*at) <= paint_us)
        .max_by(|a, b| start_us(*a).total_cmp(&start_us(*b)))
}

/// Returns the node that this one waited for last.
fn predecessor(graph: &Graph, tasks_by_end: &[usize], at: usize) -> Option<usize> {
    let node = &graph.nodes[at];
    let ends_later = |a: &usize, b: &usize| {
        let end_us = |at: usize| graph.nodes[at].end_us;
        end_us(*a).total_cmp(&end_us(*b))
    };
    // An earlier start keeps the search finite.
    let is_earlier = |other: &GraphNode| other.start_us < node.start_us;
    let needs = node.needs.iter().copied();
    let need = needs
        .filter(|need| is_earlier(&graph.nodes[*need]))
        .max_by(ends_later);
    if node.task().is_none() {
        return need;
    }
    let ended = tasks_by_end.partition_point(|at| graph.nodes[*at].end_us <= node.start_us);
    let previous = ended.checked_sub(1).map(|index| tasks_by_end[index]);
    let busy_until = previous.filter(|at| is_earlier(&graph.nodes[*at]));
    need.into_iter().chain(busy_until).max_by(ends_later)
}

struct Steps {
    origin_us: f64,
    /// The end of the last step.
    at_us: f64,
    /// The end of the path.
    end_us: f64,
    steps: Vec<PathStep>,
}

impl Steps {
    fn add_request(&mut self, node: &GraphNode, resource: &Resource, is_redirect: bool) {
        let url = resource.url.as_str();
        self.add(PathStepKind::Waiting, node.start_us, "");
        if is_redirect {
            self.add(PathStepKind::Server, node.end_us, url);
            return;
        }
        if let Some(timing) = resource.timing() {
            let since_start_us = |us: f64| timing.request_time_us + us.max(0.0);
            let connected_us = since_start_us(timing.send_start_us).min(node.end_us);
            let answered_us = since_start_us(timing.receive_headers_end_us).min(node.end_us);
            self.add(PathStepKind::Connection, connected_us, url);
            self.add(PathStepKind::Server, answered_us, url);
        }
        self.add(PathStepKind::Download, node.end_us, url);
    }

    /// Adds a step from the end of the last one to this time.
    fn add(&mut self, kind: PathStepKind, until_us: f64, url: &str) {
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

    /// Returns the steps; those that are too short to be shown become a part of the one before.
    fn finish(self) -> Vec<PathStep> {
        let length_ms = |step: &PathStep| step.end_ms - step.start_ms;
        let mut lengths_ms: Vec<f64> = self.steps.iter().map(length_ms).collect();
        lengths_ms.sort_by(|a, b| b.total_cmp(a));
        let min_ms = lengths_ms
            .get(MAX_STEPS)
            .map_or(MIN_STEP_MS, |longest_left_out| {
                longest_left_out.max(MIN_STEP_MS)
            });
        let mut steps: Vec<PathStep> = Vec::new();
        for step in self.steps {
            match steps.last_mut() {
                Some(last) if length_ms(&step) <= min_ms => last.end_ms = step.end_ms,
                _ => steps.push(step),
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use plumbline_trace::TaskDependencies;

    use super::*;
    use crate::replay::NodeKind;

    #[test]
    fn only_the_longest_of_many_steps_are_kept() {
        let nodes: Vec<(f64, f64, &[usize])> = (0..200)
            .map(|task| {
                let start_ms = f64::from(task) * 100.0;
                let end_ms = start_ms + if task % 10 == 0 { 99.0 } else { 98.5 };
                (start_ms, end_ms, [0].as_slice())
            })
            .collect();
        let steps = critical_path(&graph_of(&nodes), &[], 0.0, 20_000_000.0, None);
        assert!(steps.len() <= MAX_STEPS, "{}", steps.len());
        assert_eq!(steps.first().unwrap().start_ms, 0.0);
        assert_eq!(steps.last().unwrap().end_ms, 20_000.0);
    }

    /// Returns a graph of tasks given as start, end and dependencies, with times in milliseconds.
    fn graph_of(nodes: &[(f64, f64, &[usize])]) -> Graph {
        let nodes = nodes.iter().map(|(start_ms, end_ms, needs)| GraphNode {
            start_us: start_ms * 1000.0,
            end_us: end_ms * 1000.0,
            kind: NodeKind::Task(TaskDependencies {
                evaluated_urls: vec![format!("https://a.test/{start_ms}.js")],
                ..TaskDependencies::default()
            }),
            needs: needs.to_vec(),
            needed_by: Vec::new(),
        });
        Graph::with_nodes(nodes.collect())
    }

    #[test]
    fn a_task_waits_for_the_dependency_that_ended_last() {
        let graph = graph_of(&[
            (0.0, 10.0, &[0]),
            (20.0, 50.0, &[0]),
            (20.0, 80.0, &[0]),
            (100.0, 120.0, &[1, 2]),
        ]);
        assert_eq!(nodes_to(&graph, 130_000.0, None), [0, 2, 3]);
    }

    #[test]
    fn a_task_waits_for_the_one_that_kept_the_main_thread_busy() {
        let graph = graph_of(&[
            (0.0, 10.0, &[0]),
            (20.0, 90.0, &[0]),
            (91.0, 120.0, &[0]),
            // After the paint.
            (200.0, 220.0, &[0]),
        ]);
        assert_eq!(nodes_to(&graph, 130_000.0, None), [0, 1, 2]);
    }

    #[test]
    fn the_steps_follow_each_other_until_the_paint() {
        let graph = graph_of(&[(1.0, 10.0, &[0]), (40.0, 90.0, &[0])]);
        let steps = critical_path(&graph, &[], 0.0, 100_000.0, None);
        let kinds: Vec<_> = steps.iter().map(|step| step.kind).collect();
        assert_eq!(
            kinds,
            [
                PathStepKind::Waiting,
                PathStepKind::Evaluation,
                PathStepKind::Waiting,
                PathStepKind::Evaluation,
                PathStepKind::Rendering,
            ]
        );
        for pair in steps.windows(2) {
            assert_eq!(pair[0].end_ms, pair[1].start_ms);
        }
        assert_eq!(steps[0].start_ms, 0.0);
        assert_eq!(steps[4].end_ms, 100.0);
        assert_eq!(steps[3].url, "https://a.test/40.js");
    }

    #[test]
    fn a_paint_before_the_end_of_a_task_ends_the_path() {
        let graph = graph_of(&[(1.0, 10.0, &[0]), (40.0, 90.0, &[0])]);
        let steps = critical_path(&graph, &[], 0.0, 60_000.0, None);
        assert_eq!(steps.last().unwrap().end_ms, 60.0);
        assert_eq!(steps.last().unwrap().kind, PathStepKind::Evaluation);
    }
}
