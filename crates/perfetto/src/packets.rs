//! Reads the packets of a trace.

use std::collections::HashMap;
use std::ops::Range;

use crate::ConversionError::{self, Lost, TooLarge};
use crate::arguments::ArgumentWriter;
use crate::json::Json;
use crate::names::{NameId, Names};
use crate::schema::Schema;
use crate::sequence::Sequence;
use crate::tracks::Tracks;
use crate::wire::{Value, fields, held_fields};

/// The maximum number of events, tracks and interned texts together is that of the bytes of JSON,
/// divided by this. A trace of an ordinary page has 200 bytes of JSON for each of them.
const BYTES_PER_RECORD: usize = 50;

/// The packet clears the state of its sequence.
const CLEARS_STATE: u64 = 1;
/// The packet refers to the state of its sequence.
const NEEDS_STATE: u64 = 2;

/// The content of a trace, in the order of its packets.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) events: Vec<Event>,
    pub(crate) names: Names,
    pub(crate) tracks: Tracks,
    /// The members of all arguments, as JSON.
    pub(crate) arguments: Json,
    /// The ids of all flows.
    pub(crate) flows: Vec<Flow>,
}

/// An event on a track.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Event {
    pub(crate) ts_ns: u64,
    pub(crate) kind: EventKind,
    pub(crate) track: u64,
    pub(crate) name: NameId,
    pub(crate) category: NameId,
    /// The members of its arguments in [`Recorded::arguments`].
    pub(crate) arguments: Range<usize>,
    /// Its flows in [`Recorded::flows`].
    pub(crate) flows: Range<usize>,
    /// The processor time of its thread.
    pub(crate) thread_ns: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum EventKind {
    Begin,
    End,
    #[default]
    Instant,
    /// An event with a phase of the older format.
    Legacy(Box<LegacyEvent>),
}

/// Members of an event of the older format.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LegacyEvent {
    pub(crate) phase: u8,
    /// The track of the thread that wrote it. Its own track may be the global one.
    pub(crate) writer: u64,
    pub(crate) duration_us: Option<i64>,
    pub(crate) thread_duration_us: Option<i64>,
    pub(crate) unscoped_id: Option<u64>,
    pub(crate) local_id: Option<u64>,
    pub(crate) global_id: Option<u64>,
    pub(crate) id_scope: Option<NameId>,
    /// The number of the scope of an instant event: global, process or thread.
    pub(crate) instant_scope: u64,
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
}

/// A flow that an event is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) id: u64,
    pub(crate) ends: bool,
}

/// Reads a trace whose names and arguments may have at most `max_bytes` each.
pub(crate) fn read(trace: &[u8], max_bytes: usize) -> Result<Recorded, ConversionError> {
    let mut reader = Reader {
        schema: Schema::default(),
        sequences: HashMap::new(),
        records: 0,
        max_bytes,
        recorded: Recorded {
            events: Vec::new(),
            names: Names::within(max_bytes),
            tracks: Tracks::default(),
            arguments: Json::within(max_bytes),
            flows: Vec::new(),
        },
    };
    // Arguments may come before the packet that describes their types.
    for packet in packets(trace) {
        for field in fields(packet?) {
            if let (72, Value::Bytes(descriptor)) = field? {
                reader.schema.add(descriptor)?;
            }
        }
    }
    for packet in packets(trace) {
        reader.read_packet(packet?)?;
    }
    Ok(reader.recorded)
}

