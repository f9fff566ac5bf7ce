//! Records the work of a page on a clock that nobody controls, because Chromium throttles the page
//! or nothing does.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::core::CoreSensors;
use crate::{BrowserThreads, CorePace, PageClock, WorkRecord};

/// The time between two samples. Long tasks are more than ten times as long.
const PERIOD: Duration = Duration::from_millis(4);

/// A thread that records until it is dropped or finished.
#[derive(Debug)]
pub struct WorkRecorder {
    stop: Sender<()>,
    thread: JoinHandle<WorkRecord>,
}

impl WorkRecorder {
    /// Starts to record the main threads of the browser with this process group. Work counts in the
    /// time that it takes a core of `nominal` speed.
    pub fn start(
        clock: Arc<PageClock>,
        browser_group: u32,
        nominal: CorePace,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("work-recorder".to_owned())
            .spawn(move || record(&clock, browser_group, nominal, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// Stops, and returns the record.
    pub fn finish(self) -> WorkRecord {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn record(
    clock: &PageClock,
    browser_group: u32,
    nominal: CorePace,
    stopped: &Receiver<()>,
) -> WorkRecord {
    let sensors = CoreSensors::running();
    let mut threads = BrowserThreads::new(browser_group);
    let mut work = WorkRecord::default();
    threads.sample();
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(PERIOD) {
        let sample = threads.sample();
        let pace = sensors.pace(sample.busiest_core());
        let speed = pace.speed_relative_to(nominal);
        work.add(clock.now(), &sample, 1.0, speed);
        work.add_pace(clock.now(), pace, speed, sample.activity);
    }
    work
}
