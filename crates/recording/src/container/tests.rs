use proptest::prelude::*;

use super::*;
use crate::testing::{exchange, recording, recording_of, recordings};

/// Returns a container with members.
fn container(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    for (name, content) in members {
        writer.add(name, content).unwrap();
    }
    writer.finish().unwrap()
}

/// Returns the error for a description with one exchange, after a text in it was replaced.
fn error_after(from: &str, to: &str, bodies: &[u8]) -> String {
    let recording = recording_of(vec![exchange("https://a.test/", "text/html", "abc")]);
    let packed = recording.pack().unwrap();
    let packed = Container::open(&packed, LIMITS).unwrap();
    let text = String::from_utf8(packed.read(RECORDING).unwrap().unwrap()).unwrap();
    assert!(text.contains(from), "{text}");
    let changed = container(&[
        (RECORDING, text.replace(from, to).as_bytes()),
        (BODIES, bodies),
    ]);
    Recording::unpack(&changed).unwrap_err().to_string()
}

#[test]
fn equal_bodies_are_stored_once() {
    // Bytes that do not compress.
    let noise: String = (0..5000_u32)
        .map(|n| char::from(32 + (n.wrapping_mul(n).wrapping_mul(2_654_435_761) >> 25) as u8 % 90))
        .collect();
    let once = recording_of(vec![exchange("https://a.test/0", "text/plain", &noise)]);
    let often = (0..40).map(|n| exchange(&format!("https://a.test/{n}"), "text/plain", &noise));
    let often = recording_of(often.collect());
    let (once, packed) = (once.pack().unwrap(), often.pack().unwrap());
    assert!(packed.len() < once.len() + 1500, "{}", packed.len());
    assert_eq!(Recording::unpack(&packed).unwrap(), often);
}

#[test]
fn more_bodies_than_a_container_has_members_can_be_packed() {
    let numbers = (0..2000).map(|n| n.to_string());
    let exchanges =
        numbers.map(|n| exchange(&format!("https://a.test/{n}"), "text/plain", &n.repeat(9)));
    let recording = recording_of(exchanges.collect());
    let packed = recording.pack().unwrap();
    assert_eq!(Recording::unpack(&packed).unwrap(), recording);
}

#[test]
fn a_default_is_not_written() {
    let packed = recording().pack().unwrap();
    let packed = Container::open(&packed, LIMITS).unwrap();
    let text = String::from_utf8(packed.read(RECORDING).unwrap().unwrap()).unwrap();
    assert!(!text.contains("handling"), "{text}");
}

#[test]
fn files_of_another_kind_are_named_as_such() {
    let bundle = container(&[("meta", b"{}")]);
    for bytes in [&b""[..], b"{}", b"\x1f\x8b\x08", &bundle] {
        let error = Recording::unpack(bytes).unwrap_err();
        assert!(matches!(error, RecordingError::NoRecording), "{error}");
    }
}

#[test]
fn a_newer_format_is_reported() {
    let error = error_after("\"format\":1", "\"format\":2", b"abc");
    assert!(error.contains("newer"), "{error}");
}

#[test]
fn sizes_that_do_not_add_up_are_refused() {
    for (from, to, bodies) in [
        ("\"bodySizes\":[3]", "\"bodySizes\":[2]", &b"abc"[..]),
        (
            "\"bodySizes\":[3]",
            "\"bodySizes\":[18446744073709551615]",
            b"abc",
        ),
        ("\"bodySizes\":[3]", "\"bodySizes\":[3]", b"abcd"),
        ("\"exchangeBodies\":[0]", "\"exchangeBodies\":[1]", b"abc"),
        ("\"exchangeBodies\":[0]", "\"exchangeBodies\":[]", b"abc"),
        (
            "\"exchangeBodies\":[0]",
            "\"exchangeBodies\":[null]",
            b"abc",
        ),
        ("\"bytes\":3", "\"bytes\":4", b"abc"),
    ] {
        let error = error_after(from, to, bodies);
        assert!(error.contains("bod"), "{to}: {error}");
    }
}

#[test]
fn a_body_without_a_response_is_refused() {
    let mut recording = recording_of(vec![exchange("https://a.test/", "text/html", "abc")]);
    recording.exchanges[0].response = None;
    let packed = recording.pack().unwrap();
    let packed = Container::open(&packed, LIMITS).unwrap();
    let text = String::from_utf8(packed.read(RECORDING).unwrap().unwrap()).unwrap();
    let text = text.replace("\"exchangeBodies\":[null]", "\"exchangeBodies\":[0]");
    let text = text.replace("\"bodySizes\":[]", "\"bodySizes\":[3]");
    let changed = container(&[(RECORDING, text.as_bytes()), (BODIES, b"abc")]);
    let error = Recording::unpack(&changed).unwrap_err();
    assert!(matches!(error, RecordingError::Bodies), "{error}");
}

#[test]
fn a_body_that_is_repeated_beyond_the_limit_is_refused() {
    let body = "a".repeat(1 << 20);
    let one = exchange("https://a.test/", "text/plain", &body);
    let many = recording_of(vec![one; 257]);
    assert!(matches!(
        many.pack(),
        Err(RecordingError::Invalid(InvalidRecording::TooLarge))
    ));
}

#[test]
fn a_header_that_would_end_its_line_is_refused() {
    let error = error_after("text/html", "text/html\\r\\nx: y", b"abc");
    assert!(error.contains("header"), "{error}");
}

proptest! {
    #[test]
    fn an_unpacked_recording_equals_the_packed_one(recording in recordings()) {
        let packed = recording.pack().unwrap();
        prop_assert_eq!(Recording::unpack(&packed).unwrap(), recording);
    }

    #[test]
    fn no_bytes_make_unpacking_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Recording::unpack(&bytes);
        let _ = Recording::unpack(&container(&[(RECORDING, &bytes), (BODIES, b"")]));
    }

    #[test]
    fn no_change_of_a_packed_recording_makes_unpacking_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let mut packed = recording().pack().unwrap();
        let _ = Recording::unpack(&packed[..end.index(packed.len())]);
        for (position, byte) in changes {
            let position = position.index(packed.len());
            packed[position] = byte;
        }
        let _ = Recording::unpack(&packed);
    }

    #[test]
    fn no_change_of_a_description_makes_unpacking_panic(
        position in any::<prop::sample::Index>(),
        text in "[0-9\\-\"{}\\[\\]a-z,:]{0,3}",
    ) {
        let packed = recording().pack().unwrap();
        let packed = Container::open(&packed, LIMITS).unwrap();
        let mut description = packed.read(RECORDING).unwrap().unwrap();
        let bodies = packed.read(BODIES).unwrap().unwrap();
        let position = position.index(description.len());
        description.splice(position..position + 1, text.into_bytes());
        let changed = container(&[(RECORDING, &description), (BODIES, &bodies)]);
        let _ = Recording::unpack(&changed);
    }
}
