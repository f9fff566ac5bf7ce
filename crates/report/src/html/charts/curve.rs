use std::fmt::Write;

use plumbline_model::scoring::Curve;

use crate::html::figures::{Grade, coordinate};

const WIDTH: f64 = 240.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 46.0;

/// Draws a metric's scoring curve over a logarithmic axis, with its two limits and the measured
/// value.
pub(crate) fn curve(
    curve: Curve,
    value: Option<(f64, f64)>,
    aria_label: &str,
    limits: [&str; 2],
) -> String {
    // The axis extends to a quarter of the good limit and to four times the median.
    let (low, high) = (curve.p10 / 4.0, curve.median * 4.0);
    let span = (high / low).ln();
    let x = |v: f64| ((v.max(low) / low).ln() / span * WIDTH).clamp(0.0, WIDTH);
    let y = |score: f64| BOTTOM - score * (BOTTOM - TOP);
    let (good_x, poor_x) = (x(curve.p10), x(curve.median));

    const STEPS: usize = 40;
    let point = |at: f64| (at, y(curve.score(low * (at / WIDTH * span).exp())));
    let area = |from: f64, to: f64| {
        let mut path = format!("M{} {BOTTOM}", coordinate(from));
        for step in 0..=STEPS {
            let (px, py) = point(from + (to - from) * step as f64 / STEPS as f64);
            let _ = write!(path, "L{} {}", coordinate(px), coordinate(py));
        }
        let _ = write!(path, "V{BOTTOM}Z");
        path
    };
    let mut svg = format!(
        r#"<svg class="curve" viewBox="0 0 240 64" role="img" aria-label="{aria_label}"><path class="fill good" d="{}"/><path class="fill middling" d="{}"/><path class="fill poor" d="{}"/>"#,
        area(0.0, good_x),
        area(good_x, poor_x),
        area(poor_x, WIDTH)
    );
    // Labels point away from each other, because the limits of a steep curve are close.
    for (at, anchor, label) in [(good_x, "end", limits[0]), (poor_x, "start", limits[1])] {
        let at = coordinate(at);
        let _ = write!(
            svg,
            r#"<path class="limit" d="M{at} {TOP}V{BOTTOM}"/><text class="axis" x="{at}" y="60" text-anchor="{anchor}">{label}</text>"#
        );
    }
    if let Some((value, score)) = value {
        let class = Grade::of_score(Some((score * 100.0).round() as u8)).class();
        let at = coordinate(x(value).clamp(4.0, WIDTH - 4.0));
        let on = coordinate(y(curve.score(value)));
        let _ = write!(
            svg,
            r#"<path class="stand {class}" d="M{at} {BOTTOM}V{on}"/><circle class="dot {class}" cx="{at}" cy="{on}" r="4.5"/>"#
        );
    }
    svg.push_str("</svg>");
    svg
}
