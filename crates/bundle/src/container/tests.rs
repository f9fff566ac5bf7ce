use super::*;

const LIMITS: Limits = Limits {
    member_bytes: 1 << 20,
    total_bytes: 3 << 19,
};

fn container(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    for (name, content) in members {
        writer.add(name, content).unwrap();
    }
    writer.finish().unwrap()
}

/// Returns a container of one member whose index says that it unpacks to `bytes`.
fn with_indexed_size(content: &[u8], bytes: u64) -> Vec<u8> {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    writer.add("a", content).unwrap();
    let packed_bytes = writer.index.members()[0].packed_bytes;
    writer.index = Index::default();
    writer.index.push("a", packed_bytes, bytes);
    writer.finish().unwrap()
}

fn read(bytes: &[u8], name: &str) -> Result<Option<Vec<u8>>, PackError> {
    Container::open(bytes, LIMITS)?.read(name)
}

#[test]
fn every_member_is_read_alone_and_unchanged() {
    let long = b"many events ".repeat(10_000);
    let bytes = container(&[("a", b"one"), ("b", &long), ("empty", b"")]);
    assert!(Container::is_container(&bytes));
    let names = Container::open(&bytes, LIMITS).unwrap();
    assert_eq!(names.names().collect::<Vec<_>>(), ["a", "b", "empty"]);
    assert_eq!(read(&bytes, "a").unwrap().unwrap(), b"one");
    assert_eq!(read(&bytes, "b").unwrap().unwrap(), long);
    assert_eq!(read(&bytes, "empty").unwrap().unwrap(), b"");
    assert_eq!(read(&bytes, "c").unwrap(), None);
    // A damaged member does not affect the others, and its checksum reveals it.
    let mut damaged = bytes.clone();
    let frame = Index::from_tail(&bytes).unwrap().unwrap().members()[1].range();
    damaged[frame.end as usize - 1] ^= 1;
    assert_eq!(read(&damaged, "a").unwrap().unwrap(), b"one");
    assert!(matches!(read(&damaged, "b"), Err(PackError::Unreadable(_))));
}

#[test]
fn a_container_is_a_valid_zstd_stream() {
    let bytes = container(&[("a", b"one, "), ("b", b"two")]);
    assert_eq!(zstd::decode_all(&bytes[..]).unwrap(), b"one, two");
}

#[test]
fn a_member_that_is_too_large_is_refused_before_it_is_unpacked() {
    let bomb = vec![0; (1 << 20) + 1];
    let packed = container(&[("a", &bomb)]);
    assert!(packed.len() < 1000, "{}", packed.len());
    let error = Container::open(&packed, LIMITS).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { max } if max == LIMITS.member_bytes));
    assert!(Container::open(&container(&[("a", &bomb[1..])]), LIMITS).is_ok());
}

#[test]
fn members_that_are_too_large_together_are_refused() {
    let part = vec![0; 1 << 19];
    let members: Vec<_> = ["a", "b", "c", "d"].map(|name| (name, &part[..])).into();
    assert!(Container::open(&container(&members[..3]), LIMITS).is_ok());
    let error = Container::open(&container(&members), LIMITS).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { max } if max == LIMITS.total_bytes));
    // The sum of the sizes must not overflow.
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    writer.index.push("a", 0, u64::MAX);
    writer.index.push("b", 0, u64::MAX);
    let error = Container::open(&writer.finish().unwrap(), LIMITS).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { .. }));
}

#[test]
fn a_member_that_unpacks_to_another_size_than_the_index_says_is_refused() {
    let bomb = vec![0; 64 << 20];
    for indexed in [0, 10, 1 << 20] {
        let packed = with_indexed_size(&bomb, indexed);
        assert!(packed.len() < 10_000, "{}", packed.len());
        assert!(matches!(read(&packed, "a"), Err(PackError::Unreadable(_))));
    }
    let packed = with_indexed_size(b"short", 6);
    assert!(matches!(read(&packed, "a"), Err(PackError::Unreadable(_))));
}

#[test]
fn a_frame_that_needs_a_large_window_is_refused() {
    let mut frame = Encoder::new(Vec::new(), LEVEL).unwrap();
    frame.window_log(MAX_WINDOW_LOG + 1).unwrap();
    frame.write_all(b"small").unwrap();
    let frame = frame.finish().unwrap();
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    let mut index = Index::default();
    index.push("a", frame.len() as u64, 5);
    let member = index.members()[0].clone();
    writer.add_frame(&member, &frame).unwrap();
    let packed = writer.finish().unwrap();
    assert!(matches!(read(&packed, "a"), Err(PackError::Unreadable(_))));
}

#[test]
fn bytes_that_are_cut_off_or_of_another_kind_are_refused() {
    let bytes = container(&[("a", b"one"), ("b", b"two")]);
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length], "a").is_err(), "{length}");
        assert!(read(&bytes[length + 1..], "a").is_err(), "{length}");
    }
    assert!(!Container::is_container(b"\x1f\x8b\x08 gzip"));
    assert!(!Container::is_container(b""));
    assert_eq!(Index::from_tail(b"\x1f\x8b\x08 gzip").unwrap(), None);
}

#[test]
fn an_index_of_a_newer_version_is_reported() {
    let bytes = container(&[]);
    let text = String::from_utf8_lossy(&bytes).replace("\"version\":1", "\"version\":9");
    let error = Index::from_tail(text.as_bytes()).unwrap_err();
    assert!(matches!(error, PackError::Newer { found: 9, .. }));
}

#[test]
fn an_index_whose_offsets_overflow_is_refused() {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    writer.add("a", b"one").unwrap();
    let mut bytes = writer.finish().unwrap();
    let text =
        br#"{"version":1,"members":[{"name":"a","packedBytes":18446744073709551615,"bytes":1}]}"#;
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&MAGIC);
    assert!(Index::from_tail(&bytes).is_err());
}

#[test]
fn more_members_than_the_tail_can_list_are_an_error() {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    for number in 0..1000 {
        writer.add(&number.to_string(), b"").unwrap();
    }
    assert!(writer.finish().is_err());
}

#[test]
fn a_part_is_a_container_of_its_own() {
    let noise: Vec<u8> = (0..100_000_u32)
        .map(|n| (n.wrapping_mul(n).wrapping_mul(31) >> 7) as u8)
        .collect();
    let bytes = container(&[
        ("a", b"one"),
        ("b", &noise),
        ("c", b"three"),
        ("d", b"four"),
    ]);
    let tail = &bytes[bytes.len() - 1000..];
    let index = Index::from_tail(tail).unwrap().unwrap();
    assert_eq!(index.container_bytes(), bytes.len() as u64);
    let part = Part::new(&index, |name| name != "b");
    let ranges = part.ranges();
    assert_eq!(ranges.len(), 2, "adjacent members are read together");
    let fetched: Vec<_> = ranges
        .iter()
        .map(|range| {
            (
                range.start,
                &bytes[range.start as usize..range.end as usize],
            )
        })
        .collect();
    let assembled = part.assemble(&fetched).unwrap();
    assert!(assembled.len() < 1000);
    assert_eq!(read(&assembled, "a").unwrap().unwrap(), b"one");
    assert_eq!(read(&assembled, "d").unwrap().unwrap(), b"four");
    assert_eq!(read(&assembled, "b").unwrap(), None);
    assert!(part.assemble(&fetched[..1]).is_err());
}
