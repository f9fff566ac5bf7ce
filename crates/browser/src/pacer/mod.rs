//! Throttles a page to a device's speed, and measures how much of a core its threads got.
//!
//! Chromium's own throttling makes a thread idle for a multiple of the time that it has run. That
//! time is taken from the wall clock, so that a slow or busy core is throttled once more, and the
//! page's real speed stays unknown. Here a thread of this process shares a core with the page. It
//! lets the page run for a moment, reads from the kernel how long it did, and then occupies the
//! core for as long as the device would still have needed for the same work. While it occupies the
//! core it runs a known workload and so measures the core's current speed: a slow moment is
//! throttled less.

mod core;
mod page_threads;
mod thread_time;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use plumbline_bundle::Artifact;
use plumbline_clock::{CorePace, PageTime, Speedometer, WorkRecord, monotonic_us};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::launch::pid_of;
use core::Core;
use page_threads::{PageThread, RendererThread, search};
use thread_time::{ThreadClock, ThreadTime};

/// Name of the artifact in a bundle.
pub(crate) const ARTIFACT: &str = "scheduler";

/// Method of throttling a page's CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Throttle {
    /// A pacer gives the page `1/rate` of a core's throughput at its `nominal` speed. Rate 1 only
    /// measures.
    Paced { rate: f64, nominal: CorePace },
    /// Chromium idles `rate` - 1 times as long as it has run.
    ByChromium { rate: f64 },
    /// The page runs at full speed, and `rate` units of its time pass in one of real time while its
    /// core has the `nominal` speed.
    ByClock { rate: f64, nominal: CorePace },
}

impl Throttle {
    /// Full speed, measured.
    pub const NONE: Self = Self::Paced {
        rate: 1.0,
        nominal: CorePace {
            turn_ns: 0.0,
            crowding: 0.0,
        },
    };

    /// Returns the throttling rate to set in Chromium.
    pub(crate) fn rate_by_chromium(self) -> f64 {
        match self {
            Self::Paced { .. } | Self::ByClock { .. } => 1.0,
            Self::ByChromium { rate } => rate.max(1.0),
        }
    }

    fn paced(self) -> (f64, CorePace) {
        match self {
            Self::Paced { rate, nominal } => (rate.max(1.0), nominal),
            Self::ByChromium { .. } | Self::ByClock { .. } => (1.0, CorePace::default()),
        }
    }
}

/// Time that the page runs between two checks. After each it finds the core's caches and predictors
/// as others left them, who may use the other half of a physical core while the pacer occupies this
/// one: in slices of 300 µs (Chromium's own throttling has 200) a page with much script took up to
/// a third longer, and never the same. With a longer slice the device's share is charged slightly
/// later.
const SLICE: Duration = Duration::from_millis(1);
/// Interval at which an idle page's core is measured.
const IDLE_MEASUREMENT_INTERVAL_US: f64 = 4_000.0;
const IDLE_MEASUREMENT: Duration = Duration::from_micros(80);
/// Maximum time owed; more is dropped, because the page would seem to hang.
const MAX_OWED_US: f64 = 20_000.0;
/// Interval of samples while the core is not occupied.
const SAMPLE_INTERVAL_US: f64 = 4_000.0;
/// Maximum compensation for a slow core at once.
const MAX_CREDIT_US: f64 = 1_000.0;
/// Time to occupy a core at the end if nothing was measured before: short measurements are too
/// short to show contention.
const CALIBRATION_TIME: Duration = Duration::from_millis(30);
const SPEED_INTERVAL_US: f64 = 50_000.0;

/// Niceness of the pacer, above the page if permitted, so that it regains the core in time.
const OWN_NICENESS: i32 = -20;
/// Niceness of the page's threads if the pacer may not raise its own.
const PAGE_NICENESS: i32 = 19;

/// A thread that throttles a page; ended by [`Pacer::finish`] or when dropped.
pub(crate) struct Pacer {
    stop: Sender<()>,
    stop_search: Sender<()>,
    pacing: JoinHandle<Pacing>,
}

