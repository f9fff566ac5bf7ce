//! The pictures of a video.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The largest side of a picture; those of traces have at most 500 pixels.
const MAX_SIDE: usize = 2048;
/// The maximum size of a picture in Base64; those of traces are far smaller.
const MAX_CHARS: usize = 2 << 20;

/// A width and a height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Size {
    /// Returns the size in proportion that is no larger than another.
    pub(super) fn within(self, max: Self) -> Self {
        let Self { width, height } = self;
        if width <= max.width && height <= max.height {
            return self;
        }
        let scaled = |side: usize, by: usize, of: usize| ((side * by + of / 2) / of).max(1);
        if width * max.height >= height * max.width {
            Self {
                width: max.width,
                height: scaled(height, max.width, width).min(max.height),
            }
        } else {
            Self {
                width: scaled(width, max.height, height).min(max.width),
                height: max.height,
            }
        }
    }
}

/// A decoded screenshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    size: Size,
    /// Three bytes for each pixel, row after row.
    rgb: Vec<u8>,
}

impl Picture {
    /// Decodes a JPEG file in Base64; returns `None` if it is invalid or too large.
    pub(super) fn decode(base64: &str) -> Option<Self> {
        if base64.len() > MAX_CHARS {
            return None;
        }
        let jpeg = STANDARD_PAD_INDIFFERENT.decode(base64).ok()?;
        let options = DecoderOptions::default()
            .jpeg_set_out_colorspace(ColorSpace::RGB)
            .set_max_width(MAX_SIDE)
            .set_max_height(MAX_SIDE);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&jpeg), options);
        let rgb = decoder.decode().ok()?;
        let (width, height) = decoder.dimensions()?;
        let is_whole = width > 0 && height > 0 && rgb.len() == 3 * width * height;
        is_whole.then_some(Self {
            size: Size { width, height },
            rgb,
        })
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Returns the pixels of the picture within another size, in proportion. Each is the mean of
    /// the area that it covers.
    pub(super) fn fitted(&self, max: Size) -> Pixels<'_> {
        let size = self.size.within(max);
        Pixels {
            picture: self,
            size,
            columns: spans(self.size.width, size.width),
            rows: spans(self.size.height, size.height),
            at: 0,
        }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let start = 3 * (y * self.size.width + x);
        [self.rgb[start], self.rgb[start + 1], self.rgb[start + 2]]
    }
}

/// The pixels of a picture that was made smaller, row after row.
pub(super) struct Pixels<'a> {
    picture: &'a Picture,
    size: Size,
    columns: Vec<Span>,
    rows: Vec<Span>,
    at: usize,
}

impl Pixels<'_> {
    pub(super) fn size(&self) -> Size {
        self.size
    }
}

impl Iterator for Pixels<'_> {
    type Item = [u8; 3];

    fn next(&mut self) -> Option<[u8; 3]> {
        let (x, y) = (self.at % self.size.width, self.at / self.size.width);
        let rows = self.rows.get(y)?;
        self.at += 1;
        if self.size == self.picture.size {
            return Some(self.picture.at(x, y));
        }
        let (mut sums, mut area) = ([0_u64; 3], 0);
        for (row, row_share) in rows {
            for (column, column_share) in &self.columns[x] {
                let share = row_share * column_share;
                area += share;
                for (sum, value) in sums.iter_mut().zip(self.picture.at(*column, *row)) {
                    *sum += share * u64::from(value);
                }
            }
        }
        Some(sums.map(|sum| ((sum + area / 2) / area) as u8))
    }
}

/// The rows or columns that a new one covers, each with its share.
type Span = Vec<(usize, u64)>;

/// Returns for each of `new` equal parts of `old` rows or columns those that it covers.
fn spans(old: usize, new: usize) -> Vec<Span> {
    // In units of which an old part has `new`, and a new part `old`.
    let span = |index: usize| {
        let (start, end) = (index * old, (index + 1) * old);
        let share = |part: usize| end.min((part + 1) * new) - start.max(part * new);
        (start / new..end.div_ceil(new))
            .map(|part| (part, share(part) as u64))
            .collect()
    };
    (0..new).map(span).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_shrink_in_proportion_and_never_grow() {
        let size = |width, height| Size { width, height };
        let max = size(400, 500);
        assert_eq!(size(231, 500).within(max), size(231, 500));
        assert_eq!(size(500, 312).within(max), size(400, 250));
        assert_eq!(size(500, 1000).within(max), size(250, 500));
        assert_eq!(size(2048, 1).within(max), size(400, 1));
        assert_eq!(size(1, 2048).within(max), size(1, 500));
    }

    #[test]
    fn a_pixel_is_the_mean_of_its_area() {
        let picture = Picture {
            size: Size {
                width: 3,
                height: 1,
            },
            rgb: vec![0, 0, 0, 30, 60, 90, 90, 90, 90],
        };
        let max = Size {
            width: 2,
            height: 5,
        };
        let pixels: Vec<_> = picture.fitted(max).collect();
        assert_eq!(pixels, [[10, 20, 30], [70, 80, 90]]);
        assert_eq!(
            picture
                .fitted(Size {
                    width: 9,
                    height: 9
                })
                .count(),
            3
        );
    }

    proptest! {
        #[test]
        fn parts_cover_everything_once(old in 1_usize..600, new in 1_usize..600) {
            let new = new.min(old);
            let mut covered = vec![0; old];
            for span in spans(old, new) {
                prop_assert_eq!(span.iter().map(|(_, share)| share).sum::<u64>(), old as u64);
                for (part, share) in span {
                    covered[part] += share;
                }
            }
            prop_assert!(covered.iter().all(|shares| *shares == new as u64));
        }

        #[test]
        fn garbage_is_no_picture(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let jpeg = [&[0xff, 0xd8, 0xff][..], &bytes].concat();
            prop_assert_eq!(Picture::decode(&STANDARD_PAD_INDIFFERENT.encode(jpeg)), None);
        }
    }
}
