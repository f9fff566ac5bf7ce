//! The kind of work that tasks spent most of their time on.

use std::collections::HashMap;

use plumbline_model::media::PathStepKind;
use plumbline_trace::{WorkKind, WorkSpan};

use crate::facts::{Attribution, ScriptUrls};
use crate::replay::GraphNode;

/// The work of some tasks, in the order of their start.
pub(super) struct TaskWork<'w>(Vec<Work<'w>>);

struct Work<'w> {
    start_us: f64,
    end_us: f64,
    script_us: f64,
    rendering_us: f64,
    other_us: f64,
    /// The time of each script or page.
    us_by_url: HashMap<&'w str, f64>,
}

impl<'w> TaskWork<'w> {
    /// Adds up the spans of these tasks, which are in the order of their start.
    pub(super) fn of<'g>(
        tasks: impl Iterator<Item = &'g GraphNode>,
        spans: &'w [WorkSpan],
        scripts: &ScriptUrls,
    ) -> Self {
        let work = tasks.map(|task| Work {
            start_us: task.start_us,
            end_us: task.end_us,
            script_us: 0.0,
            rendering_us: 0.0,
            other_us: 0.0,
            us_by_url: HashMap::new(),
        });
        let mut of_tasks = Self(work.collect());
        for span in spans {
            let started = of_tasks.started(span.start_us);
            let task = of_tasks.0[..started].last_mut();
            if let Some(task) = task.filter(|task| span.start_us < task.end_us) {
                task.add(span, scripts);
            }
        }
        of_tasks
    }

    /// Returns the kind of work of the task that started at this time. A task that evaluates a
    /// script has its URL.
    pub(super) fn kind_and_url(&self, start_us: f64) -> (PathStepKind, &'w str) {
        let task = self.0[..self.started(start_us)].last();
        task.map_or((PathStepKind::Other, ""), Work::kind_and_url)
    }

    fn started(&self, us: f64) -> usize {
        self.0.partition_point(|task| task.start_us <= us)
    }
}

impl<'w> Work<'w> {
    fn add(&mut self, span: &'w WorkSpan, scripts: &ScriptUrls) {
        match span.kind {
            WorkKind::ScriptParsing | WorkKind::ScriptEvaluation => {
                self.script_us += span.self_us;
                if let Attribution::Url(url) = scripts.attribution(span) {
                    *self.us_by_url.entry(url).or_default() += span.self_us;
                }
            }
            WorkKind::GarbageCollection => self.script_us += span.self_us,
            WorkKind::ParseHtml | WorkKind::StyleAndLayout | WorkKind::Rendering => {
                self.rendering_us += span.self_us;
            }
            WorkKind::Other => self.other_us += span.self_us,
        }
    }

    fn kind_and_url(&self) -> (PathStepKind, &'w str) {
        if self.script_us > self.rendering_us.max(self.other_us) {
            let by_time = self.us_by_url.iter();
            // URLs of equal times are compared so that the result does not depend on the map.
            let longest = by_time.max_by(|a, b| a.1.total_cmp(b.1).then(a.0.cmp(b.0)));
            return (PathStepKind::Evaluation, longest.map_or("", |(url, _)| url));
        }
        if self.rendering_us >= self.other_us && self.rendering_us > 0.0 {
            (PathStepKind::Rendering, "")
        } else {
            (PathStepKind::Other, "")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plumbline_trace::TaskDependencies;

    use super::*;
    use crate::replay::NodeKind;

    const APP: &str = "https://a.test/app.js";

    fn span(start_us: f64, self_us: f64, kind: WorkKind, url: &str) -> WorkSpan {
        WorkSpan {
            start_us,
            end_us: start_us + self_us,
            self_us,
            parent: None,
            is_unended: false,
            kind,
            background: None,
            urls: Arc::from([Arc::from(url)]),
        }
    }

    fn kinds(tasks: &[(f64, f64)], spans: &[WorkSpan]) -> Vec<(PathStepKind, String)> {
        let nodes: Vec<GraphNode> = tasks
            .iter()
            .map(|(start_us, end_us)| GraphNode {
                start_us: *start_us,
                end_us: *end_us,
                kind: NodeKind::Task(TaskDependencies::default()),
                needs: Vec::new(),
                needed_by: Vec::new(),
            })
            .collect();
        let work = TaskWork::of(nodes.iter(), spans, &ScriptUrls::default());
        let kind = |(start_us, _): &(f64, f64)| {
            let (kind, url) = work.kind_and_url(*start_us);
            (kind, url.to_owned())
        };
        tasks.iter().map(kind).collect()
    }

    #[test]
    fn a_task_that_mostly_runs_a_script_evaluates_it() {
        let spans = [
            span(0.0, 20.0, WorkKind::Other, ""),
            span(1.0, 30.0, WorkKind::ScriptEvaluation, APP),
            span(
                31.0,
                10.0,
                WorkKind::ScriptEvaluation,
                "https://a.test/b.js",
            ),
            span(41.0, 20.0, WorkKind::StyleAndLayout, APP),
        ];
        assert_eq!(
            kinds(&[(0.0, 100.0)], &spans),
            [(PathStepKind::Evaluation, APP.to_owned())]
        );
    }

    #[test]
    fn a_task_that_mostly_lays_out_or_paints_renders() {
        let spans = [
            span(0.0, 10.0, WorkKind::ScriptEvaluation, APP),
            span(10.0, 15.0, WorkKind::StyleAndLayout, APP),
            span(25.0, 5.0, WorkKind::Rendering, ""),
        ];
        assert_eq!(
            kinds(&[(0.0, 100.0)], &spans),
            [(PathStepKind::Rendering, String::new())]
        );
    }

    #[test]
    fn the_work_of_each_task_is_its_own() {
        let spans = [
            span(0.0, 50.0, WorkKind::Rendering, ""),
            span(100.0, 50.0, WorkKind::ScriptParsing, APP),
            // Between the tasks.
            span(170.0, 50.0, WorkKind::ScriptParsing, APP),
            span(200.0, 50.0, WorkKind::Other, ""),
        ];
        let tasks = [(0.0, 60.0), (100.0, 160.0), (200.0, 260.0)];
        let kinds = kinds(&tasks, &spans).into_iter();
        assert_eq!(
            kinds.map(|(kind, _)| kind).collect::<Vec<_>>(),
            [
                PathStepKind::Rendering,
                PathStepKind::Evaluation,
                PathStepKind::Other
            ]
        );
    }
}
