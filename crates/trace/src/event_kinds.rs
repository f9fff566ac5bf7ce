//! The table of trace events by name: what an event tells about the work of a thread.

use crate::activity::Activity;
use crate::task_dependencies::DependencyKind;
use crate::work::{BackgroundWork, WorkKind};

/// A row of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct EventKind {
    /// True for the scheduler's tasks, by their names since Chromium 71, 69, 66 and before
    /// (Lighthouse: trace-processor.js, `isScheduleableTask`).
    pub(crate) is_task: bool,
    /// The group in Lighthouse (core/lib/tracehouse/task-groups.js).
    pub(crate) work: Option<WorkKind>,
    pub(crate) background: Option<BackgroundWork>,
    pub(crate) activity: Option<Activity>,
    pub(crate) dependency: Option<DependencyKind>,
    /// True if a script runs, which can force a reflow.
    pub(crate) runs_script: bool,
    /// True for the two steps of a reflow.
    pub(crate) is_reflow: bool,
    /// True if the arguments can name the URL that the work is attributed to.
    pub(crate) names_url: bool,
}

/// Returns what the name of an event tells; all of it is empty for most names.
pub(crate) fn event_kind(name: &str) -> EventKind {
    let other = EventKind {
        runs_script: name.starts_with("v8") || name.starts_with("V8"),
        ..EventKind::default()
    };
    let of = |work: WorkKind, activity: Activity| EventKind {
        work: Some(work),
        activity: Some(activity),
        ..other
    };
    let only_activity = |activity: Activity| EventKind {
        activity: Some(activity),
        ..other
    };
    let depends = |kind: EventKind, dependency: DependencyKind| EventKind {
        dependency: Some(dependency),
        ..kind
    };
    let with_url = |kind: EventKind| EventKind {
        names_url: true,
        ..kind
    };
    let script = |kind: EventKind| EventKind {
        runs_script: true,
        ..kind
    };
    let parse = of(WorkKind::ParseHtml, Activity::Parse);
    let layout = of(WorkKind::StyleAndLayout, Activity::StyleAndLayout);
    let render = of(WorkKind::Rendering, Activity::Paint);
    let compile = of(WorkKind::ScriptParsing, Activity::Script);
    let evaluate = of(WorkKind::ScriptEvaluation, Activity::Script);
    let collect = of(WorkKind::GarbageCollection, Activity::Script);
    match name {
        "RunTask" | "ThreadControllerImpl::RunTask" => EventKind {
            is_task: true,
            ..only_activity(Activity::Other)
        },
        "ThreadControllerImpl::DoWork" | "TaskQueueManager::ProcessTaskFromWorkQueue" => {
            EventKind {
                is_task: true,
                ..of(WorkKind::Other, Activity::Other)
            }
        }
        "MessageLoop::RunTask" => EventKind {
            work: Some(WorkKind::Other),
            ..other
        },

        "ParseHTML" => with_url(depends(parse, DependencyKind::Parsing)),
        "ParseAuthorStyleSheet" => with_url(depends(parse, DependencyKind::StyleParsed)),

        "ScheduleStyleRecalculation" | "InvalidateLayout" => {
            depends(layout, DependencyKind::Invalidated)
        }
        "UpdateLayoutTree" => EventKind {
            is_reflow: true,
            ..with_url(layout)
        },
        "Layout" => EventKind {
            is_reflow: true,
            ..with_url(depends(layout, DependencyKind::Layout))
        },
        "RecalculateStyles" => only_activity(Activity::StyleAndLayout),

        "Animation" | "HitTest" | "PaintSetup" | "PaintImage" | "RasterTask" | "ScrollLayer"
        | "UpdateLayer" | "UpdateLayerTree" | "CompositeLayers" | "PrePaint" => render,
        "Paint" => with_url(depends(render, DependencyKind::Paint)),
        "Layerize" | "Commit" => only_activity(Activity::Paint),

        "v8.compile" => with_url(depends(compile, DependencyKind::Called)),
        "v8.compileModule" => with_url(compile),
        "v8.parseOnBackground" => EventKind {
            work: Some(WorkKind::ScriptParsing),
            ..other
        },
        "v8.produceCache" => only_activity(Activity::Script),

        "EvaluateScript" => script(with_url(depends(evaluate, DependencyKind::Evaluated))),
        "FunctionCall" => script(with_url(depends(evaluate, DependencyKind::Called))),
        "EventDispatch" | "RunMicrotasks" => script(evaluate),
        "v8.evaluateModule" | "V8.Execute" | "FireIdleCallback" | "FireAnimationFrame" => evaluate,
        "TimerFire" => with_url(depends(evaluate, DependencyKind::TimerFired)),
        "XHRReadyStateChange" => with_url(depends(
            only_activity(Activity::Script),
            DependencyKind::XhrChanged,
        )),
        "XHRLoad" => with_url(only_activity(Activity::Script)),

        "MinorGC" | "MajorGC" => EventKind {
            background: Some(BackgroundWork::GarbageCollection),
            ..collect
        },
        "BlinkGC.AtomicPhase" | "ThreadState::performIdleLazySweep" => collect,
        "ThreadState::completeSweep" | "BlinkGCMarking" => EventKind {
            work: Some(WorkKind::GarbageCollection),
            ..other
        },
        "V8.GCCompactor" => EventKind {
            background: Some(BackgroundWork::GarbageCollection),
            ..other
        },
        "CpuProfiler::StartProfiling" => EventKind {
            background: Some(BackgroundWork::Browser),
            ..other
        },

        "TimerInstall" => depends(other, DependencyKind::TimerSet),
        "ResourceSendRequest" => depends(other, DependencyKind::Requested),
        _ => other,
    }
}
