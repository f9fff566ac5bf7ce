//! Dependencies between tasks of a main thread, requests and other tasks: scripts that ran, timers
//! set or fired, resources requested. The dependency graph of the load is built from them.
//!
//! The events used are those of Lighthouse's graph (trace_engine,
//! lantern/graph/PageDependencyGraph.js).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::TraceEvent;
use crate::navigation::Thread;
use crate::tasks::{Task, Tasks};

/// A task of the main thread with its dependencies, in order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskDependencies {
    pub start_us: f64,
    pub end_us: f64,
    pub has_layout: bool,
    pub has_paint: bool,
    pub has_parsing: bool,
    pub evaluated_urls: Vec<String>,
    pub dependencies: Vec<Dependency>,
}

impl TaskDependencies {
    pub fn duration_us(&self) -> f64 {
        self.end_us - self.start_us
    }
}

/// A relation of a task to a document, a resource or a timer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// The task worked for the document of this frame.
    Frame(String),
    /// The task ran, or was initiated by, a resource with this URL.
    Url(String),
    /// The task requested the resource with this id.
    Requested(String),
    TimerSet(String),
    TimerFired(String),
}

/// Kinds of events that tell on what a task depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Layout,
    Paint,
    Parsing,
    TimerSet,
    TimerFired,
    Invalidated,
    Evaluated,
    XhrChanged,
    Called,
    StyleParsed,
    Requested,
}

#[derive(Debug)]
struct DependencyEvent<'a> {
    kind: DependencyKind,
    ts_us: f64,
    args: Option<&'a RawValue>,
}

/// Events of every thread: the page's threads are known only at the end of the trace.
#[derive(Debug, Default)]
pub(crate) struct DependencyEvents<'a> {
    by_thread: HashMap<Thread, Vec<DependencyEvent<'a>>>,
}

#[derive(Deserialize)]
struct Args<'a> {
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    frame: Option<Cow<'a, str>>,
    #[serde(borrow)]
    style_sheet_url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timer_id: Option<&'a RawValue>,
    ready_state: Option<f64>,
    #[serde(default, borrow)]
    stack_trace: Vec<CallFrame<'a>>,
}

#[derive(Deserialize)]
struct CallFrame<'a> {
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
}

impl<'a> DependencyEvents<'a> {
    pub(crate) fn record(&mut self, event: &TraceEvent<'a>) {
        if let Some(kind) = event.kind.dependency {
            self.by_thread
                .entry(event.thread())
                .or_default()
                .push(DependencyEvent {
                    kind,
                    ts_us: event.ts_us,
                    args: event.args,
                });
        }
    }

    /// Returns the tasks of the given threads with their dependencies, in order of their start.
    pub(crate) fn of_threads(mut self, threads: &[Thread], tasks: &Tasks) -> Vec<TaskDependencies> {
        let mut events: Vec<DependencyEvent> = threads
            .iter()
            .filter_map(|thread| self.by_thread.remove(thread))
            .flatten()
            .collect();
        events.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        let mut events = events.into_iter().peekable();
        let mut task_dependencies = Vec::with_capacity(tasks.all.len());
        for (at, task) in tasks.all.iter().enumerate() {
            let end_us = end_us(task, tasks.all.get(at + 1));
            while events
                .next_if(|event| event.ts_us < task.start_us)
                .is_some()
            {}
            let mut entry = TaskDependencies {
                start_us: task.start_us,
                end_us,
                ..TaskDependencies::default()
            };
            let mut distinct = HashSet::new();
            while let Some(event) = events.next_if(|event| event.ts_us < end_us) {
                entry.apply(&event, &mut distinct);
            }
            task_dependencies.push(entry);
        }
        task_dependencies
    }
}

/// Returns the end of a task, before the start of the next one: Chromium at times reports
/// overlapping tasks, which is impossible.
fn end_us(task: &Task, next: Option<&Task>) -> f64 {
    let end_us = task.start_us + task.dur_us;
    match next {
        Some(next) if next.start_us < end_us => next.start_us - 1.0,
        _ => end_us,
    }
}

impl TaskDependencies {
    fn apply(&mut self, event: &DependencyEvent, distinct: &mut HashSet<Dependency>) {
        match event.kind {
            DependencyKind::Layout => self.has_layout = true,
            DependencyKind::Paint => self.has_paint = true,
            DependencyKind::Parsing => self.has_parsing = true,
            _ => {
                let args = event.args.map(RawValue::get).unwrap_or_default();
                if let Ok(Args { data }) = serde_json::from_str(args) {
                    self.record_dependencies(event.kind, data, distinct);
                }
            }
        }
    }

