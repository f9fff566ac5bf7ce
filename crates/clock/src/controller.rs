//! Runs the clock of one visit: sets its rate, and lets idle time pass at once.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{BrowserThreads, PageClock, PageTime, RateControl, Sample};

/// The time between two samples. Shorter ones tell no more: a wait for a core becomes visible when
/// it is over.
const PERIOD: Duration = Duration::from_millis(2);

/// The shortest time that is passed by a jump.
const MIN_JUMP: Duration = Duration::from_millis(1);

/// Fraction of a period from which the main thread of a page counts as busy.
const BUSY_FRACTION: f64 = 0.05;

/// The work of a controller.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ControlRecord {
    /// Real time for which the page was delayed because it had too few cores.
    pub delays: Duration,
    /// Page time that was passed by jumps.
    pub skipped: Duration,
    pub jumps: u64,
    /// Real time in which the clock ran at the rate of real time.
    pub awaited: Duration,
}

/// A thread that runs a clock until it is dropped or finished.
#[derive(Debug)]
pub struct Controller {
    stop: Sender<()>,
    thread: JoinHandle<ControlRecord>,
}

impl Controller {
    /// Starts to run a clock for the browser with this process group. The clock has its speed
    /// already.
    pub fn start(clock: Arc<PageClock>, browser_group: u32) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let control = Control {
            rates: RateControl::new(clock.speed(), PERIOD),
            threads: BrowserThreads::new(browser_group),
            record: ControlRecord::default(),
            clock,
        };
        let thread = std::thread::Builder::new()
            .name("clock".to_owned())
            .spawn(move || control.run(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Stops, and sets the clock to its speed.
    pub fn finish(self) -> ControlRecord {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

struct Control {
    clock: Arc<PageClock>,
    rates: RateControl,
    threads: BrowserThreads,
    record: ControlRecord,
}

/// The course of page time until the next sample.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// The clock runs at the rate of the host.
    Run,
    /// The clock runs at the rate of the outside world, which the page waits for.
    Await,
    /// The clock jumps to this time.
    Jump(PageTime),
}

impl Control {
    fn run(mut self, stopped: &Receiver<()>) -> ControlRecord {
        // Waits that began at a lower rate would end too late.
        self.threads.sample();
        if let Ok(waiters) = self.clock.waiters() {
            self.threads.interrupt_all(&waiters);
        }
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(PERIOD) {
            let sample = self.threads.sample();
            let rate = self.rates.next_rate(sample.activity, 1.0);
            match self.step(sample) {
                Step::Run => self.clock.set_rate(rate),
                Step::Await => {
                    self.rates.clear_debt();
                    self.clock.set_rate(self.clock.speed().min(1.0));
                    self.record.awaited += sample.activity.elapsed;
                }
                Step::Jump(to) => {
                    self.rates.clear_debt();
                    let skipped = to - self.clock.now();
                    self.clock.set_rate(self.clock.speed());
                    self.clock.jump(skipped);
                    self.record.skipped += skipped;
                    self.record.jumps += 1;
                }
            }
            self.interrupt_due();
        }
        self.clock.set_rate(self.clock.speed());
        self.record.delays = self.rates.delays();
        self.record
    }

    fn step(&mut self, sample: Sample) -> Step {
        let activity = sample.activity;
        let now = self.clock.now();
        let next_registered = self.clock.next_registered();
        let has_requests = self.clock.outside().has_requests();
        let reached = self.clock.outside().reached().filter(|_| has_requests);
        // An answer of which a part has arrived is awaited while nothing is under way on the
        // emulated network.
        let is_link_idle = next_registered.is_none_or(|at| at - now > FAR);
        if reached.is_some_and(|reached| reached <= now) || (has_requests && is_link_idle) {
            // Work of the page must not be charged at another rate.
            let busy = activity.elapsed.mul_f64(BUSY_FRACTION);
            return if activity.main_ran < busy {
                Step::Await
            } else {
                Step::Run
            };
        }
        if sample.is_active || !self.threads.are_blocked() {
            return Step::Run;
        }
        let waiters = self.clock.waiters().unwrap_or_default();
        let next_wait = self.threads.next_deadline(&waiters, now);
        let next = next_wait
            .into_iter()
            .chain(next_registered)
            .chain(reached)
            .min();
        match next {
            // The waits were read before this: nothing may have happened since.
            Some(next) if next - now >= MIN_JUMP && !self.threads.sample().is_active => {
                Step::Jump(next)
            }
            _ => Step::Run,
        }
    }

    /// Interrupts waits that ended by a jump. One that began in the same moment did not notice the
    /// first signal, so this is repeated.
    fn interrupt_due(&self) {
        if self.record.jumps == 0 {
            return;
        }
        if let Ok(waiters) = self.clock.waiters() {
            self.threads.interrupt_due(&waiters, self.clock.now());
        }
    }
}

/// The time after which nothing on the emulated network counts as under way.
const FAR: Duration = Duration::from_millis(500);
