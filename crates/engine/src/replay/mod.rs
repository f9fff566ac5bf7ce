//! A simulation of the load: the dependencies between requests and tasks, and the time that the
//! load would take on the same network if some resources were smaller or deferred. Checks use it to
//! estimate savings.
//!
//! Lighthouse calls it Lantern and simulates assumed network conditions; here the network, the CPU
//! and the paints are those of the visit, and the rate of the line is fitted to the paints. Rules
//! and constants are those of trace_engine 0.0.65 (models/trace/lantern,
//! LanternComputationData.js), except that paints wait for layout, and layout for the requests that
//! block rendering, or for the scripts that draw the page. Where the first paint waits for nothing
//! but requests that can be deferred, the observed times of everything else are used instead of
//! simulated ones. `bench/savings` compares the savings with pages on which the advice was
//! followed.

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
#[cfg(test)]
pub(crate) use request::RequestNode;
use simulate::{Difference, SimulatedRun};

use crate::facts::{DrawnByScript, Fact, Facts, LargestContent, Missing};
use crate::metrics::lcp;

/// The longest time from the end of the last task that a paint needs until it is on the screen, on
/// a slow phone. A paint that comes later waited for something else.
const MAX_PRESENTATION_US: f64 = 100_000.0;
/// The part of the time for layout and paint that remains without the requests that block
/// rendering: there is less to apply to the page and to draw. Chosen by how many estimates agree.
const RENDERING_WITHOUT_BLOCKING: f64 = 0.75;

/// The most time that a paint gains without bytes, as a multiple of the time that the line takes
/// for them: what is not transferred is not parsed either. Chosen by how many estimates agree. The
/// rate that is fitted to the load may be lower than that of the line.
const MOST_GAINED: f64 = 1.1;

/// The largest paint is the first one if it comes within this time after it.
const SAME_PAINT_US: f64 = 50_000.0;

/// The largest factor by which the rate of the line is changed to fit the observed paint.
const MAX_FACTOR: f64 = 4.0;
/// After so many halvings the rate is known to 4 %.
const FITTING_STEPS: usize = 5;

pub(crate) struct Replay {
    network: ReplayNetwork,
    first_paint: Option<Stage>,
    largest_paint: Option<Stage>,
    /// Whether the largest paint is the first one.
    is_largest_first: bool,
    /// The id of the resource that the largest paint shows.
    largest_image: Option<String>,
    before_largest: HashSet<usize>,
}

/// The simulated run of the load until a paint.
struct Stage {
    graph: Graph,
    paint: ObservedPaint,
    /// The nodes that the paint needs, and those that share the line with them.
    loaded: Vec<bool>,
    /// The line as the paint had it: it is shared with requests that are not simulated.
    network: ReplayNetwork,
    run: SimulatedRun,
}

/// A paint of the load that was measured.
struct ObservedPaint {
    us: f64,
    /// The nodes that the paint depends on.
    needed: Vec<bool>,
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
        let stage = |graph: &Graph, paint: ObservedPaint| {
            let observed_us = graph.end_us(&paint.needed).min(paint.us);
            let observed_ms = (observed_us - origin_us) / 1000.0;
            Stage::of(graph, &network, paint, observed_ms)
        };
        let first_us = trace.first_us(Milestone::FirstContentfulPaint);
        let largest_us = lcp::largest_contentful_paint(&trace)
            .ok()
            .map(|ms| origin_us + ms * 1000.0);
        let mut first_graph = graph.clone();
        if !drawn.first_paint {
            first_graph.render_before_other_scripts();
        }
        // What ends after the page is first painted, if only with a colour, does not block that.
        let painted_us = trace.first_us(Milestone::FirstPaint);
        let needed_first = |us: f64| {
            let us = painted_us.filter(|_| !drawn.first_paint).unwrap_or(us);
            paints::needed_first(&first_graph, us, drawn.first_paint)
        };
        let largest = facts.get::<LargestContent>()?;
        let largest_image = largest.image.as_ref().map(|image| image.id.clone());
        let image = largest_image.as_deref().and_then(|id| graph.by_id(id));
        let is_largest_first = match (first_us, largest_us) {
            (Some(first_us), Some(largest_us)) => largest_us - first_us < SAME_PAINT_US,
            _ => false,
        };
        let needed_for_largest = |us: f64| {
            // Text that the server sent needs no more than the first paint.
            let is_served = image.is_none() && !drawn.largest_paint;
            if is_served && is_largest_first {
                needed_first(us)
            } else {
                paints::needed_for_largest(&graph, us, image)
            }
        };
        let first_paint = first_us.map(|us| ObservedPaint {
            us,
            needed: needed_first(us),
            is_drawn_by_script: drawn.first_paint,
        });
        let largest_paint = largest_us.map(|us| ObservedPaint {
            us,
            needed: needed_for_largest(us),
            is_drawn_by_script: drawn.largest_paint,
        });
        Ok(Self {
            first_paint: first_paint.and_then(|paint| stage(&first_graph, paint)),
            largest_paint: largest_paint.and_then(|paint| stage(&graph, paint)),
            before_largest: largest_us
                .map(|us| paints::perhaps_needed_for_largest(&graph, us))
                .unwrap_or_default(),
            is_largest_first,
            largest_image,
            network,
        })
    }
}

