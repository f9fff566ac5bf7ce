//! A simulation of the load: the dependencies between requests and tasks, and the time that the
//! load would take on the same network if some resources were smaller or deferred. Checks use it to
//! estimate savings.
//!
//! Lighthouse calls it Lantern and simulates assumed network conditions; here the network, the CPU
//! and the paints are those of the visit, and the rate of the line is fitted to the paints. Rules
//! and constants are those of trace_engine 0.0.65 (models/trace/lantern,
//! LanternComputationData.js), except that paints wait for layout, and layout for the requests that
//! block rendering, or for the scripts that draw the page. `bench/savings` compares the savings
//! with pages on which the advice was followed.

mod builder;
mod connections;
mod graph;
mod network;
mod paints;
mod queue;
mod request;
mod simulate;

use std::collections::HashSet;

use plumbline_model::report::Conditions;
use plumbline_trace::{Milestone, Trace};

#[cfg(test)]
pub(crate) use graph::NodeKind;
pub(crate) use graph::{Graph, GraphNode};
use network::ReplayNetwork;
use simulate::{Difference, SimulatedRun};

use crate::facts::{DrawnByScript, Fact, Facts, LargestContent, Missing};
use crate::metrics::lcp;

/// The largest paint is the first one if it comes within this time after it.
const SAME_PAINT_US: f64 = 50_000.0;

/// The largest factor by which the rate of the line is changed to fit the observed paint.
const MAX_FACTOR: f64 = 4.0;
/// After so many halvings the rate is known to 4 %.
const FITTING_STEPS: usize = 5;

pub(crate) struct Replay {
    graph: Graph,
    network: ReplayNetwork,
    first_paint: Option<Stage>,
    largest_paint: Option<Stage>,
    before_largest: HashSet<usize>,
}

/// The simulated run of the load until a paint.
struct Stage {
    /// The nodes that the paint depends on.
    needed: Vec<bool>,
    /// These, and those that share the line with them.
    loaded: Vec<bool>,
    /// The line as the paint had it: it is shared with requests that are not simulated.
    network: ReplayNetwork,
    run: SimulatedRun,
    /// Whether scripts make the painted content.
    is_drawn_by_script: bool,
}

/// A paint whose savings are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    First,
    Largest,
}

impl Fact for Graph {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let slowed_by = facts
            .get::<Conditions>()
            .map_or(1.0, |conditions| conditions.cpu.rate);
        Graph::of(&trace, slowed_by)
            .ok_or_else(|| Missing("the trace has no request for the document".to_owned()))
    }
}

impl Fact for Replay {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let conditions = facts.get::<Conditions>()?;
        let mut graph = facts.get::<Graph>()?.as_ref().clone();
        graph.render_after_blocking_requests();
        graph.start_page_as_observed();
        let emulated = &conditions.network;
        let network =
            ReplayNetwork::of(&trace, emulated.rtt_ms, emulated.down_kbps).ok_or_else(|| {
                Missing("the network has no round-trip time or no bandwidth limit".to_owned())
            })?;
        let drawn = facts.get::<DrawnByScript>()?;
        let origin_us = trace.navigation.time_origin_us;
        let stage = |us: f64, needed: Vec<bool>, is_drawn_by_script: bool| {
            let loaded = paints::loaded(&graph, us, &needed);
            let observed_ms = (us - origin_us) / 1000.0;
            let (network, run) = fitted(&graph, &network, &loaded, &needed, observed_ms)?;
            Some(Stage {
                needed,
                loaded,
                network,
                run,
                is_drawn_by_script,
            })
        };
        let first_us = trace.first_us(Milestone::FirstContentfulPaint);
        let largest_us = lcp::largest_contentful_paint(&trace)
            .ok()
            .map(|ms| origin_us + ms * 1000.0);
        let needed_first = |us: f64| paints::needed_first(&graph, us, drawn.first_paint);
        let largest = facts.get::<LargestContent>()?;
        let image = largest.image.as_ref();
        let image = image.and_then(|image| graph.by_id(&image.id));
        let needed_for_largest = |us: f64| {
            // Text that the server sent needs no more than the first paint.
            let is_served = image.is_none() && !drawn.largest_paint;
            let is_first = first_us.is_some_and(|first_us| us - first_us < SAME_PAINT_US);
            if is_served && is_first {
                needed_first(us)
            } else {
                paints::needed_for_largest(&graph, us, image)
            }
        };
        Ok(Self {
            first_paint: first_us.and_then(|us| stage(us, needed_first(us), drawn.first_paint)),
            largest_paint: largest_us
                .and_then(|us| stage(us, needed_for_largest(us), drawn.largest_paint)),
            before_largest: largest_us
                .map(|us| paints::perhaps_needed_for_largest(&graph, us))
                .unwrap_or_default(),
            network,
            graph,
        })
    }
}

