//! Writes animated PNG files (PNG Specification, Third Edition) with a palette.
//!
//! A viewer that shows no animation shows the last frame: the picture of the file itself, which is
//! no part of the animation. After the first frame, each has only the rectangle that changed, in
//! which unchanged pixels are transparent.

use std::io::{self, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::palette::TRANSPARENT;
use super::picture::Size;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Eight bits for each pixel, which are an index into a palette; the only methods of compression
/// and filtering; not interlaced.
const FORMAT: [u8; 5] = [8, 3, 0, 0, 0];
/// The filter of a row that is stored as it is, which suits indexes of colours best.
const NO_FILTER: u8 = 0;
/// The frame stays until the next is drawn.
const KEEP: u8 = 0;
/// The frame replaces the previous one in its rectangle.
const REPLACE: u8 = 0;
/// Transparent pixels of the frame show the previous one.
const DRAW_OVER: u8 = 1;
/// The unit of delays: milliseconds.
const DELAYS_PER_S: u16 = 1000;

/// An unfinished file.
pub(super) struct Apng {
    bytes: Vec<u8>,
    size: Size,
    /// The previous frame: an index for each pixel. Empty before the first frame.
    canvas: Vec<u8>,
    /// The frame whose end is not known yet.
    pending: Option<PendingFrame>,
    frames: u32,
    /// The number of the next chunk of the animation.
    sequence: u32,
    /// The position of the chunk that has the number of frames.
    control_at: usize,
}

struct PendingFrame {
    at_ms: u32,
    area: Area,
    blend: u8,
    /// The compressed pixels.
    data: Vec<u8>,
}

/// A rectangle of a frame.
#[derive(Debug, Clone, Copy)]
struct Area {
    x: usize,
    y: usize,
    size: Size,
}

impl Apng {
    /// Begins a file of at most 256 colours, with the picture for viewers without animation.
    pub(super) fn new(size: Size, colors: &[[u8; 3]], still: &[u8]) -> io::Result<Self> {
        let mut bytes = SIGNATURE.to_vec();
        let [width, height] = [size.width, size.height].map(be_bytes);
        write_chunk(&mut bytes, b"IHDR", &[&width, &height, &FORMAT]);
        let control_at = bytes.len();
        write_control(&mut bytes, 0);
        write_chunk(&mut bytes, b"PLTE", &[colors.as_flattened()]);
        // The opacity of the first colour; the others are opaque.
        write_chunk(&mut bytes, b"tRNS", &[&[0]]);
        let data = compress(still.chunks(size.width))?;
        write_chunk(&mut bytes, b"IDAT", &[&data]);
        Ok(Self {
            bytes,
            size,
            canvas: Vec::new(),
            pending: None,
            frames: 0,
            sequence: 0,
            control_at,
        })
    }

    /// The number of bytes written.
    pub(super) fn bytes_so_far(&self) -> usize {
        self.bytes.len()
    }

    /// Shows a frame from a time on, which is later than that of the previous frame. A frame that
    /// changes nothing prolongs the previous one.
    pub(super) fn show(&mut self, at_ms: u32, indexes: &[u8]) -> io::Result<()> {
        let (area, blend, data) = if self.canvas.is_empty() {
            let area = Area {
                x: 0,
                y: 0,
                size: self.size,
            };
            (area, REPLACE, compress(indexes.chunks(self.size.width))?)
        } else {
            let Some(area) = self.changed_area(indexes) else {
                return Ok(());
            };
            (area, DRAW_OVER, compress(self.changes(indexes, area))?)
        };
        self.end_frame(at_ms);
        self.pending = Some(PendingFrame {
            at_ms,
            area,
            blend,
            data,
        });
        self.canvas.clear();
        self.canvas.extend(indexes);
        Ok(())
    }

    /// Ends the last frame and the file.
    pub(super) fn finish(mut self, end_ms: u32) -> Vec<u8> {
        self.end_frame(end_ms);
        let mut control = Vec::new();
        write_control(&mut control, self.frames);
        self.bytes[self.control_at..self.control_at + control.len()].copy_from_slice(&control);
        write_chunk(&mut self.bytes, b"IEND", &[]);
        self.bytes
    }

    /// Returns the smallest rectangle with all changes; `None` if there are none.
    fn changed_area(&self, indexes: &[u8]) -> Option<Area> {
        let width = self.size.width;
        let rows = self.canvas.chunks(width).zip(indexes.chunks(width));
        let mut changed_rows = rows.enumerate().filter(|(_, (old, new))| old != new);
        let (top, first) = changed_rows.next()?;
        let (mut left, mut right, mut bottom) = (width, 0, top);
        for (row, (old, new)) in std::iter::once((top, first)).chain(changed_rows) {
            let is_changed = |(old, new): (&u8, &u8)| old != new;
            let mut pixels = old.iter().zip(new);
            left = pixels
                .clone()
                .position(is_changed)
                .map_or(left, |x| x.min(left));
            right = pixels.rposition(is_changed).map_or(right, |x| x.max(right));
            bottom = row;
        }
        Some(Area {
            x: left,
            y: top,
            size: Size {
                width: right + 1 - left,
                height: bottom + 1 - top,
            },
        })
    }

    /// Returns the rows of a rectangle, in which pixels that did not change are transparent.
    fn changes<'a>(
        &'a self,
        indexes: &'a [u8],
        area: Area,
    ) -> impl Iterator<Item = Vec<u8>> + use<'a> {
        let width = self.size.width;
        (area.y..area.y + area.size.height).map(move |row| {
            let start = row * width + area.x;
            let range = start..start + area.size.width;
            let pixels = self.canvas[range.clone()].iter().zip(&indexes[range]);
            pixels
                .map(|(old, new)| if old == new { TRANSPARENT } else { *new })
                .collect()
        })
    }

    /// Writes the pending frame, which is shown until a time.
    fn end_frame(&mut self, until_ms: u32) {
        let Some(frame) = self.pending.take() else {
            return;
        };
        let delay_ms = until_ms.saturating_sub(frame.at_ms);
        let delay_ms = u16::try_from(delay_ms).unwrap_or(u16::MAX);
        let PendingFrame { area, .. } = frame;
        let sides = [area.size.width, area.size.height, area.x, area.y].map(be_bytes);
        let parts: [&[u8]; 5] = [
            &self.next_sequence(),
            sides.as_flattened(),
            &delay_ms.to_be_bytes(),
            &DELAYS_PER_S.to_be_bytes(),
            &[KEEP, frame.blend],
        ];
        write_chunk(&mut self.bytes, b"fcTL", &parts);
        let sequence = self.next_sequence();
        write_chunk(&mut self.bytes, b"fdAT", &[&sequence, &frame.data]);
        self.frames += 1;
    }

    fn next_sequence(&mut self) -> [u8; 4] {
        let sequence = self.sequence;
        self.sequence += 1;
        sequence.to_be_bytes()
    }
}

