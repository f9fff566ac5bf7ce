//! The load once more, in figures: what had to be there before what, and how long it would all take on the same line
//! if some of it were smaller or came later. So checks can say what their advice would give.
//!
//! Lighthouse calls it Lantern and estimates with it on a line that nobody has measured; here the line, the
//! processor and the paints are those of the visit. Rules and constants are those of trace_engine 0.0.65
//! (models/trace/lantern, LanternComputationData.js).

mod builder;
mod connections;
mod graph;
mod line;
mod paints;
mod queue;
mod request;
mod simulate;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use plumbline_trace::{Milestone, Trace};

pub(crate) use graph::Graph;
use line::Line;
pub use line::{Distance, distances};
use simulate::Run;

use crate::facts::{Fact, Facts, Missing};
use crate::metrics::lcp;
use crate::report::Conditions;

pub(crate) struct Replay {
    graph: Rc<Graph>,
    line: Line,
    first_paint: Option<Stage>,
    largest_paint: Option<Stage>,
    before_largest: HashSet<usize>,
}

/// What a paint waited for, and how long that takes.
struct Stage {
    nodes: Vec<bool>,
    run: Run,
}

impl Fact for Graph {
    fn find(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let slowed_by = facts.get::<Conditions>().map_or(1.0, |of| of.cpu.rate);
        Graph::of(&trace, slowed_by)
            .ok_or_else(|| Missing("the trace holds no request for the document".to_owned()))
    }
}

impl Fact for Replay {
    fn find(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let conditions = facts.get::<Conditions>()?;
        let graph = facts.get::<Graph>()?;
        let network = &conditions.network;
        let line = Line::of(&trace, network.rtt_ms, network.down_kbps)
            .ok_or_else(|| Missing("the line has no round trip or no rate".to_owned()))?;
        let stage = |nodes: Vec<bool>| {
            let run = simulate::run(&graph, &nodes, &line, &HashMap::new())?;
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
            line,
            graph,
        })
    }
}

impl Replay {
    /// What the first and the largest contentful paint would gain if these bytes of these resources had not come, in
    /// milliseconds. None where there was no such paint.
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
            let after = simulate::run(&self.graph, &stage.nodes, &self.line, &by_node)?;
            Some(stage.run.total_ms - after.total_ms)
        };
        (
            self.first_paint.as_ref().and_then(saved_ms),
            self.largest_paint.as_ref().and_then(saved_ms),
        )
    }

    /// What the first contentful paint would gain if these resources, and what waits for them, came after it; none of
    /// them counts that takes less than `least_ms` alone.
    pub(crate) fn saved_ms_by_deferring(&self, ids: &[&str], least_ms: f64) -> Option<f64> {
        let stage = self.first_paint.as_ref()?;
        let mut deferred = vec![false; stage.nodes.len()];
        let mut is_worth_it = false;
        for node in ids.iter().filter_map(|id| self.graph.by_id(id)) {
            let first = self.graph.first_of_chain(node);
            if stage.nodes[first] {
                self.graph
                    .mark_dependents(first, &stage.nodes, &mut deferred);
                let took_ms = stage.run.took_ms(node).unwrap_or(0.0).round();
                is_worth_it |= took_ms >= least_ms;
            }
        }
        if !is_worth_it {
            return Some(0.0);
        }
        let left: Vec<bool> = stage
            .nodes
            .iter()
            .zip(&deferred)
            .map(|(is_needed, is_deferred)| *is_needed && !is_deferred)
            .collect();
        let after = simulate::run(&self.graph, &left, &self.line, &HashMap::new())?;
        Some((stage.run.total_ms - after.total_ms).round().max(0.0))
    }

    /// Whether the largest paint may have waited for it.
    pub(crate) fn is_before_largest_paint(&self, resource: usize) -> bool {
        self.before_largest.contains(&resource)
    }

    /// How much further away than the nearest this origin is.
    pub(crate) fn more_rtt_ms(&self, origin: &str) -> f64 {
        self.line.more_rtt_ms(origin)
    }
}
