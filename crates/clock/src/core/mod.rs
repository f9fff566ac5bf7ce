//! The present speed of the cores of this host, measured by a known workload that runs on each of
//! them for a moment every few milliseconds.

mod interpreter;
mod speed;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

pub use speed::CorePace;
use speed::Speedometer;

/// The time between two measurements of a core. One takes about 50 µs, which the page's clock does
/// not count. Every 4 ms, a synthetic page left 14 % unexplained over 100 ms; every millisecond
/// 10 %.
const INTERVAL: Duration = Duration::from_millis(2);

/// Niceness of a measuring thread, so that it gets its core at once, if that is permitted.
const NICENESS: i32 = -20;

static RUNNING: Mutex<Weak<CoreSensors>> = Mutex::new(Weak::new());

/// Measures all cores that this process may use, until it is dropped.
#[derive(Debug)]
pub struct CoreSensors {
    /// The bits of [`CorePace::turn_ns`] by the number of the core; 0 if it was not measured.
    turns_ns: Vec<AtomicU64>,
}

impl CoreSensors {
    /// Returns the sensors of this process, which are started if they do not run.
    pub fn running() -> Arc<Self> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sensors) = running.upgrade() {
            return sensors;
        }
        let cores = allowed_cores();
        let length = cores.last().map_or(0, |last| last + 1);
        let sensors = Arc::new(Self {
            turns_ns: (0..length).map(|_| AtomicU64::default()).collect(),
        });
        for core in cores {
            let sensors = Arc::downgrade(&sensors);
            let thread = std::thread::Builder::new().name("core-sensor".to_owned());
            // A core without a thread counts as not measured.
            let _ = thread.spawn(move || measure(core, &sensors));
        }
        *running = Arc::downgrade(&sensors);
        sensors
    }

    /// Returns the speed of a core, or the mean of all if this one was not measured.
    pub fn pace(&self, core: Option<usize>) -> CorePace {
        let of = |cell: &AtomicU64| f64::from_bits(cell.load(Ordering::Relaxed));
        let own = core.and_then(|core| self.turns_ns.get(core)).map(of);
        let turn_ns = own.filter(|turn_ns| *turn_ns > 0.0).unwrap_or_else(|| {
            let all = self.turns_ns.iter().map(of);
            let measured: Vec<f64> = all.filter(|turn_ns| *turn_ns > 0.0).collect();
            measured.iter().sum::<f64>() / measured.len().max(1) as f64
        });
        CorePace { turn_ns }
    }
}

/// Measures a core until nobody uses the sensors any more.
fn measure(core: usize, sensors: &Weak<CoreSensors>) {
    let mut only = CpuSet::new();
    only.set(core);
    if sched_setaffinity(None, &only).is_err() {
        return;
    }
    set_priority();
    let mut meter = Speedometer::new();
    loop {
        std::thread::sleep(INTERVAL);
        let Some(sensors) = sensors.upgrade() else {
            return;
        };
        meter.read();
        if let Some(cell) = sensors.turns_ns.get(core) {
            cell.store(meter.pace().turn_ns.to_bits(), Ordering::Relaxed);
        }
    }
}

/// Lets the calling thread have its core at once, as far as that is permitted.
pub(crate) fn set_priority() {
    let _ = rustix::process::setpriority_process(None, NICENESS);
    // A sleep would otherwise last 50 µs longer.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

fn allowed_cores() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|core| allowed.is_set(*core))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sensors_of_a_process_are_shared_and_measure_every_core() {
        let sensors = CoreSensors::running();
        assert!(Arc::ptr_eq(&sensors, &CoreSensors::running()));
        for core in allowed_cores() {
            while sensors.turns_ns[core].load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            assert!(sensors.pace(Some(core)).turn_ns > 0.0);
        }
        // A core that does not exist has the mean of the others.
        assert!(sensors.pace(Some(CpuSet::MAX_CPU)).turn_ns > 0.0);
    }
}