impl Stage {
    /// Returns how much earlier the paint would be in another run in which it needs these nodes.
    fn saved_ms(&self, after: &SimulatedRun, needed: &[bool]) -> f64 {
        self.run.end_ms(&self.needed) - after.end_ms(needed)
    }
}

/// Simulates the load until a paint on a line whose rate is chosen so that the paint comes when it
/// was observed, and returns the line and the run. Requests that are not simulated take a part of
/// the line, and connections that are already fast need less of it than the simulation assumes.
fn fitted(
    graph: &Graph,
    network: &ReplayNetwork,
    loaded: &[bool],
    needed: &[bool],
    observed_ms: f64,
) -> Option<(ReplayNetwork, SimulatedRun)> {
    let run = |factor: f64| {
        let network = network.faster(factor);
        let run = simulate::run(graph, loaded, &network, &Difference::default())?;
        Some((network, run))
    };
    let error_ms = |run: &SimulatedRun| run.end_ms(needed) - observed_ms;
    let mut best = run(1.0)?;
    let (mut low, mut high) = if error_ms(&best.1) > 0.0 {
        (1.0, MAX_FACTOR)
    } else {
        (1.0 / MAX_FACTOR, 1.0)
    };
    for _ in 0..FITTING_STEPS {
        let middle = f64::sqrt(low * high);
        let Some(tried) = run(middle) else { break };
        let error = error_ms(&tried.1);
        if error > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
        if error.abs() < error_ms(&best.1).abs() {
            best = tried;
        }
    }
    Some(best)
}

impl Replay {
    fn stage(&self, paint: Paint) -> Option<&Stage> {
        match paint {
            Paint::First => self.first_paint.as_ref(),
            Paint::Largest => self.largest_paint.as_ref(),
        }
    }

    /// Returns how much earlier a paint would be without these bytes of these resources, in
    /// milliseconds; `None` for a paint that did not occur.
    pub(crate) fn saved_ms_without_bytes(
        &self,
        paint: Paint,
        wasted: &[(&str, f64)],
    ) -> Option<f64> {
        let stage = self.stage(paint)?;
        let mut difference = Difference::default();
        for (id, bytes) in wasted {
            if let Some(node) = self.graph.by_id(id).filter(|node| stage.loaded[*node]) {
                *difference.saved_bytes.entry(node).or_default() += bytes;
            }
        }
        if difference.saved_bytes.is_empty() {
            return Some(0.0);
        }
        let after = simulate::run(&self.graph, &stage.loaded, &stage.network, &difference)?;
        Some(stage.saved_ms(&after, &stage.needed))
    }

    /// Returns how much earlier a paint would be if it did not wait for these resources and their
    /// dependents. The result is 0 if none of them takes at least `min_ms` by itself.
    pub(crate) fn saved_ms_by_deferring(
        &self,
        paint: Paint,
        ids: &[&str],
        min_ms: f64,
    ) -> Option<f64> {
        let stage = self.stage(paint)?;
        let mut deferred = vec![false; stage.needed.len()];
        let mut is_worth_it = false;
        for node in ids.iter().filter_map(|id| self.graph.by_id(id)) {
            let first = self.graph.first_of_chain(node);
            if stage.needed[first] {
                deferred[first] = true;
                let duration_ms = stage.run.duration_ms(node).unwrap_or(0.0).round();
                is_worth_it |= duration_ms >= min_ms;
            }
        }
        if !is_worth_it {
            return Some(0.0);
        }
        self.graph.mark_those_that_need_only(&mut deferred);
        let without_deferred = |nodes: &[bool]| -> Vec<bool> {
            let nodes = nodes.iter().zip(&deferred);
            nodes.map(|(is_in, deferred)| *is_in && !deferred).collect()
        };
        let needed = without_deferred(&stage.needed);
        // The browser holds the others back until the first content is there. Scripts take so long
        // to make it that they share the line with them.
        let loaded = if stage.is_drawn_by_script {
            stage.loaded.clone()
        } else {
            without_deferred(&stage.loaded)
        };
        let difference = Difference {
            deferred,
            ..Difference::default()
        };
        let after = simulate::run(&self.graph, &loaded, &stage.network, &difference)?;
        Some(stage.saved_ms(&after, &needed).round().max(0.0))
    }

    /// Returns whether the largest contentful paint may have waited for the resource.
    pub(crate) fn is_before_largest_paint(&self, resource: usize) -> bool {
        self.before_largest.contains(&resource)
    }

    /// Returns the additional round-trip time of this origin compared to the nearest one.
    pub(crate) fn extra_rtt_ms(&self, origin: &str) -> f64 {
        self.network.extra_rtt_ms(origin)
    }
}
