//! Measures the speed of this host, and the throttling that makes it as fast as a device.
//!
//! Speeds are on Lighthouse's BenchmarkIndex scale. A host is calibrated once, together with its
//! browser: its nominal speed and, if Chromium throttles pages, the slowdown of each rate, by
//! bisection. The speed of a host drifts. The page clock of a visit compensates for that while the
//! page is loading (see `plumbline_browser`), so a device keeps its rate; Chromium's throttling
//! does not.

mod calibration;

use std::fs;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use plumbline_browser::{Benchmark, BrowserError, CorePace, Gauge, Launcher, Reading};
use tokio::sync::Mutex;

use calibration::{Bisection, host_index};
pub use calibration::{Calibration, RatePoint, ThrottleChoice, ThrottleMethod};

/// Slowdowns that are measured; those between them are interpolated.
const SLOWDOWNS: [f64; 4] = [2.0, 4.0, 6.0, 10.0];
/// Relative error at which the bisection ends. Readings of an idle host vary by a few percent, so a
/// smaller difference means nothing.
const TOLERANCE: f64 = 0.03;
/// Maximum number of rates that the bisection tries.
const MAX_TRIES: u32 = 5;
/// Number of readings of the host, of half a second each: the load of its neighbours changes
/// between them.
const READINGS_OF_HOST: usize = 12;
/// Maximum number of readings that count, including those of earlier calibrations: a busy hour does
/// not change the speed of the host.
const MAX_READINGS: usize = 60;
/// Number of readings of a rate, of an eighth of a second each: one in six was off by more than a
/// fifth.
const READINGS_OF_RATE: usize = 3;

/// The way in which calibrations are computed. Those of another revision are not used.
const REVISION: u32 = 3;

/// Calibrates this host and remembers the result.
pub struct Cpu {
    launcher: Launcher,
    /// The file that keeps a calibration between starts.
    cache_file: Option<PathBuf>,
    calibration: Mutex<Option<Calibration>>,
}

/// The throttling of one device, with a measurement of its effect.
#[derive(Debug, Clone, Copy)]
pub struct DeviceThrottle {
    pub choice: ThrottleChoice,
    /// The speed measured with the rate applied; `None` where the host is not throttled.
    pub measured_index: Option<f64>,
}

impl Cpu {
    pub fn new(launcher: Launcher, cache_file: Option<PathBuf>) -> Self {
        Self {
            launcher,
            cache_file,
            calibration: Mutex::default(),
        }
    }

