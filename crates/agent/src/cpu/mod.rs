//! How fast this host is, and how much it must be slowed down to be as fast as a device.
//!
//! Speeds are on Lighthouse's BenchmarkIndex scale. A host is calibrated once, together with its
//! browser: its nominal speed, and, by bisection, what each throttling rate makes of that. Hosts
//! drift; the pacer of a visit follows that while the page is loading (see `plumbline_browser`), so a
//! device keeps its rate.

mod calibration;

use std::fs;
use std::path::PathBuf;

use plumbline_browser::{Benchmark, BrowserError, CorePace, Gauge, Launcher, Reading, Throttle};
use tokio::sync::Mutex;

use calibration::Bisection;
pub use calibration::{Calibration, Choice, Step, Way};

/// Slowdowns that are measured; those between are read off.
const SLOWDOWNS: [f64; 4] = [2.0, 4.0, 6.0, 10.0];
/// Readings of a quiet host scatter by a few percent: closer than this means nothing.
const TOLERANCE: f64 = 0.03;
const TRIES: u32 = 5;
/// A pacer does what its rate says, by construction. Short readings scatter by more than it is off, so
/// only one that disagrees by more than this is believed.
const PACER_DOUBTED: f64 = 0.2;
/// Of a second each: the host's neighbours change from one to the next.
const READINGS_OF_HOST: usize = 5;
/// And of a rate, of an eighth of a second each: one in six was off by more than a fifth.
const READINGS_OF_RATE: usize = 3;
/// A pacer that cannot slow the host down to half of what it should is none.
const PACED_AT_LEAST: f64 = 0.5;

/// Measures this host.
pub struct Cpu {
    launcher: Launcher,
    /// Where a calibration is kept from one start to the next.
    kept_at: Option<PathBuf>,
    calibration: Mutex<Option<Calibration>>,
}

/// What `doctor` shows of one device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRate {
    pub choice: Choice,
    /// The speed that was read with the rate applied; none where the host is not slowed down.
    pub read_index: Option<f64>,
}

impl Cpu {
    pub fn new(launcher: Launcher, kept_at: Option<PathBuf>) -> Self {
        Self {
            launcher,
            kept_at,
            calibration: Mutex::default(),
        }
    }

    /// What is known of this host; measured first where nothing is.
    pub async fn calibration(&self) -> Result<Calibration, BrowserError> {
        let mut known = self.calibration.lock().await;
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let calibration = match self.kept().await? {
            Some(kept) => kept,
            None => self.measure().await?,
        };
        Ok(known.insert(calibration).clone())
    }

    /// Measures anew, keeps it, and gives it back.
    pub async fn calibrate(&self) -> Result<Calibration, BrowserError> {
        let mut known = self.calibration.lock().await;
        Ok(known.insert(self.measure().await?).clone())
    }

    /// Reads what each device's rate brings, in order.
    pub async fn try_devices(
        &self,
        device_indices: &[Option<u32>],
    ) -> Result<Vec<DeviceRate>, BrowserError> {
        let calibration = self.calibration().await?;
        let gauge = Gauge::open(&self.launcher).await?;
        let mut tried = Vec::new();
        for device_index in device_indices {
            let choice = calibration.choose(*device_index);
            let read_index = match choice.rate > 1.0 {
                true => Some(gauge.read(choice.throttle, Benchmark::Quick).await?.index),
                false => None,
            };
            tried.push(DeviceRate { choice, read_index });
        }
        gauge.close().await;
        Ok(tried)
    }

    /// What an earlier start measured, if it was this host, this browser and a build like this.
    async fn kept(&self) -> Result<Option<Calibration>, BrowserError> {
        let kept: Option<Calibration> = self
            .kept_at
            .as_ref()
            .and_then(|path| fs::read(path).ok())
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let Some(kept) = kept else { return Ok(None) };
        let browser = self.launcher.version().await?.product;
        let fits = kept.browser == browser
            && kept.processor == processor()
            && kept.optimized == is_optimized();
        Ok(fits.then_some(kept))
    }

    async fn measure(&self) -> Result<Calibration, BrowserError> {
        let gauge = Gauge::open(&self.launcher).await?;
        let mut readings: Vec<Reading> = Vec::new();
        for _ in 0..READINGS_OF_HOST {
            readings.push(gauge.read(Throttle::NONE, Benchmark::Full).await?);
        }
        let nominal = CorePace {
            turn_ns: median(readings.iter().map(|reading| reading.pace.turn_ns)),
            crowding: median(readings.iter().map(|reading| reading.pace.crowding)),
        };
        let host_index = median(readings.iter().map(|reading| reading.index_at(nominal)));
        let mut calibration = Calibration {
            browser: gauge.product().to_owned(),
            processor: processor(),
            optimized: is_optimized(),
            host_index,
            nominal,
            way: Way::Paced,
            steps: Vec::new(),
        };
        let paced = self.search(&gauge, &calibration, SLOWDOWNS[0]).await?;
        if paced.slowdown < SLOWDOWNS[0] * PACED_AT_LEAST || nominal.turn_ns <= 0.0 {
            tracing::warn!("this host lets no page be paced: Chromium throttles");
            calibration.way = Way::ByChromium;
        }
        for wanted in SLOWDOWNS {
            let step = self.search(&gauge, &calibration, wanted).await?;
            // A step that a busy host put out of order would bend every rate around it.
            let steps = &mut calibration.steps;
            if steps
                .last()
                .is_none_or(|last| last.rate < step.rate && last.slowdown < step.slowdown)
            {
                steps.push(step);
            }
        }
        gauge.close().await;
        self.keep(&calibration);
        Ok(calibration)
    }

    async fn search(
        &self,
        gauge: &Gauge,
        calibration: &Calibration,
        wanted: f64,
    ) -> Result<Step, BrowserError> {
        let mut search = Bisection::towards(wanted);
        for _ in 0..TRIES {
            let rate = search.next_rate();
            let throttle = calibration.throttle(rate);
            let mut slowdowns = Vec::with_capacity(READINGS_OF_RATE);
            for _ in 0..READINGS_OF_RATE {
                let slowed = gauge.read(throttle, Benchmark::Quick).await?.index;
                let full = match calibration.way {
                    Way::Paced => calibration.host_index,
                    // Side by side, so that a host that drifts drifts in both.
                    Way::ByChromium => gauge.read(Throttle::NONE, Benchmark::Quick).await?.index,
                };
                slowdowns.push(full / slowed);
            }
            let mut slowdown = median(slowdowns.into_iter());
            if calibration.way == Way::Paced && (slowdown / rate - 1.0).abs() <= PACER_DOUBTED {
                slowdown = rate;
            }
            search.saw(Step { rate, slowdown });
            if search.best().is_some_and(|(_, off)| off <= TOLERANCE) {
                break;
            }
        }
        // Nothing was tried only if TRIES were 0; the rate itself is then the best guess.
        let guess = Step {
            rate: wanted,
            slowdown: wanted,
        };
        Ok(search.best().map_or(guess, |(step, _)| step))
    }

    fn keep(&self, calibration: &Calibration) {
        let Some(path) = &self.kept_at else { return };
        let kept = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| Ok(serde_json::to_vec_pretty(calibration)?))
            .and_then(|text| fs::write(path, text));
        if let Err(error) = kept {
            tracing::warn!(%error, path = %path.display(), "the calibration could not be kept");
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The processor's name, as Linux gives it.
fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    about
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// What the pacer's work takes differs between builds.
fn is_optimized() -> bool {
    !cfg!(debug_assertions)
}
