//! How fast the host is at the moment, on the scale of Lighthouse's BenchmarkIndex.

use std::time::Duration;

use serde_json::{Value, json};

use crate::launch::renderers;
use crate::protocol::SessionId;
use crate::schedstat::ThreadTime;
use crate::visit::{Evaluated, open_target};
use crate::{Browser, BrowserError, Launcher, NetworkPath};

const SCRIPT: &str = include_str!("benchmark.js");

/// With the processor slowed twentyfold a full run still takes its second of wall time; the rest is
/// for a busy host.
const DEADLINE: Duration = Duration::from_secs(30);

/// How thoroughly to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// As long as Lighthouse's own: one second.
    Full,
    /// Right before and after a visit: about 0.12 seconds.
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
        gauge.index(1.0, Benchmark::Full).await?;
        Ok(gauge)
    }

    /// The browser that measures, as the protocol names it.
    pub fn product(&self) -> &str {
        &self.browser.version().product
    }

    /// The host's speed with the processor slowed `cpu_rate` times, as if a core had been free all
    /// the time: what the benchmark's thread waited for one is taken out.
    pub async fn index(&self, cpu_rate: f64, benchmark: Benchmark) -> Result<f64, BrowserError> {
        let client = &self.browser.client;
        let method = "Emulation.setCPUThrottlingRate";
        let rate = json!({"rate": cpu_rate.max(1.0)});
        client
            .call::<Value>(Some(&self.session), method, rate)
            .await?;
        let method = "Runtime.evaluate";
        let (part_ms, rounds) = benchmark.length();
        let script = format!("benchmark({part_ms}, {rounds})");
        let params = json!({"expression": script, "returnByValue": true});
        let before = self.thread_time();
        let index = client
            .call_within::<Evaluated<f64>>(DEADLINE, Some(&self.session), method, params)
            .await?
            .value(method)?;
        let time = self.thread_time().since(before);
        let wanted_us = time.ran_us + time.waited_us;
        // Without the kernel's figures (or without a run of any length) the wall clock stands.
        Ok(if time.ran_us > 0.0 {
            index * wanted_us / time.ran_us
        } else {
            index
        })
    }

    /// Of all its processes together: only the benchmark's does anything.
    fn thread_time(&self) -> ThreadTime {
        renderers(self.browser.process_id())
            .into_iter()
            .filter_map(ThreadTime::of_main_thread)
            .fold(ThreadTime::default(), |sum, time| ThreadTime {
                ran_us: sum.ran_us + time.ran_us,
                waited_us: sum.waited_us + time.waited_us,
            })
    }

    pub async fn close(self) {
        self.browser.close().await;
    }
}
