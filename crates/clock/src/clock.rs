use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use crate::layout::{CLOCK_VARIABLE, ClockPage, LAYOUT_VERSION, WAITS_VARIABLE};
use crate::serving::ServingThreads;
use crate::shared::SharedClockPage;
use crate::timers::{PageTimer, Timers};
use crate::waits::{WaitTable, Waiter};
use crate::{Library, PageTime, PendingResponses, RealTimer};

/// The time between two looks at a clock that is stopped together with its browser.
const FROZEN_WAIT: Duration = Duration::from_millis(50);

/// The longest real wait for which a precise timer is used, which needs a file descriptor.
const MAX_PRECISE_WAIT: Duration = Duration::from_millis(20);

/// The shortest real wait while the clock runs slower than its speed.
const MIN_REPEATED_WAIT: Duration = Duration::from_micros(100);

/// The highest speed of a core, relative to the nominal one, that the rate of a clock follows. The
/// nominal speed is that of the hour in which the host was calibrated; cores were up to 1.5 times
/// as fast in others.
const MAX_CORE_SPEED: f64 = 2.0;

/// A clock for all processes of one browser.
#[derive(Debug)]
pub struct PageClock {
    page: SharedClockPage,
    waits: Option<WaitTable>,
    /// Serialises the writers.
    writer: Mutex<()>,
    pub(crate) timers: Timers,
    outside: PendingResponses,
    pub(crate) serving: ServingThreads,
    frozen: Mutex<FrozenTime>,
    is_frozen: AtomicBool,
}

/// The real time in which a clock and its browser were stopped.
#[derive(Debug, Default)]
struct FrozenTime {
    total: Duration,
    since: Option<Instant>,
}

/// The values that change together.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    real_ns: i64,
    page_ns: i64,
    rate: f64,
}

impl PageClock {
    /// Creates a clock whose files are in this directory. It shows the system's time and runs at
    /// rate 1. `owner` is the user and group of the browser, if they are not those of this process.
    pub fn create(directory: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        let page = SharedClockPage::create(directory.join("clock"))?;
        let waits = WaitTable::create(directory.join("clock-waits"), owner)?;
        Ok(Self::new(page, Some(waits)))
    }

    /// Creates a clock that no other process sees.
    pub fn private() -> io::Result<Self> {
        Ok(Self::new(SharedClockPage::anonymous()?, None))
    }

    fn new(page: SharedClockPage, waits: Option<WaitTable>) -> Self {
        let now = real_ns(ClockId::Monotonic);
        page.real_anchor_ns.store(now, Ordering::Relaxed);
        page.page_anchor_ns.store(now, Ordering::Relaxed);
        for rate in [&page.rate, &page.max_rate, &page.cpu_rate] {
            store_rate(rate, 1.0);
        }
        let clock = Self {
            page,
            waits,
            writer: Mutex::new(()),
            timers: Timers::new(),
            outside: PendingResponses::default(),
            serving: ServingThreads::default(),
            frozen: Mutex::default(),
            is_frozen: AtomicBool::new(false),
        };
        clock.set_wall_clock();
        let version = &clock.page.layout_version;
        version.store(LAYOUT_VERSION, Ordering::Release);
        clock
    }

    /// Returns the environment variables of a program that shall see this clock.
    pub fn environment(&self, library: &Library) -> Vec<(&'static str, OsString)> {
        let clock = self.page.path().map(|path| (CLOCK_VARIABLE, path));
        let waits = self.waits.as_ref().map(|it| (WAITS_VARIABLE, it.path()));
        [Some(("LD_PRELOAD", library.path())), clock, waits]
            .into_iter()
            .flatten()
            .map(|(variable, path)| (variable, path.into()))
            .collect()
    }

