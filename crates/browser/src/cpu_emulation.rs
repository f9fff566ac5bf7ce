//! The emulation of a device's processor while a page is loading.

use std::io;
use std::sync::Arc;

use plumbline_clock::{Controller, CorePace, PageClock, Turn, WorkRecorder};
use rustix::process::{Pid, setpriority_pgrp};

use crate::scheduling::Scheduling;

/// Niceness of a browser after its page was measured, so that it does not take cores from a page
/// that is being measured.
const NICENESS_AFTERWARDS: i32 = 19;

/// Method of giving a page the speed of a device. Speeds are relative to a core of `nominal` speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Throttle {
    /// The page runs at full speed, and `rate` units of its time pass in one of real time while its
    /// core has the `nominal` speed.
    ByClock { rate: f64, nominal: CorePace },
    /// Chromium keeps the main thread busy for `rate` - 1 times as long as it has run, whatever the
    /// speed of its core. At rate 1, nothing is slowed down.
    ByChromium { rate: f64, nominal: CorePace },
}

impl Throttle {
    /// Full speed in real time.
    pub const NONE: Self = Self::ByChromium {
        rate: 1.0,
        nominal: CorePace { turn_ns: 0.0 },
    };

    /// Returns the throttling rate to set in Chromium.
    pub(crate) fn rate_by_chromium(self) -> f64 {
        match self {
            Self::ByClock { .. } => 1.0,
            Self::ByChromium { rate, .. } => rate.max(1.0),
        }
    }
}

/// An emulation that is under way.
pub(crate) enum CpuEmulation {
    Clock {
        clock: Arc<PageClock>,
        controller: Controller,
        browser_group: u32,
    },
    /// Chromium throttles the page, if anything does. The work of the page is only recorded.
    Chromium(WorkRecorder),
}

impl CpuEmulation {
    /// Starts to emulate a processor for all pages of the browser with this process group. The turn
    /// ends with the emulation.
    pub(crate) fn start(
        clock: &Arc<PageClock>,
        browser_group: u32,
        throttle: Throttle,
        turn: Option<Turn>,
    ) -> io::Result<Self> {
        let clock = Arc::clone(clock);
        match throttle {
            Throttle::ByClock { rate, nominal } => {
                clock.set_speed(rate);
                Ok(Self::Clock {
                    controller: Controller::start(
                        Arc::clone(&clock),
                        browser_group,
                        nominal,
                        turn,
                    )?,
                    clock,
                    browser_group,
                })
            }
            Throttle::ByChromium { nominal, .. } => {
                WorkRecorder::start(clock, browser_group, nominal).map(Self::Chromium)
            }
        }
    }

    /// Ends the emulation, and returns what it measured. The browser then has a low priority.
    pub(crate) fn finish_for_good(self) -> Scheduling {
        if let Self::Clock { browser_group, .. } = &self
            && let Ok(group) = i32::try_from(*browser_group)
            && let Some(group) = Pid::from_raw(group)
            && let Err(error) = setpriority_pgrp(Some(group), NICENESS_AFTERWARDS)
        {
            tracing::debug!(%error, "failed to lower the priority of a browser");
        }
        self.finish()
    }

    /// Ends the emulation, and returns what it measured.
    pub(crate) fn finish(self) -> Scheduling {
        match self {
            Self::Chromium(recorder) => recorder.finish().into(),
            Self::Clock {
                clock, controller, ..
            } => {
                let record = controller.finish();
                clock.set_speed(1.0);
                tracing::debug!(
                    delays = ?record.delays,
                    skipped = ?record.skipped,
                    jumps = record.jumps,
                    awaited = ?record.awaited,
                    stopped = ?record.stopped,
                    held = ?record.held,
                    "page time"
                );
                record.work.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_chosen_method_throttles() {
        let nominal = CorePace::default();
        let by_clock = Throttle::ByClock { rate: 4.0, nominal };
        let by_chromium = |rate| Throttle::ByChromium { rate, nominal };
        assert_eq!(by_clock.rate_by_chromium(), 1.0);
        assert_eq!(by_chromium(4.0).rate_by_chromium(), 4.0);
        assert_eq!(by_chromium(0.5).rate_by_chromium(), 1.0);
    }
}
