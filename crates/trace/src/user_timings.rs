//! Marks and measures that the page set itself (User Timing).

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::event::Event;
use crate::navigation::Thread;

const CATEGORY: &str = "blink.user_timing";

#[derive(Debug, Clone, PartialEq)]
pub struct UserTiming {
    pub name: String,
    /// None where a measure ends that began before the trace.
    pub start_us: Option<f64>,
    /// Of a measure; none for a mark.
    pub end_us: Option<f64>,
}

#[derive(Debug)]
struct Told {
    ts_us: f64,
    process: i64,
    phase: u8,
    name: String,
}

#[derive(Debug, Default)]
pub(crate) struct TimingEvents {
    told: Vec<Told>,
}

/// Chromium's own moments come in the same category; they name a frame.
#[derive(Deserialize)]
struct Args {
    frame: Option<IgnoredAny>,
}

impl TimingEvents {
    pub(crate) fn see(&mut self, event: &Event) {
        let is_own = matches!(
            event.name.as_ref(),
            "requestStart" | "navigationStart" | "paintNonDefaultBackgroundColor"
        );
        if is_own || !event.category.contains(CATEGORY) {
            return;
        }
        let names_frame = event
            .args::<Args>()
            .is_some_and(|args| args.frame.is_some());
        if names_frame {
            return;
        }
        self.told.push(Told {
            ts_us: event.ts_us,
            process: event.process,
            phase: event.phase,
            name: event.name.clone().into_owned(),
        });
    }

    /// Those of the page's processes, in the order of their marks and of their measures' ends.
    pub(crate) fn of_processes(mut self, threads: &[Thread]) -> Vec<UserTiming> {
        self.told
            .retain(|told| threads.iter().any(|of| of.process_id == told.process));
        // Of events at one time: ends, then what has a duration, then the rest, as Lighthouse sorts a trace.
        let rank = |phase: u8| match phase {
            b'E' => 0,
            b'B' | b'X' => 1,
            _ => 2,
        };
        self.told.sort_by(|a, b| {
            let by_time = a.ts_us.total_cmp(&b.ts_us);
            by_time.then(rank(a.phase).cmp(&rank(b.phase)))
        });
        let mut begun: HashMap<String, f64> = HashMap::new();
        let mut timings = Vec::new();
        for told in self.told {
            match told.phase {
                b'R' | b'I' | b'i' => timings.push(UserTiming {
                    name: told.name,
                    start_us: Some(told.ts_us),
                    end_us: None,
                }),
                b'B' | b'b' => {
                    begun.insert(told.name, told.ts_us);
                }
                b'E' | b'e' => timings.push(UserTiming {
                    start_us: begun.get(&told.name).copied(),
                    name: told.name,
                    end_us: Some(told.ts_us),
                }),
                _ => {}
            }
        }
        timings
    }
}
