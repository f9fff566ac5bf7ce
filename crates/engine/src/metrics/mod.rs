//! The lab metrics of a trace, as Lighthouse 13 defines them when it observes rather than
//! simulates. There is one file per metric.
//!
//! All values are unrounded; times are milliseconds since the start of the measured navigation. A
//! metric that cannot be computed has an error and does not affect the others.

pub mod cls;
pub mod fcp;
pub mod lcp;
mod load_end;
mod main_task;
mod picture;
pub mod processor;
pub mod speed_index;
pub mod tbt;
pub mod tti;
pub(crate) mod uncertainty;
mod visual_progress;

use plumbline_model::scoring::MetricKind;
use plumbline_trace::{MAX_SCREENSHOTS, Milestone, ProtocolLog, Trace};

pub(crate) use load_end::load_end_us;
pub use main_task::{MainTask, main_tasks};

/// The reason why a metric could not be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    #[error("the page painted no content")]
    NoFirstContentfulPaint,
    #[error("the page has no largest contentful paint")]
    NoLargestContentfulPaint,
    #[error("the document was never fully parsed")]
    NoDomContentLoaded,
    #[error("the trace has no tasks of the page's main thread")]
    NoTasks,
    #[error("the main thread was never free of long tasks for five seconds")]
    NoCpuIdlePeriod,
    #[error("the network never had at most two requests in flight for five seconds")]
    NoNetworkIdlePeriod,
    #[error("the trace has no screenshots of the page")]
    NoScreenshots,
    #[error(
        "Chromium records at most {MAX_SCREENSHOTS} screenshots, and the page changed after the last one"
    )]
    ScreenshotsEnded,
    #[error("a screenshot in the trace cannot be decoded")]
    UnreadableScreenshot,
    #[error("the page never changed visually")]
    NoVisualChange,
    #[error("the trace comes from a Chromium that does not record weighted layout shifts")]
    UnweightedShifts,
}

impl MetricError {
    /// Returns a stable name of the error: Lighthouse's code where it has one for the same state.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoFirstContentfulPaint => "NO_FCP",
            Self::NoLargestContentfulPaint => "NO_LCP",
            Self::NoDomContentLoaded => "NO_DCL",
            Self::NoTasks => "NO_TASKS",
            Self::NoCpuIdlePeriod => "NO_TTI_CPU_IDLE_PERIOD",
            Self::NoNetworkIdlePeriod => "NO_TTI_NETWORK_IDLE_PERIOD",
            Self::NoScreenshots => "NO_SCREENSHOTS",
            Self::ScreenshotsEnded => "SCREENSHOTS_ENDED",
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

impl Measured {
    /// Returns one metric, or `None` if it could not be computed.
    pub fn get(&self, metric: MetricKind) -> Option<f64> {
        let value = match metric {
            MetricKind::Fcp => self.fcp,
            MetricKind::Lcp => self.lcp,
            MetricKind::Tbt => self.tbt,
            MetricKind::Cls => self.cls,
            MetricKind::Si => self.si,
            MetricKind::Tti => self.tti,
        };
        value.ok()
    }
}

/// Measures a trace. The requests in flight are taken from the log if there is one, otherwise from
/// the trace.
pub fn measure(trace: &Trace, log: Option<&ProtocolLog>) -> Measured {
    measure_tasks(trace, log, &main_tasks(trace))
}

/// Measures a trace with the given main-thread tasks, for example without the time that they waited
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

/// The two metrics that depend on the main thread's tasks.
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
    let exchanges = log.map_or(&trace.exchanges, |log| &log.exchanges);
    let tti = tti::LoadTimes::of(trace).and_then(|times| {
        if trace.tasks.recorded {
            tti::time_to_interactive(tasks, exchanges, &times)
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
