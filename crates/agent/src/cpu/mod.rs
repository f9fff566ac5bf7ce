//! How fast this host is, and how much it must be slowed down to be as fast as a device.
//!
//! Speeds are on Lighthouse's BenchmarkIndex scale. Chromium's throttling at rate 4 does not make a
//! host four times slower by that measure: what each rate really does is measured, by bisection,
//! once per host and browser. Hosts drift, so the speed itself is read again around each visit and
//! the rate follows it.

mod calibration;

use std::fs;
use std::path::PathBuf;

use plumbline_browser::{Benchmark, BrowserError, Gauge, Launcher};
use tokio::sync::Mutex;

use calibration::Bisection;
pub use calibration::{Calibration, Choice, Step};

/// Slowdowns that are measured; those between are read off.
const SLOWDOWNS: [f64; 4] = [2.0, 4.0, 6.0, 10.0];
/// Readings of a quiet host scatter by a few percent: closer than this means nothing.
const TOLERANCE: f64 = 0.03;
const TRIES: u32 = 5;

/// Measures this host.
pub struct Cpu {
    launcher: Launcher,
    /// Where a calibration is kept from one start to the next.
    kept_at: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    gauge: Option<Gauge>,
    calibration: Option<Calibration>,
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
            state: Mutex::default(),
        }
    }

    /// The host's speed now, unthrottled; takes about 0.12 s.
    pub async fn host_index(&self) -> Result<f64, BrowserError> {
        let mut state = self.state.lock().await;
        self.read(&mut state, 1.0).await
    }

    /// The throttling for a device on a host of this speed.
    pub async fn choose(
        &self,
        host_index: f64,
        device_index: Option<u32>,
    ) -> Result<Choice, BrowserError> {
        let mut state = self.state.lock().await;
        let calibration = self.calibration(&mut state).await?;
        Ok(calibration.choose(host_index, device_index))
    }

    /// Measures anew, keeps it, and gives it back.
    pub async fn calibrate(&self) -> Result<Calibration, BrowserError> {
        let mut state = self.state.lock().await;
        self.measure(&mut state).await
    }

    /// Chooses a device's rate and reads what it brings.
    pub async fn try_device(&self, device_index: Option<u32>) -> Result<DeviceRate, BrowserError> {
        let mut state = self.state.lock().await;
        let host_index = self.read(&mut state, 1.0).await?;
        let choice = self
            .calibration(&mut state)
            .await?
            .choose(host_index, device_index);
        let read_index = match choice.rate > 1.0 {
            true => Some(self.read(&mut state, choice.rate).await?),
            false => None,
        };
        Ok(DeviceRate { choice, read_index })
    }

    async fn calibration<'a>(&self, state: &'a mut State) -> Result<&'a Calibration, BrowserError> {
        let fitting = match &state.calibration {
            Some(known) => known.clone(),
            None => match self.kept(state).await? {
                Some(kept) => kept,
                None => self.measure(state).await?,
            },
        };
        Ok(state.calibration.insert(fitting))
    }

    /// What an earlier start measured, if it was this host and this browser.
    async fn kept(&self, state: &mut State) -> Result<Option<Calibration>, BrowserError> {
        let browser = self.gauge(state).await?.product().to_owned();
        let kept: Option<Calibration> = self
            .kept_at
            .as_ref()
            .and_then(|path| fs::read(path).ok())
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(kept.filter(|kept| kept.browser == browser && kept.processor == processor()))
    }

    async fn measure(&self, state: &mut State) -> Result<Calibration, BrowserError> {
        let mut steps = Vec::new();
        for wanted in SLOWDOWNS {
            let step = self.search(state, wanted).await?;
            // A step that a busy host put out of order would bend every rate around it.
            if steps
                .last()
                .is_none_or(|last: &Step| last.rate < step.rate && last.slowdown < step.slowdown)
            {
                steps.push(step);
            }
        }
        let host_index = self.read(state, 1.0).await?;
        let calibration = Calibration {
            browser: self.gauge(state).await?.product().to_owned(),
            processor: processor(),
            host_index,
            steps,
        };
        self.keep(&calibration);
        Ok(state.calibration.insert(calibration).clone())
    }

    async fn search(&self, state: &mut State, wanted: f64) -> Result<Step, BrowserError> {
        let mut search = Bisection::towards(wanted);
        for _ in 0..TRIES {
            let rate = search.next_rate();
            // Side by side, so that a host that drifts drifts in both.
            let before = self.read(state, 1.0).await?;
            let slowed = self.read(state, rate).await?;
            let after = self.read(state, 1.0).await?;
            let slowdown = f64::midpoint(before, after) / slowed;
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

    /// One reading; a gauge whose browser died is opened again, once.
    async fn read(&self, state: &mut State, rate: f64) -> Result<f64, BrowserError> {
        match self.gauge(state).await?.index(rate, Benchmark::Quick).await {
            Ok(index) => Ok(index),
            Err(error) => {
                tracing::warn!(%error, "the gauge is opened again");
                state.gauge = None;
                self.gauge(state).await?.index(rate, Benchmark::Quick).await
            }
        }
    }

    async fn gauge<'a>(&self, state: &'a mut State) -> Result<&'a Gauge, BrowserError> {
        let gauge = match state.gauge.take() {
            Some(open) => open,
            None => Gauge::open(&self.launcher).await?,
        };
        Ok(state.gauge.insert(gauge))
    }
}

/// The processor's name, as Linux gives it.
fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    about
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned())
}
