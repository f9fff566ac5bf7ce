use std::fmt::Write;

use plumbline_model::media::MainThread;

use super::axis::{Axis, WIDTH};
use crate::html::figures::coordinate;

const HEIGHT: f64 = 60.0;
/// The class names, in the order of `WORK_KINDS`.
pub(crate) const CLASSES: [&str; 5] = ["script", "layout", "paint", "parse", "other"];

/// Draws the main-thread activity over time by kind of work: one column per slice, as high as the
/// thread was busy.
pub(crate) fn main_thread(thread: &MainThread, axis: Axis, aria_label: &str) -> String {
    let mut paths = [const { String::new() }; 5];
    for (index, slice) in thread.slices.iter().enumerate() {
        let start_ms = index as f64 * thread.slice_ms;
        if start_ms >= axis.end_ms {
            break;
        }
        let (x, to) = (axis.x(start_ms), axis.x(start_ms + thread.slice_ms));
        let mut level = HEIGHT;
        for (kind, ms) in slice.iter().enumerate() {
            let height = (f64::from(*ms) / thread.slice_ms * HEIGHT).min(level);
            if height < 0.3 {
                continue;
            }
            level -= height;
            let _ = write!(
                paths[kind],
                "M{} {}h{w}v{}h-{w}z",
                coordinate(x),
                coordinate(level),
                coordinate(height),
                w = coordinate(to - x),
            );
        }
    }
    let mut svg = format!(
        r#"<svg class="thread" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{aria_label}">"#
    );
    for (class, path) in CLASSES.iter().zip(&paths) {
        if !path.is_empty() {
            let _ = write!(svg, r#"<path class="{class}" d="{path}"/>"#);
        }
    }
    svg.push_str("</svg>");
    svg
}
