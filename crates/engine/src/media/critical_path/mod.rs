//! The steps that the largest content waited for, from the navigation to its paint.

mod chain;
mod steps;
mod task_work;

use plumbline_model::media::{PathStep, PathStepKind};
use plumbline_trace::{Resource, Trace};

use crate::facts::ScriptUrls;
use crate::replay::Graph;
use chain::Chain;
use steps::Steps;
use task_work::TaskWork;

/// Returns the steps up to a paint at `paint_us`, in order of time. Each begins where the previous
/// one ends; together they last until the paint. `image` is the request of the painted image.
pub(super) fn critical_path(
    trace: &Trace,
    scripts: &ScriptUrls,
    paint_us: f64,
    image: Option<&Resource>,
) -> Vec<PathStep> {
    let Some(graph) = Graph::with_short_tasks(trace) else {
        return Vec::new();
    };
    let image = image.and_then(|image| graph.by_id(&image.id));
    let path = Chain::of(&graph).to_paint(paint_us, image);
    let tasks = path.iter().map(|at| &graph.nodes[*at]);
    let tasks = tasks.filter(|node| node.task().is_some());
    let work = TaskWork::of(tasks, &trace.work, scripts);
    let mut steps = Steps::new(trace.navigation.time_origin_us, paint_us);
    for (index, at) in path.iter().enumerate() {
        let node = &graph.nodes[*at];
        // What waits for a part of a response or of a task begins before its end.
        let next = path.get(index + 1).map(|next| graph.nodes[*next].start_us);
        let end_us = next.unwrap_or(paint_us).min(node.end_us);
        match node.request() {
            Some(request) => {
                let resource = &trace.resources.all[request.resource];
                steps.add_request(node.start_us, end_us, resource, request.is_redirect);
            }
            None => {
                let (kind, url) = work.kind_and_url(node.start_us);
                steps.add_task(node.start_us, end_us, kind, url);
            }
        }
    }
    steps.add(PathStepKind::Rendering, paint_us, "");
    steps.finish()
}
