//! A simulation of the load: the dependencies between requests and tasks, and the time that the
//! load would take on the same network if some resources were smaller or deferred. Checks use it to
//! estimate savings.
//!
//! Lighthouse calls it Lantern and simulates assumed network conditions; here the network, the CPU
//! and the paints are those of the visit. Rules and constants are those of trace_engine 0.0.65
//! (models/trace/lantern, LanternComputationData.js).

mod builder;
mod connections;
mod graph;
mod network;
mod paints;
mod queue;
mod request;
mod simulate;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use plumbline_model::report::Conditions;
use plumbline_trace::{Milestone, Trace};

#[cfg(test)]
pub(crate) use graph::NodeKind;
pub(crate) use graph::{Graph, GraphNode};
use network::ReplayNetwork;
use simulate::SimulatedRun;

use crate::facts::{Fact, Facts, Missing};
use crate::metrics::lcp;

pub(crate) struct Replay {
    graph: Rc<Graph>,
    network: ReplayNetwork,
    first_paint: Option<Stage>,
    largest_paint: Option<Stage>,
    before_largest: HashSet<usize>,
}

/// The nodes that a paint depends on, and their simulated run.
struct Stage {
    nodes: Vec<bool>,
    run: SimulatedRun,
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
        let graph = facts.get::<Graph>()?;
        let emulated = &conditions.network;
        let network =
            ReplayNetwork::of(&trace, emulated.rtt_ms, emulated.down_kbps).ok_or_else(|| {
                Missing("the network has no round-trip time or no bandwidth limit".to_owned())
            })?;
        let stage = |nodes: Vec<bool>| {
            let run = simulate::run(&graph, &nodes, &network, &HashMap::new())?;
            Some(Stage { nodes, run })
        };
        let origin_us = trace.navigation.time_origin_us;
        let largest_us = lcp::largest_contentful_paint(&trace)
            .ok()
            .map(|ms| origin_us + ms * 1000.0);
        Ok(Self {
            first_paint: trace
                .first_us(Milestone::FirstContentfulPaint)
                .and_then(|us| stage(paints::needed_first(&graph, us))),
            largest_paint: largest_us.and_then(|us| stage(paints::needed_for_largest(&graph, us))),
            before_largest: largest_us
                .map(|us| paints::perhaps_needed_for_largest(&graph, us))
                .unwrap_or_default(),
            network,
            graph,
        })
    }
}

impl Replay {
    /// Returns how much earlier the first and the largest contentful paint would be without these
    /// bytes of these resources, in milliseconds; `None` for a paint that did not occur.
    pub(crate) fn saved_ms_without_bytes(
        &self,
        wasted: &[(&str, f64)],
    ) -> (Option<f64>, Option<f64>) {
        let mut by_node: HashMap<usize, f64> = HashMap::new();
        for (id, bytes) in wasted {
            if let Some(node) = self.graph.by_id(id) {
                *by_node.entry(node).or_default() += bytes;
            }
        }
        let saved_ms = |stage: &Stage| {
            if !by_node.keys().any(|node| stage.nodes[*node]) {
                return Some(0.0);
            }
            let after = simulate::run(&self.graph, &stage.nodes, &self.network, &by_node)?;
            Some(stage.run.total_ms - after.total_ms)
        };
        (
            self.first_paint.as_ref().and_then(saved_ms),
            self.largest_paint.as_ref().and_then(saved_ms),
        )
    }

    /// Returns how much earlier the first contentful paint would be if these resources and their
    /// dependents were loaded after it. The result is 0 if none of them takes at least `min_ms` by
    /// itself.
    pub(crate) fn saved_ms_by_deferring(&self, ids: &[&str], min_ms: f64) -> Option<f64> {
        let stage = self.first_paint.as_ref()?;
        let mut deferred = vec![false; stage.nodes.len()];
        let mut is_worth_it = false;
        for node in ids.iter().filter_map(|id| self.graph.by_id(id)) {
            let first = self.graph.first_of_chain(node);
            if stage.nodes[first] {
                self.graph
                    .mark_dependents(first, &stage.nodes, &mut deferred);
                let duration_ms = stage.run.duration_ms(node).unwrap_or(0.0).round();
                is_worth_it |= duration_ms >= min_ms;
            }
        }
        if !is_worth_it {
            return Some(0.0);
        }
        let remaining: Vec<bool> = stage
            .nodes
            .iter()
            .zip(&deferred)
            .map(|(is_needed, is_deferred)| *is_needed && !is_deferred)
            .collect();
        let after = simulate::run(&self.graph, &remaining, &self.network, &HashMap::new())?;
        Some((stage.run.total_ms - after.total_ms).round().max(0.0))
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