fn packets(trace: &[u8]) -> impl Iterator<Item = Result<&[u8], ConversionError>> {
    fields(trace).filter_map(|field| match field {
        Ok((1, Value::Bytes(packet))) => Some(Ok(packet)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

struct Reader<'a> {
    schema: Schema,
    sequences: HashMap<u64, Sequence<'a>>,
    /// The number of events, tracks and interned texts.
    records: usize,
    max_bytes: usize,
    recorded: Recorded,
}

/// The fields of a packet, because those that others depend on may come last.
#[derive(Default)]
struct Packet<'a> {
    sequence: u64,
    flags: u64,
    is_after_loss: bool,
    time: u64,
    clock: Option<u64>,
    clocks: Option<&'a [u8]>,
    defaults: Option<&'a [u8]>,
    interned: Option<&'a [u8]>,
    event: Option<&'a [u8]>,
    track: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ConversionError> {
        let mut packet = Self::default();
        for field in fields(bytes) {
            match field? {
                (6, value) => packet.clocks = Some(value.bytes()),
                (8, value) => packet.time = value.number(),
                (10, value) => packet.sequence = value.number(),
                (11, value) => packet.event = Some(value.bytes()),
                (12, value) => packet.interned = Some(value.bytes()),
                (13, value) => packet.flags = value.number(),
                (42, value) => packet.is_after_loss = value.number() != 0,
                (58, value) => packet.clock = Some(value.number()),
                (59, value) => packet.defaults = Some(value.bytes()),
                (60, value) => packet.track = Some(value.bytes()),
                _ => {}
            }
        }
        Ok(packet)
    }
}

impl<'a> Reader<'a> {
    fn read_packet(&mut self, bytes: &'a [u8]) -> Result<(), ConversionError> {
        let packet = Packet::read(bytes)?;
        let Recorded { names, tracks, .. } = &mut self.recorded;
        if let Some(descriptor) = packet.track {
            tracks.add(descriptor, names)?;
            self.records += 1;
        }
        let sequence = self.sequences.entry(packet.sequence).or_default();
        if packet.is_after_loss {
            sequence.is_valid = false;
        }
        if packet.flags & CLEARS_STATE != 0 {
            sequence.clear();
        }
        if packet.flags & NEEDS_STATE != 0 && !sequence.is_valid {
            return Err(Lost);
        }
        if let Some(defaults) = packet.defaults {
            sequence.set_defaults(defaults)?;
        }
        // Snapshots of the tracing service compare clocks of the system only.
        if let Some(clocks) = packet.clocks
            && sequence.is_valid
        {
            sequence.set_clocks(clocks)?;
        }
        if let Some(interned) = packet.interned {
            self.records += sequence.intern(interned, names)?;
        }
        // Also of a packet without an event, because the next time may be relative to it.
        let ts_ns = sequence.time_ns(packet.time, packet.clock);
        if let Some(event) = packet.event {
            self.read_event(packet.sequence, ts_ns?, event)?;
            self.records += 1;
        }
        if self.records > self.max_bytes / BYTES_PER_RECORD {
            return Err(TooLarge);
        }
        Ok(())
    }

    fn read_event(
        &mut self,
        sequence: u64,
        ts_ns: u64,
        bytes: &'a [u8],
    ) -> Result<(), ConversionError> {
        const BEGIN: u64 = 1;
        const END: u64 = 2;
        const INSTANT: u64 = 3;
        let recorded = &mut self.recorded;
        let sequence = self.sequences.entry(sequence).or_default();
        let mut event = Event {
            ts_ns,
            track: sequence.default_track,
            ..Event::default()
        };
        let (arguments_begin, flows_begin) = (recorded.arguments.len(), recorded.flows.len());
        let (mut kind, mut legacy) = (0, None);
        let (mut counters, mut counted, mut categories) = (Vec::new(), Vec::new(), Vec::new());
        for field in held_fields(bytes) {
            let (number, value) = field?;
            let arguments = &mut recorded.arguments;
            match number {
                3 => categories.push(sequence.category(value.number())?),
                4 => {
                    arguments.separate_from(arguments_begin)?;
                    let mut writer = ArgumentWriter {
                        json: arguments,
                        texts: &sequence.texts,
                        schema: &self.schema,
                    };
                    writer.push(value.bytes())?;
                }
                6 => legacy = Some(value.bytes()),
                9 => kind = value.number(),
                10 => event.name = sequence.event_name(value.number())?,
                11 => event.track = value.number(),
                12 => counted.push(value.number().cast_signed()),
                22 => categories.push(value.bytes()),
                23 => event.name = recorded.names.add(value.bytes())?,
                31 => counters.push(value.number()),
                36 | 42 | 47 | 48 => recorded.flows.push(Flow {
                    id: value.number(),
                    ends: matches!(number, 42 | 48),
                }),
                number if self.schema.is_argument(number) => {
                    arguments.separate_from(arguments_begin)?;
                    self.schema.push_argument(arguments, number, value)?;
                }
                _ => {}
            }
        }
        let category_bytes: usize = categories.iter().map(|category| category.len()).sum();
        if category_bytes > self.max_bytes {
            return Err(TooLarge);
        }
        event.thread_ns = sequence.thread_ns(&counters, &counted, &recorded.tracks);
        event.category = recorded.names.add(&categories.join(&b','))?;
        event.arguments = arguments_begin..recorded.arguments.len();
        event.flows = flows_begin..recorded.flows.len();
        let legacy = legacy.map(|legacy| LegacyEvent::read(legacy, &mut recorded.names));
        let legacy = legacy.transpose()?;
        event.kind = match (kind, legacy) {
            (BEGIN, _) => EventKind::Begin,
            (END, _) => EventKind::End,
            (INSTANT, _) => EventKind::Instant,
            (0, Some(legacy)) if legacy.phase != 0 => EventKind::Legacy(Box::new(LegacyEvent {
                writer: sequence.default_track,
                ..legacy
            })),
            // A counter, or a kind that is not known.
            _ => return Ok(()),
        };
        recorded.events.push(event);
        Ok(())
    }
}

impl LegacyEvent {
    fn read(bytes: &[u8], names: &mut Names) -> Result<Self, ConversionError> {
        let mut event = Self::default();
        for field in fields(bytes) {
            let (number, value) = field?;
            let signed = value.number().cast_signed();
            match number {
                2 => event.phase = u8::try_from(signed).unwrap_or_default(),
                3 => event.duration_us = Some(signed),
                4 => event.thread_duration_us = Some(signed),
                6 => event.unscoped_id = Some(value.number()),
                7 => event.id_scope = Some(names.add(value.bytes())?),
                10 => event.local_id = Some(value.number()),
                11 => event.global_id = Some(value.number()),
                14 => event.instant_scope = value.number(),
                18 => event.pid = Some(signed),
                19 => event.tid = Some(signed),
                _ => {}
            }
        }
        Ok(event)
    }
}
