//! Pictures for tests.

pub(crate) use super::lossless::testing::{photograph, stripes};
use super::{Picture, Pixels};

/// Returns a picture with soft and hard edges.
pub(super) fn picture(width: usize, height: usize) -> Picture {
    let rgb = (0..width * height).flat_map(|at| {
        let (x, y) = (at % width, at / width);
        let is_inside = x > width / 4 && x < width / 2 && y > height / 4;
        let wave = (128.0 + 100.0 * (x as f32 / 9.0).sin() * (y as f32 / 7.0).cos()) as u8;
        [
            if is_inside { 220 } else { wave },
            (x * 255 / width) as u8,
            (y * 255 / height) as u8,
        ]
    });
    Picture {
        pixels: Pixels::new(width, height, rgb.collect()).unwrap(),
        orientation: 1,
        profile: None,
    }
}

/// Returns a JPEG with a width and a quality.
pub(crate) fn jpeg(width: usize, quality: u8) -> Vec<u8> {
    picture(width, width / 2).encode(quality)
}
