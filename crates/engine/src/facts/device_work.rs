//! What the page's main threads did, each task as long as the device would have taken for it.

use plumbline_trace::{Trace, Work};

use super::{Fact, Facts, Missing};
use crate::metrics::MainTask;
use crate::metrics::processor::Processor;

/// The trace's work, which begins when it began there. What neighbours took of the core, and the core's slow moments,
/// make a script no slower here than they make blocking time longer (`metrics/processor.rs`).
#[derive(Debug)]
pub struct DeviceWork(pub Vec<Work>);

impl Fact for DeviceWork {
    fn find(facts: &Facts) -> Result<Self, Missing> {
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
                // What is inside a task is shortened with it: the samples are too far apart to tell more.
                Some(parent) => factors[parent],
                None => factor(trace, processor, work),
            };
            factors.push(factor);
            Work {
                end_us: work.start_us + work.duration_us() * factor,
                self_us: work.self_us * factor,
                ..work.clone()
            }
        });
        Self(scaled.collect())
    }
}

/// How much longer or shorter than traced the task is on the device.
fn factor(trace: &Trace, processor: &Processor, task: &Work) -> f64 {
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
