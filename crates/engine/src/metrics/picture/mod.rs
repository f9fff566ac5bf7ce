//! A decoder for the screenshots in a trace: only baseline JPEG (ITU-T T.81), as Chromium writes
//! it.
//!
//! No library is used because Speed Index compares histograms of exact pixel values, and decoders
//! are free to round and to interpolate colours differently. With a good general decoder the result
//! differed from Lighthouse's by up to 1.7 %. This decoder rounds like jpeg-js 0.4.4, which
//! speedline-core uses: the same integer transform, colours repeated rather than interpolated,
//! conversion truncated rather than rounded.

mod entropy;
mod transform;

use entropy::{Bits, HuffmanTable};
use transform::inverse_dct;

/// The maximum number of pixels; pictures in traces have at most 500 by 500.
const MAX_PIXELS: usize = 1 << 24;

/// The index of each coefficient of a block, in the order in which they are written (T.81, figure
/// A.6).
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

pub(crate) struct DecodedPicture {
    width: usize,
    height: usize,
    planes: Vec<Plane>,
}

/// The samples of one colour component, padded to whole blocks.
struct Plane {
    id: u8,
    /// The number of blocks of this component in each unit of the picture, across and down, and the
    /// maximum over all components.
    across: usize,
    down: usize,
    max_across: usize,
    max_down: usize,
    quantization: usize,
    stride: usize,
    samples: Vec<u8>,
}

/// The tables that the headers have defined so far.
#[derive(Default)]
struct Tables {
    quantization: [Option<[i64; 64]>; 4],
    dc: [Option<HuffmanTable>; 4],
    ac: [Option<HuffmanTable>; 4],
    restart_interval: usize,
}

impl DecodedPicture {
    /// Decodes a picture; returns `None` unless it is a complete baseline JPEG in grey or YCbCr.
    pub(crate) fn decode(jpeg: &[u8]) -> Option<Self> {
        let mut rest = jpeg.strip_prefix(&[0xff, 0xd8])?;
        let mut tables = Tables::default();
        let mut picture = None;
        loop {
            let (marker, after) = next_marker(rest)?;
            let length = usize::from(u16::from_be_bytes(*after.first_chunk()?));
            let segment = after.get(2..length)?;
            rest = after.get(length..)?;
            match marker {
                0xdb => tables.read_quantization(segment)?,
                0xc4 => tables.read_huffman(segment)?,
                0xdd => {
                    tables.restart_interval =
                        usize::from(u16::from_be_bytes(*segment.first_chunk()?));
                }
                0xc0 | 0xc1 => picture = Some(Self::read_frame(segment)?),
                0xda => {
                    let mut picture = picture?;
                    picture.read_scan(&tables, segment, rest)?;
                    return Some(picture);
                }
                // Application data and comments.
                0xe0..=0xef | 0xfe => {}
                _ => return None,
            }
        }
    }

    fn read_frame(segment: &[u8]) -> Option<Self> {
        let [8, h1, h0, w1, w0, count, specs @ ..] = segment else {
            return None;
        };
        let height = usize::from(u16::from_be_bytes([*h1, *h0]));
        let width = usize::from(u16::from_be_bytes([*w1, *w0]));
        let (specs, []) = specs.as_chunks::<3>() else {
            return None;
        };
        let readable = width > 0 && height > 0 && width * height <= MAX_PIXELS;
        if !readable || specs.len() != usize::from(*count) || ![1, 3].contains(&specs.len()) {
            return None;
        }
        let factors = |spec: &[u8; 3]| (usize::from(spec[1] >> 4), usize::from(spec[1] & 15));
        if !specs
            .iter()
            .map(factors)
            .all(|(across, down)| (1..=4).contains(&across) && (1..=4).contains(&down))
        {
            return None;
        }
        // A lone component is written block by block, whatever its factors say (T.81, A.2.2).
        let factors = |spec| {
            if specs.len() == 1 {
                (1, 1)
            } else {
                factors(spec)
            }
        };
        let max_across = specs.iter().map(|spec| factors(spec).0).max()?;
        let max_down = specs.iter().map(|spec| factors(spec).1).max()?;
        let planes = specs.iter().map(|spec| {
            let (across, down) = factors(spec);
            let stride = width.div_ceil(8 * max_across) * across * 8;
            let rows = height.div_ceil(8 * max_down) * down * 8;
            Plane {
                id: spec[0],
                across,
                down,
                max_across,
                max_down,
                quantization: usize::from(spec[2]),
                stride,
                samples: vec![0; stride * rows],
            }
        });
        Some(Self {
            width,
            height,
            planes: planes.collect(),
        })
    }

