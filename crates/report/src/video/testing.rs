//! A reader of animated PNG files for tests, which shares no code with the writer.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// A decoded animation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Animation {
    pub(super) size: (usize, usize),
    /// The picture for viewers without animation.
    pub(super) still: Vec<[u8; 3]>,
    /// The frames as they are seen.
    pub(super) frames: Vec<Vec<[u8; 3]>>,
    pub(super) delays_ms: Vec<u32>,
    /// The rectangle of each frame: left, top, width and height.
    pub(super) areas: Vec<[usize; 4]>,
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The checksum of PNG, bit by bit (Annex D of the specification).
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                0xedb8_8320 ^ crc >> 1
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

/// Splits a file into the types and contents of its chunks.
fn chunks(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let length = number(&rest[..4]);
        let (chunk, after) = rest[4..].split_at(length + 8);
        let (content, checksum) = chunk.split_at(length + 4);
        assert_eq!(crc(content) as usize, number(checksum));
        chunks.push(content.split_at(4));
        rest = after;
    }
    chunks
}

/// Returns the colour indexes of a rectangle.
fn indexes(compressed: &[u8], width: usize, height: usize) -> Vec<u8> {
    let mut rows = Vec::new();
    ZlibDecoder::new(compressed).read_to_end(&mut rows).unwrap();
    assert_eq!(rows.len(), (width + 1) * height);
    let rows = rows.chunks(width + 1);
    rows.flat_map(|row| {
        assert_eq!(row[0], 0, "a row is not filtered");
        &row[1..]
    })
    .copied()
    .collect()
}

/// Decodes a file; panics if it is not an animated PNG with a palette.
pub(super) fn decode(file: &[u8]) -> Animation {
    let chunks = chunks(file);
    let types: Vec<&[u8]> = chunks.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        types[..5],
        [&b"IHDR"[..], b"acTL", b"PLTE", b"tRNS", b"IDAT"]
    );
    assert_eq!(types.last(), Some(&&b"IEND"[..]));
    let header = chunks[0].1;
    let (width, height) = (number(&header[..4]), number(&header[4..8]));
    assert_eq!(header[8..], [8, 3, 0, 0, 0]);
    let colors = chunks[2].1.as_chunks::<3>().0;
    assert_eq!(chunks[3].1, [0]);
    let opaque = |index: &u8| {
        assert_ne!(*index, 0, "a pixel is transparent");
        colors[usize::from(*index)]
    };
    let still = indexes(chunks[4].1, width, height);
    let mut animation = Animation {
        size: (width, height),
        still: still.iter().map(opaque).collect(),
        frames: Vec::new(),
        delays_ms: Vec::new(),
        areas: Vec::new(),
    };
    let (frame_chunks, []) = chunks[5..chunks.len() - 1].as_chunks::<2>() else {
        panic!("a frame has two chunks");
    };
    for (index, [(control_type, control), (data_type, data)]) in frame_chunks.iter().enumerate() {
        assert_eq!((*control_type, *data_type), (&b"fcTL"[..], &b"fdAT"[..]));
        assert_eq!(number(&control[..4]), 2 * index);
        assert_eq!(number(&data[..4]), 2 * index + 1);
        let [w, h, x, y] = [4, 8, 12, 16].map(|at| number(&control[at..at + 4]));
        assert!(w > 0 && h > 0 && x + w <= width && y + h <= height);
        let (delay, unit) = (number(&control[20..22]), number(&control[22..24]));
        animation.delays_ms.push((delay * 1000 / unit) as u32);
        assert_eq!(control[24], 0, "a frame stays");
        let is_over = control[25] == 1;
        assert!(is_over || (control[25] == 0 && [w, h] == [width, height]));
        let previous = animation.frames.last();
        let mut frame = previous
            .cloned()
            .unwrap_or_else(|| vec![[0; 3]; width * height]);
        for (pixel, index) in indexes(&data[4..], w, h).iter().enumerate() {
            if *index != 0 || !is_over {
                frame[(y + pixel / w) * width + x + pixel % w] = opaque(index);
            }
        }
        animation.frames.push(frame);
        animation.areas.push([x, y, w, h]);
    }
    let control = chunks[1].1;
    assert_eq!(number(&control[..4]), animation.frames.len());
    assert_eq!(number(&control[4..]), 0, "it is repeated without end");
    animation
}
