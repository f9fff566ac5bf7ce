//! The steps that the largest content waited for, from the navigation to its paint.

mod chain;
mod steps;
mod task_work;
mod workers;

use plumbline_model::media::{PathStep, PathStepKind, PathTotal};
use plumbline_trace::{Resource, Trace};

use crate::facts::ScriptUrls;
use crate::replay::Graph;
use chain::Chain;
use steps::Steps;
use task_work::TaskWork;
use workers::awaited_worker;

/// The steps up to a paint in order of time, and the time of each kind.
#[derive(Default)]
pub(super) struct CriticalPath {
    pub(super) steps: Vec<PathStep>,
    /// These include steps that are too short or too many to be listed.
    pub(super) totals: Vec<PathTotal>,
}

/// Returns the steps up to a paint at `paint_us`, in order of time. Each begins where the previous
/// one ends; together they last until the paint. `image` is the request of the painted image.
pub(super) fn critical_path(
    trace: &Trace,
    scripts: &ScriptUrls,
    paint_us: f64,
    image: Option<&Resource>,
) -> CriticalPath {
    let Some(graph) = Graph::with_short_tasks(trace) else {
        return CriticalPath::default();
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
                let before = index.checked_sub(1).map(|before| path[before]);
                let is_timer = before.is_some_and(|before| {
                    graph.nodes[before].task().is_some() && node.needs.contains(&before)
                });
                let worker = awaited_worker(&trace.worker_scripts, steps.at_us(), node.start_us);
                if let Some(url) = worker.filter(|_| !is_timer) {
                    steps.add(PathStepKind::Waiting, node.start_us, url);
                }
                let (kind, url) = work.kind_and_url(node.start_us);
                steps.add_task(node.start_us, end_us, kind, url);
            }
        }
    }
    steps.add(PathStepKind::Rendering, paint_us, "");
    steps.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PAGE: &str = "https://a.test/";
    const WORKER: &str = "https://a.test/worker.js";

    /// Returns an event with times in milliseconds, on the main thread.
    fn event(name: &str, phase: &str, ms: f64, length_ms: f64, args: Value) -> Value {
        json!({"name": name, "cat": "devtools.timeline", "ph": phase, "pid": 1, "tid": 2,
            "ts": ms * 1000.0, "dur": length_ms * 1000.0, "args": args})
    }

    fn thread_name(thread: i64, name: &str) -> Value {
        json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": 1, "tid": thread,
            "ts": 0, "args": {"name": name}})
    }

    /// Returns the path to a paint after 500 ms on a page whose main thread is idle from 100 to
    /// 400 ms, while a worker runs a script until `worker_end_ms`.
    fn path(worker_end_ms: f64, others: Vec<Value>) -> Vec<(PathStepKind, String)> {
        let script = |ms: f64, length_ms: f64, url: &str| {
            let args = json!({"data": {"url": url, "frame": "F"}});
            event("EvaluateScript", "X", ms, length_ms, args)
        };
        let mut of_worker = script(150.0, worker_end_ms - 150.0, WORKER);
        of_worker["tid"] = json!(5);
        let request = |name: &str, ms: f64, mut data: Value| {
            data["requestId"] = json!("main");
            event(name, "I", ms, 0.0, json!({"data": data}))
        };
        let frames = json!({"data": {"frames": [{"frame": "F", "url": PAGE, "processId": 1}]}});
        let navigation = json!({"frame": "F", "data": {"documentLoaderURL": PAGE,
            "navigationId": "main", "isLoadingMainFrame": true}});
        let mut events = vec![
            thread_name(2, "CrRendererMain"),
            thread_name(5, "DedicatedWorker thread"),
            event("TracingStartedInBrowser", "I", 0.5, 0.0, frames),
            event("navigationStart", "R", 1.0, 0.0, navigation),
            request(
                "ResourceSendRequest",
                2.0,
                json!({"url": PAGE, "resourceType": "Document", "frame": "F"}),
            ),
            request(
                "ResourceReceiveResponse",
                40.0,
                json!({"mimeType": "text/html", "statusCode": 200, "timing": {
                    "requestTime": 0.002, "receiveHeadersStart": 38.0, "receiveHeadersEnd": 38.0}}),
            ),
            request("ResourceFinish", 50.0, json!({"finishTime": 0.05})),
            event("RunTask", "X", 60.0, 40.0, json!({})),
            script(61.0, 38.0, PAGE),
            of_worker,
            event("RunTask", "X", 400.0, 90.0, json!({})),
            script(401.0, 80.0, PAGE),
        ];
        events.extend(others);
        let trace = Trace::read(&serde_json::to_vec(&events).unwrap()).unwrap();
        let steps = critical_path(&trace, &ScriptUrls::default(), 500_000.0, None).steps;
        let steps = steps.into_iter();
        steps.map(|step| (step.kind, step.url)).collect()
    }

    #[test]
    fn a_wait_that_a_worker_ends_has_the_url_of_its_script() {
        let waits = |path: Vec<(PathStepKind, String)>| -> Vec<String> {
            let waits = path
                .into_iter()
                .filter(|(kind, _)| *kind == PathStepKind::Waiting);
            waits.map(|(_, url)| url).collect()
        };
        assert!(waits(path(399.0, Vec::new())).contains(&WORKER.to_owned()));
        let before = path(300.0, Vec::new());
        assert!(waits(before.clone()).contains(&String::new()), "{before:?}");
        assert!(!waits(before).contains(&WORKER.to_owned()));
        // The task is that of a timer.
        let timer = json!({"data": {"timerId": 3, "frame": "F"}});
        let timers = vec![
            event("TimerInstall", "I", 70.0, 0.0, timer.clone()),
            event("TimerFire", "X", 400.5, 89.0, timer),
        ];
        let timed = path(399.0, timers);
        assert!(
            !waits(timed.clone()).contains(&WORKER.to_owned()),
            "{timed:?}"
        );
    }
}
