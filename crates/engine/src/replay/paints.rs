//! The requests and tasks that a paint depends on.

use std::collections::{HashMap, HashSet};

use super::graph::{Graph, GraphNode};
use super::request::RequestNode;

/// Returns the nodes that a paint needs, and those that share the line with them: requests of high
/// priority except images, which the browser does not hold back, and what these depend on.
pub(super) fn loaded(graph: &Graph, paint_us: f64, needed: &[bool]) -> Vec<bool> {
    let is_loaded = |at: usize, node: &GraphNode| {
        let is_urgent = node.request().is_some_and(|request| {
            request.resource_type != "Image"
                && matches!(request.exchange.priority.as_str(), "High" | "VeryHigh")
        });
        needed[at] || (is_urgent && !node.needs.is_empty() && node.start_us <= paint_us)
    };
    let nodes = graph.nodes.iter().enumerate();
    let open = nodes.filter(|(at, node)| is_loaded(*at, node));
    with_dependencies(graph, open.map(|(at, _)| at).collect())
}

/// Returns the dependencies of the first contentful paint: render-blocking requests not initiated
/// by scripts, or, if scripts draw the page, all that they loaded and did.
pub(super) fn needed_first(graph: &Graph, paint_us: f64, is_drawn_by_script: bool) -> Vec<bool> {
    if is_drawn_by_script {
        return needed(graph, paint_us, true, is_no_picture);
    }
    needed(graph, paint_us, false, |request| {
        request.blocks_rendering() || request.resource_type == "Document"
    })
}

/// Returns the dependencies of the largest contentful paint: everything except images of low
/// priority, and the image that is painted.
pub(super) fn needed_for_largest(graph: &Graph, paint_us: f64, image: Option<usize>) -> Vec<bool> {
    let image = image.and_then(|image| graph.nodes[image].request());
    let image = image.map(|image| image.resource);
    needed(graph, paint_us, false, |request| {
        is_no_picture(request) || Some(request.resource) == image
    })
}

fn is_no_picture(request: &RequestNode) -> bool {
    request.resource_type != "Image"
        || !matches!(request.exchange.priority.as_str(), "Low" | "VeryLow")
}

/// Returns everything that the largest contentful paint may depend on, as indexes of the trace's
/// resources.
pub(super) fn perhaps_needed_for_largest(graph: &Graph, paint_us: f64) -> HashSet<usize> {
    let nodes = needed(graph, paint_us, true, |_| true);
    let is_needed = |(node, is_needed): (&GraphNode, bool)| {
        let request = node.request().filter(|_| is_needed)?;
        Some(request.resource)
    };
    graph
        .nodes
        .iter()
        .zip(nodes)
        .filter_map(is_needed)
        .collect()
}

fn needed(
    graph: &Graph,
    paint_us: f64,
    with_all_layouts: bool,
    is_blocking: impl Fn(&RequestNode) -> bool,
) -> Vec<bool> {
    let tasks = PaintTasks::of(graph, paint_us, with_all_layouts, &is_blocking);
    let is_match = |at: usize, node: &GraphNode| match node.request() {
        None => tasks.needed.contains(&at),
        Some(request) => {
            let is_late = node.end_us > paint_us || node.start_us > paint_us;
            (!is_late || at == graph.document)
                && !tasks.not_blocking.contains(request.url.as_str())
                && is_blocking(request)
        }
    };
    // Matching nodes include their dependencies.
    let mut open: Vec<usize> = vec![graph.document];
    let nodes_by_index = graph.nodes.iter().enumerate();
    open.extend(
        nodes_by_index
            .filter(|(at, node)| !node.needs.is_empty() && is_match(*at, node))
            .map(|(at, _)| at),
    );
    with_dependencies(graph, open)
}

fn with_dependencies(graph: &Graph, mut open: Vec<usize>) -> Vec<bool> {
    let mut nodes = vec![false; graph.nodes.len()];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut nodes[at], true) {
            open.extend(&graph.nodes[at].needs);
        }
    }
    nodes
}

struct PaintTasks<'g> {
    needed: HashSet<usize>,
    /// The URLs of scripts that ran only after the paint.
    not_blocking: HashSet<&'g str>,
}

impl<'g> PaintTasks<'g> {
    fn of(
        graph: &'g Graph,
        paint_us: f64,
        with_all_layouts: bool,
        is_blocking: &impl Fn(&RequestNode) -> bool,
    ) -> Self {
        let mut first_run: HashMap<&str, usize> = HashMap::new();
        let mut early: Vec<usize> = Vec::new();
        for (at, node) in graph.nodes.iter().enumerate() {
            let Some(task) = node.task().filter(|_| !node.needs.is_empty()) else {
                continue;
            };
            if node.start_us <= paint_us {
                early.push(at);
            }
            for url in &task.evaluated_urls {
                let first = first_run.entry(url).or_insert(at);
                if node.start_us < graph.nodes[*first].start_us {
                    *first = at;
                }
            }
        }
        early.sort_by(|a, b| {
            graph.nodes[*a]
                .start_us
                .total_cmp(&graph.nodes[*b].start_us)
        });
        let mut tasks = Self {
            needed: HashSet::new(),
            not_blocking: HashSet::new(),
        };
        for node in &graph.nodes {
            let Some(request) = node.request().filter(|request| {
                request.resource_type == "Script" && node.end_us <= paint_us && is_blocking(request)
            }) else {
                continue;
            };
            match first_run.get(request.url.as_str()) {
                Some(run) if graph.nodes[*run].start_us <= paint_us => {
                    tasks.needed.insert(*run);
                }
                Some(_) => {
                    tasks.not_blocking.insert(&request.url);
                }
                None => {}
            }
        }
        let task = |at: &usize| graph.nodes[*at].task();
        let mut first_with = |has: fn(&plumbline_trace::TaskDependencies) -> bool| {
            let first = early.iter().find(|at| task(at).is_some_and(has));
            tasks.needed.extend(first);
        };
        first_with(|task| task.has_layout);
        first_with(|task| task.has_paint);
        first_with(|task| task.has_parsing);
        let has_painted = |at: &&usize| task(at).is_some_and(|task| task.has_paint);
        tasks.needed.extend(early.iter().rfind(has_painted));
        if with_all_layouts {
            let layouts = early
                .iter()
                .filter(|at| task(at).is_some_and(|task| task.has_layout));
            tasks.needed.extend(layouts);
        }
        tasks
    }
}
