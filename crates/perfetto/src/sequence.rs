//! The state of a sequence of packets, which later packets of the sequence refer to.

use std::collections::HashMap;

use crate::ConversionError::{self, Lost};
use crate::arguments::Texts;
use crate::names::{NameId, Names};
use crate::tracks::Tracks;
use crate::wire::{Value, fields};

/// The clock whose times are those of the trace (`BUILTIN_CLOCK_MONOTONIC`), in nanoseconds.
const MONOTONIC: u64 = 3;

/// The state of a sequence.
#[derive(Debug, Default)]
pub(crate) struct Sequence<'a> {
    /// Whether the state is complete: it was cleared, and nothing was lost since.
    pub(crate) is_valid: bool,
    pub(crate) texts: Texts<'a>,
    categories: HashMap<u64, &'a [u8]>,
    event_names: HashMap<u64, NameId>,
    clocks: HashMap<u64, SequenceClock>,
    default_clock: Option<u64>,
    pub(crate) default_track: u64,
    default_counters: Vec<u64>,
    /// The values of incremental counters.
    counted: HashMap<u64, i64>,
}

/// A clock that only the packets of one sequence use.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SequenceClock {
    unit_ns: u64,
    is_incremental: bool,
    /// The last time, in units of the clock.
    last: u64,
    /// The time of the trace minus that of the clock.
    offset_ns: i64,
}

