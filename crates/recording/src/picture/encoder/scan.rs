//! The entropy-coded data of a picture.

use super::super::huffman::Code;
use super::blocks::Block;

/// The symbol for 16 coefficients that are zero.
const SIXTEEN_ZEROS: u8 = 0xf0;

/// The symbol for a block whose other coefficients are zero.
const END_OF_BLOCK: u8 = 0;

/// The codes of a picture: for means and other coefficients of brightness and of colours.
pub struct Scan {
    means: [Code; 2],
    others: [Code; 2],
}

impl Scan {
    /// Determines the best codes for blocks.
    pub fn new(blocks: &[Block]) -> Self {
        let mut means = [[0; 256]; 2];
        let mut others = [[0; 256]; 2];
        visit(blocks, |table, is_mean, symbol, _, _| {
            let frequencies = if is_mean { &mut means } else { &mut others };
            frequencies[table][usize::from(symbol)] += 1;
        });
        Self {
            means: means.each_ref().map(Code::best),
            others: others.each_ref().map(Code::best),
        }
    }

    /// Returns the codes with their class and number in a file.
    pub fn codes(&self) -> [(u8, &Code); 4] {
        let ([m0, m1], [o0, o1]) = (&self.means, &self.others);
        [(0x00, m0), (0x10, o0), (0x01, m1), (0x11, o1)]
    }

    /// Encodes the blocks for which the codes were determined.
    pub fn data(&self, blocks: &[Block]) -> Vec<u8> {
        let mut bits = Bits::default();
        visit(blocks, |table, is_mean, symbol, value, size| {
            let codes = if is_mean { &self.means } else { &self.others };
            let (code, length) = codes[table].of(symbol);
            bits.push(u32::from(code), length);
            bits.push(value, size);
        });
        bits.finish()
    }
}

/// Calls a function for each symbol: the number of its code, whether it belongs to a mean, the
/// symbol, and the bits that follow it with their number.
fn visit(blocks: &[Block], mut symbol: impl FnMut(usize, bool, u8, u32, u8)) {
    let mut last_means = [0; 3];
    for block in blocks {
        let table = block.component.min(1);
        let [mean, others @ ..] = &block.coefficients;
        let (value, size) = magnitude(mean - last_means[block.component]);
        last_means[block.component] = *mean;
        symbol(table, true, size, value, size);
        let mut zeros = 0;
        for coefficient in others {
            if *coefficient == 0 {
                zeros += 1;
                continue;
            }
            while zeros >= 16 {
                symbol(table, false, SIXTEEN_ZEROS, 0, 0);
                zeros -= 16;
            }
            let (value, size) = magnitude(*coefficient);
            symbol(table, false, (zeros << 4) | size, value, size);
            zeros = 0;
        }
        if zeros > 0 {
            symbol(table, false, END_OF_BLOCK, 0, 0);
        }
    }
}

/// Returns the bits of a number and how many they are. Negative numbers have the inverted bits.
fn magnitude(value: i16) -> (u32, u8) {
    let size = (16 - value.unsigned_abs().leading_zeros()) as u8;
    let bits = if value < 0 { value - 1 } else { value };
    (u32::from(bits as u16) & ((1 << size) - 1), size)
}

/// Bits, of which the first is the highest of a byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u32,
    count: u8,
}

impl Bits {
    fn push(&mut self, value: u32, count: u8) {
        self.pending = (self.pending << count) | value;
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.pending >> self.count) as u8;
            self.bytes.push(byte);
            // A byte of ones would begin a marker.
            if byte == 0xff {
                self.bytes.push(0);
            }
            self.pending &= (1 << self.count) - 1;
        }
    }

    /// Fills the last byte with ones.
    fn finish(mut self) -> Vec<u8> {
        let missing = (8 - self.count) % 8;
        self.push((1 << missing) - 1, missing);
        self.bytes
    }
}
