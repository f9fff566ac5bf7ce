//! Layout shifts by session window, and their likely causes.

use std::collections::HashMap;

use plumbline_trace::{LayoutShift, MovedNode, Span, Trace};

use super::{Fact, Facts, Missing};

/// Chromium treats setting the viewport as input for this long (Chromium bug 1302667).
const VIEWPORT_INPUT_US: f64 = 500_000.0;
/// A session window ends after a second without a shift, and lasts at most five seconds
/// (web.dev/articles/cls).
const GAP_US: f64 = 1_000_000.0;
const LIMIT_US: f64 = 5_000_000.0;
/// A font is a likely cause for at most this long after it was loaded (trace_engine,
/// insights/CLSCulprits.js).
const MAX_FONT_DELAY_US: f64 = 500_000.0;

#[derive(Debug, Clone, Default)]
pub struct ShiftClusters(pub Vec<ShiftCluster>);

#[derive(Debug, Clone, Default)]
pub struct ShiftCluster {
    pub score: f64,
    /// The shifts in the order of time.
    pub shifts: Vec<Shift>,
}

#[derive(Debug, Clone)]
pub struct Shift {
    pub ts_us: f64,
    pub score: f64,
    pub moved: Vec<MovedNode>,
    pub culprits: Vec<Culprit>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Culprit {
    UnsizedImage(i64),
    WebFont(String),
    /// An inserted frame with its URL, if known.
    Frame(Option<String>),
}

impl Fact for ShiftClusters {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let mut clusters = clusters(&trace);
        let mut shifts: Vec<&mut Shift> = clusters
            .iter_mut()
            .flat_map(|cluster| &mut cluster.shifts)
            .collect();
        add_culprits(&trace, &mut shifts);
        Ok(Self(clusters))
    }
}

impl ShiftClusters {
    /// Returns the score of the worst session window, which is the metric.
    pub fn worst(&self) -> Option<f64> {
        self.0
            .iter()
            .map(|cluster| cluster.score)
            .max_by(f64::total_cmp)
    }
}

fn clusters(trace: &Trace) -> Vec<ShiftCluster> {
    let origin_us = trace.navigation.time_origin_us;
    let viewport_us = trace.shifts.first_viewport_us.unwrap_or(origin_us);
    let mut trust_input_flag = false;
    let mut clusters: Vec<ShiftCluster> = Vec::new();
    let (mut first_us, mut last_us) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (shift, moved) in trace.shifts.all.iter().zip(&trace.shifts.moved) {
        if !is_unexpected(shift, viewport_us, &mut trust_input_flag) || shift.ts_us < origin_us {
            continue;
        }
        let Some(score) = shift.weighted_score else {
            continue;
        };
        if shift.ts_us - first_us > LIMIT_US || shift.ts_us - last_us > GAP_US {
            clusters.push(ShiftCluster::default());
            first_us = shift.ts_us;
        }
        last_us = shift.ts_us;
        if let Some(cluster) = clusters.last_mut() {
            cluster.score += score;
            cluster.shifts.push(Shift {
                ts_us: shift.ts_us,
                score,
                moved: moved.clone(),
                culprits: Vec::new(),
            });
        }
    }
    clusters
}

/// Applies the rule of the metric (`metrics/cls.rs`): until the first shift without recent input,
/// shifts soon after the viewport was set count although they have it.
fn is_unexpected(shift: &LayoutShift, viewport_us: f64, trust_input_flag: &mut bool) -> bool {
    if shift.had_recent_input {
        return !*trust_input_flag && shift.ts_us - viewport_us <= VIEWPORT_INPUT_US;
    }
    *trust_input_flag = true;
    true
}

