use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plumbline_model::media::{Frame, Picture as StoredPicture};
use proptest::prelude::*;

use super::testing::{Animation, decode};
use super::*;
use crate::JunitOptions;
use crate::testing::{bundle_with_log, jpeg, report, trace_with_screenshots};

/// A trace of a page that Chromium rendered in several steps, shared with the engine's tests.
const TRACE: &[u8] = include_bytes!("../../../engine/tests/data/renders-in-steps.trace.json.gz");

fn video_of(bundle: Option<&Bundle>, media: Option<&ReportMedia>) -> Option<Vec<u8>> {
    render(&ExportSource {
        report: &report(),
        bundle,
        media,
        made_at_ms: 0,
        logo: None,
        junit: JunitOptions::default(),
    })
    .unwrap()
}

fn video_of_trace(trace: Vec<u8>) -> Option<Animation> {
    let bundle = Bundle {
        trace,
        ..bundle_with_log("[]")
    };
    Some(decode(&video_of(Some(&bundle), None)?))
}

/// Returns whether two colours are as similar as a palette and JPEG make them.
fn are_similar(a: [u8; 3], b: [u8; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 12)
}

#[test]
fn a_video_shows_each_screenshot_at_its_time_with_a_caption() {
    let (red, blue) = ([200, 30, 40], [20, 60, 180]);
    let two = |left, right| jpeg(10, 5, move |x, _| if x < 5 { left } else { right });
    let trace = trace_with_screenshots(&[
        (150, two(red, red)),
        (1230, two(red, blue)),
        (1240, two(blue, blue)),
    ]);
    let video = video_of_trace(trace).unwrap();
    assert_eq!(video.size, (80, 40 + caption::HEIGHT));
    // A caption every 100 ms; the screenshot at 1,230 ms is replaced too soon to be seen.
    assert_eq!(video.delays_ms[..3], [100, 50, 50]);
    assert_eq!(video.delays_ms[13..], [40, 2000]);
    assert_eq!(video.delays_ms.iter().sum::<u32>(), 1240 + 2000);
    let at = |frame: usize, x: usize| video.frames[frame][80 * 20 + x];
    assert_eq!(at(0, 10), [255; 3]);
    assert!(are_similar(at(2, 10), red) && are_similar(at(13, 70), red));
    assert!(are_similar(at(14, 10), blue) && are_similar(at(14, 70), blue));
    assert_eq!(video.still, video.frames[14]);
    let caption = |frame: usize| &video.frames[frame][80 * 40..];
    assert_ne!(caption(0), caption(1));
    assert_eq!(caption(1), caption(2), "the caption of 150 ms is 0.1 s");
    let [_, top, width, _] = video.areas[1];
    assert!(
        top >= 40 && width <= 10,
        "a new caption changes only itself"
    );
}

#[test]
fn a_video_of_a_recorded_trace_has_its_screenshots() {
    let trace = Trace::read(TRACE).unwrap();
    let screenshots = &trace.screenshots;
    assert!(screenshots.len() >= 3, "{}", screenshots.len());
    let video = video_of_trace(TRACE.to_vec()).unwrap();
    let last = screenshots.last().unwrap();
    let picture = Picture::decode(last.base64()).unwrap();
    let width = picture.size().width;
    assert_eq!(video.size, (width, picture.size().height + caption::HEIGHT));
    let pairs = picture.fitted(MAX_SIZE).zip(&video.still);
    let similar = pairs.filter(|(a, b)| are_similar(*a, **b)).count();
    let pixels = width * picture.size().height;
    assert!(similar * 100 >= pixels * 97, "{similar} of {pixels}");
    let last_ms = trace.since_origin_ms(last.ts_us).round() as u32;
    assert_eq!(video.delays_ms.iter().sum::<u32>(), last_ms + LAST_MS);
}

#[test]
fn without_a_bundle_the_filmstrip_is_shown() {
    let picture = |color| StoredPicture {
        data: STANDARD.encode(jpeg(8, 6, |_, _| color)),
        ..StoredPicture::default()
    };
    let frame = |at_ms, picture| Frame { at_ms, picture };
    let media = ReportMedia {
        film: vec![
            frame(200.0, None),
            frame(400.0, Some(0)),
            frame(600.0, Some(0)),
            frame(800.0, Some(1)),
            frame(1000.0, Some(7)),
        ],
        pictures: vec![picture([0, 0, 0]), picture([90, 200, 90])],
        ..ReportMedia::default()
    };
    let video = decode(&video_of(None, Some(&media)).unwrap());
    assert_eq!(
        video.delays_ms,
        [100, 100, 100, 100, 100, 100, 100, 100, 2000]
    );
    assert_eq!(video.frames[3][0], [255; 3]);
    assert!(are_similar(video.frames[4][0], [0; 3]));
    assert!(are_similar(video.frames[8][0], [90, 200, 90]));
}

