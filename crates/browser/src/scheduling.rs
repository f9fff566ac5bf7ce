//! The artifact about the time that a page's main threads had a core, waited for one, and worked.

use std::collections::BTreeMap;

use plumbline_bundle::Artifact;
use plumbline_clock::{CorePace, PageTime, WorkRecord};
use serde_json::json;
use serde_json::value::to_raw_value;

/// Name of the artifact in a bundle.
pub(crate) const ARTIFACT: &str = "scheduler";

/// The samples of a visit.
#[derive(Debug, Default)]
pub(crate) struct Scheduling {
    /// Samples of the main thread by process id.
    main_threads: BTreeMap<i32, Vec<Sample>>,
    /// `[at_us, speed, turn_ns]`: the core's speed relative to nominal, and its measurement.
    speeds: Vec<[f64; 3]>,
    /// Average speed of the core.
    pub(crate) pace: CorePace,
}

/// `[at_us, ran_us, waited_us, worked_us, held_us]`: time on the traces' clock, then counters: time
/// that the thread ran, time that it was runnable without a core, and time that it would have run
/// at nominal speed. The last one is 0; earlier versions occupied the core for a while.
type Sample = [f64; 5];

impl From<WorkRecord> for Scheduling {
    fn from(work: WorkRecord) -> Self {
        let us = |at: PageTime| at.as_nanos() as f64 / 1000.0;
        let rounded = |us: f64| (us * 10.0).round() / 10.0;
        Self {
            pace: work.mean_pace(),
            main_threads: work
                .threads
                .into_iter()
                .map(|(process, samples)| {
                    let samples = samples.into_iter().map(|it| {
                        [us(it.at), it.ran_us, it.waited_us, it.worked_us, 0.0].map(rounded)
                    });
                    (process, samples.collect())
                })
                .collect(),
            speeds: work
                .speeds
                .into_iter()
                .map(|it| [us(it.at), it.speed, it.pace.turn_ns])
                .collect(),
        }
    }
}

impl Scheduling {
    /// Returns the fraction of a main thread's runnable time in which others had its core, 0 to 1.
    pub(crate) fn lost_share(&self) -> f64 {
        let (mut wanted_us, mut waited_us) = (0.0, 0.0);
        for samples in self.main_threads.values() {
            if let (Some(first), Some(last)) = (samples.first(), samples.last()) {
                let grown = |counter: usize| last[counter] - first[counter];
                wanted_us += grown(1) + grown(2);
                waited_us += grown(2);
            }
        }
        if wanted_us > 0.0 {
            waited_us / wanted_us
        } else {
            0.0
        }
    }

    /// The rate is 1: the counters contain the slowdown, because the page's clock ran faster or
    /// Chromium kept the main thread busy.
    pub(crate) fn into_artifact(self) -> Artifact {
        let threads: Vec<_> = self
            .main_threads
            .into_iter()
            .map(|(process, samples)| json!({"processId": process, "samples": samples}))
            .collect();
        let measurements = json!({"rate": 1.0, "speeds": self.speeds, "threads": threads});
        match to_raw_value(&measurements) {
            Ok(raw) => Artifact::Gathered(raw),
            Err(error) => Artifact::Missing(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lost_share_is_relative_to_the_runnable_time() {
        let samples = vec![[0.0; 5], [100.0, 60.0, 20.0, 60.0, 0.0]];
        let scheduling = Scheduling {
            main_threads: BTreeMap::from([(1, samples)]),
            ..Scheduling::default()
        };
        assert_eq!(scheduling.lost_share(), 0.25);
        assert_eq!(Scheduling::default().lost_share(), 0.0);
    }
}
