//! The load of a page as a video: an animated PNG (PNG Specification, Third Edition) of the
//! screenshots in the trace, or of the filmstrip if the trace is no longer stored.
//!
//! Every browser plays this format in an `img` element, and it needs no more than zlib. Pictures
//! are decoded twice, once for the palette and once for the frames, so that only one of them is in
//! memory at a time.

mod apng;
mod caption;
mod palette;
mod picture;
mod timeline;

use std::io;

use plumbline_bundle::Bundle;
use plumbline_model::media::ReportMedia;
use plumbline_trace::{Trace, TracedScreenshot};

use crate::export::ExportSource;
use apng::Apng;
use palette::{Histogram, Palette, WHITE};
use picture::{Picture, Size};

/// The largest picture, without its caption. Chromium's screenshots in a trace have at most 500 by
/// 500 pixels, of which a phone's use the height.
const MAX_SIZE: Size = Size {
    width: 400,
    height: 500,
};
/// The maximum number of pictures: seven per second of a load that takes 20 seconds.
const MAX_PICTURES: usize = 150;
/// The maximum size of the file. Pages that change completely all the time would exceed it.
const MAX_BYTES: usize = 4 << 20;
/// The number of attempts to stay within [`MAX_BYTES`], each with pictures of three quarters of the
/// width and half the number. Even noise fits into the last: 4 pictures of 95 by 118 pixels.
const ATTEMPTS: u32 = 6;
/// The time for which the last picture is shown.
const LAST_MS: u32 = 2000;
/// Later screenshots are left out; visits end much earlier.
const MAX_MS: f64 = 3_600_000.0;

/// A screenshot and the time since the navigation from which it is shown.
#[derive(Debug, Clone, Copy)]
struct Shot<'a> {
    at_ms: u32,
    /// A JPEG file in Base64.
    base64: &'a str,
}

/// The limits of a video.
#[derive(Debug, Clone, Copy)]
struct Limits {
    size: Size,
    pictures: usize,
    bytes: usize,
}

/// Returns the video of a visit, or `None` if there is no readable screenshot.
pub(crate) fn render(source: &ExportSource) -> io::Result<Option<Vec<u8>>> {
    let traced = source.bundle.map(traced_screenshots).unwrap_or_default();
    let mut shots: Vec<Shot> = traced
        .iter()
        .filter_map(|(at_ms, screenshot)| Shot::new(*at_ms, screenshot.base64()))
        .collect();
    if shots.is_empty() {
        shots = source.media.map(film_shots).unwrap_or_default();
    }
    encode(&shots, MAX_BYTES)
}

/// Returns the width and height of the video of pictures of this size.
pub(crate) fn size(width_px: u32, height_px: u32) -> (u32, u32) {
    let size = Size {
        width: width_px as usize,
        height: height_px as usize,
    };
    let size = size.within(MAX_SIZE);
    (size.width as u32, (size.height + caption::HEIGHT) as u32)
}

impl<'a> Shot<'a> {
    fn new(at_ms: f64, base64: &'a str) -> Option<Self> {
        (0.0..=MAX_MS).contains(&at_ms).then(|| Self {
            at_ms: at_ms.round() as u32,
            base64,
        })
    }

    fn picture(&self) -> Option<Picture> {
        Picture::decode(self.base64)
    }
}

/// Returns the screenshots in the trace of a bundle with their times since the navigation.
fn traced_screenshots(bundle: &Bundle) -> Vec<(f64, TracedScreenshot)> {
    let Ok(trace) = Trace::read(&bundle.trace) else {
        return Vec::new();
    };
    let times: Vec<f64> = trace
        .screenshots
        .iter()
        .map(|screenshot| trace.since_origin_ms(screenshot.ts_us))
        .collect();
    times.into_iter().zip(trace.screenshots).collect()
}

/// Returns the pictures of the filmstrip, each from the first frame that shows it.
fn film_shots(media: &ReportMedia) -> Vec<Shot<'_>> {
    let mut shots = Vec::new();
    let mut shown = None;
    for frame in &media.film {
        let index = frame.picture.filter(|_| frame.picture != shown);
        let Some(picture) = index.and_then(|index| media.pictures.get(index)) else {
            continue;
        };
        shown = frame.picture;
        shots.extend(Shot::new(frame.at_ms, &picture.data));
    }
    shots
}

