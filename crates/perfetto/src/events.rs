//! Writes the recorded events as JSON.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use crate::ConversionError;
use crate::packets::{Event, EventKind, Flow, LegacyEvent, Recorded};
use crate::tracks::{Place, Thread};

/// Calls `add` with the JSON of each event, in order of time.
pub(crate) fn write<E: From<ConversionError>>(
    recorded: &Recorded,
    add: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let order = order_of_time(&recorded.events);
    let mut writer = Writer {
        recorded,
        partners: partners(&recorded.events, &order),
        flows: HashMap::new(),
        last_flow: 0,
        json: String::new(),
        add,
    };
    writer.write_names()?;
    for index in order {
        writer.write_event(index)?;
    }
    Ok(())
}

/// Returns the indices of the events in order of time.
fn order_of_time(events: &[Event]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|&index| events[index].ts_ns);
    order
}

/// Returns, for each begin of a slice, the index of its end, and the other way round. On a track, a
/// slice ends before those that began before it.
fn partners(events: &[Event], order: &[usize]) -> Vec<Option<usize>> {
    let mut open = HashMap::<u64, Vec<usize>>::new();
    let mut partners = vec![None; events.len()];
    for &index in order {
        let event = &events[index];
        match event.kind {
            EventKind::Begin => open.entry(event.track).or_default().push(index),
            EventKind::End => {
                if let Some(begin) = open.get_mut(&event.track).and_then(Vec::pop) {
                    partners[begin] = Some(index);
                    partners[index] = Some(begin);
                }
            }
            EventKind::Instant | EventKind::Legacy(_) => {}
        }
    }
    partners
}

struct Writer<'r, F> {
    recorded: &'r Recorded,
    partners: Vec<Option<usize>>,
    /// The last event of each flow that goes on.
    flows: HashMap<u64, &'r Event>,
    last_flow: u64,
    /// The event that is being written.
    json: String,
    add: F,
}

impl<'r, E: From<ConversionError>, F: FnMut(&str) -> Result<(), E>> Writer<'r, F> {
    /// Writes the names of processes and threads.
    fn write_names(&mut self) -> Result<(), E> {
        let tracks = &self.recorded.tracks;
        let processes = tracks.process_names.iter().map(|(&pid, &name)| {
            let process = Thread { pid, tid: 0 };
            (process, "process_name", name)
        });
        let threads = tracks.thread_names.iter();
        let threads = threads.map(|(&thread, &name)| (thread, "thread_name", name));
        let mut all: Vec<_> = processes.chain(threads).collect();
        all.sort_by_key(|(thread, ..)| *thread);
        for (Thread { pid, tid }, kind, name) in all {
            let name = self.recorded.names.json(name);
            (self.add)(&format!(
                r#"{{"args":{{"name":{name}}},"cat":"__metadata","name":"{kind}","ph":"M","pid":{pid},"tid":{tid},"ts":0}}"#
            ))?;
        }
        Ok(())
    }

    fn write_event(&mut self, index: usize) -> Result<(), E> {
        let events = &self.recorded.events;
        let event = &events[index];
        let partner = self.partners[index].map(|index| &events[index]);
        match (&event.kind, partner) {
            (EventKind::Begin, end) => self.write_begin(event, end)?,
            (EventKind::End, Some(begin)) => self.write_end(event, begin)?,
            (EventKind::End, None) => {}
            (EventKind::Instant, _) => self.write_instant(event)?,
            (EventKind::Legacy(legacy), _) => self.write_legacy(event, legacy)?,
        }
        self.write_flows(event)
    }

    /// Writes the slice of a thread, or the begin of an operation.
    fn write_begin(&mut self, begin: &Event, end: Option<&Event>) -> Result<(), E> {
        let duration_ns = end.map(|end| end.ts_ns - begin.ts_ns);
        match self.recorded.tracks.place(begin.track) {
            Place::Thread(thread) => self.write_slice(begin, end, duration_ns, thread),
            Place::Operation(_) | Place::GlobalOperation => {
                // Chromium's export has no duration of an operation in which no time passed.
                let phase = if duration_ns == Some(0) { 'n' } else { 'b' };
                self.write_operation(begin, Arguments::of(begin, end), begin.ts_ns, phase)
            }
            // The JSON format has only instant events there.
            Place::Process(_) | Place::Global => Ok(()),
        }
    }