    fn record_dependencies(
        &mut self,
        kind: DependencyKind,
        data: Data,
        distinct: &mut HashSet<Dependency>,
    ) {
        // An incomplete response is not a dependency.
        if kind == DependencyKind::XhrChanged && data.ready_state != Some(4.0) {
            return;
        }
        let timer = data.timer_id.map(|id| id.get().to_owned());
        let of_frame = matches!(
            kind,
            DependencyKind::Invalidated
                | DependencyKind::Evaluated
                | DependencyKind::Called
                | DependencyKind::StyleParsed
                | DependencyKind::Requested
        );
        let of_url = matches!(
            kind,
            DependencyKind::Evaluated | DependencyKind::XhrChanged | DependencyKind::Called
        );
        let of_stack = !matches!(
            kind,
            DependencyKind::TimerFired | DependencyKind::Called | DependencyKind::StyleParsed
        );
        let url = |url: Cow<str>| (!url.is_empty()).then(|| Dependency::Url(url.into_owned()));
        if let Some(Dependency::Url(url)) = data.url.clone().and_then(url)
            && kind == DependencyKind::Evaluated
            && !self.evaluated_urls.contains(&url)
        {
            self.evaluated_urls.push(url);
        }
        let direct = match kind {
            DependencyKind::TimerSet => timer.map(Dependency::TimerSet),
            DependencyKind::TimerFired => timer.map(Dependency::TimerFired),
            DependencyKind::StyleParsed => data.style_sheet_url.and_then(url),
            DependencyKind::Requested => data
                .request_id
                .map(|id| Dependency::Requested(id.into_owned())),
            _ if of_url => data.url.and_then(url),
            _ => None,
        };
        let frame = data.frame.filter(|_| of_frame);
        let stack = data.stack_trace.into_iter().filter(|_| of_stack);
        let dependencies = frame
            .map(|frame| Dependency::Frame(frame.into_owned()))
            .into_iter()
            .chain(direct)
            .chain(stack.filter_map(|frame| frame.url.and_then(url)));
        for dependency in dependencies {
            if distinct.insert(dependency.clone()) {
                self.dependencies.push(dependency);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Trace;

    fn task_dependencies(mut events: Vec<serde_json::Value>) -> Vec<TaskDependencies> {
        events.push(json!({"name": "TracingStartedInBrowser", "cat": "disabled-by-default-devtools.timeline", "ph": "I", "pid": 1, "tid": 1, "ts": 1,
            "args": {"data": {"frames": [{"frame": "F", "url": "https://a.test/", "name": "", "processId": 1}]}}}));
        events.push(json!({"name": "navigationStart", "cat": "blink.user_timing,loading", "ph": "R", "pid": 1, "tid": 1, "ts": 2,
            "args": {"frame": "F", "data": {"documentLoaderURL": "https://a.test/", "isLoadingMainFrame": true, "isOutermostMainFrame": true, "navigationId": "N"}}}));
        events.push(json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": 1, "tid": 1, "ts": 0, "args": {"name": "CrRendererMain"}}));
        let bytes = serde_json::to_vec(&events).unwrap();
        Trace::read(&bytes).unwrap().task_dependencies
    }

    fn event(name: &str, ts_us: u32, dur_us: u32, data: serde_json::Value) -> serde_json::Value {
        json!({"name": name, "cat": "devtools.timeline", "ph": "X", "pid": 1, "tid": 1, "ts": ts_us, "dur": dur_us, "args": {"data": data}})
    }

    #[test]
    fn a_task_depends_on_the_script_that_ran_and_the_resource_it_requested() {
        let url = "https://a.test/a.js";
        let task_dependencies = task_dependencies(vec![
            event("RunTask", 100, 50, json!({})),
            event("EvaluateScript", 110, 30, json!({"url": url, "frame": "F"})),
            event(
                "ResourceSendRequest",
                120,
                0,
                json!({"requestId": "1.2", "stackTrace": [{"url": url}]}),
            ),
            event("Layout", 141, 1, json!({})),
            event("RunTask", 200, 50, json!({})),
            event(
                "XHRReadyStateChange",
                210,
                0,
                json!({"readyState": 2, "url": url}),
            ),
        ]);
        assert_eq!(task_dependencies.len(), 2);
        let dependencies = [
            Dependency::Frame("F".to_owned()),
            Dependency::Url(url.to_owned()),
            Dependency::Requested("1.2".to_owned()),
        ];
        assert_eq!(task_dependencies[0].dependencies, dependencies);
        assert_eq!(task_dependencies[0].evaluated_urls, [url]);
        assert!(task_dependencies[0].has_layout && !task_dependencies[0].has_paint);
        assert_eq!(
            task_dependencies[1].dependencies,
            [],
            "the response is incomplete"
        );
    }

    #[test]
    fn a_task_ends_before_the_next_one_starts() {
        let task_dependencies = task_dependencies(vec![
            event("RunTask", 100, 500, json!({})),
            event("RunTask", 200, 50, json!({})),
            event("Paint", 210, 1, json!({})),
        ]);
        assert_eq!(task_dependencies[0].end_us, 199.0);
        assert!(!task_dependencies[0].has_paint && task_dependencies[1].has_paint);
    }
}
