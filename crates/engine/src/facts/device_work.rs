//! The work of the page's main threads, with durations scaled to the emulated device.

use plumbline_trace::{Trace, WorkSpan};

use super::{Fact, Facts, Missing};
use crate::metrics::MainTask;
use crate::metrics::processor::Processor;
use crate::metrics::tbt::BLOCKING_MS;

/// The work of the trace with unchanged start times. CPU contention and slow phases of the core are
/// removed from the durations as they are for the blocking time (`metrics/processor.rs`).
///
/// All figures about long tasks and main-thread work come from here, so that they agree.
#[derive(Debug)]
pub struct DeviceWork {
    pub spans: Vec<WorkSpan>,
    /// The tasks of the trace in the order of their start.
    tasks: Vec<ScaledTask>,
}

/// The interval of a task in the trace, and its scale on the device.
#[derive(Debug, Clone, Copy)]
struct ScaledTask {
    start_us: f64,
    end_us: f64,
    factor: f64,
}

impl Fact for DeviceWork {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let processor = facts.get::<Processor>()?;
        Ok(Self::of(&trace, &processor))
    }
}

impl DeviceWork {
    fn of(trace: &Trace, processor: &Processor) -> Self {
        let mut factors: Vec<f64> = Vec::with_capacity(trace.work.len());
        let mut tasks = Vec::new();
        let scaled = trace.work.iter().map(|work| {
            let factor = match work.parent {
                // Nested work is scaled like its task: the samples are too far apart for more
                // detail.
                Some(parent) => factors[parent],
                None => {
                    let factor = factor(trace, processor, work);
                    tasks.push(ScaledTask {
                        start_us: work.start_us,
                        end_us: work.end_us,
                        factor,
                    });
                    factor
                }
            };
            factors.push(factor);
            WorkSpan {
                end_us: work.start_us + work.duration_us() * factor,
                self_us: work.self_us * factor,
                ..work.clone()
            }
        });
        let spans = scaled.collect();
        tasks.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
        Self { spans, tasks }
    }

    /// Returns the tasks that block the main thread for 50 ms or more on the device.
    pub fn long_tasks(&self) -> impl Iterator<Item = &WorkSpan> {
        long_tasks(&self.spans)
    }

    /// Returns the ratio between durations on the device and in the trace at a time of the trace;
    /// 1 outside of tasks.
    pub fn factor_at(&self, at_us: f64) -> f64 {
        let started = self.tasks.partition_point(|task| task.start_us <= at_us);
        // Main threads of several processes may overlap, but rarely by many tasks.
        const EXAMINED: usize = 8;
        let candidates = self.tasks[..started].iter().rev().take(EXAMINED);
        let mut around = candidates.filter(|task| at_us < task.end_us);
        around.next().map_or(1.0, |task| task.factor)
    }
}

/// Returns the tasks among the spans that take 50 ms or more.
pub fn long_tasks(spans: &[WorkSpan]) -> impl Iterator<Item = &WorkSpan> {
    spans.iter().filter(|work| {
        work.parent.is_none() && !work.is_unended && work.duration_us() >= BLOCKING_MS * 1000.0
    })
}

/// Returns the ratio between the task's duration on the device and in the trace.
fn factor(trace: &Trace, processor: &Processor, task: &WorkSpan) -> f64 {
    let length_ms = task.duration_us() / 1000.0;
    if length_ms <= 0.0 {
        return 1.0;
    }
    let traced = MainTask {
        start_ms: trace.since_origin_ms(task.start_us),
        end_ms: trace.since_origin_ms(task.end_us),
        duration_ms: length_ms,
    };
    let on_device = processor.on_device(&[traced]);
    on_device
        .first()
        .map_or(1.0, |task| task.duration_ms / length_ms)
}