/// Adds culprits to the shifts: everything that ended right before the paint in which a shift
/// occurred.
fn add_culprits(trace: &Trace, shifts: &mut [&mut Shift]) {
    let culprits = &trace.culprits;
    let origin_us = trace.navigation.time_origin_us;
    let in_load = |span: &Span| origin_us < span.end_us();
    let paintings: Vec<Span> = culprits
        .pre_paints
        .iter()
        .copied()
        .filter(in_load)
        .collect();
    let within = |painting: &Span, shift: &Shift| {
        (painting.start_us..=painting.end_us()).contains(&shift.ts_us)
    };
    let next = |after_us: f64| {
        paintings.get(paintings.partition_point(|painting| painting.start_us <= after_us))
    };
    let mut add = |painting: &Span, culprit: Culprit| {
        for shift in shifts.iter_mut().filter(|shift| within(painting, shift)) {
            shift.culprits.push(culprit.clone());
        }
    };
    for inserted in culprits.frames_made.iter().filter(|span| in_load(span)) {
        let document = culprits
            .documents_begun
            .iter()
            .find(|(ts_us, _)| (inserted.start_us..=inserted.end_us()).contains(ts_us));
        if let (Some(painting), Some((_, frame))) = (next(inserted.end_us()), document) {
            let frames = &trace.frames.in_page;
            let frame = frames.iter().find(|candidate| candidate.id == *frame);
            add(
                painting,
                Culprit::Frame(frame.map(|frame| frame.url.clone())),
            );
        }
    }
    for font in &trace.resources.all {
        let is_font = font.traced_type() == "Font" && font.mime_type().starts_with("font");
        if is_font
            && let Some(painting) = next(font.notified_us)
            && font.notified_us >= painting.start_us - MAX_FONT_DELAY_US
            && origin_us < font.notified_us
        {
            add(painting, Culprit::WebFont(font.url.clone()));
        }
    }
    let images = &trace.resources.image_paints;
    for painting in &paintings {
        let after = images.partition_point(|image| image.ts_us <= painting.end_us());
        let node = images.get(after).and_then(|image| image.node_id);
        let unsized_image = &culprits.unsized_images;
        let unsized_image = unsized_image
            .iter()
            .find(|(ts_us, unsized_image)| Some(*unsized_image) == node && origin_us < *ts_us);
        if let Some((_, node)) = unsized_image {
            add(painting, Culprit::UnsizedImage(*node));
        }
    }
}

/// Distributes the scores of the shifts over their nodes by the area that each swept
/// (Lighthouse, core/computed/metrics/cumulative-layout-shift.js, `getImpactByNodeId`).
pub fn impact_by_node<'s>(shifts: impl IntoIterator<Item = &'s Shift>) -> HashMap<i64, f64> {
    let mut impacts: HashMap<i64, f64> = HashMap::new();
    for shift in shifts {
        let mut swept: HashMap<i64, f64> = HashMap::new();
        let mut total = 0.0;
        for node in &shift.moved {
            let area = swept_area(node);
            swept.insert(node.node_id, area);
            total += area;
        }
        for (node_id, area) in swept {
            *impacts.entry(node_id).or_default() += area / total * shift.score;
        }
    }
    impacts
}

impl Shift {
    /// Returns the node with the greatest impact among those that the shift moved.
    pub fn most_moved(&self, impacts: &HashMap<i64, f64>) -> Option<i64> {
        let mut most: Option<(i64, f64)> = None;
        for node in &self.moved {
            if let Some(impact) = impacts.get(&node.node_id)
                && most.is_none_or(|(_, greatest)| *impact > greatest)
            {
                most = Some((node.node_id, *impact));
            }
        }
        most.map(|(node_id, _)| node_id)
    }
}

fn swept_area(node: &MovedNode) -> f64 {
    let area = |rect: [f64; 4]| rect[2] * rect[3];
    let shared = |at: usize| {
        let end = |rect: [f64; 4]| rect[at] + rect[at + 2];
        (end(node.before).min(end(node.after)) - node.before[at].max(node.after[at])).max(0.0)
    };
    area(node.before) + area(node.after) - shared(0) * shared(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(node_id: i64, before: [f64; 4], after: [f64; 4]) -> MovedNode {
        MovedNode {
            node_id,
            before,
            after,
        }
    }

    #[test]
    fn the_area_that_a_node_swept_counts_the_overlap_once() {
        let half = moved(1, [0.0, 0.0, 10.0, 10.0], [0.0, 5.0, 10.0, 10.0]);
        assert_eq!(swept_area(&half), 150.0);
        let far = moved(1, [0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 10.0, 10.0]);
        assert_eq!(swept_area(&far), 200.0);
    }

    #[test]
    fn a_shift_is_attributed_to_the_node_that_swept_the_largest_area() {
        let shift = Shift {
            ts_us: 0.0,
            score: 0.3,
            moved: vec![
                moved(1, [0.0, 0.0, 10.0, 10.0], [0.0, 5.0, 10.0, 10.0]),
                moved(2, [0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 10.0, 20.0]),
            ],
            culprits: Vec::new(),
        };
        let impacts = impact_by_node([&shift]);
        assert_eq!(shift.most_moved(&impacts), Some(2));
        assert!((impacts.values().sum::<f64>() - 0.3).abs() < 1e-9);
    }
}
