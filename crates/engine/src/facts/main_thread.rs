//! The attribution of main-thread work to scripts and pages.

use std::collections::HashSet;

use plumbline_trace::{BackgroundWork, Trace, WorkSpan};

use super::{Fact, Facts, Missing, Requests};
use crate::metrics::{self, Measured};

/// The URL or browser activity that work is attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attribution<'w> {
    Url(&'w str),
    Browser,
    BrowserGc,
    Unattributable,
}

impl Attribution<'_> {
    pub fn text(&self) -> &str {
        match self {
            Self::Url(url) => url,
            Self::Browser => "Browser",
            Self::BrowserGc => "Browser GC",
            Self::Unattributable => "Unattributable",
        }
    }
}

/// The URLs of all scripts in the protocol log.
#[derive(Debug, Default)]
pub struct ScriptUrls(HashSet<String>);

impl Fact for ScriptUrls {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let requests = facts.get::<Requests>()?;
        let scripts = requests
            .all
            .iter()
            .filter(|request| request.exchange.loaded_type() == "Script");
        Ok(Self(
            scripts.map(|request| request.url.to_string()).collect(),
        ))
    }
}

impl ScriptUrls {
    /// Returns the first script among the URLs of the work, otherwise its first URL
    /// (Lighthouse, core/lib/tracehouse/task-summary.js).
    pub fn attribution<'w>(&self, work: &'w WorkSpan) -> Attribution<'w> {
        let script = work.urls.iter().find(|url| self.0.contains(url.as_ref()));
        match script.or_else(|| work.urls.first()) {
            Some(url) if url.as_ref() != "about:blank" => Attribution::Url(url),
            _ => match work.background {
                Some(BackgroundWork::Browser) => Attribution::Browser,
                Some(BackgroundWork::GarbageCollection) => Attribution::BrowserGc,
                None => Attribution::Unattributable,
            },
        }
    }
}

/// The metrics, from which checks estimate savings. `evaluate` inserts them when it has measured
/// them already.
impl Fact for Measured {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let log = facts.get::<plumbline_trace::ProtocolLog>()?;
        Ok(metrics::measure(&trace, Some(&log)))
    }
}