    /// Returns the page time.
    pub fn now(&self) -> PageTime {
        loop {
            let before = self.page.sequence.load(Ordering::Acquire);
            if before & 1 == 1 {
                std::hint::spin_loop();
                continue;
            }
            let anchor = load_anchor(&self.page);
            let now = real_ns(ClockId::Monotonic);
            fence(Ordering::Acquire);
            if self.page.sequence.load(Ordering::Relaxed) == before {
                return PageTime::from_nanos(anchor.page_ns_at(now));
            }
        }
    }

    /// Returns what the page awaits from the outside world.
    pub fn outside(&self) -> &PendingResponses {
        &self.outside
    }

    /// Returns the rate of an undisturbed clock on a core of nominal speed.
    pub fn speed(&self) -> f64 {
        load_rate(&self.page.cpu_rate)
    }

    /// Sets the rate: the page time that passes in one unit of real time, at most a little more
    /// than the speed ([`PageClock::set_speed`]).
    pub fn set_rate(&self, rate: f64) {
        let max_rate = load_rate(&self.page.max_rate);
        self.write(|anchor| anchor.rate = rate.clamp(0.0, max_rate));
    }

    /// Makes the host look like a device: a unit of processor time on a core of nominal speed lasts
    /// `speed` units of page time. That is the rate from now on. Threads that wait at a lower rate
    /// have to be [interrupted](crate::interrupt), or they wait too long.
    pub fn set_speed(&self, speed: f64) {
        store_rate(&self.page.max_rate, speed * MAX_CORE_SPEED);
        store_rate(&self.page.cpu_rate, speed);
        self.write(|anchor| anchor.rate = speed);
    }

    /// Moves the clock forward. Threads whose deadline has come have to be
    /// [interrupted](crate::interrupt).
    pub fn jump(&self, duration: Duration) {
        let ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        self.write(|anchor| anchor.page_ns = anchor.page_ns.saturating_add(ns));
        self.timers.notify_jump();
    }

    /// Stops the clock, because its browser is stopped, too.
    pub(crate) fn freeze(&self) {
        self.frozen_time().since = Some(Instant::now());
        self.is_frozen.store(true, Ordering::Relaxed);
        self.set_rate(0.0);
    }

    /// Lets the clock run again.
    pub(crate) fn thaw(&self, rate: f64) {
        let mut frozen = self.frozen_time();
        let since = frozen.since.take();
        frozen.total += since.map_or(Duration::ZERO, |since| since.elapsed());
        drop(frozen);
        self.is_frozen.store(false, Ordering::Relaxed);
        self.set_rate(rate);
        self.timers.notify_jump();
    }

    /// Returns the real time in which the clock was stopped together with its browser. Deadlines in
    /// real time are later by it.
    pub fn total_frozen(&self) -> Duration {
        let frozen = self.frozen_time();
        frozen.total + frozen.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn frozen_time(&self) -> MutexGuard<'_, FrozenTime> {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits a future for at most this real time, without the time in which the clock and its
    /// browser are stopped. Returns `None` if that was too short.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let deadline = tokio::time::Instant::now() + limit;
        let frozen_before = self.total_frozen();
        loop {
            let frozen = self.total_frozen().saturating_sub(frozen_before);
            let mut until = deadline + frozen;
            if self.is_frozen.load(Ordering::Relaxed) {
                until = until.max(tokio::time::Instant::now() + FROZEN_WAIT);
            }
            if let Ok(output) = tokio::time::timeout_at(until, &mut future).await {
                return Some(output);
            }
            if self.total_frozen().saturating_sub(frozen_before) == frozen {
                return None;
            }
        }
    }

    /// Waits until a page time.
    pub async fn sleep_until(self: &Arc<Self>, deadline: PageTime) {
        let mut registered = PageTimer::new(Arc::clone(self));
        registered.set(Some(deadline));
        let mut jumps = self.jumps();
        let mut timer = None;
        while let Some(wait) = self.real_wait(deadline) {
            let sleeping = async {
                if wait > MAX_PRECISE_WAIT {
                    tokio::time::sleep(wait - MAX_PRECISE_WAIT / 2).await;
                } else {
                    // Fails if there are too many open files.
                    let timer = timer.get_or_insert_with(|| RealTimer::new().ok());
                    sleep_precisely(timer.as_ref(), wait).await;
                }
            };
            tokio::select! {
                () = sleeping => {}
                _ = jumps.changed() => {}
            }
        }
    }

