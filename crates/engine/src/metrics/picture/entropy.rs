//! The bit stream of a scan: Huffman codes and the numbers behind them (T.81, annex F).

use super::ZIGZAG;

/// Codes of one length follow each other; so the last code of each length tells all.
pub(super) struct HuffmanTable {
    /// For each length: the last code, or -1, and what to add to a code for its place among the values.
    lengths: [(i32, i32); 16],
    values: Vec<u8>,
}

impl HuffmanTable {
    pub(super) fn new(counts: &[u8; 16], values: &[u8]) -> Self {
        let mut lengths = [(-1, 0); 16];
        let (mut code, mut place) = (0_i32, 0_i32);
        for (length, count) in lengths.iter_mut().zip(counts) {
            let count = i32::from(*count);
            if count > 0 {
                *length = (code + count - 1, place - code);
            }
            code = (code + count) << 1;
            place += count;
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

    /// A number of so many bits; those that begin with 0 stand for the negative ones (T.81, F.2.2.1).
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

    /// The next block's coefficients, in place and multiplied by their quantisation steps.
    pub(super) fn block(
        &mut self,
        (dc, ac): (&HuffmanTable, &HuffmanTable),
        last_dc: &mut i64,
        steps: &[i64; 64],
    ) -> Option<[i64; 64]> {
        /// What eight-bit pictures can hold, generously; keeps broken ones from overflowing the transform.
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
                    let place = *ZIGZAG.get(at + run)?;
                    block[place] = (self.number(size)? * steps[place]).clamp(-LARGEST, LARGEST);
                    at += run + 1;
                }
            }
        }
        Some(block)
    }

    /// Passes over a restart marker: what is left of the byte before it is padding.
    pub(super) fn restart(&mut self) -> Option<()> {
        let [0xff, 0xd0..=0xd7, rest @ ..] = self.rest else {
            return None;
        };
        *self = Self::new(rest);
        Some(())
    }
}