    fn read_scan(&mut self, tables: &Tables, header: &[u8], data: &[u8]) -> Option<()> {
        let (count, header) = header.split_first()?;
        let selectors = header.get(..2 * usize::from(*count))?;
        let (selectors, []) = selectors.as_chunks::<2>() else {
            return None;
        };
        let in_order = selectors
            .iter()
            .map(|[id, _]| *id)
            .eq(self.planes.iter().map(|p| p.id));
        if !in_order {
            return None;
        }
        let codes = selectors.iter().map(|[_, tables_of]| {
            let dc = tables.dc.get(usize::from(tables_of >> 4))?.as_ref()?;
            let ac = tables.ac.get(usize::from(tables_of & 15))?.as_ref()?;
            Some((dc, ac))
        });
        let codes: Vec<_> = codes.collect::<Option<_>>()?;
        let quantization = |plane: &Plane| *tables.quantization.get(plane.quantization)?;
        let steps: Vec<_> = self
            .planes
            .iter()
            .map(quantization)
            .collect::<Option<_>>()?;

        let first = self.planes.first()?;
        let units_across = self.width.div_ceil(8 * first.max_across);
        let units_down = self.height.div_ceil(8 * first.max_down);
        let mut bits = Bits::new(data);
        let mut last_dc = vec![0_i64; self.planes.len()];
        for unit in 0..units_across * units_down {
            if tables.restart_interval > 0 && unit > 0 && unit % tables.restart_interval == 0 {
                bits.restart()?;
                last_dc.fill(0);
            }
            let (unit_down, unit_across) = (unit / units_across, unit % units_across);
            for (index, plane) in self.planes.iter_mut().enumerate() {
                for block in 0..plane.across * plane.down {
                    let row = unit_down * plane.down + block / plane.across;
                    let column = unit_across * plane.across + block % plane.across;
                    let coefficients =
                        bits.block(codes[index], &mut last_dc[index], &steps[index])?;
                    plane.put(row, column, &inverse_dct(coefficients));
                }
            }
        }
        Some(())
    }

    /// Calls the function with red, green and blue of each pixel.
    pub(crate) fn for_each_pixel(&self, mut call: impl FnMut([u8; 3])) {
        for y in 0..self.height {
            for x in 0..self.width {
                match self.planes.as_slice() {
                    [luma, cb, cr] => call(rgb(luma.at(x, y), cb.at(x, y), cr.at(x, y))),
                    [grey, ..] => call([grey.at(x, y); 3]),
                    [] => {}
                }
            }
        }
    }
}

/// Converts a colour by the formula of JFIF. The cast truncates the fraction and saturates to a
/// byte.
fn rgb(luma: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (luma, cb, cr) = (
        f64::from(luma),
        f64::from(cb) - 128.0,
        f64::from(cr) - 128.0,
    );
    [
        (luma + 1.402 * cr) as u8,
        (luma - 0.344_136_3 * cb - 0.714_136_36 * cr) as u8,
        (luma + 1.772 * cb) as u8,
    ]
}

impl Plane {
    fn put(&mut self, row: usize, column: usize, block: &[u8; 64]) {
        let start = row * 8 * self.stride + column * 8;
        for (line, samples) in block.as_chunks::<8>().0.iter().enumerate() {
            let at = start + line * self.stride;
            self.samples[at..at + 8].copy_from_slice(samples);
        }
    }

    /// Returns the sample for a pixel of the picture; subsampled components are repeated.
    fn at(&self, x: usize, y: usize) -> u8 {
        let (x, y) = (
            x * self.across / self.max_across,
            y * self.down / self.max_down,
        );
        self.samples[y * self.stride + x]
    }
}