impl Stage {
    /// Simulates the load until a paint on a line whose rate is chosen so that the last task that
    /// the paint needs ends when it did: what follows until the frame is on the screen is the same
    /// in any load. Requests that are not simulated take a part of the line, and connections that
    /// are already fast need less of it than the simulation assumes.
    fn of(
        graph: &Graph,
        network: &ReplayNetwork,
        paint: ObservedPaint,
        observed_ms: f64,
    ) -> Option<Self> {
        let loaded = paints::loaded(graph, paint.us, &paint.needed);
        let run = |factor: f64| {
            let network = network.faster(factor);
            let run = simulate::run(graph, &loaded, &network, &Difference::default())?;
            Some((network, run))
        };
        let error_ms = |run: &SimulatedRun| run.end_ms(&paint.needed) - observed_ms;
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
        let (network, run) = best;
        Some(Self {
            graph: graph.clone(),
            paint,
            loaded,
            network,
            run,
        })
    }

    /// Returns how much earlier the paint would be in another run in which it needs these nodes.
    fn saved_ms(&self, after: &SimulatedRun, needed: &[bool]) -> f64 {
        self.run.end_ms(&self.paint.needed) - after.end_ms(needed)
    }

    /// Returns how much earlier the paint would be if it needed only these nodes, all of which end
    /// when they did.
    fn saved_ms_as_observed(&self, needed: &[bool]) -> f64 {
        let end_us = self.graph.end_us(&self.paint.needed);
        let presentation_us = (self.paint.us - end_us).clamp(0.0, MAX_PRESENTATION_US);
        let rendering_us = self.graph.rendering_us(needed) + presentation_us;
        let start_us = self.graph.rendering_start_us(needed);
        (self.paint.us - start_us - rendering_us * RENDERING_WITHOUT_BLOCKING) / 1000.0
    }
}

impl Replay {
    fn stage(&self, paint: Paint) -> Option<&Stage> {
        match paint {
            Paint::First => self.first_paint.as_ref(),
            Paint::Largest => self.largest_paint.as_ref(),
        }
    }

