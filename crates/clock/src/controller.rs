//! Runs the clock of one visit: sets its rate, and lets idle time pass at once.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::core::set_priority;
use crate::{
    BrowserThreads, CorePace, CoreSensors, PageClock, PageTime, RateControl, Sample, Turn, Waiter,
    WorkRecord,
};

/// The time between two samples. Shorter ones tell no more: a wait for a core becomes visible when
/// it is over.
const PERIOD: Duration = Duration::from_millis(2);

/// The time between two samples while the main threads of pages are idle, so that the gaps between
/// packets of the emulated network can be passed by jumps.
const IDLE_PERIOD: Duration = Duration::from_micros(300);

/// The shortest page time that is passed by a jump.
const MIN_JUMP: Duration = Duration::from_micros(200);

/// The shortest page time for which the states of all threads are read to pass it by a jump.
const MIN_JUMP_AFTER_READING: Duration = Duration::from_millis(1);

/// The time after reading the states of all threads until they are read again, in multiples of the
/// time that reading them took. With other load on the host it takes up to a millisecond, and the
/// cores are needed for more than that.
const REST_AFTER_READING: u32 = 5;

/// The time for which a page waits for a real server before others may have its turn.
const MAX_AWAIT_IN_TURN: Duration = Duration::from_millis(500);

/// The page time that the outside world must be ahead before a page that was stopped goes on.
const MIN_LEAD: Duration = Duration::from_millis(10);

/// The work of a controller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ControlRecord {
    /// Real time for which the page was delayed because it had too few cores.
    pub delays: Duration,
    /// Page time that was passed by jumps.
    pub skipped: Duration,
    pub jumps: u64,
    /// Real time in which the clock ran at the rate of real time.
    pub awaited: Duration,
    /// Real time in which the browser was stopped, because others had their turn.
    pub stopped: Duration,
    /// Real time in which the browser was stopped, because a server owed an answer that could have
    /// arrived at the present page time.
    pub held: Duration,
    /// The work of the page's main threads, and the speed of their cores.
    pub work: WorkRecord,
}

/// A thread that runs a clock until it is dropped or finished.
#[derive(Debug)]
pub struct Controller {
    stop: Sender<()>,
    thread: JoinHandle<ControlRecord>,
}

impl Controller {
    /// Starts to run a clock for the browser with this process group. The clock has its speed
    /// already, which is meant for a core of `nominal` speed. The turn ends with the work of the
    /// controller.
    pub fn start(
        clock: Arc<PageClock>,
        browser_group: u32,
        nominal: CorePace,
        turn: Option<Turn>,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let control = Control {
            rates: RateControl::new(clock.speed(), PERIOD),
            rate: clock.speed(),
            threads: BrowserThreads::new(browser_group),
            group: i32::try_from(browser_group).ok().and_then(Pid::from_raw),
            turn,
            next_reading: Instant::now(),
            awaited_since: None,
            sensors: CoreSensors::running(),
            nominal,
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
    /// The rate since the previous sample.
    rate: f64,
    sensors: Arc<CoreSensors>,
    nominal: CorePace,
    threads: BrowserThreads,
    /// The process group of the browser.
    group: Option<Pid>,
    turn: Option<Turn>,
    /// The real time from which on the states of threads may be read again.
    next_reading: Instant,
    /// The real time since which the page has only waited for the outside world.
    awaited_since: Option<Instant>,
    record: ControlRecord,
}

/// The course of page time until the next sample.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// The clock runs at the rate of the host.
    Run,
    /// The clock runs at the rate of the outside world, which the page waits for. This needs no
    /// turn.
    Await,
    /// The browser is stopped until the outside world has caught up with the page, which computes
    /// while a server owes an answer.
    Hold,
    /// The clock jumps to this time.
    Jump(PageTime),
}

impl Control {
    fn run(mut self, stopped: &Receiver<()>) -> ControlRecord {
        set_priority();
        // Waits that began at a lower rate would end too late.
        self.threads.sample();
        if let Ok(waiters) = self.clock.waiters() {
            self.threads.interrupt_all(&waiters);
        }
        let mut period = PERIOD;
        self.resume_turn(stopped);
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(period) {
            self.threads.follow_serving(&self.clock.serving.ids());
            let sample = self.threads.sample();
            period = if sample.activity.is_busy() {
                PERIOD
            } else {
                IDLE_PERIOD
            };
            let pace = self.sensors.pace(sample.busiest_core());
            let core_speed = pace.speed_relative_to(self.nominal);
            let device_rate = self.clock.speed() * core_speed;
            let work = &mut self.record.work;
            work.add(self.clock.now(), &sample, self.rate, device_rate);
            work.add_pace(self.clock.now(), pace, core_speed, sample.activity);
            let rate = self.rates.next_rate(sample.activity, self.rate, core_speed);
            // Without a run since the sample, no wait has changed since then.
            let waiters = self.clock.waiters().unwrap_or_default();
            let step = self.step(&sample, &waiters);
            match step {
                Step::Run | Step::Hold => self.set_rate(rate),
                Step::Await => {
                    self.rates.clear_debt();
                    self.set_rate(device_rate.min(1.0));
                    self.record.awaited += sample.activity.elapsed;
                }
                Step::Jump(to) => {
                    self.rates.clear_debt();
                    let skipped = to - self.clock.now();
                    self.set_rate(device_rate);
                    self.clock.jump(skipped);
                    self.record.work.add_idle(self.clock.now());
                    self.record.skipped += skipped;
                    self.record.jumps += 1;
                }
            }
            self.interrupt_due(&waiters);
            if step == Step::Await {
                let since = *self.awaited_since.get_or_insert_with(Instant::now);
                let is_long = since.elapsed() >= MAX_AWAIT_IN_TURN;
                if is_long && self.turn.as_ref().is_some_and(Turn::is_wanted) {
                    self.turn = None;
                }
                continue;
            }
            self.awaited_since = None;
            self.resume_turn(stopped);
            if step == Step::Hold {
                self.hold(stopped);
            }
        }
        self.clock.set_rate(self.clock.speed());
        self.record.delays = self.rates.delays();
        self.record
    }

