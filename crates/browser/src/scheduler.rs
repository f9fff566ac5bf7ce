//! Watches, through a visit, how long the main threads of the page's processes wait for a core.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use plumbline_bundle::Artifact;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::launch::renderers;
use crate::schedstat::ThreadTime;

/// The artifact's name in a bundle.
pub(crate) const ARTIFACT: &str = "scheduler";

/// Short against a long task (50 ms), long against what a look costs (some 10 µs a process).
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// Finding new processes walks through all of the machine's.
const LOOKS_PER_SEARCH: u32 = 25;

/// A thread of ours that looks until it is told to stop, or dropped.
pub(crate) struct SchedulerWatch {
    stop: Sender<()>,
    watching: JoinHandle<Seen>,
}

/// By process: `[at_us, ran_us, waited_us]`, on the clock that traces use.
type Seen = BTreeMap<u32, Vec<[f64; 3]>>;

impl SchedulerWatch {
    pub(crate) fn start(browser_group: u32) -> Self {
        let (stop, stopped) = mpsc::channel();
        let watching = std::thread::spawn(move || {
            let mut seen = Seen::new();
            let mut looks = 0;
            // Told to stop, or dropped: either ends it.
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_EVERY) {
                if looks % LOOKS_PER_SEARCH == 0 {
                    for process in renderers(browser_group) {
                        seen.entry(process).or_default();
                    }
                }
                looks += 1;
                look(&mut seen);
            }
            seen
        });
        Self { stop, watching }
    }

    pub(crate) fn finish(self) -> Artifact {
        drop(self.stop);
        let Ok(seen) = self.watching.join() else {
            return Artifact::Missing("the scheduler's figures could not be read".to_owned());
        };
        let threads: Vec<_> = seen
            .into_iter()
            .map(|(process, samples)| json!({"processId": process, "samples": samples}))
            .collect();
        match to_raw_value(&json!({"threads": threads})) {
            Ok(raw) => Artifact::Gathered(raw),
            Err(error) => Artifact::Missing(error.to_string()),
        }
    }
}

fn look(seen: &mut Seen) {
    for (process, samples) in seen {
        let Some(time) = ThreadTime::of_main_thread(*process) else {
            continue;
        };
        let sample = [monotonic_us(), time.ran_us, time.waited_us];
        // A thread that does nothing takes two samples: its first idle one and its last.
        match samples.as_mut_slice() {
            [.., before, last] if before[1..] == sample[1..] && last[1..] == sample[1..] => {
                *last = sample;
            }
            _ => samples.push(sample),
        }
    }
}

/// The clock of Chromium's traces on Linux.
fn monotonic_us() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}
