//! Visits a page in a real Chromium and returns the evidence.
//!
//! The only crate that knows the DevTools protocol. A [`Launcher`] starts browsers, a [`Pool`] keeps
//! some ready, [`visit`] uses one up: it emulates a device, records, navigates, waits until the page
//! is quiet, gathers, and ends the browser. Nothing of a browser is left afterwards; what a killed
//! process could not tidy up, [`sweep`] does at the next start.

mod emulate;
mod error;
mod gather;
mod gauge;
mod launch;
mod pacer;
mod pool;
mod protocol;
mod visit;

pub use error::BrowserError;
pub use gauge::{Benchmark, Gauge, Reading};
pub use launch::{
    Browser, DEFAULT_MEMORY_BYTES, LaunchOptions, Launcher, NetworkIsolation, Version, renderers,
    sweep,
};
pub use pacer::{CorePace, Throttle};
pub use pool::{Pool, PoolCounts};
pub use visit::{NetworkPath, Step, VisitError, VisitPlan, visit};

pub use plumbline_bundle::Phase;
