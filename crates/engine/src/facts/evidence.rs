//! Facts of types from other crates, parsed once for the metrics and all checks.

use plumbline_bundle::{FailedConnections, Record};
use plumbline_model::report::Conditions;
use plumbline_trace::{ProtocolLog, Trace};

use super::{Fact, Facts, Missing};
use crate::metrics;
use crate::metrics::processor::{self, Processor};

impl Fact for Trace {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let mut trace = Trace::read(&facts.bundle.trace)
            .map_err(|error| Missing(format!("the trace is unreadable: {error}")))?;
        let log = facts.get::<ProtocolLog>().ok();
        if let Some(log) = &log {
            let main_frame = &trace.frames.main_id;
            trace.resources.add_missed(&log.exchanges, main_frame);
        }
        let exchanges = log.as_ref().map_or(&trace.exchanges, |log| &log.exchanges);
        if let Some(end_us) = metrics::load_end_us(&trace, exchanges) {
            trace.resources.separate_repeats(end_us);
        }
        Ok(trace)
    }
}

impl Fact for ProtocolLog {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        ProtocolLog::read(&facts.bundle.log)
            .map_err(|error| Missing(format!("the protocol log is unreadable: {error}")))
    }
}

/// The CPU time that the page got; empty if it was not sampled.
impl Fact for Processor {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let samples = facts.read(processor::ARTIFACT);
        Ok(samples.map_or_else(|_| Self::default(), |samples| Self::of(&samples, &trace)))
    }
}

/// The failed connections of the visit; empty in bundles of earlier versions.
impl Fact for FailedConnections {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        // Bundles of earlier versions have none.
        Ok(Self::stored_in(facts.bundle).unwrap_or_default())
    }
}

/// The conditions of the visit, on which time savings depend.
impl Fact for Conditions {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        Conditions::stored_in(facts.bundle).ok_or_else(|| {
            Missing("the bundle does not contain the conditions of the visit".to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::Mode;
    use serde_json::json;

    use super::*;
    use crate::checks::testing::Visit;

    #[test]
    fn a_trace_is_parsed_once_and_an_unreadable_one_is_reported() {
        let events = json!([
            {"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": 2, "tid": 2,
             "args": {"name": "CrRendererMain"}},
            {"name": "TracingStartedInBrowser", "cat": "devtools.timeline", "ph": "I", "ts": 1, "pid": 1,
             "tid": 1, "args": {"data": {"frames": [{"frame": "F", "url": "https://a.test/", "processId": 2}]}}},
            {"name": "navigationStart", "cat": "blink.user_timing", "ph": "R", "ts": 2, "pid": 2, "tid": 2,
             "args": {"frame": "F", "data": {"documentLoaderURL": "https://a.test/",
                                             "isLoadingMainFrame": true}}}
        ]);
        let bundle = Visit::new().trace(&events).bundle();
        let facts = Facts::new(&bundle, Mode::Mobile);
        let first = facts.get::<Trace>().unwrap();
        assert!(std::rc::Rc::ptr_eq(&first, &facts.get::<Trace>().unwrap()));
        let without = Visit::new().bundle();
        let reason = Facts::new(&without, Mode::Mobile)
            .get::<Trace>()
            .unwrap_err();
        assert!(reason.to_string().starts_with("the trace is unreadable"));
    }
}
