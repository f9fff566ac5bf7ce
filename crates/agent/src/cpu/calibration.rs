//! The calibration of a host, and the throttling rate computed from it. Performs no IO.

use plumbline_browser::{CorePace, Reading, Throttle};
use plumbline_model::report::CpuEmulationMethod;
use serde::{Deserialize, Serialize};

/// The measured speed of a host with its browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// The product name of the browser, as the DevTools protocol reports it.
    pub browser: String,
    /// Identifies the file of the browser.
    #[serde(default)]
    pub executable: String,
    /// The name of the processor.
    pub processor: String,
    /// Whether it was measured by an optimized build, in which the workload that measures cores is
    /// faster.
    pub optimized: bool,
    /// The way in which it was computed.
    #[serde(default)]
    pub revision: u32,
    /// The unthrottled speed of the host on a core of nominal speed.
    pub host_index: f64,
    /// The nominal speed of a core: the median of the first calibration.
    pub nominal: CorePace,
    /// The readings from which the speed of the host is computed, also those of earlier
    /// calibrations, oldest first.
    #[serde(default)]
    pub readings: Vec<Reading>,
    #[serde(rename = "way")]
    pub method: ThrottleMethod,
    /// The measured effects of Chromium's rates; both rate and slowdown increase.
    #[serde(rename = "steps")]
    pub points: Vec<RatePoint>,
}

/// Returns the speed of the host on a core of `nominal` speed: the upper quartile of the readings,
/// because neighbours make the benchmark slower than the measurement of cores explains.
pub(super) fn host_index(readings: &[Reading], nominal: CorePace) -> f64 {
    let indices = readings.iter().map(|reading| reading.index_at(nominal));
    let mut sorted: Vec<f64> = indices.collect();
    sorted.sort_by(f64::total_cmp);
    let quartile = sorted.len() * 3 / 4;
    sorted.get(quartile).copied().unwrap_or_default()
}

/// The method by which the speed of a device is emulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThrottleMethod {
    /// A page clock that runs as much faster as the device is slower.
    ByClock,
    /// Chromium's own throttling, where browsers do not see their clock or have none.
    ByChromium,
}

/// The measured slowdown of the host at a throttling rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    pub rate: f64,
    pub slowdown: f64,
}

/// The throttling of one visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThrottleChoice {
    pub throttle: Throttle,
    pub rate: f64,
    /// The speed of the host with the rate applied.
    pub expected_index: f64,
    /// Whether the device is faster than the host. The report states it.
    pub limited_by_host: bool,
}

/// Fraction of the device's speed from which the host counts as fast enough: readings vary by more.
const FAST_ENOUGH: f64 = 0.95;

impl Calibration {
    /// Returns the throttling that makes this host as fast as a device.
    pub fn choose(&self, device_index: Option<u32>) -> ThrottleChoice {
        let host_index = self.host_index;
        let unthrottled = |limited_by_host| ThrottleChoice {
            throttle: self.throttle(1.0),
            rate: 1.0,
            expected_index: host_index,
            limited_by_host,
        };
        let Some(target) = device_index.map(f64::from) else {
            return unthrottled(false);
        };
        let slowdown = host_index / target;
        if self.method == ThrottleMethod::ByClock {
            return ThrottleChoice {
                throttle: self.throttle(slowdown),
                rate: slowdown,
                expected_index: target,
                limited_by_host: false,
            };
        }
        if slowdown <= 1.0 {
            return unthrottled(slowdown < FAST_ENOUGH);
        }
        let rate = self.rate_for(slowdown);
        ThrottleChoice {
            throttle: self.throttle(rate),
            rate,
            expected_index: target,
            limited_by_host: false,
        }
    }

    pub(super) fn throttle(&self, rate: f64) -> Throttle {
        self.method.throttle(rate, self.nominal)
    }

    /// Interpolates between the measured points; beyond the last one its proportion is used.
    fn rate_for(&self, slowdown: f64) -> f64 {
        let origin = RatePoint {
            rate: 1.0,
            slowdown: 1.0,
        };
        let next = self
            .points
            .partition_point(|point| point.slowdown < slowdown);
        let previous = next.checked_sub(1).map_or(origin, |i| self.points[i]);
        match self.points.get(next) {
            Some(next) => {
                let fraction = (slowdown - previous.slowdown) / (next.slowdown - previous.slowdown);
                previous.rate + fraction * (next.rate - previous.rate)
            }
            None => slowdown * previous.rate / previous.slowdown,
        }
    }
}

impl From<ThrottleMethod> for CpuEmulationMethod {
    fn from(method: ThrottleMethod) -> Self {
        match method {
            ThrottleMethod::ByClock => Self::Clock,
            ThrottleMethod::ByChromium => Self::Chromium,
        }
    }
}

impl ThrottleMethod {
    pub(super) fn throttle(self, rate: f64, nominal: CorePace) -> Throttle {
        match self {
            Self::ByClock => Throttle::ByClock { rate, nominal },
            Self::ByChromium => Throttle::ByChromium { rate, nominal },
        }
    }
}

