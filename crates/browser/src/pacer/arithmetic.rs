//! Independent arithmetic: slow where somebody shares the core.
//!
//! Over 25 seconds of layout and script in Chromium, beside pieces of this work on the same core, the
//! two went together with a correlation of 0.95 (windows of 200 ms, a host whose memory was at rest); a
//! chain of dependent steps (0.54) hardly noticed the neighbours.

use std::hint::black_box;

/// About 4 µs on a core of 2023: short against a slice of the page's time.
const STEPS: u32 = 2500;

/// Small enough to leave the page's data in the core's nearest cache.
const TABLE_BYTES: usize = 4096;

pub(super) struct Arithmetic {
    table: Vec<u8>,
}

impl Arithmetic {
    pub(super) fn new() -> Self {
        Self {
            table: (0..TABLE_BYTES).map(|i| (i % 251) as u8).collect(),
        }
    }

    pub(super) fn piece(&self) {
        black_box(piece(black_box(&self.table)));
    }
}

#[inline(never)]
fn piece(table: &[u8]) -> u32 {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = [1u32, 2, 3, 4, 5, 6, 7, 8];
    for i in 0..STEPS {
        a = a.wrapping_mul(3).wrapping_add(i);
        b ^= b << 1;
        c = c.wrapping_add(a ^ i);
        d = d.wrapping_mul(5).wrapping_add(i);
        e ^= e >> 1;
        f = f.wrapping_add(d ^ i);
        g = g.wrapping_mul(7).wrapping_add(1);
        h = h.wrapping_add(g ^ b);
        a = a.wrapping_add(u32::from(table[(i as usize * 64) % TABLE_BYTES]));
    }
    [a, b, c, d, e, f, g, h]
        .into_iter()
        .fold(0, u32::wrapping_add)
}
