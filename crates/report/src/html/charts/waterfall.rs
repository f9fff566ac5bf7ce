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
    let drawn_ms = phases.queue_ms
        + [
            phases.dns_ms,
            phases.connect_ms,
            phases.tls_ms,
            phases.wait_ms,
        ]
        .into_iter()
        .flatten()
        .sum::<f64>();
    piece("q", phases.queue_ms, 0.0);
    piece("d", phases.dns_ms.unwrap_or_default(), 0.0);
    piece("c", phases.connect_ms.unwrap_or_default(), 0.0);
    piece("t", phases.tls_ms.unwrap_or_default(), 0.0);
    piece("w", phases.wait_ms.unwrap_or_default(), 0.0);
    match (phases.receive_ms, request.end_ms) {
        // A response is always visible, however fast it was.
        (Some(receive_ms), _) => piece("r", receive_ms, 1.5),
        (None, end_ms) => {
            let class = if request.error.is_some() { "f" } else { "u" };
            let end_ms = end_ms.unwrap_or(axis.end_ms);
            let rest = (end_ms - request.start_ms - drawn_ms).max(0.0);
            piece(class, rest, 2.0);
        }
    }
    out
}

/// Whether a part of the request's bar is neither a phase nor a failure: the phases of a finished
/// request were not recorded, or it was pending at the end.
pub fn has_unknown_phases(request: &RequestEntry) -> bool {
    request.phases.receive_ms.is_none() && request.error.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_with_an_error_is_drawn_as_failed() {
        let axis = Axis { end_ms: 1000.0 };
        let finished = RequestEntry {
            status: Some(200),
            start_ms: 100.0,
            end_ms: Some(300.0),
            ..RequestEntry::default()
        };
        let bar_of_finished = bar(&finished, axis);
        assert!(
            bar_of_finished.contains(r#"class="u" x="100" y="0" width="200""#),
            "{bar_of_finished}"
        );
        let failed = RequestEntry {
            error: Some("net::ERR_FAILED".to_owned()),
            ..finished.clone()
        };
        assert!(bar(&failed, axis).contains(r#"class="f""#));
        let pending = RequestEntry {
            end_ms: None,
            ..finished.clone()
        };
        assert!(bar(&pending, axis).contains(r#"class="u" x="100" y="0" width="900""#));
        assert!(has_unknown_phases(&finished) && !has_unknown_phases(&failed));
    }
}