    /// Returns the calibration of this host, which is measured if there is none yet.
    pub fn calibration<'a>(&'a self) -> BoxFuture<'a, Result<Calibration, BrowserError>> {
        Box::pin(async move {
            let mut cached = self.calibration.lock().await;
            if let Some(calibration) = &*cached {
                return Ok(calibration.clone());
            }
            let calibration = match self.stored_calibration() {
                Some(calibration) => calibration,
                None => self.measure().await?,
            };
            Ok(cached.insert(calibration).clone())
        })
    }

    /// Calibrates this host again and replaces the earlier result.
    pub fn calibrate<'a>(&'a self) -> BoxFuture<'a, Result<Calibration, BrowserError>> {
        Box::pin(async move {
            let mut cached = self.calibration.lock().await;
            Ok(cached.insert(self.measure().await?).clone())
        })
    }

    /// Measures the effect of each device's rate, in the given order.
    pub fn measure_devices<'a>(
        &'a self,
        device_indices: &'a [Option<u32>],
    ) -> BoxFuture<'a, Result<Vec<DeviceThrottle>, BrowserError>> {
        Box::pin(async move {
            let calibration = self.calibration().await?;
            let gauge = Gauge::open(&self.launcher).await?;
            let mut devices = Vec::new();
            for device_index in device_indices {
                let choice = calibration.choose(*device_index);
                let by_clock = calibration.method == ThrottleMethod::ByClock;
                let measured_index = if by_clock {
                    Some(gauge.read(choice.throttle, Benchmark::Full).await?.index)
                } else if choice.rate > 1.0 {
                    Some(gauge.read(choice.throttle, Benchmark::Quick).await?.index)
                } else {
                    None
                };
                devices.push(DeviceThrottle {
                    choice,
                    measured_index,
                });
            }
            gauge.close().await;
            Ok(devices)
        })
    }

    /// Returns the calibration of an earlier start, if host, browser and kind of build are the
    /// same.
    pub fn stored_calibration(&self) -> Option<Calibration> {
        self.read_cache_file().filter(|calibration| {
            // A browser that does not see its clock has another method than the one that was asked
            // for.
            let is_possible =
                calibration.method != ThrottleMethod::ByClock || self.launcher.uses_page_clocks();
            calibration.executable == self.launcher.executable_id() && is_possible
        })
    }

    /// Returns the calibration in the file, if it was measured on this host by this kind of build.
    fn read_cache_file(&self) -> Option<Calibration> {
        let bytes = fs::read(self.cache_file.as_ref()?).ok()?;
        let calibration: Calibration = serde_json::from_slice(&bytes).ok()?;
        let is_same_host =
            calibration.processor == processor() && calibration.optimized == is_optimized();
        (is_same_host && calibration.revision == REVISION).then_some(calibration)
    }

    async fn measure(&self) -> Result<Calibration, BrowserError> {
        let gauge = Gauge::open(&self.launcher).await?;
        let method = if gauge.sees_clock() {
            ThrottleMethod::ByClock
        } else {
            ThrottleMethod::ByChromium
        };
        let mut calibration = self.measure_host(&gauge, method).await?;
        if method == ThrottleMethod::ByChromium {
            if self.launcher.uses_page_clocks() {
                tracing::warn!("the browser does not see its clock: Chromium slows pages down");
            }
            for slowdown in SLOWDOWNS {
                let point = search(&gauge, &calibration, slowdown).await?;
                // A point that is out of order, because the host was busy, would distort the rates
                // around it.
                let points = &mut calibration.points;
                if points
                    .last()
                    .is_none_or(|last| last.rate < point.rate && last.slowdown < point.slowdown)
                {
                    points.push(point);
                }
            }
        }
        gauge.close().await;
        self.write_cache_file(&calibration);
        Ok(calibration)
    }

    /// Measures the speed of the host. The nominal speed is that of an earlier calibration if there
    /// is one, and its readings count as well, so that both give the same result whatever
    /// neighbours the host has at that hour.
    async fn measure_host(
        &self,
        gauge: &Gauge,
        method: ThrottleMethod,
    ) -> Result<Calibration, BrowserError> {
        let unthrottled = method.throttle(1.0, CorePace::default());
        let earlier = self
            .read_cache_file()
            .filter(|earlier| earlier.method == method);
        let mut readings: Vec<Reading> = Vec::new();
        for _ in 0..READINGS_OF_HOST {
            let reading = gauge.read(unthrottled, Benchmark::Full).await?;
            tracing::debug!(?reading, "speed of the host");
            readings.push(reading);
        }
        let executable = self.launcher.executable_id();
        let nominal = earlier.as_ref().map_or_else(
            || CorePace {
                turn_ns: median(readings.iter().map(|reading| reading.pace.turn_ns)),
            },
            |earlier| earlier.nominal,
        );
        if let Some(earlier) = earlier.filter(|earlier| earlier.executable == executable) {
            let kept = MAX_READINGS.saturating_sub(readings.len());
            let first = earlier.readings.len().saturating_sub(kept);
            readings.splice(0..0, earlier.readings.into_iter().skip(first));
        }
        Ok(Calibration {
            browser: gauge.product().to_owned(),
            executable,
            processor: processor(),
            optimized: is_optimized(),
            revision: REVISION,
            host_index: host_index(&readings, nominal),
            nominal,
            readings,
            method,
            points: Vec::new(),
        })
    }

    fn write_cache_file(&self, calibration: &Calibration) {
        let Some(path) = &self.cache_file else { return };
        let result = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| Ok(serde_json::to_vec_pretty(calibration)?))
            .and_then(|text| fs::write(path, text));
        if let Err(error) = result {
            tracing::warn!(%error, path = %path.display(), "failed to write the calibration");
        }
    }
}

/// Searches for the rate at which Chromium makes the host `target` times slower.
async fn search(
    gauge: &Gauge,
    calibration: &Calibration,
    target: f64,
) -> Result<RatePoint, BrowserError> {
    let mut search = Bisection::new(target);
    for _ in 0..MAX_TRIES {
        let rate = search.next_rate();
        let mut slowdowns = Vec::with_capacity(READINGS_OF_RATE);
        for _ in 0..READINGS_OF_RATE {
            let throttled = gauge.read(calibration.throttle(rate), Benchmark::Quick);
            let throttled = throttled.await?.index;
            // Measured right after it, so that drift of the host affects both.
            let full = gauge.read(calibration.throttle(1.0), Benchmark::Quick);
            slowdowns.push(full.await?.index / throttled);
        }
        let slowdown = median(slowdowns.into_iter());
        search.record(RatePoint { rate, slowdown });
        if search.best().is_some_and(|(_, error)| error <= TOLERANCE) {
            break;
        }
    }
    // Nothing was tried only if MAX_TRIES were 0; the rate itself is then the best guess.
    let guess = RatePoint {
        rate: target,
        slowdown: target,
    };
    Ok(search.best().map_or(guess, |(point, _)| point))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The name of the processor according to Linux.
fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Whether this is an optimized build. The workload that measures cores takes another time in other
/// builds.
fn is_optimized() -> bool {
    !cfg!(debug_assertions)
}
