//! The emulation of a device's processor while a page is loading.

use std::io;
use std::sync::Arc;

use plumbline_clock::{Controller, PageClock, Turn};
use rustix::process::{Pid, setpriority_pgrp};

use crate::pacer::{Pacer, Pacing, Throttle};

/// Niceness of a browser after its page was measured, so that it does not take cores from a page
/// that is being measured.
const NICENESS_AFTERWARDS: i32 = 19;

/// An emulation that is under way.
pub(crate) enum CpuEmulation {
    Clock {
        clock: Arc<PageClock>,
        controller: Controller,
        browser_group: u32,
    },
    Pacer(Pacer),
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
        let Throttle::ByClock { rate, nominal } = throttle else {
            return Ok(Self::Pacer(Pacer::start(browser_group, throttle)));
        };
        clock.set_speed(rate);
        Ok(Self::Clock {
            clock: Arc::clone(clock),
            controller: Controller::start(Arc::clone(clock), browser_group, nominal, turn)?,
            browser_group,
        })
    }

    /// Ends the emulation, and returns what it measured. The browser then has a low priority.
    pub(crate) fn finish_for_good(self) -> Pacing {
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
    pub(crate) fn finish(self) -> Pacing {
        match self {
            Self::Pacer(pacer) => pacer.finish(),
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