#[test]
fn without_readable_screenshots_there_is_no_video() {
    assert_eq!(video_of(None, None), None);
    assert_eq!(video_of_trace(b"no trace".to_vec()), None);
    assert_eq!(video_of_trace(trace_with_screenshots(&[])), None);
    let unreadable = vec![(10, b"no picture".to_vec()), (900, Vec::new())];
    assert_eq!(video_of_trace(trace_with_screenshots(&unreadable)), None);
}

#[test]
fn unreadable_screenshots_between_readable_ones_are_left_out() {
    let green = jpeg(8, 2, |_, _| [0, 160, 0]);
    let screenshots = [(100, green), (200, b"no picture".to_vec())];
    let video = video_of_trace(trace_with_screenshots(&screenshots)).unwrap();
    assert!(are_similar(video.still[0], [0, 160, 0]));
    assert_eq!(video.delays_ms, [100, 100, 2000]);
}

#[test]
fn screenshots_of_other_sizes_are_shown_within_the_last_ones() {
    let screenshots = [
        (100, jpeg(40, 10, |_, _| [10, 10, 10])),
        (300, jpeg(1, 1, |_, _| [120, 0, 0])),
        (500, jpeg(20, 40, |_, _| [0, 0, 120])),
    ];
    let video = video_of_trace(trace_with_screenshots(&screenshots)).unwrap();
    assert_eq!(video.size, (160, 320 + caption::HEIGHT));
    let wide = &video.frames[1];
    assert!(are_similar(wide[39 * 160 + 159], [10; 3]));
    assert_eq!(wide[40 * 160], [255; 3]);
    let small = &video.frames[3];
    assert!(are_similar(small[7 * 160 + 7], [120, 0, 0]));
    assert_eq!(small[7 * 160 + 8], [255; 3]);
}

#[test]
fn a_video_that_would_be_too_large_has_smaller_pictures() {
    let noise = |seed: u32| {
        jpeg(50, 60, move |x, y| {
            let value = (seed * 4096 + u32::from(y * 50 + x)).wrapping_mul(2_654_435_761);
            [(value >> 24) as u8, (value >> 16) as u8, (value >> 8) as u8]
        })
    };
    let encoded = [1, 2].map(|seed| STANDARD.encode(noise(seed)));
    let shot = |index: usize| Shot {
        at_ms: index as u32 * 100,
        base64: &encoded[index],
    };
    let shots = [shot(0), shot(1)];
    let whole = encode(&shots, MAX_BYTES).unwrap().unwrap();
    assert_eq!(decode(&whole).size, (400, 480 + caption::HEIGHT));
    let limit = whole.len() - 1;
    let smaller = encode(&shots, limit).unwrap().unwrap();
    assert!(smaller.len() <= limit);
    let smaller = decode(&smaller);
    assert_eq!(smaller.size, (300, 360 + caption::HEIGHT));
    assert_eq!(smaller.delays_ms, [100, LAST_MS]);
}

#[test]
fn the_last_attempt_holds_noise() {
    let scale = |side: usize| side * 3_usize.pow(ATTEMPTS - 1) / 4_usize.pow(ATTEMPTS - 1);
    let pixels = scale(MAX_SIZE.width) * (scale(MAX_SIZE.height) + caption::HEIGHT);
    let pictures = MAX_PICTURES >> (ATTEMPTS - 1);
    assert!(pictures >= 2 && pixels * (pictures + 2) < MAX_BYTES / 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_frames_of_any_load_are_its_screenshots(
        loads in proptest::collection::vec((0_u32..3000, 0_u8..6), 1..20),
    ) {
        let mut loads = loads;
        loads.sort_unstable();
        loads.dedup_by_key(|(at_ms, _)| *at_ms);
        let color = |index: u8| [index * 40, 200 - index * 40, index * 20];
        let picture = |(at_ms, index): &(u32, u8)| (*at_ms, jpeg(1, 1, |_, _| color(*index)));
        let screenshots: Vec<_> = loads.iter().map(picture).collect();
        let video = video_of_trace(trace_with_screenshots(&screenshots)).unwrap();
        let mut at_ms = 0;
        for (frame, delay_ms) in video.frames.iter().zip(&video.delays_ms) {
            let until_ms = at_ms.max(19);
            let shown = loads.iter().rfind(|(shot_ms, _)| *shot_ms <= until_ms);
            let expected = shown.map_or([255; 3], |(_, index)| color(*index));
            prop_assert!(are_similar(frame[0], expected), "{at_ms}: {:?} {expected:?}", frame[0]);
            at_ms += delay_ms;
        }
    }
}
