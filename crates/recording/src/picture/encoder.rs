//! A baseline encoder (ITU-T T.81) with half the resolution for colours and the best Huffman codes,
//! as most tools for web pages encode.

mod blocks;
mod scan;

use super::pixels::Pixels;
use blocks::{Block, QuantTable, coefficients};
use scan::Scan;

/// Order of the coefficients, from the lowest frequencies to the highest (Figure A.6).
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The quantization table for brightness (Table K.1), in rows.
const LUMINANCE: QuantTable = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
    92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];

/// The quantization table for colours (Table K.2), in rows.
const CHROMINANCE: QuantTable = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];

/// The largest content of a segment with a part of a colour profile.
const MAX_PROFILE_PART: usize = 65_519;

/// Scales a table by a quality, as libjpeg does.
fn scaled(table: &QuantTable, quality: u8) -> QuantTable {
    let quality = u32::from(quality.clamp(1, 100));
    let percent = if quality < 50 {
        5000 / quality
    } else {
        200 - 2 * quality
    };
    table.map(|value| {
        let value = (u32::from(value) * percent + 50) / 100;
        u8::try_from(value.max(1)).unwrap_or(u8::MAX)
    })
}

/// Encodes pixels, with the contents of an Exif segment and of a colour profile.
pub fn encode(
    pixels: &Pixels,
    quality: u8,
    exif: Option<&[u8]>,
    profile: Option<&[u8]>,
) -> Vec<u8> {
    let tables = [scaled(&LUMINANCE, quality), scaled(&CHROMINANCE, quality)];
    let blocks: Vec<Block> = coefficients(pixels, &tables);
    let scan = Scan::new(&blocks);
    let mut output = vec![0xff, 0xd8];
    segment(&mut output, 0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    if let Some(exif) = exif {
        segment(&mut output, 0xe1, exif);
    }
    let parts: Vec<&[u8]> = profile
        .unwrap_or_default()
        .chunks(MAX_PROFILE_PART)
        .collect();
    // A profile has at most 255 parts, and ordinary ones have one.
    if let Ok(count) = u8::try_from(parts.len()) {
        for (number, part) in (1_u8..).zip(&parts) {
            let content = [b"ICC_PROFILE\0", &[number, count][..], part].concat();
            segment(&mut output, 0xe2, &content);
        }
    }
    for (id, table) in (0..).zip(&tables) {
        let values = ZIGZAG.map(|position| table[position]);
        segment(&mut output, 0xdb, &[&[id][..], &values].concat());
    }
    segment(&mut output, 0xc0, &frame_header(pixels));
    for (class_and_id, code) in scan.codes() {
        let content = [&[class_and_id][..], &code.counts, &code.symbols].concat();
        segment(&mut output, 0xc4, &content);
    }
    segment(&mut output, 0xda, &[3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0]);
    output.extend(scan.data(&blocks));
    output.extend([0xff, 0xd9]);
    output
}

/// Three components, of which the first has twice the resolution of the others.
fn frame_header(pixels: &Pixels) -> Vec<u8> {
    let side = |side: usize| u16::try_from(side).unwrap_or(u16::MAX).to_be_bytes();
    let mut content = vec![8];
    content.extend(side(pixels.height()));
    content.extend(side(pixels.width()));
    content.extend([3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]);
    content
}

fn segment(output: &mut Vec<u8>, marker: u8, content: &[u8]) {
    let length = u16::try_from(content.len() + 2).unwrap_or(u16::MAX);
    output.extend([0xff, marker]);
    output.extend(length.to_be_bytes());
    output.extend_from_slice(content);
}

/// Estimates the quality from the first quantization table, by its mean.
pub fn quality_of(jpeg: &[u8]) -> Option<u8> {
    let table = first_table(jpeg)?;
    let sum = |table: &[u8]| table.iter().map(|it| u32::from(*it)).sum::<u32>();
    let target = sum(table);
    (1..=100).min_by_key(|quality| sum(&scaled(&LUMINANCE, *quality)).abs_diff(target))
}

/// Returns the values of the first quantization table with eight bits.
fn first_table(jpeg: &[u8]) -> Option<&[u8]> {
    let mut rest = jpeg.strip_prefix(&[0xff, 0xd8])?;
    loop {
        let [0xff, marker, high, low, ..] = *rest else {
            return None;
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let content = rest.get(4..2 + length)?;
        if marker == 0xdb {
            return content.get(1..65).filter(|_| content[0] >> 4 == 0);
        }
        rest = &rest[2 + length..];
    }
}
