use std::fmt::Write;

use super::axis::WIDTH;
use crate::html::figures::coordinate;

const HEIGHT: f64 = 28.0;

/// Draws the parts of a duration side by side, each given by its class, start and end.
pub(crate) fn strip<'p>(
    parts: impl Iterator<Item = (&'p str, f64, f64)>,
    end_ms: f64,
    aria_label: &str,
) -> String {
    let x = |ms: f64| ms / end_ms.max(1.0) * WIDTH;
    let mut svg = format!(
        r#"<svg class="strip" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{aria_label}">"#
    );
    for (class, start_ms, end_ms) in parts {
        let _ = write!(
            svg,
            r#"<rect class="{class}" x="{}" y="0" width="{}" height="{HEIGHT}"/>"#,
            coordinate(x(start_ms)),
            coordinate(x(end_ms) - x(start_ms)),
        );
    }
    svg.push_str("</svg>");
    svg
}
