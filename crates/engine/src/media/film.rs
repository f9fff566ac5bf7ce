//! The filmstrip of the load with a limited number of frames, and the final screenshot.

use plumbline_bundle::Bundle;
use plumbline_model::media::{Frame, Marks, Picture};
use plumbline_trace::Trace;

/// The maximum number of frames: enough to follow a load, few enough for one screen.
const MAX_FRAMES: usize = 12;
/// The times between frames to choose from: round numbers.
const STEPS_MS: [f64; 14] = [
    100.0, 200.0, 250.0, 300.0, 400.0, 500.0, 750.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0,
    5000.0, 10_000.0,
];
/// The maximum size of a picture in Base64; the pictures of a visit are far smaller.
pub(super) const MAX_PICTURE_CHARS: usize = 512 * 1024;

/// Returns the time of the last screenshot that differs from the one before; `None` if the page may
/// have changed later.
pub(super) fn last_change_ms(trace: &Trace) -> Option<f64> {
    let last = trace.screenshots.last()?;
    let is_last = trace.screenshots_end_us.is_none();
    is_last.then(|| trace.since_origin_ms(last.ts_us))
}

pub(super) fn film(trace: &Trace, end_ms: f64, marks: &Marks) -> (Vec<Frame>, Vec<Picture>) {
    let shots = &trace.screenshots;
    let Some(last) = shots.last() else {
        return (Vec::new(), Vec::new());
    };
    let last_change_ms = trace.since_origin_ms(last.ts_us);
    let film_end_ms = trace
        .screenshots_end_us
        .map(|end_us| trace.since_origin_ms(end_us));
    // The filmstrip ends when the page no longer changes and all marks have passed, also after the
    // last request and the last work of the main thread: animations need neither. If the last
    // change is not known, it ends with the visit.
    let last_change_ms = if film_end_ms.is_some() {
        end_ms
    } else {
        last_change_ms
    };
    let mark_times = [marks.fcp_ms, marks.lcp_ms, marks.load_ms];
    let until_ms = mark_times
        .into_iter()
        .flatten()
        .fold(last_change_ms, f64::max);
    let step_ms = step(until_ms);
    let mut used_shots: Vec<usize> = Vec::new();
    let mut film = Vec::new();
    for index in 0..MAX_FRAMES {
        let at_ms = step_ms * (index + 1) as f64;
        let latest_shot = shots
            .iter()
            .rposition(|shot| trace.since_origin_ms(shot.ts_us) <= at_ms)
            .filter(|shot| shots[*shot].base64().len() <= MAX_PICTURE_CHARS)
            .filter(|_| film_end_ms.is_none_or(|end_ms| at_ms < end_ms + step_ms));
        let picture = latest_shot.map(|shot| {
            let existing = used_shots.iter().position(|used| *used == shot);
            existing.unwrap_or_else(|| {
                used_shots.push(shot);
                used_shots.len() - 1
            })
        });
        film.push(Frame { at_ms, picture });
        if at_ms >= until_ms {
            break;
        }
    }
    let pictures = used_shots.into_iter().map(|shot| {
        let data = shots[shot].base64().to_owned();
        let (width_px, height_px) = shots[shot]
            .jpeg()
            .and_then(|jpeg| jpeg_size(&jpeg))
            .unwrap_or_default();
        Picture {
            mime_type: "image/jpeg".to_owned(),
            width_px,
            height_px,
            data,
        }
    });
    (film, pictures.collect())
}

fn step(until_ms: f64) -> f64 {
    let least = until_ms / MAX_FRAMES as f64;
    let fits = STEPS_MS.into_iter().find(|step| *step >= least);
    fits.unwrap_or_else(|| (least / 10_000.0).ceil() * 10_000.0)
}

/// Reads the size from the frame header of a JPEG file (ITU-T T.81, B.2.2).
fn jpeg_size(jpeg: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let header = jpeg.get(at..at + 9)?;
        let (marker, length) = (header[1], u16::from_be_bytes([header[2], header[3]]));
        if header[0] != 0xff {
            return None;
        }
        if matches!(marker, 0xc0..=0xc2) {
            let height = u16::from_be_bytes([header[5], header[6]]);
            let width = u16::from_be_bytes([header[7], header[8]]);
            return Some((width.into(), height.into()));
        }
        at += 2 + usize::from(length);
    }
}

/// Returns whether a media type may be written to a response header and a page.
pub(super) fn is_known_type(mime_type: &str) -> bool {
    matches!(mime_type, "image/webp" | "image/jpeg" | "image/png")
}

pub(super) fn screenshot(bundle: &Bundle) -> Option<Picture> {
    let shot = bundle.screenshot.as_ref()?;
    let is_known = is_known_type(&shot.mime_type);
    (is_known && shot.data.len() <= 4 * MAX_PICTURE_CHARS).then(|| Picture {
        mime_type: shot.mime_type.clone(),
        width_px: shot.width_px,
        height_px: shot.height_px,
        data: shot.data.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_round_and_frames_are_few() {
        assert_eq!(step(300.0), 100.0);
        assert_eq!(step(2900.0), 250.0);
        assert_eq!(step(6100.0), 750.0);
        assert_eq!(step(250_000.0), 30_000.0);
    }

    #[test]
    fn a_page_that_changes_after_its_last_work_is_shown_until_it_no_longer_changes() {
        let event = |name: &str, category: &str, after_ms: u64, args: serde_json::Value| json!({"name": name, "cat": category, "ph": "R", "pid": 1, "tid": 1, "ts": after_ms * 1000, "args": args});
        let shot = |after_ms, picture: &str| {
            let category = "disabled-by-default-devtools.screenshot";
            event(
                "Screenshot",
                category,
                after_ms,
                json!({"snapshot": picture}),
            )
        };
        let timeline = "loading,devtools.timeline";
        let frames = json!([{"frame": "MAIN", "url": "", "processId": 1}]);
        let started = json!({"data": {"frames": frames}});
        let navigation = json!({"frame": "MAIN", "data": {"documentLoaderURL": "http://page/"}});
        let events = json!([
            event("TracingStartedInBrowser", timeline, 1, started),
            event("navigationStart", timeline, 1, navigation),
            {"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "CrRendererMain"}},
            shot(301, "Zmlyc3Q="),
            shot(1551, "bGFzdA=="),
            event("end", timeline, 2001, json!({})),
        ]);
        let trace = Trace::read(&serde_json::to_vec(&events).unwrap()).unwrap();
        let (film, pictures) = film(&trace, 1100.0, &Marks::default());
        let last = film.last().unwrap();
        assert_eq!((last.at_ms, last.picture), (1600.0, Some(1)));
        assert_eq!(pictures.len(), 2);
    }

    #[test]
    fn the_size_of_a_jpeg_is_parsed_and_other_bytes_are_rejected() {
        let jpeg = [
            0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc0, 0, 11, 8, 0x01, 0xf4, 0, 0xfa, 3,
        ];
        assert_eq!(jpeg_size(&jpeg), Some((250, 500)));
        assert_eq!(jpeg_size(&jpeg[..12]), None);
        assert_eq!(jpeg_size(b"GIF89a-no-jpeg-at-all"), None);
    }
}
