//! Holds a page to a device's pace, and knows what its threads got of their core.
//!
//! Chromium's own throttling makes a thread idle for a multiple of the time that it has run. That
//! time is taken from the wall clock, so a slow or busy core is slowed down once more, and how fast
//! the page really was stays unknown. Here a thread of ours shares a core with the page's. It lets the
//! page run for a moment, reads from the kernel how long it did, and keeps the core for as long as
//! the device would still have needed for the same work. While it keeps the core it does work of
//! known size, and so knows how fast the core is just now: a slow moment is slowed down less.

mod core;
mod interpreter;
mod neighbours;
mod page_threads;
mod speed;
mod thread_time;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use plumbline_bundle::Artifact;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::launch::pid_of;
use core::Core;
use page_threads::{Found, PageThread, search};
pub use speed::CorePace;
use speed::{Speedometer, monotonic_us};
use thread_time::{ThreadClock, ThreadTime};

/// The artifact's name in a bundle.
pub(crate) const ARTIFACT: &str = "scheduler";

/// How a page's processor is slowed down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Throttle {
    /// By a pacer: the page gets a `rate`th of what a core does at its `nominal` pace. Rate 1 only
    /// watches.
    Paced { rate: f64, nominal: CorePace },
    /// By Chromium, which idles `rate` - 1 times as long as it has run.
    ByChromium { rate: f64 },
}

impl Throttle {
    /// Full speed, watched.
    pub const NONE: Self = Self::Paced {
        rate: 1.0,
        nominal: CorePace {
            turn_ns: 0.0,
            crowding: 0.0,
        },
    };

    /// What Chromium is told.
    pub(crate) fn rate_by_chromium(self) -> f64 {
        match self {
            Self::Paced { .. } => 1.0,
            Self::ByChromium { rate } => rate.max(1.0),
        }
    }

    fn paced(self) -> (f64, CorePace) {
        match self {
            Self::Paced { rate, nominal } => (rate.max(1.0), nominal),
            Self::ByChromium { .. } => (1.0, CorePace::default()),
        }
    }
}

/// How long the page runs between two looks. After each it finds the core's caches and guesses as others left them, who may
/// sit on the other half of a physical core while ours is kept: in slices of 300 µs (Chromium's own throttling has 200) a page with
/// much script took up to a third longer, and never the same. A device's worth of work is owed a little later instead.
const SLICE: Duration = Duration::from_millis(1);
/// An idle page's core is looked at this often, for so long.
const GLANCE_EVERY_US: f64 = 4_000.0;
const GLANCE: Duration = Duration::from_micros(80);
/// What is owed beyond this is forgiven: the page would seem to hang.
const MOST_OWED_US: f64 = 20_000.0;
/// Where the core is not kept, samples are taken this often.
const SAMPLE_EVERY_US: f64 = 4_000.0;
/// The page is never made up for more than this much slowness at once.
const MOST_CREDIT_US: f64 = 1_000.0;
/// Where nothing is known of a core yet it is kept for a while at the end: glances are too short to tell of neighbours.
const CALIBRATING: Duration = Duration::from_millis(30);
const SPEED_EVERY_US: f64 = 50_000.0;

/// Above the page where we may, so that a turn ends when it must.
const OWN_NICENESS: i32 = -20;
/// Where we may not, the page's threads go below us.
const NICENESS_OF_PAGE: i32 = 19;

/// A thread of ours beside those of a page; stopped by [`Pacer::finish`], or dropped.
pub(crate) struct Pacer {
    stop: Sender<()>,
    stop_search: Sender<()>,
    pacing: JoinHandle<Pacing>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// None where Chromium slowed the page down: what a thread ran then holds its idling, too.
    rate: Option<f64>,
    /// By process: the main thread's samples.
    main_threads: BTreeMap<u32, Vec<Sample>>,
    /// `[at_us, speed, turn_ns, crowding]`: the core's speed, 1 being nominal, and what it was read from.
    speeds: Vec<[f64; 4]>,
    /// On the average.
    pub(crate) pace: CorePace,
}

/// `[at_us, ran_us, waited_us, worked_us, held_us]`: the clock of traces, then counters: what the
/// thread ran, what it stood ready without a core, what it would have run at nominal speed, and what
/// the pacer kept the core.
type Sample = [f64; 5];

impl Pacer {
    /// For the renderers of one browser, whenever they come to life.
    pub(crate) fn start(browser_group: u32, throttle: Throttle) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (stop_search, search_stopped) = mpsc::channel();
        let (tell, found) = mpsc::channel();
        std::thread::spawn(move || search(browser_group, &search_stopped, &tell));
        let pacing = std::thread::spawn(move || Pacesetter::new(throttle).pace(&stopped, &found));
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

impl Pacing {
    /// The part of a main thread's ready time in which others had its core, 0 to 1.
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
        let told = json!({"rate": self.rate, "speeds": self.speeds, "threads": threads});
        match to_raw_value(&told) {
            Ok(raw) => Artifact::Gathered(raw),
            Err(error) => Artifact::Missing(error.to_string()),
        }
    }
}

