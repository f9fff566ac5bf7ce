//! A workload that resembles a page's: many small unpredictable steps over memory that exceeds the
//! near caches.
//!
//! Contention for the core, its front end, its caches or the memory slows it down as it slows a
//! page down, if less so. Beside Chromium running script, style and layout on one contended core
//! (1,054 runs of about 0.1 s), the time of such steps had a correlation of 0.94 with that of the
//! page; independent arithmetic had 0.87, and loads from far memory 0.82.

use std::hint::black_box;
use std::sync::OnceLock;

use memmap2::{Advice, MmapMut};

/// Steps of one turn, which takes about 20 µs.
const STEPS: u32 = 500;
/// Program size in bytes; a step takes three. Far more than a core's branch predictor holds.
const PROGRAM_BYTES: usize = 1 << 16;
/// Memory size: so large that a location has left the near caches before it is used again, whatever
/// a page does meanwhile. Data that stays there during undemanding work would make a slow core seem
/// fast.
const MEMORY_BYTES: usize = 32 << 20;
const WORD_BYTES: usize = 4;
const REGISTERS: usize = 16;

/// Memory shared by the measurements of all cores, read-only.
static MEMORY: OnceLock<Option<MmapMut>> = OnceLock::new();

/// A machine that executes an endless program.
pub(crate) struct Interpreter {
    program: Vec<u8>,
    /// The memory; empty if it could not be allocated, and the steps then do without.
    memory: &'static [u8],
    registers: [u32; REGISTERS],
    at: usize,
}

impl Interpreter {
    pub(crate) fn new() -> Self {
        let mut random = Random::new();
        Self {
            program: (0..PROGRAM_BYTES).map(|_| random.next() as u8).collect(),
            memory: MEMORY
                .get_or_init(filled_memory)
                .as_deref()
                .unwrap_or_default(),
            registers: std::array::from_fn(|_| random.next()),
            at: 0,
        }
    }

    /// Executes a fixed number of steps, never the same ones as before.
    pub(crate) fn turn(&mut self) {
        for _ in 0..STEPS {
            self.step();
        }
        black_box(self.registers);
    }

    fn step(&mut self) {
        let code = |offset: usize| usize::from(self.program[(self.at + offset) % PROGRAM_BYTES]);
        let (operation, to, from) = (code(0), code(1) % REGISTERS, code(2) % REGISTERS);
        self.at = (self.at + 3) % PROGRAM_BYTES;
        let (a, b) = (self.registers[to], self.registers[from]);
        match operation % 16 {
            0 => self.registers[to] = a.wrapping_add(b),
            1 => self.registers[to] = a ^ b,
            2 => self.registers[to] = a.wrapping_mul(b | 1),
            3 => self.registers[to] = self.load(b),
            4 => self.registers[to] = self.load(b >> 7).wrapping_add(1),
            5 if b & 1 != 0 => self.at += operation >> 4,
            6 => self.registers[to] = a.rotate_left(b & 31),
            7 => self.registers[to] = b.wrapping_sub(a),
            8 if a > b => self.registers.swap(to, from),
            9 => self.registers[to] = b >> 3,
            10 if a & 4 == 0 => self.at += b as usize & 0xff,
            11 => self.registers[to] = !b,
            12 => self.registers[to] = a / (b | 1),
            13 => self.registers[to] = a.count_ones().wrapping_add(b),
            14 => self.registers[to] = a.wrapping_add(operation as u32 * 77),
            // Also the fallback of the conditional steps above: every step does something.
            _ => self.registers[to] = a.swap_bytes(),
        }
    }

    fn load(&self, word: u32) -> u32 {
        let at = place(word);
        match self.memory.get(at..at + WORD_BYTES) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => word,
        }
    }
}

/// Returns the position of a word in the memory, which wraps around.
fn place(word: u32) -> usize {
    (word as usize * WORD_BYTES) % MEMORY_BYTES
}

/// Returns filled memory in small pages: huge pages, which the kernel provides now and then, would
/// make loads seem faster.
fn filled_memory() -> Option<MmapMut> {
    let mut memory = MmapMut::map_anon(MEMORY_BYTES).ok()?;
    // A kernel without huge pages rejects this, which does no harm.
    let _ = memory.advise(Advice::NoHugePage);
    let mut random = Random::new();
    for word in memory.chunks_exact_mut(WORD_BYTES) {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    Some(memory)
}

/// Marsaglia's xorshift64, the same on every host.
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }

    /// Returns the upper half: the lower bits of consecutive numbers are correlated.
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_program_never_stops() {
        let mut interpreter = Interpreter::new();
        let mut states = HashSet::new();
        for _ in 0..2_000 {
            interpreter.turn();
            states.insert((interpreter.at, interpreter.registers));
        }
        assert_eq!(states.len(), 2_000, "a state came again");
    }

    #[test]
    fn all_kinds_of_steps_are_about_equally_frequent() {
        let mut interpreter = Interpreter::new();
        let mut counts = [0_u32; 16];
        for _ in 0..100_000 {
            counts[usize::from(interpreter.program[interpreter.at % PROGRAM_BYTES]) % 16] += 1;
            interpreter.step();
        }
        assert!(
            counts.iter().all(|count| (3_000..12_000).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn loads_are_spread_over_the_whole_memory() {
        let mut interpreter = Interpreter::new();
        let mut pages = HashSet::new();
        for _ in 0..100_000 {
            let code = |offset: usize| {
                usize::from(interpreter.program[(interpreter.at + offset) % PROGRAM_BYTES])
            };
            let from = interpreter.registers[code(2) % REGISTERS];
            let loaded = match code(0) % 16 {
                3 => Some(from),
                4 => Some(from >> 7),
                _ => None,
            };
            pages.extend(loaded.map(|word| place(word) >> 12));
            interpreter.step();
        }
        assert!(pages.len() > 1_000, "{}", pages.len());
    }

    #[test]
    fn the_program_runs_without_memory() {
        let mut interpreter = Interpreter {
            memory: &[],
            ..Interpreter::new()
        };
        interpreter.turn();
    }
}