    /// Returns a real time to wait for a page time, after which to ask again: it is not too long
    /// whatever the rate becomes. Returns `None` if that time has come.
    pub fn real_wait(&self, deadline: PageTime) -> Option<Duration> {
        let left = deadline - self.now();
        if self.is_frozen.load(Ordering::Relaxed) && !left.is_zero() {
            return Some(FROZEN_WAIT);
        }
        let wait = left.div_f64(load_rate(&self.page.max_rate));
        (!left.is_zero()).then(|| wait.max(MIN_REPEATED_WAIT.min(left)))
    }

    /// Returns the earliest registered deadline.
    pub fn next_registered(&self) -> Option<PageTime> {
        self.timers.next()
    }

    /// Returns a value that changes with every jump of the clock.
    pub fn jumps(&self) -> watch::Receiver<u64> {
        self.timers.jumps()
    }

    /// Sets the clock's wall time to the system's: a clock that ran at another rate differs.
    pub fn set_wall_clock(&self) {
        let monotonic = self.now().as_nanos();
        let offset = |clock| real_ns(clock) - monotonic;
        let page = &self.page;
        page.realtime_offset_ns
            .store(offset(ClockId::Realtime), Ordering::Relaxed);
        page.boottime_offset_ns
            .store(offset(ClockId::Boottime), Ordering::Relaxed);
    }

    /// Returns the threads that wait until a page time. Threads of ended processes may be among
    /// them.
    pub fn waiters(&self) -> io::Result<Vec<Waiter>> {
        self.waits.as_ref().map_or(Ok(Vec::new()), WaitTable::read)
    }

    /// Returns whether a program that was started with this clock reads it.
    pub fn is_seen(&self) -> bool {
        let waits = self.waits.as_ref();
        waits.is_some_and(|waits| waits.is_used().unwrap_or_default())
    }

    fn write(&self, change: impl FnOnce(&mut Anchor)) {
        let _guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let page = &self.page;
        let sequence = page.sequence.load(Ordering::Relaxed);
        page.sequence
            .store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let mut anchor = load_anchor(page);
        let now = real_ns(ClockId::Monotonic);
        anchor.page_ns = anchor.page_ns_at(now);
        anchor.real_ns = now;
        change(&mut anchor);
        page.real_anchor_ns.store(anchor.real_ns, Ordering::Relaxed);
        page.page_anchor_ns.store(anchor.page_ns, Ordering::Relaxed);
        store_rate(&page.rate, anchor.rate);
        page.sequence
            .store(sequence.wrapping_add(2), Ordering::Release);
    }
}

/// Waits for a real time; without a timer, as precisely as tokio's timers.
async fn sleep_precisely(timer: Option<&RealTimer>, wait: Duration) {
    if let Some(timer) = timer
        && timer.set(wait).is_ok()
        && timer.wait().await.is_ok()
    {
        return;
    }
    tokio::time::sleep(wait).await;
}

impl Anchor {
    fn page_ns_at(self, real_ns: i64) -> i64 {
        self.page_ns + ((real_ns - self.real_ns) as f64 * self.rate) as i64
    }
}

fn load_anchor(page: &ClockPage) -> Anchor {
    Anchor {
        real_ns: page.real_anchor_ns.load(Ordering::Relaxed),
        page_ns: page.page_anchor_ns.load(Ordering::Relaxed),
        rate: load_rate(&page.rate),
    }
}

fn load_rate(bits: &AtomicU64) -> f64 {
    f64::from_bits(bits.load(Ordering::Relaxed))
}

fn store_rate(bits: &AtomicU64, rate: f64) {
    bits.store(rate.to_bits(), Ordering::Relaxed);
}

fn real_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