/// The loop's state.
struct Pacesetter {
    rate: f64,
    nominal: CorePace,
    core: Option<Core>,
    outranks: bool,
    meter: Speedometer,
    threads: Vec<Followed>,
    /// For how long the core is still to be kept.
    owed_us: f64,
    held_us: f64,
    held_until_us: f64,
    /// Since the speed was written down, and since the start.
    lately: Readings,
    in_all: Readings,
    told_at_us: f64,
    pacing: Pacing,
}

struct Followed {
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

impl Pacesetter {
    fn new(throttle: Throttle) -> Self {
        let (rate, nominal) = throttle.paced();
        Self {
            rate,
            nominal,
            core: None,
            outranks: false,
            meter: Speedometer::new(),
            threads: Vec::new(),
            owed_us: 0.0,
            held_us: 0.0,
            held_until_us: 0.0,
            lately: Readings::default(),
            in_all: Readings::default(),
            told_at_us: 0.0,
            pacing: Pacing {
                rate: matches!(throttle, Throttle::Paced { .. }).then_some(rate),
                ..Pacing::default()
            },
        }
    }

    fn pace(mut self, stopped: &Receiver<()>, found: &Receiver<Found>) -> Pacing {
        self.settle();
        while let Err(TryRecvError::Empty) = stopped.try_recv() {
            std::thread::sleep(SLICE);
            while let Ok(found) = found.try_recv() {
                self.meet(found);
            }
            self.charge();
            let due = self.due();
            self.sample(due.is_some());
            if let Some(how_long) = due {
                self.hold(how_long);
            }
        }
        self.charge();
        self.sample(true);
        if self.nominal == CorePace::default() {
            self.hold(CALIBRATING);
        }
        self.release();
        self.pacing.pace = self.in_all.mean();
        self.pacing
    }