    fn write_slice(
        &mut self,
        begin: &Event,
        end: Option<&Event>,
        duration_ns: Option<u64>,
        thread: Thread,
    ) -> Result<(), E> {
        self.begin(begin, Arguments::of(begin, end), begin.ts_ns, thread);
        match duration_ns {
            // So is Chromium's export, as long as no time passed.
            Some(0) => self.push(format_args!(r#","ph":"I","s":"t""#)),
            Some(ns) => self.push(format_args!(r#","dur":{},"ph":"X""#, ns / 1000)),
            None => self.push(format_args!(r#","ph":"B""#)),
        }
        self.push_thread_time(begin);
        let end_ns = end.and_then(|end| end.thread_ns);
        if let (Some(1..), Some(begin_ns @ 1..), Some(end_ns)) =
            (duration_ns, begin.thread_ns, end_ns)
        {
            self.push(format_args!(
                r#","tdur":{}"#,
                end_ns.saturating_sub(begin_ns) / 1000
            ));
        }
        self.finish()
    }

    /// Writes the end of an operation. That of a slice is written with its begin.
    fn write_end(&mut self, end: &Event, begin: &Event) -> Result<(), E> {
        match self.recorded.tracks.place(begin.track) {
            Place::Operation(_) | Place::GlobalOperation if end.ts_ns > begin.ts_ns => {
                self.write_operation(begin, Arguments::default(), end.ts_ns, 'e')
            }
            _ => Ok(()),
        }
    }

    fn write_operation(
        &mut self,
        event: &Event,
        arguments: Arguments,
        ts_ns: u64,
        phase: char,
    ) -> Result<(), E> {
        let track = event.track;
        if let Place::Operation(thread) = self.recorded.tracks.place(track) {
            self.begin(event, arguments, ts_ns, thread);
            self.push(format_args!(r#","id2":{{"local":"0x{track:x}"}}"#));
        } else {
            self.begin(event, arguments, ts_ns, Thread::default());
            self.push(format_args!(r#","id":"0x{track:x}""#));
        }
        self.push(format_args!(r#","ph":"{phase}""#));
        self.finish()
    }

    fn write_instant(&mut self, event: &Event) -> Result<(), E> {
        let arguments = Arguments::of(event, None);
        let (thread, scope) = match self.recorded.tracks.place(event.track) {
            Place::Thread(thread) => (thread, 't'),
            Place::Process(pid) => (Thread { pid, tid: pid }, 'p'),
            Place::Global => (Thread::default(), 'g'),
            Place::Operation(_) | Place::GlobalOperation => {
                return self.write_operation(event, arguments, event.ts_ns, 'n');
            }
        };
        self.begin(event, arguments, event.ts_ns, thread);
        self.push(format_args!(r#","ph":"I","s":"{scope}""#));
        if scope == 't' {
            self.push_thread_time(event);
        }
        self.finish()
    }

    fn write_legacy(&mut self, event: &Event, legacy: &LegacyEvent) -> Result<(), E> {
        const PROCESS: u64 = 2;
        const THREAD: u64 = 3;
        let mut thread = self.thread_of(legacy.writer);
        thread.pid = legacy.pid.unwrap_or(thread.pid);
        thread.tid = legacy.tid.unwrap_or(thread.tid);
        self.begin(event, Arguments::of(event, None), event.ts_ns, thread);
        let phase = char::from(legacy.phase).escape_default();
        self.push(format_args!(r#","ph":"{phase}""#));
        if let Some(us) = legacy.duration_us {
            self.push(format_args!(r#","dur":{us}"#));
        }
        if let Some(us) = legacy.thread_duration_us {
            self.push(format_args!(r#","tdur":{us}"#));
        }
        if let Some(id) = legacy.unscoped_id {
            self.push(format_args!(r#","id":"0x{id:x}""#));
        } else if let Some(id) = legacy.global_id {
            self.push(format_args!(r#","id2":{{"global":"0x{id:x}"}}"#));
        } else if let Some(id) = legacy.local_id {
            self.push(format_args!(r#","id2":{{"local":"0x{id:x}"}}"#));
        }
        if let Some(scope) = legacy.id_scope {
            let scope = self.recorded.names.json(scope);
            self.push(format_args!(r#","scope":{scope}"#));
        }
        let is_instant = matches!(legacy.phase, b'I' | b'i' | b'R');
        match legacy.instant_scope {
            0 if !is_instant => {}
            0 | THREAD => self.push(format_args!(r#","s":"t""#)),
            PROCESS => self.push(format_args!(r#","s":"p""#)),
            _ => self.push(format_args!(r#","s":"g""#)),
        }
        self.push_thread_time(event);
        self.finish()
    }

    /// Writes an arrow from the last event of each flow to this one, with the name of the former.
    fn write_flows(&mut self, event: &'r Event) -> Result<(), E> {
        for &Flow { id, ends } in &self.recorded.flows[event.flows.clone()] {
            let last = if ends {
                self.flows.remove(&id)
            } else {
                self.flows.insert(id, event)
            };
            if let Some(last) = last {
                self.last_flow += 1;
                self.write_arrow(last, last, r#","ph":"s""#)?;
                self.write_arrow(last, event, r#","bp":"e","ph":"f""#)?;
            }
        }
        Ok(())
    }

    fn write_arrow(&mut self, from: &Event, at: &Event, members: &str) -> Result<(), E> {
        let (thread, id) = (self.thread_of(at.track), self.last_flow);
        self.begin(from, Arguments::default(), at.ts_ns, thread);
        self.push(format_args!(r#","id":{id}{members}"#));
        self.finish()
    }

    /// Returns the thread of a track.
    fn thread_of(&self, track: u64) -> Thread {
        match self.recorded.tracks.place(track) {
            Place::Thread(thread) | Place::Operation(thread) => thread,
            Place::Process(pid) => Thread { pid, tid: pid },
            Place::Global | Place::GlobalOperation => Thread::default(),
        }
    }

    /// Begins to write an event with the members that all have.
    fn begin(&mut self, event: &Event, arguments: Arguments, ts_ns: u64, thread: Thread) {
        let (names, all) = (&self.recorded.names, self.recorded.arguments.text());
        self.json.clear();
        self.json.push_str(r#"{"args":{"#);
        self.json.push_str(&all[arguments.of_begin.clone()]);
        if !arguments.of_begin.is_empty() && !arguments.of_end.is_empty() {
            self.json.push(',');
        }
        self.json.push_str(&all[arguments.of_end]);
        let (category, name) = (names.json(event.category), names.json(event.name));
        let (Thread { pid, tid }, ts_us) = (thread, ts_ns / 1000);
        self.push(format_args!(
            r#"}},"cat":{category},"name":{name},"pid":{pid},"tid":{tid},"ts":{ts_us}"#
        ));
    }

    fn push_thread_time(&mut self, event: &Event) {
        // Threads whose processor time is not counted have none.
        if let Some(ns @ 1..) = event.thread_ns {
            self.push(format_args!(r#","tts":{}"#, ns / 1000));
        }
    }

    fn push(&mut self, members: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.json.write_fmt(members);
    }

    fn finish(&mut self) -> Result<(), E> {
        self.json.push('}');
        (self.add)(&self.json)
    }
}

/// The places of an event's arguments.
#[derive(Debug, Clone, Default)]
struct Arguments {
    of_begin: Range<usize>,
    of_end: Range<usize>,
}

impl Arguments {
    fn of(begin: &Event, end: Option<&Event>) -> Self {
        Self {
            of_begin: begin.arguments.clone(),
            of_end: end.map(|end| end.arguments.clone()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
