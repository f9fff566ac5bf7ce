//! The emulation of a device's processor while a page is loading.

use std::io;
use std::sync::Arc;

use plumbline_clock::{Controller, PageClock};

use crate::pacer::{Pacer, Pacing, Throttle};

/// An emulation that is under way.
pub(crate) enum CpuEmulation {
    Clock {
        clock: Arc<PageClock>,
        controller: Controller,
    },
    Pacer(Pacer),
}

impl CpuEmulation {
    /// Starts to emulate a processor for all pages of the browser with this process group.
    pub(crate) fn start(
        clock: &Arc<PageClock>,
        browser_group: u32,
        throttle: Throttle,
    ) -> io::Result<Self> {
        let Throttle::ByClock { rate, nominal } = throttle else {
            return Ok(Self::Pacer(Pacer::start(browser_group, throttle)));
        };
        clock.set_speed(rate);
        Ok(Self::Clock {
            clock: Arc::clone(clock),
            controller: Controller::start(Arc::clone(clock), browser_group, nominal)?,
        })
    }

    /// Ends the emulation, and returns what it measured.
    pub(crate) fn finish(self) -> Pacing {
        match self {
            Self::Pacer(pacer) => pacer.finish(),
            Self::Clock { clock, controller } => {
                let record = controller.finish();
                clock.set_speed(1.0);
                tracing::debug!(
                    delays = ?record.delays,
                    skipped = ?record.skipped,
                    jumps = record.jumps,
                    awaited = ?record.awaited,
                    stopped = ?record.stopped,
                    "page time"
                );
                record.work.into()
            }
        }
    }
}
