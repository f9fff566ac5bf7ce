use futures_util::future::BoxFuture;
use plumbline_browser::{BrowserError, Launcher};
use plumbline_seam::Announcement;

use crate::Cpu;

/// The browser and the speed of the host that an agent runs on.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Version of the browser, e.g. `Chrome/156.0.8078.79`.
    pub chromium: String,
    /// Speed without throttling, on Lighthouse's BenchmarkIndex scale.
    pub index: Option<f64>,
}

impl Host {
    /// Determines the browser's version and calibrates the host, unless it was calibrated before.
    pub fn measure<'a>(
        launcher: &'a Launcher,
        cpu: &'a Cpu,
    ) -> BoxFuture<'a, Result<Self, BrowserError>> {
        Box::pin(async move {
            let chromium = launcher.version().await?.product;
            let calibration = cpu.calibration().await?;
            Ok(Self {
                chromium,
                index: Some(calibration.host_index),
            })
        })
    }

    /// Returns a host whose browser could not be started.
    pub fn unknown() -> Self {
        Self {
            chromium: "unknown".to_owned(),
            index: None,
        }
    }

    /// Returns the announcement of an agent on this host.
    pub fn announcement(self, process: String, location: String, slots: u32) -> Announcement {
        Announcement {
            process,
            location,
            chromium: self.chromium,
            host_index: self.index,
            slots,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}
