//! Work of the page's main threads as nested spans, with its kind and the URLs it is attributed
//! to.
//!
//! The rules of nesting and attribution are Lighthouse's (core/lib/tracehouse/main-thread-tasks.js
//! and task-groups.js), so that both attribute work to the same scripts.

mod attribution;
mod nesting;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::event::TraceEvent;
use crate::frames::Frames;
use crate::navigation::Thread;
use crate::reflows::ForcedReflow;
use crate::task_dependencies::DependencyKind;

/// Kinds of work, as Lighthouse groups them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkKind {
    ParseHtml,
    StyleAndLayout,
    Rendering,
    ScriptParsing,
    ScriptEvaluation,
    GarbageCollection,
    Other,
}

/// Work that the browser does on its own, not on behalf of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundWork {
    Browser,
    GarbageCollection,
}

/// A span of a main thread's time, which may contain other spans.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkSpan {
    pub start_us: f64,
    pub end_us: f64,
    /// Duration without nested spans.
    pub self_us: f64,
    /// Index of the enclosing span.
    pub parent: Option<usize>,
    /// True if no end was recorded.
    pub is_unended: bool,
    pub kind: WorkKind,
    pub background: Option<BackgroundWork>,
    /// URLs that the work is attributed to, most specific first.
    pub urls: Arc<[Arc<str>]>,
}

impl WorkSpan {
    pub fn duration_us(&self) -> f64 {
        self.end_us - self.start_us
    }
}

/// A time in which a dedicated worker ran a script.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerScript {
    pub start_us: f64,
    pub end_us: f64,
    pub url: Arc<str>,
}

/// An event with a duration. Its arguments are parsed only if its thread turns out to be a main
/// thread of the page.
#[derive(Debug)]
struct WorkEvent<'a> {
    name: Cow<'a, str>,
    phase: u8,
    ts_us: f64,
    dur_us: f64,
    args: Option<&'a RawValue>,
}

/// Events of every thread of every process: the page's threads are known only at the end of the
/// trace.
#[derive(Debug, Default)]
pub(crate) struct WorkEvents<'a> {
    threads: HashMap<Thread, Vec<WorkEvent<'a>>>,
}

impl<'a> WorkEvents<'a> {
    pub(crate) fn record(&mut self, event: &TraceEvent<'a>) {
        let is_of_use = matches!(event.phase, b'X' | b'B' | b'E')
            || event.kind.dependency == Some(DependencyKind::TimerSet);
        if !is_of_use {
            return;
        }
        self.threads
            .entry(event.thread())
            .or_default()
            .push(WorkEvent {
                name: event.name.clone(),
                phase: event.phase,
                ts_us: event.ts_us,
                dur_us: event.dur_us.unwrap_or(0.0),
                args: event.args,
            });
    }

    /// Returns the times in which these threads of workers ran scripts, in the order of their ends.
    pub(crate) fn worker_scripts(&self, threads: &[Thread]) -> Vec<WorkerScript> {
        let events = threads.iter().filter_map(|thread| self.threads.get(thread));
        let runs = events.flatten().filter(|event| {
            event.phase == b'X' && matches!(event.name.as_ref(), "EvaluateScript" | "FunctionCall")
        });
        let script = |event: &WorkEvent<'a>| {
            let url = attribution::named_url(event.args)?;
            Some(WorkerScript {
                start_us: event.ts_us,
                end_us: event.ts_us + event.dur_us,
                url: Arc::from(url.as_ref()),
            })
        };
        let mut scripts: Vec<WorkerScript> = runs.filter_map(script).collect();
        scripts.sort_by(|a, b| a.end_us.total_cmp(&b.end_us));
        scripts
    }

    /// Returns the work of the given threads in order of the start, each span before its nested
    /// ones, one thread after the other. Also sets the calling function of each reflow, which only
    /// the nesting shows.
    pub(crate) fn of_threads(
        mut self,
        threads: &[Thread],
        frames: &Frames,
        end_us: f64,
        reflows: &mut [ForcedReflow],
    ) -> Vec<WorkSpan> {
        let mut all = Vec::new();
        for thread in threads {
            if let Some(events) = self.threads.remove(thread) {
                let nested = nesting::nest(&events, end_us);
                for reflow in reflows.iter_mut().filter(|of| of.thread == *thread) {
                    reflow.called = nested.caller_of(reflow);
                }
                let first = all.len();
                all.extend(attribution::attribute(nested, frames).map(|mut work| {
                    work.parent = work.parent.map(|at| at + first);
                    work
                }));
            }
        }
        all
    }
}