impl Tables {
    fn read_quantization(&mut self, mut segment: &[u8]) -> Option<()> {
        while let [0..=3, rest @ ..] = segment {
            let table = &mut self.quantization[usize::from(segment[0])];
            let (steps, after) = rest.split_first_chunk::<64>()?;
            let mut in_place = [0; 64];
            for (place, step) in ZIGZAG.iter().zip(steps) {
                in_place[*place] = i64::from(*step);
            }
            *table = Some(in_place);
            segment = after;
        }
        segment.is_empty().then_some(())
    }

    fn read_huffman(&mut self, mut segment: &[u8]) -> Option<()> {
        while let [class_and_id, rest @ ..] = segment {
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let total = counts.iter().map(|count| usize::from(*count)).sum();
            let (values, after) = rest.split_at_checked(total)?;
            let tables = match class_and_id >> 4 {
                0 => &mut self.dc,
                1 => &mut self.ac,
                _ => return None,
            };
            *tables.get_mut(usize::from(class_and_id & 15))? =
                Some(HuffmanTable::new(counts, values));
            segment = after;
        }
        Some(())
    }
}

/// Returns the next marker, which may be preceded by any number of fill bytes, and the rest.
fn next_marker(data: &[u8]) -> Option<(u8, &[u8])> {
    let (0xff, mut rest) = data.split_first().map(|(first, rest)| (*first, rest))? else {
        return None;
    };
    while let [0xff, after @ ..] = rest {
        rest = after;
    }
    let (marker, after) = rest.split_first()?;
    Some((*marker, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pixels(jpeg: &[u8]) -> Option<Vec<[u8; 3]>> {
        let mut pixels = Vec::new();
        DecodedPicture::decode(jpeg)?.for_each_pixel(|pixel| pixels.push(pixel));
        Some(pixels)
    }

    /// A grey picture of one block whose code words are all one bit long: DC difference class, then
    /// end of block.
    fn one_grey_block(dc_class: u8, data: u8) -> Vec<u8> {
        let mut jpeg = vec![0xff, 0xd8];
        jpeg.extend([0xff, 0xdb, 0, 67, 0]);
        jpeg.extend([8; 64]);
        jpeg.extend([0xff, 0xc0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0]);
        for (table, value) in [(0x00, dc_class), (0x10, 0)] {
            jpeg.extend([0xff, 0xc4, 0, 20, table, 1]);
            jpeg.extend([0; 15]);
            jpeg.push(value);
        }
        jpeg.extend([0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, data, 0xff, 0xd9]);
        jpeg
    }

    #[test]
    fn a_block_without_detail_is_one_even_grey() {
        assert_eq!(pixels(&one_grey_block(0, 0)), Some(vec![[128; 3]; 64]));
    }

    #[test]
    fn a_dc_difference_brightens_the_whole_block() {
        // Class 3, value 7 (bits 0 111), end of block (0): 7 steps of 8, an eighth of which is each
        // pixel's share.
        assert_eq!(
            pixels(&one_grey_block(3, 0b0111_0111)),
            Some(vec![[135; 3]; 64])
        );
        // Class 3, bits 000 mean -7.
        assert_eq!(
            pixels(&one_grey_block(3, 0b0000_0111)),
            Some(vec![[121; 3]; 64])
        );
    }

    #[test]
    fn colours_are_cut_to_bytes_not_rounded() {
        assert_eq!(rgb(255, 128, 128), [255; 3]);
        assert_eq!(rgb(76, 85, 255), [254, 0, 0]);
    }

    #[test]
    fn a_truncated_picture_is_rejected() {
        let whole = one_grey_block(3, 0b0111_0111);
        for end in 0..whole.len() - 3 {
            assert_eq!(pixels(&whole[..end]), None, "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            keep in 0_usize..160,
        ) {
            let mut jpeg = one_grey_block(3, 0);
            jpeg.truncate(keep);
            jpeg.append(&mut bytes);
            pixels(&jpeg);
        }
    }
}
