//! Quantized blocks of a picture.

use std::f32::consts::{FRAC_1_SQRT_2, PI};

use super::super::pixels::Pixels;
use super::ZIGZAG;

/// Divisors of the coefficients, in rows.
pub type QuantTable = [u8; 64];

/// The quantized coefficients of 8 by 8 samples of a component.
pub struct Block {
    /// The number of the component: 0 is the brightness.
    pub component: usize,
    /// The coefficients from the lowest frequencies to the highest.
    pub coefficients: [i16; 64],
}

/// Samples of 16 by 16 pixels: four blocks of brightness and one of each colour.
struct Unit {
    luminance: [[f32; 64]; 4],
    colors: [[f32; 64]; 2],
}

/// Returns the blocks of a picture in the order in which they are stored.
pub fn coefficients(pixels: &Pixels, tables: &[QuantTable; 2]) -> Vec<Block> {
    let cosines = cosines();
    let mut blocks = Vec::new();
    for y in (0..pixels.height()).step_by(16) {
        for x in (0..pixels.width()).step_by(16) {
            let unit = unit(pixels, x, y);
            let luminance = unit.luminance.iter().map(|samples| (0, samples));
            let colors = (1..).zip(&unit.colors);
            for (component, samples) in luminance.chain(colors) {
                let table = &tables[component.min(1)];
                let coefficients = quantized(&transformed(samples, &cosines), table);
                blocks.push(Block {
                    component,
                    coefficients,
                });
            }
        }
    }
    blocks
}

/// Converts 16 by 16 pixels to brightness and colours, whose mean is zero.
fn unit(pixels: &Pixels, left: usize, top: usize) -> Unit {
    let mut unit = Unit {
        luminance: [[0.0; 64]; 4],
        colors: [[0.0; 64]; 2],
    };
    for y in 0..16 {
        for x in 0..16 {
            let [r, g, b] = pixels.at(left + x, top + y).map(f32::from);
            let block = 2 * (y / 8) + x / 8;
            let luminance = 0.299 * r + 0.587 * g + 0.114 * b;
            unit.luminance[block][8 * (y % 8) + x % 8] = luminance - 128.0;
            // Each sample of a colour is the mean of four pixels.
            let sample = 8 * (y / 2) + x / 2;
            unit.colors[0][sample] += (b - luminance) / 1.772 / 4.0;
            unit.colors[1][sample] += (r - luminance) / 1.402 / 4.0;
        }
    }
    unit
}

/// Returns the factors of the cosine transform: for each frequency those of the eight samples.
fn cosines() -> [[f32; 8]; 8] {
    let mut factors = [[0.0; 8]; 8];
    for (frequency, row) in factors.iter_mut().enumerate() {
        let scale = if frequency == 0 { FRAC_1_SQRT_2 } else { 1.0 } / 2.0;
        for (sample, factor) in row.iter_mut().enumerate() {
            let angle = (2 * sample + 1) as f32 * frequency as f32 * PI / 16.0;
            *factor = scale * angle.cos();
        }
    }
    factors
}

/// Returns the cosine transform of a block: first of its rows, then of its columns.
fn transformed(samples: &[f32; 64], cosines: &[[f32; 8]; 8]) -> [f32; 64] {
    let mut rows = [0.0; 64];
    let mut result = [0.0; 64];
    for y in 0..8 {
        for (u, factors) in cosines.iter().enumerate() {
            let row = &samples[8 * y..8 * y + 8];
            rows[8 * y + u] = row.iter().zip(factors).map(|(a, b)| a * b).sum();
        }
    }
    for (v, factors) in cosines.iter().enumerate() {
        for u in 0..8 {
            let column = factors.iter().enumerate();
            result[8 * v + u] = column.map(|(y, factor)| rows[8 * y + u] * factor).sum();
        }
    }
    result
}

fn quantized(coefficients: &[f32; 64], table: &QuantTable) -> [i16; 64] {
    ZIGZAG.map(|position| {
        let value = coefficients[position] / f32::from(table[position]);
        // The largest size that the format allows for coefficients.
        value.round().clamp(-1023.0, 1023.0) as i16
    })
}