    /// Takes a turn if there is none. The browser and its clock are stopped until then.
    fn resume_turn(&mut self, stopped: &Receiver<()>) {
        if self.turn.is_none() {
            self.turn = Turn::try_begin();
        }
        if self.turn.is_none() {
            let began_at = Instant::now();
            self.stop();
            self.turn = Turn::resume(|| is_ended(stopped));
            self.go_on();
            self.record.stopped += began_at.elapsed();
        }
    }

    /// Stops the browser and its clock until the outside world has caught up.
    fn hold(&mut self, stopped: &Receiver<()>) {
        let began_at = Instant::now();
        self.stop();
        let now = self.clock.now();
        while self.clock.outside().has_requests()
            && let Some(reached) = self.clock.outside().reached()
            && reached < now + MIN_LEAD
            && !is_ended(stopped)
        {
            let behind = now + MIN_LEAD - reached;
            std::thread::sleep(behind.min(PERIOD));
        }
        self.go_on();
        self.record.held += began_at.elapsed();
    }

    fn stop(&self) {
        self.clock.freeze();
        self.signal(Signal::STOP);
    }

    fn go_on(&mut self) {
        // A browser that finds its clock stopped for long ends itself.
        self.clock.thaw(self.rate);
        self.signal(Signal::CONT);
        // The time since the stop is not the page's.
        self.threads.sample();
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails if the browser has ended.
            let _ = kill_process_group(group, signal);
        }
    }

    fn set_rate(&mut self, rate: f64) {
        self.clock.set_rate(rate);
        self.rate = rate;
    }

    fn step(&mut self, sample: &Sample, waiters: &[Waiter]) -> Step {
        let now = self.clock.now();
        let next_registered = self.clock.next_registered();
        let has_requests = self.clock.outside().has_requests();
        let reached = self.clock.outside().reached().filter(|_| has_requests);
        // An answer of which a part has arrived is awaited while nothing is under way on the
        // emulated network.
        let is_link_idle = next_registered.is_none_or(|at| at - now > FAR);
        let is_ahead = reached.is_some_and(|reached| reached <= now);
        if is_ahead || (has_requests && is_link_idle) {
            // Work of the page must not be charged at another rate.
            return if !sample.activity.is_busy() {
                Step::Await
            } else if is_ahead {
                Step::Hold
            } else {
                Step::Run
            };
        }
        // A thread that runs at the moment is noticed at much less cost than one that waits for a
        // core.
        if sample.activity.is_busy() || self.threads.have_run() {
            return Step::Run;
        }
        let next_wait = self.threads.next_deadline(waiters, now);
        let next = next_wait
            .into_iter()
            .chain(next_registered)
            .chain(reached)
            .min();
        match next {
            // The waits and states were read one after the other: nothing may have happened
            // meanwhile.
            Some(next)
                if next - now >= MIN_JUMP
                    && self.are_blocked(next - now)
                    && !self.threads.have_run() =>
            {
                Step::Jump(next)
            }
            _ => Step::Run,
        }
    }

    /// Returns whether all threads are known to be blocked. They are not read too often, nor for a
    /// jump that is short.
    fn are_blocked(&mut self, jump: Duration) -> bool {
        if self.threads.has_unknown_threads() {
            return false;
        }
        if self.threads.is_alone() {
            return true;
        }
        let start = Instant::now();
        if jump < MIN_JUMP_AFTER_READING || start < self.next_reading {
            return false;
        }
        let are_blocked = self.threads.are_blocked();
        let end = Instant::now();
        self.next_reading = end + REST_AFTER_READING * end.duration_since(start);
        are_blocked
    }

    /// Interrupts waits that ended by a jump. One that began in the same moment did not notice the
    /// first signal, so this is repeated.
    fn interrupt_due(&self, waiters: &[Waiter]) {
        if self.record.jumps > 0 {
            self.threads.interrupt_due(waiters, self.clock.now());
        }
    }
}

/// Returns whether the controller shall stop.
fn is_ended(stopped: &Receiver<()>) -> bool {
    !matches!(stopped.try_recv(), Err(TryRecvError::Empty))
}

/// The time after which nothing on the emulated network counts as under way.
const FAR: Duration = Duration::from_millis(500);
