use std::fmt::Write;

use plumbline_model::media::RequestEntry;

use super::axis::{Axis, WIDTH};
use crate::html::figures::coordinate;

/// Draws the phases of a request. The row contains the same figures as text.
pub fn bar(request: &RequestEntry, axis: Axis) -> String {
    format!(
        r#"<svg class="bar" viewBox="0 0 {WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">{}</svg>"#,
        pieces(request, axis)
    )
}

fn pieces(request: &RequestEntry, axis: Axis) -> String {
    let phases = &request.phases;
    let mut at_ms = request.start_ms.max(0.0);
    let mut out = String::new();
    let mut piece = |class: &str, ms: f64, min_width: f64| {
        let x = axis.x(at_ms);
        let width = (axis.x(at_ms + ms) - x).max(min_width).min(WIDTH - x);
        at_ms += ms;
        if width >= 0.05 {
            let _ = write!(
                out,
                r#"<rect class="{class}" x="{}" y="0" width="{}" height="10"/>"#,
                coordinate(x),
                coordinate(width),
            );
        }
    };
    piece("q", phases.queue_ms, 0.0);
    piece("d", phases.dns_ms.unwrap_or_default(), 0.0);
    piece("c", phases.connect_ms.unwrap_or_default(), 0.0);
    piece("t", phases.tls_ms.unwrap_or_default(), 0.0);
    piece("w", phases.wait_ms.unwrap_or_default(), 0.0);
    match (phases.receive_ms, request.end_ms) {
        // A response is always visible, however fast it was.
        (Some(receive_ms), _) => piece("r", receive_ms, 1.5),
        // There was no response: the request was blocked, refused, or pending at the end.
        (None, Some(end_ms)) => {
            let rest = (end_ms - request.start_ms - phases.queue_ms).max(0.0);
            piece("f", rest, 2.0);
        }
        (None, None) => piece("f", (axis.end_ms - request.start_ms).max(0.0), 2.0),
    }
    out
}
