//! The inverse cosine transform of a block: Loeffler, Ligtenberg, Moschytz, "Practical Fast 1-D DCT
//! Algorithms with 11 Multiplications" (1989), in integers, rounding after each step like jpeg-js.

/// The cosines and sines in units of 1/4096.
const COS_1: i64 = 4017;
const SIN_1: i64 = 799;
const COS_3: i64 = 3406;
const SIN_3: i64 = 2276;
const COS_6: i64 = 1567;
const SIN_6: i64 = 3784;
const SQRT_2: i64 = 5793;
const SQRT_HALF: i64 = 2896;
const FRACTION_BITS: u32 = 12;

/// The number of fraction bits that rows keep and columns drop.
const ROW_EXTRA_BITS: u32 = 4;

pub(super) fn inverse_dct(mut block: [i64; 64]) -> [u8; 64] {
    for row in block.as_chunks_mut::<8>().0 {
        *row = inverse_line(*row, ROW_EXTRA_BITS);
    }
    for column in 0..8 {
        let line = std::array::from_fn(|row| block[row * 8 + column]);
        for (row, value) in inverse_line(line, 0).into_iter().enumerate() {
            block[row * 8 + column] = value;
        }
    }
    block.map(|value| u8::try_from((128 + rounded(value, 4)).clamp(0, 255)).unwrap_or(0))
}

/// Transforms one row or column, scaled up by the given bits.
fn inverse_line(line: [i64; 8], extra_bits: u32) -> [i64; 8] {
    let shift = FRACTION_BITS - extra_bits;
    let [dc, rest @ ..] = line;
    if rest == [0; 7] {
        return [rounded(SQRT_2 * dc, shift + 2); 8];
    }

    let even_0 = rounded(SQRT_2 * line[0], shift);
    let even_4 = rounded(SQRT_2 * line[4], shift);
    let odd_1 = rounded(SQRT_HALF * (line[1] - line[7]), shift);
    let odd_7 = rounded(SQRT_HALF * (line[1] + line[7]), shift);
    let odd_3 = line[3] << extra_bits;
    let odd_5 = line[5] << extra_bits;

    let (low, high) = (halved(even_0 + even_4), halved(even_0 - even_4));
    let (turned_6, turned_2) = (
        rounded(line[2] * SIN_6 + line[6] * COS_6, shift),
        rounded(line[2] * COS_6 - line[6] * SIN_6, shift),
    );
    let (a, b) = (halved(odd_1 + odd_5), halved(odd_1 - odd_5));
    let (c, d) = (halved(odd_7 + odd_3), halved(odd_7 - odd_3));

    let even = [
        halved(low + turned_6),
        halved(high + turned_2),
        halved(high - turned_2),
        halved(low - turned_6),
    ];
    let odd = [
        rounded(a * SIN_3 + c * COS_3, FRACTION_BITS),
        rounded(d * SIN_1 + b * COS_1, FRACTION_BITS),
        rounded(d * COS_1 - b * SIN_1, FRACTION_BITS),
        rounded(a * COS_3 - c * SIN_3, FRACTION_BITS),
    ];
    std::array::from_fn(|at| match at {
        0..=3 => even[at] + odd[at],
        _ => even[7 - at] - odd[7 - at],
    })
}

fn rounded(value: i64, bits: u32) -> i64 {
    (value + (1 << (bits - 1))) >> bits
}

fn halved(value: i64) -> i64 {
    rounded(value, 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The transform by its definition (T.81, A.3.3).
    fn by_definition(block: &[i64; 64]) -> [f64; 64] {
        use std::f64::consts::PI;
        let scale = |k: usize| if k == 0 { 0.5_f64.sqrt() } else { 1.0 };
        let cosine = |x: usize, k: usize| ((2 * x + 1) as f64 * k as f64 * PI / 16.0).cos();
        std::array::from_fn(|at| {
            let (y, x) = (at / 8, at % 8);
            let mut sum = 0.0;
            for (place, value) in block.iter().enumerate() {
                let (v, u) = (place / 8, place % 8);
                sum += scale(u) * scale(v) * *value as f64 * cosine(x, u) * cosine(y, v);
            }
            (sum / 4.0 + 128.0).clamp(0.0, 255.0)
        })
    }

    proptest! {
        #[test]
        fn integers_stay_close_to_the_definition(
            values in proptest::collection::vec((0_usize..64, -120_i64..120), 0..12),
        ) {
            let mut block = [0; 64];
            for (place, value) in values {
                block[place] = value;
            }
            for (got, wanted) in inverse_dct(block).into_iter().zip(by_definition(&block)) {
                prop_assert!((f64::from(got) - wanted).abs() < 2.0, "{got} is far from {wanted}");
            }
        }
    }
}