/// Measurements of a pacer.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// Throttling rate; `None` if Chromium throttled the page, whose idling then counts as run
    /// time.
    rate: Option<f64>,
    /// Samples of the main thread by process id.
    main_threads: BTreeMap<u32, Vec<Sample>>,
    /// `[at_us, speed, turn_ns, crowding]`: the core's speed relative to nominal, and its
    /// measurements.
    speeds: Vec<[f64; 4]>,
    /// Average speed of the core.
    pub(crate) pace: CorePace,
}

/// `[at_us, ran_us, waited_us, worked_us, held_us]`: time on the traces' clock, then counters: time
/// that the thread ran, time that it was runnable without a core, time that it would have run at
/// nominal speed, and time that the pacer occupied the core.
type Sample = [f64; 5];

impl Pacer {
    /// Starts a pacer for all current and future renderers of one browser.
    pub(crate) fn start(browser_group: u32, throttle: Throttle) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (stop_search, search_stopped) = mpsc::channel();
        let (sender, threads) = mpsc::channel();
        std::thread::spawn(move || search(browser_group, &search_stopped, &sender));
        let pacing = std::thread::spawn(move || PacerLoop::new(throttle).pace(&stopped, &threads));
        Self {
            stop,
            stop_search,
            pacing,
        }
    }

    pub(crate) fn finish(self) -> Pacing {
        drop(self.stop_search);
        drop(self.stop);
        self.pacing.join().unwrap_or_default()
    }
}

impl From<WorkRecord> for Pacing {
    /// Counters of a page clock are in page time already, so that the rate is 1.
    fn from(work: WorkRecord) -> Self {
        let us = |at: PageTime| at.as_nanos() as f64 / 1000.0;
        let rounded = |us: f64| (us * 10.0).round() / 10.0;
        Self {
            rate: Some(1.0),
            pace: work.mean_pace(),
            main_threads: work
                .threads
                .into_iter()
                .filter_map(|(process, samples)| {
                    let samples = samples.into_iter().map(|it| {
                        [us(it.at), it.ran_us, it.waited_us, it.worked_us, 0.0].map(rounded)
                    });
                    Some((u32::try_from(process).ok()?, samples.collect()))
                })
                .collect(),
            speeds: work
                .speeds
                .into_iter()
                .map(|it| [us(it.at), it.speed, it.pace.turn_ns, it.pace.crowding])
                .collect(),
        }
    }
}

impl Pacing {
    /// Returns the fraction of a main thread's runnable time in which others had its core, 0 to 1.
    pub(crate) fn lost_share(&self) -> f64 {
        let (mut wanted_us, mut lost_us) = (0.0, 0.0);
        for samples in self.main_threads.values() {
            if let (Some(first), Some(last)) = (samples.first(), samples.last()) {
                let grown = |counter: usize| last[counter] - first[counter];
                wanted_us += grown(1) + grown(2);
                lost_us += (grown(2) - grown(4)).max(0.0);
            }
        }
        if wanted_us > 0.0 {
            lost_us / wanted_us
        } else {
            0.0
        }
    }

    pub(crate) fn into_artifact(self) -> Artifact {
        let threads: Vec<_> = self
            .main_threads
            .into_iter()
            .map(|(process, samples)| json!({"processId": process, "samples": samples}))
            .collect();
        let measurements = json!({"rate": self.rate, "speeds": self.speeds, "threads": threads});
        match to_raw_value(&measurements) {
            Ok(raw) => Artifact::Gathered(raw),
            Err(error) => Artifact::Missing(error.to_string()),
        }
    }
}

/// State of the pacer's loop.
struct PacerLoop {
    rate: f64,
    nominal: CorePace,
    core: Option<Core>,
    has_priority: bool,
    meter: Speedometer,
    threads: Vec<PacedThread>,
    /// Time for which the core is still to be occupied.
    owed_us: f64,
    held_us: f64,
    held_until_us: f64,
    /// Measurements since the last recorded speed.
    recent_readings: Readings,
    all_readings: Readings,
    speed_recorded_at_us: f64,
    pacing: Pacing,
}

