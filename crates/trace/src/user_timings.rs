//! Marks and measures set by the page (User Timing).

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::event::TraceEvent;
use crate::navigation::Thread;

const CATEGORY: &str = "blink.user_timing";

#[derive(Debug, Clone, PartialEq)]
pub struct UserTiming {
    pub name: String,
    /// Start time; `None` for the end of a measure that began before the trace.
    pub start_us: Option<f64>,
    /// End time of a measure; `None` for a mark.
    pub end_us: Option<f64>,
}

#[derive(Debug)]
struct TimingEvent {
    ts_us: f64,
    process: i64,
    phase: u8,
    name: String,
}

#[derive(Debug, Default)]
pub(crate) struct TimingEvents {
    events: Vec<TimingEvent>,
}

/// Arguments that distinguish the page's timings from Chromium's own events of the same category,
/// which name a frame.
#[derive(Deserialize)]
struct Args {
    frame: Option<IgnoredAny>,
}

impl TimingEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
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
        self.events.push(TimingEvent {
            ts_us: event.ts_us,
            process: event.process,
            phase: event.phase,
            name: event.name.clone().into_owned(),
        });
    }

    /// Returns the timings of the page's processes, in order of the marks and the ends of the
    /// measures.
    pub(crate) fn of_processes(mut self, threads: &[Thread]) -> Vec<UserTiming> {
        self.events
            .retain(|event| threads.iter().any(|of| of.process_id == event.process));
        // Events at the same time are sorted as in Lighthouse: ends, then complete events, then the
        // rest.
        let rank = |phase: u8| match phase {
            b'E' => 0,
            b'B' | b'X' => 1,
            _ => 2,
        };
        self.events.sort_by(|a, b| {
            let by_time = a.ts_us.total_cmp(&b.ts_us);
            by_time.then(rank(a.phase).cmp(&rank(b.phase)))
        });
        let mut starts_us: HashMap<String, f64> = HashMap::new();
        let mut timings = Vec::new();
        for event in self.events {
            match event.phase {
                b'R' | b'I' | b'i' => timings.push(UserTiming {
                    name: event.name,
                    start_us: Some(event.ts_us),
                    end_us: None,
                }),
                b'B' | b'b' => {
                    starts_us.insert(event.name, event.ts_us);
                }
                b'E' | b'e' => timings.push(UserTiming {
                    start_us: starts_us.get(&event.name).copied(),
                    name: event.name,
                    end_us: Some(event.ts_us),
                }),
                _ => {}
            }
        }
        timings
    }
}
