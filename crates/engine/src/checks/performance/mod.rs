//! The performance checks: Lighthouse's insights and diagnostics. All have weight 0; the category's
//! score comes from the metrics.

pub mod bf_cache;
pub mod bootup_time;
pub mod cache;
pub mod cls_culprits_insight;
pub mod document_latency;
pub mod dom_size_insight;
pub mod duplicated_javascript;
pub mod font_display;
pub mod forced_reflow_insight;
pub mod image_delivery;
pub mod inp_breakdown_insight;
pub mod layout_shifts;
pub mod lcp_breakdown_insight;
pub mod lcp_discovery_insight;
pub mod legacy_javascript;
pub mod long_tasks;
pub mod main_thread_tasks;
pub mod mainthread_work_breakdown;
pub mod modern_http;
pub mod network_dependency_tree;
pub mod non_composited_animations;
#[cfg(test)]
mod page_load;
pub mod redirects;
pub mod render_blocking;
pub mod resource_summary;
pub mod script_treemap_data;
pub mod server_response_time;
mod shift_rows;
pub mod third_parties;
pub mod total_byte_weight;
#[cfg(test)]
pub(crate) mod traced;
pub mod unminified_css;
pub mod unminified_javascript;
pub mod unsized_images;
pub mod unused_css_rules;
pub mod unused_javascript;
pub mod user_timings;
pub mod viewport_insight;
mod wasted_bytes;

use plumbline_model::check::Cell;

use crate::facts::{Attribution, Facts, TraceElements};

/// Returns a cell with the element of a node id, empty if the element was gone at the end of the
/// load.
fn element_cell(facts: &Facts, node_id: Option<i64>) -> Cell {
    TraceElements::of(facts, node_id).map_or(Cell::Nothing, |node| Cell::element(&node))
}

fn attribution_cell(attribution: Attribution) -> Cell {
    match attribution {
        Attribution::Url(url) => Cell::url(url),
        other => Cell::text(other.text()),
    }
}

/// Formats a duration for a summary: `340 ms`, `1.2 s`.
fn format_duration(ms: f64) -> String {
    if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1000.0)
    }
}