struct PacedThread {
    thread: PageThread,
    clock: ThreadClock,
    time: ThreadTime,
    worked_us: f64,
}

#[derive(Default)]
struct Readings {
    sum: CorePace,
    count: f64,
    count_of_crowding: f64,
}

impl Readings {
    fn add(&mut self, pace: CorePace) {
        self.sum.turn_ns += pace.turn_ns;
        self.count += 1.0;
        self.sum.crowding += pace.crowding;
        self.count_of_crowding += f64::from(u8::from(pace.crowding > 0.0));
    }

    fn mean(&self) -> CorePace {
        CorePace {
            turn_ns: self.sum.turn_ns / self.count.max(1.0),
            crowding: self.sum.crowding / self.count_of_crowding.max(1.0),
        }
    }
}

impl PacerLoop {
    fn new(throttle: Throttle) -> Self {
        let (rate, nominal) = throttle.paced();
        Self {
            rate,
            nominal,
            core: None,
            has_priority: false,
            meter: Speedometer::new(),
            threads: Vec::new(),
            owed_us: 0.0,
            held_us: 0.0,
            held_until_us: 0.0,
            recent_readings: Readings::default(),
            all_readings: Readings::default(),
            speed_recorded_at_us: 0.0,
            pacing: Pacing {
                rate: matches!(throttle, Throttle::Paced { .. }).then_some(rate),
                ..Pacing::default()
            },
        }
    }

    fn pace(mut self, stopped: &Receiver<()>, threads: &Receiver<RendererThread>) -> Pacing {
        self.set_up();
        while let Err(TryRecvError::Empty) = stopped.try_recv() {
            std::thread::sleep(SLICE);
            while let Ok(thread) = threads.try_recv() {
                self.add_thread(thread);
            }
            self.charge();
            let due = self.due();
            self.sample(due.is_some());
            if let Some(duration) = due {
                self.hold(duration);
            }
        }
        self.charge();
        self.sample(true);
        if self.nominal == CorePace::default() {
            self.hold(CALIBRATION_TIME);
        }
        self.release();
        self.pacing.pace = self.all_readings.mean();
        self.pacing
    }

