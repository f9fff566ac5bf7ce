//! The main thread's work on the load's own clock, and whom it is blamed on.

use std::collections::HashSet;

use plumbline_trace::{Chore, Trace, Work};

use super::{Fact, Facts, Missing, Requests};
use crate::metrics::{self, Measured};

/// Whom work is blamed on: an address, or one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blamed<'w> {
    Url(&'w str),
    Browser,
    BrowserGc,
    Nobody,
}

impl Blamed<'_> {
    pub fn text(&self) -> &str {
        match self {
            Self::Url(url) => url,
            Self::Browser => "Browser",
            Self::BrowserGc => "Browser GC",
            Self::Nobody => "Unattributable",
        }
    }
}

/// The addresses that are scripts, as the network told of them.
#[derive(Debug, Default)]
pub struct ScriptUrls(HashSet<String>);

impl Fact for ScriptUrls {
    fn find(facts: &Facts) -> Result<Self, Missing> {
        let requests = facts.get::<Requests>()?;
        let scripts = requests
            .all
            .iter()
            .filter(|of| of.resource_type == "Script");
        Ok(Self(scripts.map(|of| of.url.to_string()).collect()))
    }
}

impl ScriptUrls {
    /// The first script among those that it was done for, else the first address
    /// (Lighthouse, core/lib/tracehouse/task-summary.js).
    pub fn blamed<'w>(&self, work: &'w Work) -> Blamed<'w> {
        let script = work.urls.iter().find(|url| self.0.contains(url.as_ref()));
        match script.or_else(|| work.urls.first()) {
            Some(url) if url.as_ref() != "about:blank" => Blamed::Url(url),
            _ => match work.chore {
                Some(Chore::Browser) => Blamed::Browser,
                Some(Chore::GarbageCollection) => Blamed::BrowserGc,
                None => Blamed::Nobody,
            },
        }
    }
}

/// The metrics, so that a check can say what they would gain. Told by who has measured them already.
impl Fact for Measured {
    fn find(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let log = facts.get::<plumbline_trace::ProtocolLog>()?;
        Ok(metrics::measure(&trace, Some(&log)))
    }
}
