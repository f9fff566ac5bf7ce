use serde_json::{Value, json};

use crate::wire::testing::{Message, message};
use crate::{ConversionError, convert};

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

/// A trace under construction: sequence 1 of the main thread of a renderer, with times in
/// microseconds since the packet before.
struct Trace(Message);

impl Trace {
    fn new() -> Self {
        let thread = message()
            .varint(1, 7)
            .varint(2, 9)
            .bytes(5, "CrRendererMain");
        let process = message().varint(1, 7).bytes(6, "Renderer");
        let thread_time = message().varint(1, 1).varint(4, 1000).varint(5, 1);
        let track = |uuid| message().varint(1, uuid);
        let trace = Self(message())
            .track(track(1).message(3, process).message(6, message()))
            .track(track(2).varint(5, 1).message(4, thread))
            .track(track(3).varint(5, 2).message(8, thread_time))
            .track(track(4).varint(5, 2))
            .track(track(5));
        let defaults = message().varint(11, 2).varint(31, 3);
        let defaults = message().varint(58, 64).message(11, defaults);
        let clock = |id, time| message().varint(1, id).varint(2, time);
        let clocks = message()
            .message(1, clock(3, 1_000_900))
            .message(1, clock(64, 1000).varint(3, 1).varint(4, 1000));
        let name = |id, name: &str| message().varint(1, id).bytes(2, name);
        let interned = message()
            .message(1, name(1, "devtools.timeline"))
            .message(1, name(2, "rail"))
            .message(2, name(1, "Layout"))
            .message(2, name(2, "Paint"))
            .message(3, name(1, "beginData"))
            .message(3, name(2, "endData"));
        let state = message()
            .varint(10, 1)
            .varint(13, 1)
            .message(6, clocks)
            .message(59, defaults)
            .message(12, interned);
        trace.packet(state)
    }

    fn packet(self, packet: Message) -> Self {
        Self(self.0.message(1, packet))
    }

    fn track(self, descriptor: Message) -> Self {
        self.packet(message().varint(10, 1).message(60, descriptor))
    }

    fn event(self, after_us: u64, event: Message) -> Self {
        let packet = message().varint(8, after_us).varint(10, 1).varint(13, 2);
        self.packet(packet.message(11, event))
    }

    fn json(&self) -> Result<Vec<Value>, ConversionError> {
        let mut events = Vec::new();
        convert(&self.0.0, 10_000, |event| {
            events.push(serde_json::from_str(event).unwrap());
            Ok(())
        })
        .map(|()| events)
    }

    /// Returns the events besides the names of threads and processes, as far as their members are
    /// among these.
    fn members(&self, members: &[&str]) -> Vec<Value> {
        let events = self.json().unwrap().into_iter();
        let events = events.filter(|event| event["ph"] != "M");
        events
            .map(|mut event| {
                let all = event.as_object_mut().unwrap();
                all.retain(|name, _| members.contains(&name.as_str()));
                event
            })
            .collect()
    }
}

fn event(kind: u64) -> Message {
    message().varint(9, kind).varint(3, 1)
}

fn argument(name: u64, value: u64) -> Message {
    message().varint(1, name).varint(3, value)
}

#[test]
fn a_slice_of_a_thread_is_a_complete_event() {
    let trace = Trace::new()
        .event(
            10,
            event(BEGIN)
                .varint(3, 2)
                .varint(10, 1)
                .varint(12, 5)
                .message(4, argument(1, 8)),
        )
        .event(30, event(END).varint(12, 20).message(4, argument(2, 9)));
    let names = |name: &str, kind: &str, tid: u64| json!({"args": {"name": name}, "cat": "__metadata", "name": kind, "ph": "M", "pid": 7, "tid": tid, "ts": 0});
    let slice = json!({
        "args": {"beginData": 8, "endData": 9}, "cat": "devtools.timeline,rail", "name": "Layout",
        "pid": 7, "tid": 9, "ts": 1010, "dur": 30, "ph": "X", "tts": 5, "tdur": 20,
    });
    let expected = [
        names("Renderer", "process_name", 0),
        names("CrRendererMain", "thread_name", 9),
        slice,
    ];
    assert_eq!(trace.json().unwrap(), expected);
}

#[test]
fn slices_within_each_other_end_in_reverse_order() {
    let trace = Trace::new()
        .event(10, event(BEGIN).varint(10, 1))
        .event(10, event(BEGIN).varint(10, 2))
        .event(10, event(END))
        .event(10, event(END))
        .event(10, event(END));
    let expected = [
        json!({"name": "Layout", "ts": 1010, "dur": 30, "ph": "X"}),
        json!({"name": "Paint", "ts": 1020, "dur": 10, "ph": "X"}),
    ];
    assert_eq!(trace.members(&["name", "ts", "dur", "ph"]), expected);
}

#[test]
fn a_slice_without_duration_or_end_has_another_phase() {
    let trace = Trace::new()
        .event(10, event(BEGIN).varint(10, 1).varint(12, 1))
        .event(0, event(END).varint(12, 0))
        .event(10, event(BEGIN).varint(10, 2).varint(12, 1));
    let expected = [
        json!({"ts": 1010, "ph": "I", "s": "t", "tts": 1}),
        json!({"ts": 1020, "ph": "B", "tts": 2}),
    ];
    assert_eq!(
        trace.members(&["ts", "ph", "s", "tts", "tdur", "dur"]),
        expected
    );
}

