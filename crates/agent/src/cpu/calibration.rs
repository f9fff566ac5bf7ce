//! What was measured of a host, and the rate that follows from it. Pure.

use plumbline_browser::{CorePace, Throttle};
use serde::{Deserialize, Serialize};

/// What was measured of a host and its browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// The browser that was measured, as the protocol names it.
    pub browser: String,
    /// The processor, as the host names it.
    pub processor: String,
    /// The pacer's work is as fast as the compiler made it.
    pub optimized: bool,
    /// The host's nominal speed, unthrottled: what was read when it was calibrated.
    pub host_index: f64,
    /// What the pacer's work took meanwhile.
    pub nominal: CorePace,
    pub way: Way,
    /// What each rate does, in rising order of both.
    pub steps: Vec<Step>,
}

/// Who slows the page down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A thread of ours on the page's core, which follows the core's speed.
    Paced,
    /// Chromium itself, where the kernel does not tell what threads do or lets us outrank none.
    ByChromium,
}

/// At this throttling rate the host is so many times slower.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub rate: f64,
    pub slowdown: f64,
}

/// The throttling of one visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    pub throttle: Throttle,
    pub rate: f64,
    /// The speed that the rate should bring.
    pub reached_index: f64,
    /// The device is faster than the host: nothing can be done, and the report says so.
    pub limited_by_host: bool,
}

/// A host this much slower than the device is still called as fast: readings scatter by more.
const AS_FAST: f64 = 0.95;

impl Calibration {
    /// The rate that brings this host to a device's speed.
    pub fn choose(&self, device_index: Option<u32>) -> Choice {
        let host_index = self.host_index;
        let unthrottled = |limited_by_host| Choice {
            throttle: self.throttle(1.0),
            rate: 1.0,
            reached_index: host_index,
            limited_by_host,
        };
        let Some(target) = device_index.map(f64::from) else {
            return unthrottled(false);
        };
        let slowdown = host_index / target;
        if slowdown <= 1.0 {
            return unthrottled(slowdown < AS_FAST);
        }
        let rate = self.rate_for(slowdown);
        Choice {
            throttle: self.throttle(rate),
            rate,
            reached_index: target,
            limited_by_host: false,
        }
    }

    pub(super) fn throttle(&self, rate: f64) -> Throttle {
        self.way.throttle(rate, self.nominal)
    }

    /// Read off between the steps around it; beyond the last, as the last one goes on.
    fn rate_for(&self, slowdown: f64) -> f64 {
        let origin = Step {
            rate: 1.0,
            slowdown: 1.0,
        };
        let after = self.steps.partition_point(|step| step.slowdown < slowdown);
        let before = after.checked_sub(1).map_or(origin, |i| self.steps[i]);
        match self.steps.get(after) {
            Some(next) => {
                let part = (slowdown - before.slowdown) / (next.slowdown - before.slowdown);
                before.rate + part * (next.rate - before.rate)
            }
            None => slowdown * before.rate / before.slowdown,
        }
    }
}

impl Way {
    pub(super) fn throttle(self, rate: f64, nominal: CorePace) -> Throttle {
        match self {
            Self::Paced => Throttle::Paced { rate, nominal },
            // Not slowed down by us, but watched all the same.
            Self::ByChromium if rate <= 1.0 => Throttle::Paced { rate, nominal },
            Self::ByChromium => Throttle::ByChromium { rate },
        }
    }
}

/// A search for the rate that makes the host `wanted` times slower: asks for one rate after the
/// other and is told what each did. What a rate does grows with it.
pub(super) struct Bisection {
    wanted: f64,
    low: f64,
    high: f64,
    best: Option<Step>,
}

impl Bisection {
    pub(super) fn towards(wanted: f64) -> Self {
        Self {
            wanted,
            low: 1.0,
            high: wanted * 2.0,
            best: None,
        }
    }

    /// The rate to try next. The first is the slowdown itself: throttling is nearly linear.
    pub(super) fn next_rate(&self) -> f64 {
        match self.best {
            None => self.wanted,
            Some(_) => f64::midpoint(self.low, self.high),
        }
    }

    pub(super) fn saw(&mut self, step: Step) {
        if step.slowdown < self.wanted {
            self.low = step.rate;
        } else {
            self.high = step.rate;
        }
        if self.best.is_none_or(|best| self.off(step) < self.off(best)) {
            self.best = Some(step);
        }
    }

    /// The nearest so far, and by which part it is off.
    pub(super) fn best(&self) -> Option<(Step, f64)> {
        self.best.map(|best| (best, self.off(best)))
    }

    fn off(&self, step: Step) -> f64 {
        (step.slowdown / self.wanted - 1.0).abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOMINAL: CorePace = CorePace {
        turn_ns: 20_000.0,
        crowding: 1.5,
    };

    fn calibration() -> Calibration {
        Calibration {
            browser: "Chrome/156".to_owned(),
            processor: "any".to_owned(),
            optimized: true,
            host_index: 1800.0,
            nominal: NOMINAL,
            way: Way::Paced,
            steps: vec![
                Step {
                    rate: 2.0,
                    slowdown: 1.8,
                },
                Step {
                    rate: 4.0,
                    slowdown: 3.6,
                },
                Step {
                    rate: 8.0,
                    slowdown: 8.0,
                },
            ],
        }
    }

    #[test]
    fn a_slower_device_gets_the_rate_that_was_measured_to_bring_its_speed() {
        let choice = calibration().choose(Some(500));
        assert_eq!((choice.rate, choice.reached_index), (4.0, 500.0));
        assert!((calibration().choose(Some(667)).rate - 3.0).abs() < 0.01);
    }

    #[test]
    fn a_page_is_paced_against_the_nominal_speed() {
        let paced = Throttle::Paced {
            rate: 4.0,
            nominal: NOMINAL,
        };
        assert_eq!(calibration().choose(Some(500)).throttle, paced);
    }

    #[test]
    fn chromium_slows_down_where_the_pacer_cannot() {
        let calibration = Calibration {
            way: Way::ByChromium,
            ..calibration()
        };
        let choice = calibration.choose(Some(500));
        assert_eq!(choice.throttle, Throttle::ByChromium { rate: 4.0 });
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
    fn beyond_the_last_step_its_proportion_goes_on() {
        assert_eq!(calibration().choose(Some(180)).rate, 10.0);
    }

    #[test]
    fn bisection_finds_the_rate_of_a_bent_response() {
        let mut search = Bisection::towards(4.0);
        for _ in 0..10 {
            let rate = search.next_rate();
            search.saw(Step {
                rate,
                slowdown: rate.powf(0.9),
            });
        }
        let (step, off) = search.best().unwrap();
        assert!(off < 0.01, "{step:?}");
        assert!((step.rate - 4.67).abs() < 0.05, "{step:?}");
    }
}
