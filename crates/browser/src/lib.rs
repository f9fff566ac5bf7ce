//! Visits a page in a real Chromium and returns the evidence.
//!
//! This is the only crate that uses the DevTools protocol. A [`Launcher`] starts browsers and a
//! [`Pool`] has some started in advance. [`visit()`] uses one browser once: it emulates a device,
//! records, navigates, waits until network and CPU are idle, gathers artifacts, and ends the
//! browser with all its processes and files. [`interact`] makes inputs on the controls of a page in
//! another browser, [`measure_flow`] performs and measures steps in one, and [`profile`] loads a
//! page once more with a sampling profiler. [`sweep`] removes what a killed process left behind, at
//! the next start.

mod cpu_emulation;
mod emulate;
mod error;
mod follow_up;
mod gather;
mod gauge;
mod interactions;
mod launch;
mod page;
mod plan;
mod pool;
mod protocol;
mod scheduling;
mod steps;
mod visit;

pub use cpu_emulation::Throttle;
pub use error::BrowserError;
pub use gauge::{Benchmark, Gauge, Reading};
pub use interactions::interact;
pub use launch::{
    Browser, BrowserVersion, DEFAULT_MEMORY_BYTES, LaunchOptions, Launcher, NetworkIsolation,
    renderers, sweep,
};
pub use page::VisitError;
pub use plan::{Gathering, NetworkPath, VisitPlan};
pub use plumbline_clock::CorePace;
pub use pool::{Pool, PoolCounts};
pub use steps::measure_flow;
pub use visit::{Analysis, ProfiledLoad, VisitEvent, profile, sign_in, visit};

pub use plumbline_bundle::Phase;