    /// Takes a core and sets the thread's priority.
    fn set_up(&mut self) {
        match Core::take().and_then(|core| core.hold(None).map(|()| core)) {
            Ok(core) => self.core = Some(core),
            Err(error) => tracing::debug!(%error, "pacing the page without a dedicated core"),
        }
        self.has_priority = rustix::process::setpriority_process(None, OWN_NICENESS).is_ok();
        // A sleep would otherwise last 50 µs longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }

    fn add_thread(&mut self, thread: RendererThread) {
        let Some(core) = &self.core else { return };
        match thread {
            RendererThread::Service(thread) => {
                if let Some(pid) = pid_of(thread.thread_id) {
                    let _ = core.release(pid);
                }
            }
            RendererThread::Page(thread) => {
                let (Some(pid), Some(clock)) = (
                    pid_of(thread.thread_id),
                    ThreadClock::of(thread.process_id, thread.thread_id),
                ) else {
                    return;
                };
                if let Err(error) = core.hold(Some(pid)) {
                    tracing::debug!(%error, "could not pin a thread of the page");
                }
                if !self.has_priority {
                    let _ = rustix::process::setpriority_process(Some(pid), PAGE_NICENESS);
                }
                let time = clock.read().unwrap_or_default();
                self.threads.push(PacedThread {
                    thread,
                    clock,
                    time,
                    worked_us: 0.0,
                });
            }
        }
    }

    /// Releases the page's threads from the core at the end of the measurement.
    fn release(&self) {
        let Some(core) = &self.core else { return };
        for pid in self
            .threads
            .iter()
            .filter_map(|paced| pid_of(paced.thread.thread_id))
        {
            let _ = core.release(pid);
        }
    }

    /// Adds the page's work since the last check, and the time that it costs a device.
    fn charge(&mut self) {
        let speed = self.meter.pace().speed_relative_to(self.nominal);
        let rate = self.rate;
        let mut owed_us = 0.0;
        self.threads.retain_mut(|paced| {
            let Some(time) = paced.clock.read() else {
                return false;
            };
            let ran_us = time.ran_us - paced.time.ran_us;
            let worked_us = ran_us * speed;
            paced.time = time;
            paced.worked_us += worked_us;
            owed_us += worked_us * rate - ran_us;
            true
        });
        if rate > 1.0 {
            self.owed_us = (self.owed_us + owed_us).clamp(-MAX_CREDIT_US, MAX_OWED_US);
        }
    }

    /// Returns how long to occupy the core now, for time owed or for a measurement.
    fn due(&self) -> Option<Duration> {
        if self.owed_us > 0.0 {
            Some(Duration::from_secs_f64(self.owed_us / 1e6))
        } else {
            (monotonic_us() - self.held_until_us > IDLE_MEASUREMENT_INTERVAL_US)
                .then_some(IDLE_MEASUREMENT)
        }
    }

    /// Occupies the core and measures its speed meanwhile.
    fn hold(&mut self, duration: Duration) {
        let began_us = monotonic_us();
        let pace = self.meter.work_for(duration);
        let ended_us = monotonic_us();
        self.held_until_us = ended_us;
        self.held_us += ended_us - began_us;
        self.owed_us -= ended_us - began_us;
        self.all_readings.add(pace);
        self.recent_readings.add(pace);
        self.record_speed(ended_us);
    }

    fn record_speed(&mut self, at_us: f64) {
        if at_us - self.speed_recorded_at_us >= SPEED_INTERVAL_US {
            let pace = std::mem::take(&mut self.recent_readings).mean();
            let speed = pace.speed_relative_to(self.nominal);
            let read = [at_us, speed, pace.turn_ns, pace.crowding];
            self.pacing.speeds.push(read);
            self.speed_recorded_at_us = at_us;
        }
    }

    /// Samples every main thread; if the core is not about to be occupied, only at intervals.
    fn sample(&mut self, before_hold: bool) {
        let at_us = monotonic_us();
        for paced in &self.threads {
            if !paced.thread.is_main() {
                continue;
            }
            let process = paced.thread.process_id;
            let samples = self.pacing.main_threads.entry(process).or_default();
            let is_recent = |last: &Sample| at_us - last[0] < SAMPLE_INTERVAL_US;
            if before_hold || !samples.last().is_some_and(is_recent) {
                let ThreadTime { ran_us, waited_us } = paced.time;
                let sample = [at_us, ran_us, waited_us, paced.worked_us, self.held_us];
                record(samples, self.held_until_us, sample);
            }
        }
    }
}

/// Records a sample. If the core was occupied since the last one, also records the state at the
/// time it was released: the kernel reports the thread's waiting time only once it runs again.
fn record(samples: &mut Vec<Sample>, held_until_us: f64, sample: Sample) {
    let [_, _, waited_us, _, held_us] = sample;
    if let Some(&[last_us, ran_us, _, worked_us, _]) = samples.last()
        && last_us < held_until_us
    {
        push(
            samples,
            [held_until_us, ran_us, waited_us, worked_us, held_us],
        );
    }
    push(samples, sample);
}

/// Adds a sample; an idle thread keeps only its first idle sample and its last.
fn push(samples: &mut Vec<Sample>, sample: Sample) {
    match samples.as_mut_slice() {
        [.., before, last] if before[1..4] == sample[1..4] && last[1..4] == sample[1..4] => {
            *last = sample;
        }
        _ => samples.push(sample),
    }
}

#[cfg(test)]
mod tests;
