//! Page time: a clock of our own for all processes of a browser.
//!
//! A [`PageClock`] runs at any rate, stops, and jumps forward. A browser that was started with
//! [`PageClock::environment`] sees it instead of the system's clocks: a library in C (`shim/`),
//! preloaded into each of its processes, replaces the functions that read a clock or wait until a
//! time. The library is compiled by this crate's build script and embedded here.
//!
//! The clock is a page of shared memory that one process writes and the browser's processes map
//! read-only. They publish in a second mapping until when each of their threads waits, so that a
//! clock can jump to the next event of an idle browser ([`PageClock::waiters`]).

mod clock;
mod controller;
mod core;
mod layout;
mod library;
mod outside;
mod proc_files;
mod rate;
mod real_timer;
mod recorder;
mod serving;
mod shared;
mod system_load;
mod thread;
mod threads;
mod time;
mod timers;
mod turns;
mod waits;
mod work;

use std::io;

use core::CoreSensors;
use rate::{RateControl, ThreadActivity};
use threads::{BrowserThreads, Sample};

pub use clock::PageClock;
pub use controller::{ControlRecord, Controller};
pub use core::CorePace;
pub use library::Library;
pub use outside::{OutsideWait, PendingResponses};
pub use real_timer::RealTimer;
pub use recorder::WorkRecorder;
pub use serving::ServingThread;
pub use time::PageTime;
pub use timers::PageTimer;
pub use turns::Turn;
pub use waits::Waiter;
pub use work::{SpeedSample, WorkRecord, WorkSample};

/// Interrupts a wait of a thread, which then reads the clock again. The ids are those in this
/// process's namespace.
pub fn interrupt(process: i32, thread: i32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "rustix has no safe form of `tgkill`")]
    // SAFETY: the system call takes three numbers and no memory.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGURG) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