#[test]
fn operations_have_a_begin_and_an_end_with_the_id_of_their_track() {
    let on = |track, kind| event(kind).varint(10, 1).varint(11, track);
    let trace = Trace::new()
        .event(10, on(4, BEGIN).message(4, argument(1, 8)))
        .event(10, on(5, BEGIN))
        .event(10, on(4, END))
        .event(10, on(5, END))
        .event(10, on(4, BEGIN))
        .event(0, on(4, END))
        .event(10, on(4, INSTANT));
    let of_thread = |ts: u64, phase: &str, args: Value| json!({"ts": ts, "ph": phase, "id2": {"local": "0x4"}, "pid": 7, "tid": 9, "args": args});
    let global = |ts: u64, phase: &str| json!({"ts": ts, "ph": phase, "id": "0x5", "pid": 0, "tid": 0, "args": {}});
    let expected = [
        of_thread(1010, "b", json!({"beginData": 8})),
        global(1020, "b"),
        of_thread(1030, "e", json!({})),
        global(1040, "e"),
        of_thread(1050, "n", json!({})),
        of_thread(1060, "n", json!({})),
    ];
    assert_eq!(
        trace.members(&["ts", "ph", "id", "id2", "pid", "tid", "args"]),
        expected
    );
}

#[test]
fn instant_events_have_the_scope_of_their_track() {
    let trace = Trace::new()
        .event(1, event(INSTANT))
        .event(1, event(INSTANT).varint(11, 1))
        .event(1, event(INSTANT).varint(11, 0));
    let expected = [
        json!({"ph": "I", "s": "t", "pid": 7, "tid": 9}),
        json!({"ph": "I", "s": "p", "pid": 7, "tid": 7}),
        json!({"ph": "I", "s": "g", "pid": 0, "tid": 0}),
    ];
    assert_eq!(trace.members(&["ph", "s", "pid", "tid"]), expected);
}

#[test]
fn events_of_the_older_format_keep_their_phase_and_ids() {
    let legacy = |legacy| message().varint(3, 1).varint(10, 1).message(6, legacy);
    let mark = message().varint(2, u64::from(b'R'));
    let sample = message()
        .varint(2, u64::from(b'P'))
        .varint(6, 0x1f)
        .bytes(7, "scope");
    let local = message()
        .varint(2, u64::from(b'X'))
        .varint(3, 40)
        .varint(4, 30)
        .varint(10, 2)
        .varint(19, 5);
    let trace = Trace::new()
        .event(1, legacy(mark))
        // As V8 writes its samples: on no track.
        .event(1, legacy(sample).varint(11, 0))
        .event(1, legacy(local));
    let expected = [
        json!({"ph": "R", "s": "t", "tid": 9}),
        json!({"ph": "P", "id": "0x1f", "scope": "scope", "tid": 9}),
        json!({"ph": "X", "dur": 40, "tdur": 30, "id2": {"local": "0x2"}, "tid": 5}),
    ];
    let members = ["ph", "s", "id", "id2", "scope", "dur", "tdur", "tid"];
    assert_eq!(trace.members(&members), expected);
}

#[test]
fn a_flow_is_an_arrow_from_each_of_its_events_to_the_next() {
    let on = |track, flow| {
        event(INSTANT)
            .varint(10, 1)
            .varint(11, track)
            .fixed64(flow, 77)
    };
    let trace = Trace::new()
        .event(1, on(2, 47))
        .event(1, on(1, 47))
        .event(1, on(2, 48))
        .event(1, on(2, 47));
    let arrows = trace.members(&["ph", "id", "bp", "ts", "tid"]);
    let arrows: Vec<_> = arrows.iter().filter(|event| event["ph"] != "I").collect();
    let from = |id: u64, ts: u64, tid: u64| json!({"ph": "s", "id": id, "ts": ts, "tid": tid});
    let to =
        |id: u64, ts: u64, tid: u64| json!({"ph": "f", "bp": "e", "id": id, "ts": ts, "tid": tid});
    let expected = [
        from(1, 1001, 9),
        to(1, 1002, 7),
        from(2, 1002, 7),
        to(2, 1003, 9),
    ];
    assert_eq!(arrows, expected.iter().collect::<Vec<_>>());
}

#[test]
fn events_of_several_sequences_are_in_order_of_time() {
    let at = |ns| message().varint(8, ns).varint(10, 2).varint(58, 3);
    let trace = Trace::new()
        .event(10, event(INSTANT))
        .event(10, event(INSTANT))
        .packet(at(1_015_999).message(11, message().varint(9, INSTANT).bytes(23, "Other")));
    let times: Vec<_> = trace
        .members(&["ts"])
        .iter()
        .map(|event| event["ts"].clone())
        .collect();
    assert_eq!(times, [1010, 1015, 1020]);
}

#[test]
fn packets_that_were_lost_are_an_error() {
    let lost = message().varint(10, 1).varint(42, 1).varint(13, 2);
    assert_eq!(Trace::new().packet(lost).json(), Err(ConversionError::Lost));
    let unknown = event(INSTANT).varint(10, 99);
    assert_eq!(
        Trace::new().event(1, unknown).json(),
        Err(ConversionError::Lost)
    );
}

#[test]
fn what_is_no_trace_or_too_large_is_an_error() {
    let trace = Trace(message().bytes(1, [0xff]));
    assert_eq!(trace.json(), Err(ConversionError::Malformed));
    let mut many = Trace::new();
    for _ in 0..=10_000 / 50 + 1 {
        many = many.event(1, event(BEGIN)).event(1, event(END));
    }
    assert_eq!(many.json(), Err(ConversionError::TooLarge));
    let text = message().varint(1, 1).bytes(6, "x".repeat(10_001));
    let trace = Trace::new().event(1, event(INSTANT).message(4, text));
    assert_eq!(trace.json(), Err(ConversionError::TooLarge));
}
