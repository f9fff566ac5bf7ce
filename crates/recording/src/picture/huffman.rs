//! Huffman codes of JPEG (ITU-T T.81, Annex C and K.2).

/// The number of symbols and one that is reserved, so that no code consists of ones only.
const SYMBOLS: usize = 257;

/// The longest code.
const MAX_BITS: usize = 16;

/// A code for the symbols of a picture.
pub struct Code {
    /// The number of codes of each length, beginning with one bit.
    pub counts: [u8; MAX_BITS],
    /// The symbols, from the shortest code to the longest.
    pub symbols: Vec<u8>,
    /// The code and its length for each symbol.
    codes: [(u16, u8); 256],
}

impl Code {
    /// Returns the best code for symbols that occur this often.
    pub fn best(frequencies: &[u32; 256]) -> Self {
        let lengths = code_lengths(frequencies);
        let counts = limited_counts(&lengths);
        let mut symbols: Vec<u8> = (0..=255)
            .filter(|it| lengths[usize::from(*it)] > 0)
            .collect();
        symbols.sort_by_key(|it| lengths[usize::from(*it)]);
        let mut codes = [(0, 0); 256];
        let mut next = symbols.iter();
        let mut code = 0_u16;
        for (bits, count) in (1..).zip(counts) {
            for symbol in next.by_ref().take(usize::from(count)) {
                codes[usize::from(*symbol)] = (code, bits);
                code = code.wrapping_add(1);
            }
            code = code.wrapping_shl(1);
        }
        Self {
            counts,
            symbols,
            codes,
        }
    }

    /// Returns the code of a symbol and its length.
    pub fn of(&self, symbol: u8) -> (u16, u8) {
        self.codes[usize::from(symbol)]
    }
}

/// Returns the length of the code of each symbol, without a limit.
fn code_lengths(frequencies: &[u32; 256]) -> [usize; SYMBOLS] {
    let mut weights = [0_u64; SYMBOLS];
    for (weight, frequency) in weights.iter_mut().zip(frequencies) {
        *weight = u64::from(*frequency);
    }
    weights[SYMBOLS - 1] = 1;
    let mut lengths = [0; SYMBOLS];
    // The trees so far, each with its weight and its symbols.
    let present = (0..SYMBOLS).filter(|it| weights[*it] > 0);
    let mut trees: Vec<(u64, Vec<usize>)> = present.map(|it| (weights[it], vec![it])).collect();
    if trees.len() == 1 {
        lengths[SYMBOLS - 1] = 1;
    }
    while trees.len() > 1 {
        // The largest symbol is the last among equal ones, so that the reserved one gets the
        // longest code.
        trees
            .sort_by_key(|(weight, symbols)| (*weight, std::cmp::Reverse(symbols.last().copied())));
        let second = trees.remove(1);
        let first = trees.remove(0);
        let mut symbols = first.1;
        symbols.extend(second.1);
        symbols.sort_unstable();
        for symbol in &symbols {
            lengths[*symbol] += 1;
        }
        trees.push((first.0 + second.0, symbols));
    }
    lengths
}

/// Returns the numbers of codes of each length, at most 16 bits, without the reserved code.
fn limited_counts(lengths: &[usize; SYMBOLS]) -> [u8; MAX_BITS] {
    let mut counts = [0_usize; SYMBOLS + 1];
    for length in lengths.iter().filter(|it| **it > 0) {
        counts[*length] += 1;
    }
    for length in (MAX_BITS + 1..counts.len()).rev() {
        while counts[length] > 0 {
            // Two codes become one shorter code, and a shorter one becomes two.
            let mut shorter = length - 2;
            while counts[shorter] == 0 {
                shorter -= 1;
            }
            counts[length] -= 2;
            counts[length - 1] += 1;
            counts[shorter + 1] += 2;
            counts[shorter] -= 1;
        }
    }
    if let Some(longest) = (1..=MAX_BITS).rev().find(|it| counts[*it] > 0) {
        counts[longest] -= 1;
    }
    let mut result = [0; MAX_BITS];
    for (count, all) in result.iter_mut().zip(&counts[1..]) {
        *count = u8::try_from(*all).unwrap_or(u8::MAX);
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_code_begins_another_and_none_is_too_long(
            frequencies in prop::collection::vec((any::<u8>(), 0..1_000_000_u32), 0..60),
            is_skewed in any::<bool>(),
        ) {
            let mut all = [0; 256];
            for (index, (symbol, frequency)) in (0_u32..).zip(frequencies) {
                let skewed = 1_u32.wrapping_shl(index.min(30));
                all[usize::from(symbol)] = if is_skewed { skewed } else { frequency };
            }
            let code = Code::best(&all);
            let used: Vec<u8> = (0..=255).filter(|it| all[usize::from(*it)] > 0).collect();
            let mut sorted = code.symbols.clone();
            sorted.sort_unstable();
            prop_assert_eq!(&sorted, &used);
            let total: usize = code.counts.iter().map(|it| usize::from(*it)).sum();
            prop_assert_eq!(total, used.len());
            for a in &used {
                let (code_a, bits_a) = code.of(*a);
                prop_assert!((1..=16).contains(&bits_a));
                // No code consists of ones only.
                prop_assert!(u32::from(code_a) < (1 << bits_a) - 1);
                for b in used.iter().filter(|b| *b != a) {
                    let (code_b, bits_b) = code.of(*b);
                    let is_prefix = bits_a <= bits_b && code_b >> (bits_b - bits_a) == code_a;
                    prop_assert!(!is_prefix);
                }
            }
        }
    }
}