/// Returns a length in pixels as it is stored; a PNG has at most 2^31 - 1.
fn be_bytes(pixels: usize) -> [u8; 4] {
    u32::try_from(pixels).unwrap_or(u32::MAX).to_be_bytes()
}

/// Writes the number of frames, which are repeated without end.
fn write_control(bytes: &mut Vec<u8>, frames: u32) {
    write_chunk(bytes, b"acTL", &[&frames.to_be_bytes(), &[0; 4]]);
}

fn write_chunk(bytes: &mut Vec<u8>, kind: &[u8; 4], parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    bytes.extend(be_bytes(length));
    let start = bytes.len();
    bytes.extend(kind);
    parts.iter().for_each(|part| bytes.extend(*part));
    let mut crc = Crc::new();
    crc.update(&bytes[start..]);
    bytes.extend(crc.sum().to_be_bytes());
}

/// Compresses rows of pixels.
fn compress(rows: impl Iterator<Item = impl AsRef<[u8]>>) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in rows {
        encoder.write_all(&[NO_FILTER])?;
        encoder.write_all(row.as_ref())?;
    }
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Animation, decode};
    use super::*;

    const COLORS: [[u8; 3]; 5] = [[0; 3], [255; 3], [32; 3], [9, 8, 7], [200, 0, 100]];

    fn rgb(indexes: &[u8]) -> Vec<[u8; 3]> {
        indexes
            .iter()
            .map(|index| COLORS[usize::from(*index)])
            .collect()
    }

    fn encode(size: Size, frames: &[(u32, Vec<u8>)], end_ms: u32) -> Animation {
        let still = &frames.last().unwrap().1;
        let mut apng = Apng::new(size, &COLORS, still).unwrap();
        for (at_ms, indexes) in frames {
            apng.show(*at_ms, indexes).unwrap();
        }
        decode(&apng.finish(end_ms))
    }

    #[test]
    fn a_frame_has_only_the_rectangle_that_changed() {
        let size = Size {
            width: 4,
            height: 3,
        };
        let first = vec![1; 12];
        let mut second = first.clone();
        second[5] = 2;
        second[7] = 3;
        let decoded = encode(
            size,
            &[(0, first.clone()), (40, first), (100, second.clone())],
            2100,
        );
        assert_eq!(
            decoded.delays_ms,
            [100, 2000],
            "unchanged frames are merged"
        );
        assert_eq!(decoded.areas, [[0, 0, 4, 3], [1, 1, 3, 1]]);
        assert_eq!(decoded.frames[1], rgb(&second));
        assert_eq!(decoded.still, rgb(&second));
    }

    proptest! {
        #[test]
        fn a_reader_decodes_the_same_frames(
            (width, height, frames) in (1_usize..9, 1_usize..9).prop_flat_map(|(width, height)| {
                let frame = proptest::collection::vec(1_u8..5, width * height);
                let frames = proptest::collection::vec((1_u32..70_000, frame), 1..6);
                (Just(width), Just(height), frames)
            }),
        ) {
            let (mut at_ms, mut expected): (u32, Vec<(u32, Vec<u8>)>) = (0, Vec::new());
            let mut timed = Vec::new();
            for (delay_ms, frame) in frames {
                timed.push((at_ms, frame.clone()));
                match expected.last_mut() {
                    Some((length_ms, last)) if *last == frame => *length_ms += delay_ms,
                    _ => expected.push((delay_ms, frame)),
                }
                at_ms += delay_ms;
            }
            let decoded = encode(Size { width, height }, &timed, at_ms);
            prop_assert_eq!(decoded.size, (width, height));
            prop_assert_eq!(decoded.still, rgb(&timed.last().unwrap().1));
            let frames: Vec<_> = expected.iter().map(|(_, frame)| rgb(frame)).collect();
            prop_assert_eq!(decoded.frames, frames);
            let delays_ms: Vec<u32> = expected.iter().map(|(delay_ms, _)| (*delay_ms).min(65_535)).collect();
            prop_assert_eq!(decoded.delays_ms, delays_ms);
        }
    }
}