impl<'a> Sequence<'a> {
    /// Forgets everything: the packet clears the state.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            is_valid: true,
            ..Self::default()
        };
    }

    /// Reads the `TracePacketDefaults` of later packets.
    pub(crate) fn set_defaults(&mut self, defaults: &'a [u8]) -> Result<(), ConversionError> {
        for field in fields(defaults) {
            match field? {
                (58, clock) => self.default_clock = Some(clock.number()),
                (11, defaults) => {
                    self.default_counters.clear();
                    for field in fields(defaults.bytes()) {
                        match field? {
                            (11, uuid) => self.default_track = uuid.number(),
                            (31, uuid) => self.default_counters.push(uuid.number()),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a `ClockSnapshot`: the same moment on several clocks.
    pub(crate) fn set_clocks(&mut self, snapshot: &[u8]) -> Result<(), ConversionError> {
        let (mut trace_ns, mut clocks) = (None, Vec::new());
        for field in fields(snapshot) {
            if let (1, Value::Bytes(clock)) = field? {
                let (mut id, mut time, mut is_incremental, mut unit_ns) = (0, 0, false, 1);
                for field in fields(clock) {
                    match field? {
                        (1, value) => id = value.number(),
                        (2, value) => time = value.number(),
                        (3, value) => is_incremental = value.number() != 0,
                        (4, value) => unit_ns = value.number(),
                        _ => {}
                    }
                }
                if id == MONOTONIC {
                    trace_ns = Some(time);
                } else {
                    clocks.push((id, time, is_incremental, unit_ns));
                }
            }
        }
        let trace_ns = trace_ns.ok_or(ConversionError::Malformed)?;
        for (id, last, is_incremental, unit_ns) in clocks {
            // The clock rounds the time of the trace to its unit, and so do the events.
            let rounded_ns = last.saturating_mul(unit_ns);
            let is_same = rounded_ns / unit_ns.max(1) == trace_ns / unit_ns.max(1);
            let offset_ns = if is_same {
                0
            } else {
                trace_ns.wrapping_sub(rounded_ns).cast_signed()
            };
            let clock = SequenceClock {
                unit_ns,
                is_incremental,
                last,
                offset_ns,
            };
            self.clocks.insert(id, clock);
        }
        Ok(())
    }

    /// Returns the time of a packet in the trace. Without a clock, it is one of the default clock.
    pub(crate) fn time_ns(
        &mut self,
        time: u64,
        clock: Option<u64>,
    ) -> Result<u64, ConversionError> {
        let id = clock.or(self.default_clock).unwrap_or(MONOTONIC);
        if id == MONOTONIC {
            return Ok(time);
        }
        let clock = self.clocks.get_mut(&id).ok_or(Lost)?;
        if clock.is_incremental {
            clock.last = clock.last.wrapping_add(time);
        } else {
            clock.last = time;
        }
        let own_ns = clock.last.saturating_mul(clock.unit_ns);
        Ok(own_ns.saturating_add_signed(clock.offset_ns))
    }

    /// Reads the `InternedData` of later packets. Returns the number of its entries.
    pub(crate) fn intern(
        &mut self,
        interned: &'a [u8],
        names: &mut Names,
    ) -> Result<usize, ConversionError> {
        let mut entries = 0;
        for field in fields(interned) {
            let (kind, entry) = field?;
            entries += 1;
            let (mut id, mut text): (_, &[u8]) = (0, b"");
            for field in fields(entry.bytes()) {
                match field? {
                    (1, value) => id = value.number(),
                    (2, value) => text = value.bytes(),
                    _ => {}
                }
            }
            let texts = match kind {
                1 => &mut self.categories,
                2 => {
                    self.event_names.insert(id, names.add(text)?);
                    continue;
                }
                3 => &mut self.texts.argument_names,
                27 => &mut self.texts.type_names,
                29 => &mut self.texts.strings,
                _ => continue,
            };
            texts.insert(id, text);
        }
        Ok(entries)
    }

    pub(crate) fn event_name(&self, id: u64) -> Result<NameId, ConversionError> {
        self.event_names.get(&id).copied().ok_or(Lost)
    }

    pub(crate) fn category(&self, id: u64) -> Result<&'a [u8], ConversionError> {
        self.categories.get(&id).copied().ok_or(Lost)
    }

    /// Returns the processor time of the thread at an event with these values of counters.
    pub(crate) fn thread_ns(
        &mut self,
        counters: &[u64],
        values: &[i64],
        tracks: &Tracks,
    ) -> Option<i64> {
        let counters = if counters.is_empty() {
            &self.default_counters
        } else {
            counters
        };
        let mut thread_ns = None;
        for (uuid, value) in counters.iter().zip(values) {
            if let Some(counter) = tracks.counter(*uuid) {
                let total = self.counted.entry(*uuid).or_default();
                *total = if counter.is_incremental {
                    total.wrapping_add(*value)
                } else {
                    *value
                };
                thread_ns = Some(total.saturating_mul(counter.unit_ns.cast_signed()));
            }
        }
        thread_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::{Message, message};

    fn clock(id: u64, time: u64) -> Message {
        message().varint(1, id).varint(2, time)
    }

    #[test]
    fn times_are_differences_or_not_as_their_clock_says() {
        let mut sequence = Sequence::default();
        let defaults = message().varint(58, 64).0;
        sequence.set_defaults(&defaults).unwrap();
        let snapshot = message()
            .message(1, clock(3, 5_000_900))
            .message(1, clock(64, 5000).varint(3, 1).varint(4, 1000))
            .message(1, clock(65, 5000).varint(4, 1000))
            .message(1, clock(6, 1_000_900));
        sequence.set_clocks(&snapshot.0).unwrap();
        assert_eq!(sequence.time_ns(10, None), Ok(5_010_000));
        assert_eq!(sequence.time_ns(10, None), Ok(5_020_000));
        assert_eq!(sequence.time_ns(5030, Some(65)), Ok(5_030_000));
        assert_eq!(sequence.time_ns(7, Some(3)), Ok(7));
        assert_eq!(sequence.time_ns(1_000_901, Some(6)), Ok(5_000_901));
        assert_eq!(sequence.time_ns(7, Some(9)), Err(Lost));
    }

    #[test]
    fn thread_time_is_the_sum_of_its_differences() {
        let (mut sequence, mut tracks) = (Sequence::default(), Tracks::default());
        let counter = message().varint(1, 1).varint(4, 1000).varint(5, 1);
        let descriptor = message().varint(1, 5).message(8, counter).0;
        tracks.add(&descriptor, &mut Names::within(1000)).unwrap();
        let track_event = message().varint(11, 2).varint(31, 5);
        let defaults = message().message(11, track_event).0;
        sequence.set_defaults(&defaults).unwrap();
        assert_eq!(sequence.default_track, 2);
        assert_eq!(sequence.thread_ns(&[], &[3], &tracks), Some(3000));
        assert_eq!(sequence.thread_ns(&[], &[4], &tracks), Some(7000));
        assert_eq!(sequence.thread_ns(&[], &[], &tracks), None);
        assert_eq!(sequence.thread_ns(&[99], &[4], &tracks), None);
        sequence.clear();
        assert_eq!(sequence.thread_ns(&[5], &[1], &tracks), Some(1000));
    }
}
