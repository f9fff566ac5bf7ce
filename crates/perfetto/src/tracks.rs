//! Tracks: the threads, processes, asynchronous operations and counters that events belong to.

use std::collections::HashMap;

use crate::ConversionError;
use crate::names::{NameId, Names};
use crate::wire::fields;

/// The maximum number of tracks from one to the process that it belongs to.
const MAX_PARENTS: usize = 16;

/// The type of a counter with the processor time of a thread.
const THREAD_TIME: u64 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Track {
    parent: Option<u64>,
    process: Option<i64>,
    thread: Option<Thread>,
    counter: Option<Counter>,
}

/// A thread with the id of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Thread {
    pub(crate) pid: i64,
    pub(crate) tid: i64,
}

/// A counter of the processor time of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    /// The number of nanoseconds of one.
    pub(crate) unit_ns: u64,
    /// Whether values are differences to the one before.
    pub(crate) is_incremental: bool,
}

/// The kind of the track of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Thread(Thread),
    Process(i64),
    /// An asynchronous operation of a thread or a process.
    Operation(Thread),
    /// An operation that belongs to no process.
    GlobalOperation,
    Global,
}

/// All tracks of a trace, and the names of its threads and processes.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    tracks: HashMap<u64, Track>,
    pub(crate) thread_names: HashMap<Thread, NameId>,
    pub(crate) process_names: HashMap<i64, NameId>,
}

impl Tracks {
    /// Adds the track of a `TrackDescriptor`, or what it says of a known one.
    pub(crate) fn add(
        &mut self,
        descriptor: &[u8],
        names: &mut Names,
    ) -> Result<(), ConversionError> {
        let (mut uuid, mut track) = (0, Track::default());
        let (mut process_name, mut is_chrome_process) = (None, false);
        for field in fields(descriptor) {
            match field? {
                (1, value) => uuid = value.number(),
                (3, process) => {
                    for field in fields(process.bytes()) {
                        match field? {
                            (1, pid) => track.process = Some(pid.number().cast_signed()),
                            (6, name) => process_name = Some(name.bytes()),
                            _ => {}
                        }
                    }
                }
                (4, descriptor) => {
                    let (mut thread, mut name) = (Thread::default(), None);
                    for field in fields(descriptor.bytes()) {
                        match field? {
                            (1, pid) => thread.pid = pid.number().cast_signed(),
                            (2, tid) => thread.tid = tid.number().cast_signed(),
                            (5, text) => name = Some(text.bytes()),
                            _ => {}
                        }
                    }
                    if let Some(name) = name {
                        self.thread_names.insert(thread, names.add(name)?);
                    }
                    track.thread = Some(thread);
                }
                (5, parent) => track.parent = Some(parent.number()),
                (6, _) => is_chrome_process = true,
                (8, counter) => track.counter = read_counter(counter.bytes())?,
                _ => {}
            }
        }
        // Without a type, the name of a process is its command.
        if let (Some(pid), Some(name), true) = (track.process, process_name, is_chrome_process) {
            self.process_names.insert(pid, names.add(name)?);
        }
        let known = self.tracks.entry(uuid).or_default();
        known.parent = track.parent.or(known.parent);
        known.process = track.process.or(known.process);
        known.thread = track.thread.or(known.thread);
        known.counter = track.counter.or(known.counter);
        Ok(())
    }

    /// Returns the counter of thread time with this id.
    pub(crate) fn counter(&self, uuid: u64) -> Option<Counter> {
        self.tracks.get(&uuid)?.counter
    }

    /// Returns the kind of a track.
    pub(crate) fn place(&self, uuid: u64) -> Place {
        let Some(track) = self.tracks.get(&uuid) else {
            return if uuid == 0 {
                Place::Global
            } else {
                Place::GlobalOperation
            };
        };
        if let Some(thread) = track.thread {
            return Place::Thread(thread);
        }
        if let Some(pid) = track.process {
            return Place::Process(pid);
        }
        let mut parent = track.parent;
        for _ in 0..MAX_PARENTS {
            let Some(track) = parent.and_then(|uuid| self.tracks.get(&uuid)) else {
                break;
            };
            if let Some(thread) = track.thread {
                return Place::Operation(thread);
            }
            if let Some(pid) = track.process {
                return Place::Operation(Thread { pid, tid: pid });
            }
            parent = track.parent;
        }
        Place::GlobalOperation
    }
}