    /// Takes a core and a rank on it.
    fn settle(&mut self) {
        match Core::take().and_then(|core| core.hold(None).map(|()| core)) {
            Ok(core) => self.core = Some(core),
            Err(error) => tracing::debug!(%error, "the page is paced without a core of its own"),
        }
        self.outranks = rustix::process::setpriority_process(None, OWN_NICENESS).is_ok();
        // A sleep would else last 50 µs longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }

    fn meet(&mut self, found: Found) {
        let Some(core) = &self.core else { return };
        match found {
            Found::Servant(thread) => {
                if let Some(pid) = pid_of(thread.thread_id) {
                    let _ = core.release(pid);
                }
            }
            Found::Page(thread) => {
                let (Some(pid), Some(clock)) = (
                    pid_of(thread.thread_id),
                    ThreadClock::of(thread.process_id, thread.thread_id),
                ) else {
                    return;
                };
                if let Err(error) = core.hold(Some(pid)) {
                    tracing::debug!(%error, "a thread of the page stays free");
                }
                if !self.outranks {
                    let _ = rustix::process::setpriority_process(Some(pid), NICENESS_OF_PAGE);
                }
                let time = clock.read().unwrap_or_default();
                self.threads.push(Followed {
                    thread,
                    clock,
                    time,
                    worked_us: 0.0,
                });
            }
        }
    }

    /// Nothing is measured any more: the page's threads may go where they like.
    fn release(&self) {
        let Some(core) = &self.core else { return };
        for pid in self
            .threads
            .iter()
            .filter_map(|followed| pid_of(followed.thread.thread_id))
        {
            let _ = core.release(pid);
        }
    }

    /// Adds up what the page's threads did since the last look, and what that costs a device.
    fn charge(&mut self) {
        let speed = self.meter.pace().speed_beside(self.nominal);
        let rate = self.rate;
        let mut owed_us = 0.0;
        self.threads.retain_mut(|followed| {
            let Some(time) = followed.clock.read() else {
                return false;
            };
            let ran_us = time.ran_us - followed.time.ran_us;
            let worked_us = ran_us * speed;
            followed.time = time;
            followed.worked_us += worked_us;
            owed_us += worked_us * rate - ran_us;
            true
        });
        if rate > 1.0 {
            self.owed_us = (self.owed_us + owed_us).clamp(-MOST_CREDIT_US, MOST_OWED_US);
        }
    }

    /// For how long the core is to be kept now, for what is owed or for a glance.
    fn due(&self) -> Option<Duration> {
        if self.owed_us > 0.0 {
            Some(Duration::from_secs_f64(self.owed_us / 1e6))
        } else {
            (monotonic_us() - self.held_until_us > GLANCE_EVERY_US).then_some(GLANCE)
        }
    }

    /// Keeps the core, and reads its pace meanwhile.
    fn hold(&mut self, how_long: Duration) {
        let began_us = monotonic_us();
        let pace = self.meter.work_for(how_long);
        let ended_us = monotonic_us();
        self.held_until_us = ended_us;
        self.held_us += ended_us - began_us;
        self.owed_us -= ended_us - began_us;
        self.in_all.add(pace);
        self.lately.add(pace);
        self.tell_speed(ended_us);
    }

    fn tell_speed(&mut self, at_us: f64) {
        if at_us - self.told_at_us >= SPEED_EVERY_US {
            let pace = std::mem::take(&mut self.lately).mean();
            let speed = pace.speed_beside(self.nominal);
            let read = [at_us, speed, pace.turn_ns, pace.crowding];
            self.pacing.speeds.push(read);
            self.told_at_us = at_us;
        }
    }

    /// Of every main thread; where the core is not about to be kept, only now and then.
    fn sample(&mut self, before_hold: bool) {
        let at_us = monotonic_us();
        for followed in &self.threads {
            if !followed.thread.is_main() {
                continue;
            }
            let process = followed.thread.process_id;
            let samples = self.pacing.main_threads.entry(process).or_default();
            let lately = |last: &Sample| at_us - last[0] < SAMPLE_EVERY_US;
            if before_hold || !samples.last().is_some_and(lately) {
                let ThreadTime { ran_us, waited_us } = followed.time;
                let sample = [at_us, ran_us, waited_us, followed.worked_us, self.held_us];
                record(samples, self.held_until_us, sample);
            }
        }
    }
}

/// If the core was kept since the last sample, then also how things stood when it was let go: what the thread waited
/// meanwhile the kernel tells only once it runs again.
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

/// A thread that does nothing takes two samples: its first idle one and its last.
fn push(samples: &mut Vec<Sample>, sample: Sample) {
    match samples.as_mut_slice() {
        [.., before, last] if before[1..4] == sample[1..4] && last[1..4] == sample[1..4] => {
            *last = sample;
        }
        _ => samples.push(sample),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_thread_leaves_two_samples() {
        let mut samples = Vec::new();
        push(&mut samples, [0.0, 5.0, 1.0, 5.0, 0.0]);
        push(&mut samples, [4.0, 9.0, 1.0, 9.0, 1.0]);
        for at in 2..100 {
            push(
                &mut samples,
                [4.0 * f64::from(at), 9.0, 1.0, 9.0, f64::from(at)],
            );
        }
        assert_eq!(samples.len(), 3);
        assert_eq!(samples[2][0], 4.0 * 99.0);
    }

    #[test]
    fn a_sample_tells_how_things_stood_when_the_core_was_let_go() {
        let mut samples = Vec::new();
        record(&mut samples, 0.0, [1_000.0, 900.0, 0.0, 900.0, 0.0]);
        record(
            &mut samples,
            4_000.0,
            [5_000.0, 1_900.0, 3_000.0, 1_900.0, 3_000.0],
        );
        // Not kept since.
        record(
            &mut samples,
            4_000.0,
            [6_000.0, 2_900.0, 3_000.0, 2_900.0, 3_000.0],
        );
        let let_go = [4_000.0, 900.0, 3_000.0, 900.0, 3_000.0];
        assert_eq!(samples.len(), 4);
        assert_eq!(samples[1], let_go);
    }

    #[test]
    fn what_the_pacer_kept_is_not_lost_to_others() {
        let samples = vec![[0.0; 5], [100.0, 25.0, 75.0, 25.0, 60.0]];
        let pacing = Pacing {
            main_threads: BTreeMap::from([(1, samples)]),
            ..Pacing::default()
        };
        assert_eq!(pacing.lost_share(), 0.15);
        assert_eq!(Pacing::default().lost_share(), 0.0);
    }

    #[test]
    fn work_is_not_slowed_down_twice_where_chromium_did() {
        let by_chromium = Pacesetter::new(Throttle::ByChromium { rate: 4.0 });
        assert_eq!(by_chromium.pacing.rate, None);
        assert_eq!(Pacesetter::new(Throttle::NONE).pacing.rate, Some(1.0));
    }

    #[test]
    fn only_the_chosen_way_slows_down() {
        let paced = Throttle::Paced {
            rate: 4.0,
            nominal: CorePace::default(),
        };
        assert_eq!((paced.rate_by_chromium(), paced.paced().0), (1.0, 4.0));
        let by_chromium = Throttle::ByChromium { rate: 4.0 };
        assert_eq!(
            (by_chromium.rate_by_chromium(), by_chromium.paced().0),
            (4.0, 1.0)
        );
    }
}