/// Returns the video of screenshots, with pictures as large as the maximum size of the file allows.
fn encode(shots: &[Shot], max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    for attempt in 0..ATTEMPTS {
        let shorter = |pixels: usize| pixels * 3_usize.pow(attempt) / 4_usize.pow(attempt);
        let limits = Limits {
            size: Size {
                width: shorter(MAX_SIZE.width),
                height: shorter(MAX_SIZE.height),
            },
            pictures: MAX_PICTURES >> attempt,
            bytes: max_bytes,
        };
        match encode_within(shots, limits)? {
            Encoded::Video(video) => return Ok(Some(video)),
            Encoded::TooLarge => {}
            Encoded::NoPicture => break,
        }
    }
    Ok(None)
}

enum Encoded {
    Video(Vec<u8>),
    TooLarge,
    NoPicture,
}

fn encode_within(shots: &[Shot], limits: Limits) -> io::Result<Encoded> {
    let times_ms: Vec<u32> = shots.iter().map(|shot| shot.at_ms).collect();
    let kept = timeline::thinned(&times_ms, limits.pictures);
    let shots: Vec<Shot> = kept.into_iter().map(|index| shots[index]).collect();
    let Some(last) = shots.iter().rev().find_map(Shot::picture) else {
        return Ok(Encoded::NoPicture);
    };
    let size = last.size().within(limits.size);
    let mut histogram = Histogram::default();
    for picture in shots.iter().filter_map(Shot::picture) {
        picture.fitted(size).for_each(|pixel| histogram.add(pixel));
    }
    let palette = histogram.palette();
    let mut canvas = Canvas::new(size);
    canvas.show(&last, &palette);
    let times_ms: Vec<u32> = shots.iter().map(|shot| shot.at_ms).collect();
    let moments = timeline::moments(&times_ms);
    let end_ms = moments.last().map_or(0, |moment| moment.at_ms);
    canvas.caption(end_ms);
    let mut video = Apng::new(canvas.whole(), palette.colors(), &canvas.indexes)?;
    let mut canvas = Canvas::new(size);
    let mut shown = None;
    for moment in moments {
        if moment.shot != shown {
            shown = moment.shot;
            if let Some(picture) = shown.and_then(|index| shots[index].picture()) {
                canvas.show(&picture, &palette);
            }
        }
        canvas.caption(moment.at_ms);
        video.show(moment.at_ms, &canvas.indexes)?;
        if video.bytes_so_far() > limits.bytes {
            return Ok(Encoded::TooLarge);
        }
    }
    let video = video.finish(end_ms + LAST_MS);
    Ok(if video.len() > limits.bytes {
        Encoded::TooLarge
    } else {
        Encoded::Video(video)
    })
}

/// A frame with its caption, in colours of the palette.
struct Canvas {
    picture: Size,
    /// One byte for each pixel, row after row.
    indexes: Vec<u8>,
}

impl Canvas {
    /// Returns a frame without a picture, as a page before its first paint.
    fn new(picture: Size) -> Self {
        Self {
            picture,
            indexes: vec![WHITE; picture.width * (picture.height + caption::HEIGHT)],
        }
    }

    fn whole(&self) -> Size {
        Size {
            height: self.picture.height + caption::HEIGHT,
            ..self.picture
        }
    }

    /// Draws a picture from the upper left corner, and white where it is smaller.
    fn show(&mut self, picture: &Picture, palette: &Palette) {
        let fitted = picture.fitted(self.picture);
        let width = fitted.size().width;
        let mut pixels = fitted.map(|pixel| palette.index(pixel));
        for row in self
            .indexes
            .chunks_mut(self.picture.width)
            .take(self.picture.height)
        {
            row.fill(WHITE);
            for (place, index) in row.iter_mut().take(width).zip(&mut pixels) {
                *place = index;
            }
        }
    }

    /// Draws the time below the picture.
    fn caption(&mut self, at_ms: u32) {
        let start = self.picture.width * self.picture.height;
        caption::draw(&mut self.indexes[start..], self.picture.width, at_ms);
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