/// Returns the counter of a descriptor, if it counts thread time.
fn read_counter(descriptor: &[u8]) -> Result<Option<Counter>, ConversionError> {
    let mut kind = 0;
    let mut counter = Counter {
        unit_ns: 1,
        is_incremental: false,
    };
    for field in fields(descriptor) {
        match field? {
            (1, value) => kind = value.number(),
            (4, unit) => counter.unit_ns = unit.number(),
            (5, value) => counter.is_incremental = value.number() != 0,
            _ => {}
        }
    }
    Ok((kind == THREAD_TIME).then_some(counter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::{Message, message};

    const THREAD: Thread = Thread { pid: 7, tid: 9 };

    fn tracks() -> (Tracks, Names) {
        let (mut tracks, mut names) = (Tracks::default(), Names::within(1000));
        let thread = message()
            .varint(1, 7)
            .varint(2, 9)
            .bytes(5, "CrRendererMain");
        let process = message().varint(1, 7).bytes(6, "Renderer");
        let command = message()
            .varint(1, 8)
            .bytes(6, "/bin/chromium --type=renderer");
        let counter = message().varint(1, 1).varint(4, 1000).varint(5, 1);
        let child = |uuid, parent| message().varint(1, uuid).varint(5, parent);
        let all: [Message; 8] = [
            message()
                .varint(1, 1)
                .message(3, process)
                .message(6, message().varint(1, 2)),
            message().varint(1, 2).varint(5, 1).message(4, thread),
            child(3, 2),
            child(4, 3),
            child(5, 1),
            message().varint(1, 6).message(3, command),
            child(7, 2).message(8, counter),
            child(8, 8),
        ];
        for descriptor in all {
            tracks.add(&descriptor.0, &mut names).unwrap();
        }
        (tracks, names)
    }

    #[test]
    fn a_track_has_the_place_of_its_nearest_ancestor() {
        let (tracks, _) = tracks();
        assert_eq!(tracks.place(0), Place::Global);
        assert_eq!(tracks.place(1), Place::Process(7));
        assert_eq!(tracks.place(2), Place::Thread(THREAD));
        assert_eq!(tracks.place(4), Place::Operation(THREAD));
        assert_eq!(tracks.place(5), Place::Operation(Thread { pid: 7, tid: 7 }));
        assert_eq!(tracks.place(8), Place::GlobalOperation);
        assert_eq!(tracks.place(99), Place::GlobalOperation);
    }

    #[test]
    fn threads_and_processes_have_names_and_no_commands() {
        let (tracks, names) = tracks();
        let thread = tracks.thread_names[&THREAD];
        assert_eq!(names.json(thread), r#""CrRendererMain""#);
        assert_eq!(tracks.process_names.len(), 1);
        assert_eq!(names.json(tracks.process_names[&7]), r#""Renderer""#);
    }

    #[test]
    fn a_later_descriptor_adds_to_an_earlier_one() {
        let (mut tracks, mut names) = tracks();
        tracks.add(&message().varint(1, 2).0, &mut names).unwrap();
        assert_eq!(tracks.place(2), Place::Thread(THREAD));
    }

    #[test]
    fn only_counters_of_thread_time_are_kept() {
        let (tracks, _) = tracks();
        let counter = Counter {
            unit_ns: 1000,
            is_incremental: true,
        };
        assert_eq!(tracks.counter(7), Some(counter));
        assert_eq!(tracks.counter(2), None);
        assert_eq!(read_counter(&message().varint(1, 2).0), Ok(None));
    }
}
