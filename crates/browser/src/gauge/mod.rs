//! Measures the host's current speed on the scale of Lighthouse's BenchmarkIndex.

use std::time::Duration;

use futures_util::future::BoxFuture;
use plumbline_clock::{CorePace, Turn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cpu_emulation::CpuEmulation;
use crate::page::{EvaluateResponse, Purpose, open_target};
use crate::protocol::SessionId;
use crate::{Browser, BrowserError, Launcher, NetworkPath, Throttle};

const SCRIPT: &str = include_str!("benchmark.js");

/// Timeout of a run. With the CPU throttled twentyfold a full run still takes its second of wall
/// time; the rest is for a busy host.
const DEADLINE: Duration = Duration::from_secs(30);

/// Time until the page's threads have been found.
const SETTLING: Duration = Duration::from_millis(30);

/// Duration of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// Half a second, half of what Lighthouse takes.
    Full,
    /// About 0.12 seconds, enough to compare two rates.
    Quick,
}

impl Benchmark {
    /// Returns the milliseconds of each of the two parts of a round, and the number of rounds.
    fn length(self) -> (u32, u32) {
        match self {
            Self::Full => (250, 1),
            Self::Quick => (12, 5),
        }
    }
}

/// Result of one run of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Index without the time that other processes took from the benchmark's thread.
    pub index: f64,
    /// Speed of the core meanwhile.
    pub pace: CorePace,
}

impl Reading {
    /// Returns the index on a core of `nominal` speed, of a reading in real time.
    pub fn index_at(self, nominal: CorePace) -> f64 {
        self.index / self.pace.speed_relative_to(nominal)
    }
}

/// A browser without visits: one blank, warm page in which the benchmark runs.
///
/// The browser of a visit must be fresh, and a fresh one would measure its own warm-up.
pub struct Gauge {
    browser: Browser,
    session: SessionId,
}

impl Gauge {
    /// Starts the browser and runs the benchmark once, so that its code is compiled.
    pub fn open<'a>(launcher: &'a Launcher) -> BoxFuture<'a, Result<Self, BrowserError>> {
        Box::pin(async move {
            let browser = launcher.launch().await?;
            let (_, session) =
                open_target(&browser.client, &NetworkPath::Direct, Purpose::Visit).await?;
            let define = json!({"expression": format!("globalThis.benchmark = {SCRIPT}; 0")});
            let client = &browser.client;
            client
                .call::<Value>(Some(&session), "Runtime.evaluate", define)
                .await?;
            let gauge = Self { browser, session };
            gauge.read(Throttle::NONE, Benchmark::Full).await?;
            Ok(gauge)
        })
    }

    /// Returns whether the browser sees the clock that it was started with.
    pub fn sees_clock(&self) -> bool {
        self.browser.sees_clock()
    }

    /// Returns the product name of the measuring browser, as in the protocol.
    pub fn product(&self) -> &str {
        &self.browser.version().product
    }

    /// Measures the host's speed with the given throttling.
    pub fn read<'a>(
        &'a self,
        throttle: Throttle,
        benchmark: Benchmark,
    ) -> BoxFuture<'a, Result<Reading, BrowserError>> {
        Box::pin(async move {
            let client = &self.browser.client;
            let method = "Emulation.setCPUThrottlingRate";
            let rate = json!({"rate": throttle.rate_by_chromium()});
            client
                .call::<Value>(Some(&self.session), method, rate)
                .await?;
            let turn = match throttle {
                Throttle::ByClock { .. } => Turn::begin().await,
                Throttle::ByChromium { .. } => None,
            };
            let group = self.browser.process_id();
            let emulation = CpuEmulation::start(&self.browser.clock, group, throttle, turn)
                .map_err(|error| BrowserError::Failed {
                    reason: error.to_string(),
                })?;
            tokio::time::sleep(SETTLING).await;
            let method = "Runtime.evaluate";
            let (part_ms, rounds) = benchmark.length();
            let script = format!("benchmark({part_ms}, {rounds})");
            let params = json!({"expression": script, "returnByValue": true});
            let index: f64 = client
                .call_within::<EvaluateResponse>(DEADLINE, Some(&self.session), method, params)
                .await?
                .value(method)?;
            let scheduling = emulation.finish();
            // A page clock does not count the time that others took.
            let lost_share = match throttle {
                Throttle::ByClock { .. } => 0.0,
                Throttle::ByChromium { .. } => scheduling.lost_share(),
            };
            Ok(Reading {
                index: index / (1.0 - lost_share).max(0.1),
                pace: scheduling.pace,
            })
        })
    }

    /// Ends the browser.
    pub fn close(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.browser.close().await;
        })
    }
}
