//! Precise waits in real time.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A precise timer of real time. Tokio's own timers have a resolution of one millisecond and expire
/// up to one late, which is half of the round trip of a fast line, and several milliseconds of page
/// time on a fast clock.
#[derive(Debug)]
pub struct RealTimer {
    fd: AsyncFd<OwnedFd>,
}

impl RealTimer {
    /// Creates a timer; must be called within a runtime.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that can swap their descriptor; an OwnedFd cannot"
        )]
        let fd = AsyncFd::new(fd)?;
        Ok(Self { fd })
    }

    /// Sets the timer to expire once after `delay`, replacing the previous setting.
    pub fn set(&self, delay: Duration) -> io::Result<()> {
        // Zero would disarm the timer.
        let delay = delay.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: delay.subsec_nanos().into(),
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value,
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Waits until the timer expires.
    pub async fn wait(&self) -> io::Result<()> {
        loop {
            let mut ready = self.fd.readable().await?;
            let expiry = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut [0; 8])?));
            if let Ok(result) = expiry {
                return result.map(|_| ());
            }
        }
    }
}