    /// Returns how much earlier a paint would be without these bytes of these resources, in
    /// milliseconds; `None` for a paint that did not occur, and for a largest paint that comes
    /// after the first one and whose image is none of these: estimates do not agree with what it
    /// gains.
    pub(crate) fn saved_ms_without_bytes(
        &self,
        paint: Paint,
        wasted: &[(&str, f64)],
    ) -> Option<f64> {
        let stage = self.stage(paint)?;
        let is_largest_image = |(id, _): &(&str, f64)| self.largest_image.as_deref() == Some(*id);
        if paint == Paint::Largest && !self.is_largest_first && !wasted.iter().any(is_largest_image)
        {
            return None;
        }
        let mut difference = Difference::default();
        for (id, bytes) in wasted {
            if let Some(node) = stage.graph.by_id(id).filter(|node| stage.loaded[*node]) {
                *difference.saved_bytes.entry(node).or_default() += bytes;
            }
        }
        if difference.saved_bytes.is_empty() {
            return Some(0.0);
        }
        let saved = &difference.saved_bytes;
        let is_image = |node: &usize| {
            let request = stage.graph.nodes[*node].request();
            request.is_some_and(|request| request.resource_type == "Image")
        };
        // Images share the line with others that also become smaller, so each gains more.
        let most_ms = if saved.keys().any(is_image) {
            f64::INFINITY
        } else {
            let on_line_ms = saved.values().sum::<f64>() * 8.0 / self.network.bits_per_ms;
            on_line_ms * MOST_GAINED
        };
        let after = simulate::run(&stage.graph, &stage.loaded, &stage.network, &difference)?;
        Some(stage.saved_ms(&after, &stage.paint.needed).min(most_ms))
    }

