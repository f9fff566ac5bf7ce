use std::fmt::Write;

use crate::html::figures::coordinate;

/// One audit's value; `good` and `poor` are where the class of a point changes.
pub(crate) struct Point {
    pub(crate) value: f64,
    pub(crate) class: &'static str,
    /// What a pointer over it says.
    pub(crate) title: String,
}

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;
const EDGE: f64 = 8.0;

/// Values over a series of audits, oldest first, at even distances, with their median as a line.
pub(crate) fn trend(points: &[Point], median: f64, said: &str) -> String {
    let highest = points
        .iter()
        .map(|point| point.value)
        .fold(median, f64::max);
    // From zero, so that a small change looks small.
    let top = if highest > 0.0 { highest * 1.1 } else { 1.0 };
    let y = |value: f64| HEIGHT - EDGE - value / top * (HEIGHT - 2.0 * EDGE);
    let step = (WIDTH - 2.0 * EDGE) / (points.len().max(2) - 1) as f64;
    let x = |index: usize| EDGE + step * index as f64;
    let mut svg = format!(
        r#"<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}"><path class="base" d="M0 {base}H{WIDTH}"/><path class="median" d="M0 {m}H{WIDTH}"/><path class="line" d=""#,
        base = coordinate(y(0.0)),
        m = coordinate(y(median)),
    );
    for (index, point) in points.iter().enumerate() {
        let _ = write!(
            svg,
            "{}{} {}",
            if index == 0 { 'M' } else { 'L' },
            coordinate(x(index)),
            coordinate(y(point.value))
        );
    }
    svg.push_str(r#""/>"#);
    for (index, point) in points.iter().enumerate() {
        let _ = write!(
            svg,
            r#"<circle class="dot {}" cx="{}" cy="{}" r="4"><title>{}</title></circle>"#,
            point.class,
            coordinate(x(index)),
            coordinate(y(point.value)),
            point.title,
        );
    }
    svg.push_str("</svg>");
    svg
}
