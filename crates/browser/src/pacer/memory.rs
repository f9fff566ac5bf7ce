//! Loads that no near cache answers: slow where somebody crowds the far ones, or the memory behind.

use std::hint::black_box;
use std::sync::OnceLock;

use memmap2::{Advice, MmapMut};

/// Loads of one turn: some 15 µs, and no more lines taken from the page's caches than that.
pub(super) const STEPS: u32 = 32;

/// So large that a place has left the near caches before it is met again, whatever a page does
/// meanwhile: at a thousand turns a second it takes 16 seconds to go round. A chain of 3 MiB told a little
/// more of one page's slowness, but stayed in the caches beside work that needs few of them, and
/// then called a core fast that was not.
const BYTES: usize = 32 << 20;
/// What processors of today load at once.
const LINE_BYTES: usize = 64;
const LINES: u32 = (BYTES / LINE_BYTES) as u32;

/// One for all pacers: it is only read.
static LINKS: OnceLock<Option<MmapMut>> = OnceLock::new();

/// A way through memory on which every place says where the next one is.
pub(super) struct Chain {
    links: &'static [u8],
    line: u32,
}

impl Chain {
    /// None where there is no memory for it.
    pub(super) fn new() -> Option<Self> {
        let links = LINKS.get_or_init(linked).as_deref()?;
        Some(Self { links, line: 0 })
    }

    pub(super) fn follow(&mut self) {
        for _ in 0..STEPS {
            self.line = next_of(self.links, self.line);
        }
        black_box(self.line);
    }
}

/// Small pages only: huge ones, which the kernel gives now and then, would make loads seem faster.
fn linked() -> Option<MmapMut> {
    let mut links = MmapMut::map_anon(BYTES).ok()?;
    // A kernel without huge pages refuses, and need not be asked.
    let _ = links.advise(Advice::NoHugePage);
    for (line, next) in one_ring(LINES).into_iter().enumerate() {
        let at = line * LINE_BYTES;
        links
            .get_mut(at..at + 4)?
            .copy_from_slice(&next.to_le_bytes());
    }
    Some(links)
}

fn next_of(links: &[u8], line: u32) -> u32 {
    let at = line as usize * LINE_BYTES;
    match links.get(at..at + 4) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// Where each goes next, in an order that nothing foresees, through all of them before the first comes
/// again (Sattolo's algorithm).
fn one_ring(count: u32) -> Vec<u32> {
    let mut next: Vec<u32> = (0..count).collect();
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    for i in (1..count).rev() {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let j = state % u64::from(i);
        next.swap(i as usize, j as usize);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_meets_every_place_once() {
        for count in [1, 2, 3, 1000] {
            let next = one_ring(count);
            let mut at = 0;
            let mut met = vec![false; count as usize];
            for _ in 0..count {
                assert!(!std::mem::replace(&mut met[at as usize], true));
                at = next[at as usize];
            }
            assert_eq!(at, 0);
        }
    }

    #[test]
    fn following_goes_on_where_it_stopped() {
        let mut chain = Chain::new().unwrap();
        chain.follow();
        let once = chain.line;
        chain.follow();
        let mut at = 0;
        for _ in 0..STEPS {
            at = next_of(chain.links, at);
        }
        assert_eq!(at, once);
        assert_ne!(chain.line, once);
    }
}