    /// Returns how much earlier the first contentful paint would be if it did not wait for these
    /// resources and their dependents; `None` if it did not occur. The result is 0 if none of them
    /// takes at least `min_ms` by itself.
    pub(crate) fn saved_ms_by_deferring(&self, ids: &[&str], min_ms: f64) -> Option<f64> {
        let stage = self.stage(Paint::First)?;
        let mut deferred = vec![false; stage.paint.needed.len()];
        let mut requests = deferred.clone();
        let mut is_worth_it = false;
        for node in ids.iter().filter_map(|id| stage.graph.by_id(id)) {
            let first = stage.graph.first_of_chain(node);
            if stage.paint.needed[first] {
                deferred[first] = true;
                requests[first..=node].fill(true);
                let duration_ms = stage.run.duration_ms(node).unwrap_or(0.0).round();
                is_worth_it |= duration_ms >= min_ms;
            }
        }
        if !is_worth_it {
            return Some(0.0);
        }
        stage.graph.mark_those_that_need_only(&mut deferred);
        let nodes = stage.paint.needed.iter().zip(&deferred);
        let needed: Vec<bool> = nodes
            .map(|(is_needed, is_deferred)| *is_needed && !is_deferred)
            .collect();
        let saved_ms = if stage.paint.is_drawn_by_script {
            let difference = Difference {
                deferred,
                ..Difference::default()
            };
            // Scripts take so long to make the content that they share the line with what is
            // deferred, although the browser holds that back until the first content is there.
            let after = simulate::run(&stage.graph, &stage.loaded, &stage.network, &difference)?;
            // The fitted line may be slower than that of these requests, if the paint waited for
            // something that is not simulated.
            let most_ms = stage.graph.span_us(&requests) / 1000.0;
            stage.saved_ms(&after, &needed).min(most_ms)
        } else {
            stage.saved_ms_as_observed(&needed)
        };
        Some(saved_ms.round().max(0.0))
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

#[cfg(test)]
mod tests {
    use super::simulate::tests::star;
    use super::*;

    const LARGEST_IMAGE: &str = "image";
    const SAVED_BYTES: f64 = 2000.0;

    /// Returns a load of a document, a style sheet and an image, and a paint that waits for all
    /// three of them until this time.
    fn stage(network: &ReplayNetwork, observed_ms: f64) -> Stage {
        let mut graph = star(&["VeryHigh", "VeryHigh"], 1);
        let ids = ["document", "sheet", LARGEST_IMAGE];
        let nodes = graph.nodes.iter_mut().zip(ids);
        for (at, (node, id)) in nodes.enumerate() {
            graph.by_id.insert(id.to_owned(), at);
            if let (NodeKind::Request(request), LARGEST_IMAGE) = (&mut node.kind, id) {
                request.resource_type = "Image".to_owned();
            }
        }
        let paint = ObservedPaint {
            us: observed_ms * 1000.0,
            needed: vec![true; ids.len()],
            is_drawn_by_script: false,
        };
        Stage::of(&graph, network, paint, observed_ms).unwrap()
    }

    /// Returns a page whose largest paint, an image, comes this long after the start, and after the
    /// first paint unless it is that.
    fn page(observed_ms: f64, is_largest_first: bool) -> Replay {
        let network = ReplayNetwork::plain(150.0, 100.0);
        Replay {
            first_paint: Some(stage(&network, observed_ms)),
            largest_paint: Some(stage(&network, observed_ms)),
            is_largest_first,
            largest_image: Some(LARGEST_IMAGE.to_owned()),
            before_largest: HashSet::new(),
            network,
        }
    }

    fn saved_ms(page: &Replay, paint: Paint, ids: &[&str]) -> Option<f64> {
        let wasted: Vec<_> = ids.iter().map(|id| (*id, SAVED_BYTES)).collect();
        page.saved_ms_without_bytes(paint, &wasted)
    }

    #[test]
    fn what_is_not_an_image_saves_little_more_than_its_time_on_the_line() {
        // So late a paint makes the fitted line four times slower than the emulated one.
        let page = page(60_000.0, true);
        let on_line_ms = SAVED_BYTES * 8.0 / page.network.bits_per_ms;
        let saved_ms = |ids: &[&str]| saved_ms(&page, Paint::First, ids).unwrap();
        assert_eq!(saved_ms(&["sheet"]), on_line_ms * MOST_GAINED);
        assert_eq!(
            saved_ms(&["document", "sheet"]),
            on_line_ms * 2.0 * MOST_GAINED
        );
        assert!(saved_ms(&[LARGEST_IMAGE]) > on_line_ms * MOST_GAINED);
    }

    #[test]
    fn a_page_that_scripts_draw_gains_no_more_than_the_time_of_the_requests() {
        let saved_by_deferring = |sheet_end_us: f64| {
            // So late a paint makes the fitted line four times slower than the emulated one.
            let mut page = page(60_000.0, true);
            let stage = page.first_paint.as_mut().unwrap();
            stage.paint.is_drawn_by_script = true;
            let sheet = stage.graph.by_id("sheet").unwrap();
            stage.graph.nodes[sheet].start_us = 100_000.0;
            stage.graph.nodes[sheet].end_us = sheet_end_us;
            page.saved_ms_by_deferring(&["sheet"], 50.0).unwrap()
        };
        assert_eq!(saved_by_deferring(575_000.0), 475.0);
        let simulated_ms = saved_by_deferring(60_000_000.0);
        assert!(simulated_ms > 475.0, "{simulated_ms} ms");
    }

    #[test]
    fn a_saving_below_the_limit_is_the_simulated_one() {
        // The fitted line is faster than the emulated one.
        let page = page(1000.0, true);
        let on_line_ms = SAVED_BYTES * 8.0 / page.network.bits_per_ms;
        let saved_ms = saved_ms(&page, Paint::First, &["sheet"]).unwrap();
        assert!(0.0 < saved_ms && saved_ms < on_line_ms, "{saved_ms} ms");
    }

    #[test]
    fn a_largest_paint_after_the_first_one_gains_only_by_its_own_image() {
        let page = page(1500.0, false);
        assert_eq!(saved_ms(&page, Paint::Largest, &["sheet"]), None);
        assert!(saved_ms(&page, Paint::Largest, &["sheet", LARGEST_IMAGE]).is_some());
        assert!(saved_ms(&page, Paint::First, &["sheet"]).is_some());
    }

    #[test]
    fn a_largest_paint_that_is_the_first_one_gains_by_any_file() {
        let page = page(1500.0, true);
        assert!(saved_ms(&page, Paint::Largest, &["sheet"]).is_some_and(|ms| ms > 0.0));
    }

    #[test]
    fn nothing_is_known_of_a_paint_that_did_not_occur_and_nothing_gained_by_unknown_files() {
        let mut page = page(1500.0, true);
        assert_eq!(saved_ms(&page, Paint::First, &["other"]), Some(0.0));
        page.first_paint = None;
        assert_eq!(saved_ms(&page, Paint::First, &["sheet"]), None);
    }
}
