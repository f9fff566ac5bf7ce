//! The lab metrics, from a trace, as Lighthouse 13 defines them when it observes rather than simulates.
//! One file per metric, each with the two points of its scoring curve.
//!
//! Everything is unrounded; times are milliseconds since the navigation that counts began. A metric that
//! cannot be had says why and leaves the others alone.

pub mod cls;
pub(crate) mod doubt;
pub mod fcp;
pub mod lcp;
mod load_end;
mod main_task;
mod picture;
pub mod processor;
pub mod speed_index;
pub mod tbt;
pub mod tti;
mod visual_progress;

use plumbline_trace::{Milestone, ProtocolLog, Trace};

pub(crate) use load_end::load_end_us;
pub use main_task::{MainTask, main_tasks};

/// Why a metric could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    #[error("the page painted no content")]
    NoFirstContentfulPaint,
    #[error("the page has no largest contentful paint")]
    NoLargestContentfulPaint,
    #[error("the document was never fully parsed")]
    NoDomContentLoaded,
    #[error("the trace holds no tasks of the page's main thread")]
    NoTasks,
    #[error("the main thread was never free of long tasks for five seconds")]
    NoCpuIdlePeriod,
    #[error("the network never had at most two requests in flight for five seconds")]
    NoNetworkIdlePeriod,
    #[error("the trace holds no screenshots of the page")]
    NoScreenshots,
    #[error("a screenshot in the trace is no readable picture")]
    UnreadableScreenshot,
    #[error("nothing that can be seen was ever painted")]
    NoVisualChange,
    #[error("the trace comes from a Chromium too old to weigh layout shifts")]
    UnweightedShifts,
}

impl MetricError {
    /// A stable name; where Lighthouse has a code for the same state, its code.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoFirstContentfulPaint => "NO_FCP",
            Self::NoLargestContentfulPaint => "NO_LCP",
            Self::NoDomContentLoaded => "NO_DCL",
            Self::NoTasks => "NO_TASKS",
            Self::NoCpuIdlePeriod => "NO_TTI_CPU_IDLE_PERIOD",
            Self::NoNetworkIdlePeriod => "NO_TTI_NETWORK_IDLE_PERIOD",
            Self::NoScreenshots => "NO_SCREENSHOTS",
            Self::UnreadableScreenshot => "UNREADABLE_SCREENSHOT",
            Self::NoVisualChange => "SPEEDINDEX_OF_ZERO",
            Self::UnweightedShifts => "UNWEIGHTED_SHIFTS",
        }
    }
}

/// All metrics of one page load.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub fcp: Result<f64, MetricError>,
    pub lcp: Result<f64, MetricError>,
    pub cls: Result<f64, MetricError>,
    pub tbt: Result<f64, MetricError>,
    pub tti: Result<f64, MetricError>,
    pub si: Result<f64, MetricError>,
    pub first_paint_ms: Option<f64>,
    pub dom_content_loaded_ms: Option<f64>,
    pub load_ms: Option<f64>,
    pub trace_end_ms: f64,
}

/// Measures a trace. Which requests were in flight is told by the log where there is one, else by the trace.
pub fn measure(trace: &Trace, log: Option<&ProtocolLog>) -> Measured {
    measure_tasks(trace, log, &main_tasks(trace))
}

/// The same, with the main thread's tasks as the caller has them, e.g. without the time that they waited
/// for a core.
pub fn measure_tasks(trace: &Trace, log: Option<&ProtocolLog>, tasks: &[MainTask]) -> Measured {
    let fcp = fcp::first_contentful_paint(trace);
    let Interactivity { tbt, tti } = interactivity(trace, log, tasks);
    let at = |milestone| Some(trace.since_origin_ms(trace.first_us(milestone)?));
    Measured {
        lcp: fcp.and_then(|_| lcp::largest_contentful_paint(trace)),
        cls: cls::cumulative_layout_shift(trace),
        tbt,
        si: fcp.and_then(|_| speed_index::speed_index(trace)),
        fcp,
        tti,
        first_paint_ms: at(Milestone::FirstPaint),
        dom_content_loaded_ms: at(Milestone::DomContentLoaded),
        load_ms: at(Milestone::Load),
        trace_end_ms: trace.since_origin_ms(trace.end_us),
    }
}

/// The two metrics that depend on what the main thread did when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interactivity {
    pub(crate) tbt: Result<f64, MetricError>,
    pub(crate) tti: Result<f64, MetricError>,
}

pub(crate) fn interactivity(
    trace: &Trace,
    log: Option<&ProtocolLog>,
    tasks: &[MainTask],
) -> Interactivity {
    let requests = log.map_or(&trace.requests, |log| &log.requests);
    let tti = tti::LoadTimes::of(trace).and_then(|times| {
        if trace.tasks.recorded {
            tti::time_to_interactive(tasks, requests, &times)
        } else {
            Err(MetricError::NoTasks)
        }
    });
    let fcp = fcp::first_contentful_paint(trace);
    Interactivity {
        tbt: fcp.and_then(|fcp_ms| Ok(tbt::total_blocking_time(tasks, fcp_ms, tti?))),
        tti,
    }
}
