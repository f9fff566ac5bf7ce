//! The work of the page's main threads, with durations scaled to the emulated device.

use plumbline_trace::{Trace, WorkSpan};

use super::{Fact, Facts, Missing};
use crate::metrics::MainTask;
use crate::metrics::processor::Processor;

/// The work of the trace with unchanged start times. CPU contention and slow phases of the core are
/// removed from the durations as they are for the blocking time (`metrics/processor.rs`).
#[derive(Debug)]
pub struct DeviceWork(pub Vec<WorkSpan>);

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
        let scaled = trace.work.iter().map(|work| {
            let factor = match work.parent {
                // Nested work is scaled like its task: the samples are too far apart for more
                // detail.
                Some(parent) => factors[parent],
                None => factor(trace, processor, work),
            };
            factors.push(factor);
            WorkSpan {
                end_us: work.start_us + work.duration_us() * factor,
                self_us: work.self_us * factor,
                ..work.clone()
            }
        });
        Self(scaled.collect())
    }
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
