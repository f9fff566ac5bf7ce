//! What the page's main threads did, nested as it happened: which kind of work, and for which address.
//!
//! The rules of nesting and of attribution are Lighthouse's (core/lib/tracehouse/main-thread-tasks.js and
//! task-groups.js), so that both blame the same scripts.

mod attribution;
mod nesting;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::event::Event;
use crate::frames::Frames;
use crate::navigation::Thread;
use crate::reflows::ForcedReflow;

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

/// Work of the browser itself, where no script asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    Browser,
    GarbageCollection,
}

/// A stretch of one main thread's time, with the stretches inside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub start_us: f64,
    pub end_us: f64,
    /// Without what the stretches inside took.
    pub self_us: f64,
    /// The stretch around it, by index.
    pub parent: Option<usize>,
    /// Its end was never recorded.
    pub is_unended: bool,
    pub kind: WorkKind,
    pub chore: Option<Chore>,
    /// Whom it was done for, the most telling address first.
    pub urls: Arc<[Arc<str>]>,
}

impl Work {
    pub fn duration_us(&self) -> f64 {
        self.end_us - self.start_us
    }
}

impl WorkKind {
    fn named(event: &str) -> Option<Self> {
        Some(match event {
            "ParseHTML" | "ParseAuthorStyleSheet" => Self::ParseHtml,
            "ScheduleStyleRecalculation" | "UpdateLayoutTree" | "InvalidateLayout" | "Layout" => {
                Self::StyleAndLayout
            }
            "Animation" | "HitTest" | "PaintSetup" | "Paint" | "PaintImage" | "RasterTask"
            | "ScrollLayer" | "UpdateLayer" | "UpdateLayerTree" | "CompositeLayers"
            | "PrePaint" => Self::Rendering,
            "v8.compile" | "v8.compileModule" | "v8.parseOnBackground" => Self::ScriptParsing,
            "EventDispatch" | "EvaluateScript" | "v8.evaluateModule" | "FunctionCall"
            | "TimerFire" | "FireIdleCallback" | "FireAnimationFrame" | "RunMicrotasks"
            | "V8.Execute" => Self::ScriptEvaluation,
            "MinorGC"
            | "MajorGC"
            | "BlinkGC.AtomicPhase"
            | "ThreadState::performIdleLazySweep"
            | "ThreadState::completeSweep"
            | "BlinkGCMarking" => Self::GarbageCollection,
            "MessageLoop::RunTask"
            | "TaskQueueManager::ProcessTaskFromWorkQueue"
            | "ThreadControllerImpl::DoWork" => Self::Other,
            _ => return None,
        })
    }
}

impl Chore {
    fn named(event: &str) -> Option<Self> {
        match event {
            "CpuProfiler::StartProfiling" => Some(Self::Browser),
            "V8.GCCompactor" | "MajorGC" | "MinorGC" => Some(Self::GarbageCollection),
            _ => None,
        }
    }
}

/// An event with a length, as met. What its arguments say is read only if its thread turns out to be a
/// page's main thread.
#[derive(Debug)]
struct Seen<'a> {
    name: Cow<'a, str>,
    phase: u8,
    ts_us: f64,
    dur_us: f64,
    args: Option<&'a RawValue>,
}

/// Of every thread of every process: which are the page's is known only when the trace has ended.
#[derive(Debug, Default)]
pub(crate) struct WorkEvents<'a> {
    threads: HashMap<Thread, Vec<Seen<'a>>>,
}

impl<'a> WorkEvents<'a> {
    pub(crate) fn see(&mut self, event: &Event<'a>) {
        let is_of_use = matches!(event.phase, b'X' | b'B' | b'E') || event.name == "TimerInstall";
        if !is_of_use {
            return;
        }
        self.threads.entry(event.thread()).or_default().push(Seen {
            name: event.name.clone(),
            phase: event.phase,
            ts_us: event.ts_us,
            dur_us: event.dur_us.unwrap_or(0.0),
            args: event.args,
        });
    }

    /// In order of the start, each stretch before those inside it, one thread after the other. What only the
    /// nesting tells of reflows is told to them.
    pub(crate) fn of_threads(
        mut self,
        threads: &[Thread],
        frames: &Frames,
        end_us: f64,
        reflows: &mut [ForcedReflow],
    ) -> Vec<Work> {
        let mut all = Vec::new();
        for thread in threads {
            if let Some(seen) = self.threads.remove(thread) {
                let nested = nesting::nest(&seen, end_us);
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
