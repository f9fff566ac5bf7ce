//! The bit stream of a scan: Huffman codes and the numbers that follow them (T.81, annex F).

use super::ZIGZAG;

/// A table of Huffman codes. Codes of one length are consecutive, so the last code of each length
/// defines all.
pub(super) struct HuffmanTable {
    /// The last code of each length, or -1, and the offset from a code to its index in the values.
    lengths: [(i32, i32); 16],
    values: Vec<u8>,
}

impl HuffmanTable {
    pub(super) fn new(counts: &[u8; 16], values: &[u8]) -> Self {
        let mut lengths = [(-1, 0); 16];
        let (mut code, mut index) = (0_i32, 0_i32);
        for (length, count) in lengths.iter_mut().zip(counts) {
            let count = i32::from(*count);
            if count > 0 {
                *length = (code + count - 1, index - code);
            }
            code = (code + count) << 1;
            index += count;
        }
        Self {
            lengths,
            values: values.to_vec(),
        }
    }

    fn decode(&self, bits: &mut Bits) -> Option<u8> {
        let mut code = 0;
        for (last, offset) in self.lengths {
            code = code << 1 | bits.bit()?;
            if code <= last {
                return self
                    .values
                    .get(usize::try_from(code + offset).ok()?)
                    .copied();
            }
        }
        None
    }
}

pub(super) struct Bits<'a> {
    rest: &'a [u8],
    byte: u8,
    left: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self {
            rest,
            byte: 0,
            left: 0,
        }
    }

    fn bit(&mut self) -> Option<i32> {
        if self.left == 0 {
            (self.byte, self.rest) = match self.rest {
                [0xff, 0, rest @ ..] => (0xff, rest),
                [0xff, ..] | [] => return None,
                [byte, rest @ ..] => (*byte, rest),
            };
            self.left = 8;
        }
        self.left -= 1;
        Some(i32::from(self.byte >> self.left & 1))
    }

    /// Reads a number of `size` bits; those that start with 0 are negative (T.81, F.2.2.1).
    fn number(&mut self, size: u8) -> Option<i64> {
        let mut number = 0_i64;
        for _ in 0..size {
            number = number << 1 | i64::from(self.bit()?);
        }
        let negative = size > 0 && number < 1 << (size - 1);
        Some(if negative {
            number - (1 << size) + 1
        } else {
            number
        })
    }

    /// Reads the coefficients of the next block in natural order, multiplied by their quantisation
    /// steps.
    pub(super) fn block(
        &mut self,
        (dc, ac): (&HuffmanTable, &HuffmanTable),
        last_dc: &mut i64,
        steps: &[i64; 64],
    ) -> Option<[i64; 64]> {
        /// A generous limit for coefficients of eight-bit pictures that keeps broken ones from
        /// overflowing the transform.
        const LARGEST: i64 = 1 << 16;
        let mut block = [0; 64];
        let size = dc.decode(self)?;
        *last_dc += self.number(size.min(16))?;
        block[0] = (*last_dc * steps[0]).clamp(-LARGEST, LARGEST);
        let mut at = 1;
        while at < 64 {
            let run_and_size = ac.decode(self)?;
            let (run, size) = (usize::from(run_and_size >> 4), run_and_size & 15);
            match (run, size) {
                (15, 0) => at += 16,
                (_, 0) => break,
                _ => {
                    let index = *ZIGZAG.get(at + run)?;
                    block[index] = (self.number(size)? * steps[index]).clamp(-LARGEST, LARGEST);
                    at += run + 1;
                }
            }
        }
        Some(block)
    }

    /// Skips a restart marker; the remaining bits of the byte before it are padding.
    pub(super) fn restart(&mut self) -> Option<()> {
        let [0xff, 0xd0..=0xd7, rest @ ..] = self.rest else {
            return None;
        };
        *self = Self::new(rest);
        Some(())
    }
}
