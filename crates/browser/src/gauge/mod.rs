//! How fast the host is at the moment, on the scale of Lighthouse's BenchmarkIndex.

use std::time::Duration;

use serde_json::{Value, json};

use crate::pacer::{CorePace, Pacer};
use crate::protocol::SessionId;
use crate::visit::{Evaluated, open_target};
use crate::{Browser, BrowserError, Launcher, NetworkPath, Throttle};

const SCRIPT: &str = include_str!("benchmark.js");

/// With the processor slowed twentyfold a full run still takes its second of wall time; the rest is
/// for a busy host.
const DEADLINE: Duration = Duration::from_secs(30);

/// A pacer has found the page's threads by then.
const SETTLING: Duration = Duration::from_millis(30);

/// How thoroughly to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// As long as Lighthouse's own: one second.
    Full,
    /// Enough to compare two rates: about 0.12 seconds.
    Quick,
}

impl Benchmark {
    /// Milliseconds for each of the two parts of a round, and rounds.
    fn length(self) -> (u32, u32) {
        match self {
            Self::Full => (500, 1),
            Self::Quick => (12, 5),
        }
    }
}

/// What one run of the benchmark showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// As if a core had been free all the time: what the benchmark's thread lost to others is taken
    /// out.
    pub index: f64,
    /// What a pacer's work took on the same core meanwhile.
    pub pace: CorePace,
}

impl Reading {
    /// What would have been read on a core of `nominal` pace.
    pub fn index_at(self, nominal: CorePace) -> f64 {
        self.index / self.pace.speed_beside(nominal)
    }
}

/// A browser that visits nothing: one blank page, warm, in which the benchmark is run.
///
/// The browser of a visit must be fresh, and a fresh one measures its own warming up.
pub struct Gauge {
    browser: Browser,
    session: SessionId,
}

impl Gauge {
    /// Starts the browser and runs the benchmark once, so that its code is compiled.
    pub async fn open(launcher: &Launcher) -> Result<Self, BrowserError> {
        let browser = launcher.launch().await?;
        let (_, session) = open_target(&browser.client, &NetworkPath::Direct).await?;
        let define = json!({"expression": format!("globalThis.benchmark = {SCRIPT}; 0")});
        let client = &browser.client;
        client
            .call::<Value>(Some(&session), "Runtime.evaluate", define)
            .await?;
        let gauge = Self { browser, session };
        gauge.read(Throttle::NONE, Benchmark::Full).await?;
        Ok(gauge)
    }

    /// The browser that measures, as the protocol names it.
    pub fn product(&self) -> &str {
        &self.browser.version().product
    }

    /// The host's speed, slowed down like this.
    pub async fn read(
        &self,
        throttle: Throttle,
        benchmark: Benchmark,
    ) -> Result<Reading, BrowserError> {
        let client = &self.browser.client;
        let method = "Emulation.setCPUThrottlingRate";
        let rate = json!({"rate": throttle.rate_by_chromium()});
        client
            .call::<Value>(Some(&self.session), method, rate)
            .await?;
        let pacer = Pacer::start(self.browser.process_id(), throttle);
        // The pacer looks for the page's threads every 10 ms.
        tokio::time::sleep(SETTLING).await;
        let method = "Runtime.evaluate";
        let (part_ms, rounds) = benchmark.length();
        let script = format!("benchmark({part_ms}, {rounds})");
        let params = json!({"expression": script, "returnByValue": true});
        let index = client
            .call_within::<Evaluated<f64>>(DEADLINE, Some(&self.session), method, params)
            .await?
            .value(method)?;
        let pacing = pacer.finish();
        Ok(Reading {
            index: index / (1.0 - pacing.lost_share()).max(0.1),
            pace: pacing.pace,
        })
    }

    pub async fn close(self) {
        self.browser.close().await;
    }
}