/// A search for the rate that makes the host `target` times slower. It proposes one rate after the
/// other and is given the measured slowdown of each. The slowdown must increase with the rate.
pub(super) struct Bisection {
    target: f64,
    low: f64,
    high: f64,
    best: Option<RatePoint>,
}

impl Bisection {
    pub(super) fn new(target: f64) -> Self {
        Self {
            target,
            low: 1.0,
            high: target * 2.0,
            best: None,
        }
    }

    /// Returns the rate to try next. The first is the slowdown itself: throttling is nearly linear.
    pub(super) fn next_rate(&self) -> f64 {
        match self.best {
            None => self.target,
            Some(_) => f64::midpoint(self.low, self.high),
        }
    }

    pub(super) fn record(&mut self, point: RatePoint) {
        if point.slowdown < self.target {
            self.low = point.rate;
        } else {
            self.high = point.rate;
        }
        if self
            .best
            .is_none_or(|best| self.error(point) < self.error(best))
        {
            self.best = Some(point);
        }
    }

    /// Returns the point nearest to the target so far, and its relative error.
    pub(super) fn best(&self) -> Option<(RatePoint, f64)> {
        self.best.map(|best| (best, self.error(best)))
    }

    fn error(&self, point: RatePoint) -> f64 {
        (point.slowdown / self.target - 1.0).abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOMINAL: CorePace = CorePace { turn_ns: 20_000.0 };

    fn calibration() -> Calibration {
        Calibration {
            browser: "Chrome/156".to_owned(),
            executable: "any".to_owned(),
            processor: "any".to_owned(),
            optimized: true,
            revision: 0,
            host_index: 1800.0,
            nominal: NOMINAL,
            readings: Vec::new(),
            method: ThrottleMethod::ByChromium,
            points: vec![
                RatePoint {
                    rate: 2.0,
                    slowdown: 1.8,
                },
                RatePoint {
                    rate: 4.0,
                    slowdown: 3.6,
                },
                RatePoint {
                    rate: 8.0,
                    slowdown: 8.0,
                },
            ],
        }
    }

    fn reading(index: f64, turn_ns: f64) -> Reading {
        let pace = CorePace { turn_ns };
        Reading { index, pace }
    }

    #[test]
    fn a_few_slow_readings_do_not_change_the_index() {
        let mut readings = vec![reading(2000.0, 20_000.0); 6];
        readings.extend([reading(1200.0, 20_000.0); 4]);
        assert_eq!(host_index(&readings, NOMINAL), 2000.0);
        assert_eq!(host_index(&[], NOMINAL), 0.0);
    }

    #[test]
    fn a_slower_device_gets_the_rate_that_was_measured_for_its_speed() {
        let choice = calibration().choose(Some(500));
        assert_eq!((choice.rate, choice.expected_index), (4.0, 500.0));
        assert!((calibration().choose(Some(667)).rate - 3.0).abs() < 0.01);
    }

    #[test]
    fn chromium_throttles_without_a_page_clock() {
        let by_chromium = |rate| Throttle::ByChromium {
            rate,
            nominal: NOMINAL,
        };
        assert_eq!(calibration().choose(Some(500)).throttle, by_chromium(4.0));
        assert_eq!(calibration().choose(Some(3200)).throttle, by_chromium(1.0));
    }

    #[test]
    fn a_page_clock_emulates_slow_and_fast_devices_by_its_rate_alone() {
        let calibration = Calibration {
            method: ThrottleMethod::ByClock,
            points: Vec::new(),
            ..calibration()
        };
        for (device_index, rate) in [(450, 4.0), (3600, 0.5)] {
            let choice = calibration.choose(Some(device_index));
            let by_clock = Throttle::ByClock {
                rate,
                nominal: NOMINAL,
            };
            assert_eq!((choice.throttle, choice.rate), (by_clock, rate));
            assert!(!choice.limited_by_host);
        }
    }

    #[test]
    fn a_calibration_for_the_pacer_of_earlier_versions_is_not_used() {
        let mut stored = serde_json::to_value(calibration()).unwrap();
        assert!(serde_json::from_value::<Calibration>(stored.clone()).is_ok());
        stored["way"] = "paced".into();
        assert!(serde_json::from_value::<Calibration>(stored).is_err());
    }

    #[test]
    fn a_device_without_an_index_is_never_throttled() {
        let choice = calibration().choose(None);
        assert_eq!((choice.rate, choice.limited_by_host), (1.0, false));
    }

    #[test]
    fn a_device_faster_than_the_host_is_limited_by_it() {
        assert!(calibration().choose(Some(3200)).limited_by_host);
        assert!(!calibration().choose(Some(1850)).limited_by_host);
    }

    #[test]
    fn beyond_the_last_point_its_proportion_is_used() {
        assert_eq!(calibration().choose(Some(180)).rate, 10.0);
    }

    #[test]
    fn bisection_finds_the_rate_of_a_nonlinear_response() {
        let mut search = Bisection::new(4.0);
        for _ in 0..10 {
            let rate = search.next_rate();
            search.record(RatePoint {
                rate,
                slowdown: rate.powf(0.9),
            });
        }
        let (point, error) = search.best().unwrap();
        assert!(error < 0.01, "{point:?}");
        assert!((point.rate - 4.67).abs() < 0.05, "{point:?}");
    }
}
