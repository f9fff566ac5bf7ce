use serde_json::value::RawValue;

use super::*;
use crate::Screenshot;

/// A bundle of a small page in the format of earlier versions, written by the last version that
/// wrote it.
const GZIPPED: &[u8] = include_bytes!("../../tests/data/small-page.bundle.gz");

fn bundle() -> Bundle {
    let page = RawValue::from_string(r#"{"innerWidth":412}"#.to_owned()).unwrap();
    Bundle {
        recording: None,
        profile_trace: None,
        format: FORMAT,
        requested_url: "https://example.com/".to_owned(),
        final_url: "https://example.com/".to_owned(),
        document: MainDocument::default(),
        browser: BrowserIdentity::default(),
        trace: b"{\"traceEvents\":[]}".to_vec(),
        log: b"[]".to_vec(),
        screenshot: Some(Screenshot {
            mime_type: "image/webp".to_owned(),
            width_px: 412,
            height_px: 823,
            data: "AAAA".to_owned(),
        }),
        artifacts: BTreeMap::from([
            ("links".to_owned(), Artifact::Missing("a reason".to_owned())),
            ("page".to_owned(), Artifact::Gathered(page)),
        ]),
        warnings: vec!["a warning".to_owned()],
        timings: Vec::new(),
    }
}

fn json(bundle: &Bundle) -> String {
    serde_json::to_string(bundle).unwrap()
}

#[test]
fn a_packed_bundle_unpacks_unchanged_in_both_encodings() {
    for encoding in [Encoding::Container, Encoding::GzipJson] {
        let packed = bundle().pack_as(encoding).unwrap();
        let unpacked = Bundle::unpack(&packed).unwrap();
        assert_eq!(json(&unpacked), json(&bundle()), "{encoding:?}");
        assert_eq!(unpacked.pack_as(encoding).unwrap(), packed, "{encoding:?}");
    }
}

#[test]
fn a_bundle_of_an_earlier_version_is_read_and_repacked_unchanged() {
    assert_eq!(GZIPPED[..2], [0x1f, 0x8b]);
    let old = Bundle::unpack(GZIPPED).unwrap();
    assert!(old.final_url.starts_with("http://127.0.0.1"));
    assert!(old.trace.len() > 10_000 && old.log.len() > 100);
    assert!(old.screenshot.is_some() && old.artifacts.len() > 10);
    let repacked = Bundle::unpack(&old.pack_as(Encoding::Container).unwrap()).unwrap();
    assert_eq!(json(&repacked), json(&old));
    // What servers of earlier versions get is what they got before.
    let gzipped = Bundle::unpack(&old.pack_as(Encoding::GzipJson).unwrap()).unwrap();
    assert_eq!(json(&gzipped), json(&old));
}

#[test]
fn only_the_parts_that_are_used_are_unpacked() {
    let mut packed = bundle().pack_as(Encoding::Container).unwrap();
    let trace_only = BundleParts {
        log: false,
        screenshot: false,
        artifacts: Some(&["page"]),
        ..BundleParts::ALL
    };
    // The frame of the log is damaged, which nothing notices that does not read it.
    let index = crate::container::Index::from_tail(&packed)
        .unwrap()
        .unwrap();
    let log = index.members().iter().find(|member| member.name == LOG);
    let end = log.unwrap().range().end as usize;
    packed[end - 1] ^= 1;
    let part = Bundle::unpack_parts(&packed, trace_only).unwrap();
    assert_eq!(part.trace, bundle().trace);
    assert_eq!(part.final_url, bundle().final_url);
    assert!(part.log.is_empty() && part.screenshot.is_none());
    assert_eq!(part.artifacts.keys().collect::<Vec<_>>(), ["page"]);
    assert!(matches!(
        Bundle::unpack(&packed),
        Err(PackError::Unreadable(_))
    ));
}

#[test]
fn the_trace_of_a_profile_is_kept_in_every_encoding_and_read_only_if_it_is_used() {
    let with_profile = Bundle {
        profile_trace: Some(b"{}".to_vec()),
        ..bundle()
    };
    for encoding in [Encoding::Container, Encoding::GzipJson] {
        let packed = with_profile.pack_as(encoding).unwrap();
        let unpacked = Bundle::unpack(&packed).unwrap();
        assert_eq!(unpacked.profile_trace, with_profile.profile_trace);
    }
    let packed = with_profile.pack().unwrap();
    let evidence = Bundle::unpack_parts(&packed, BundleParts::EVIDENCE).unwrap();
    assert_eq!(evidence.profile_trace, None);
    let profile = Bundle::unpack_parts(&packed, BundleParts::PROFILE_TRACE).unwrap();
    assert_eq!(profile.profile_trace, with_profile.profile_trace);
    assert!(profile.trace.is_empty() && profile.artifacts.is_empty());
}

#[test]
fn a_newer_format_is_reported() {
    let newer = Bundle {
        format: FORMAT + 1,
        ..bundle()
    };
    for encoding in [Encoding::Container, Encoding::GzipJson] {
        let error = Bundle::unpack(&newer.pack_as(encoding).unwrap()).unwrap_err();
        assert!(matches!(error, PackError::Newer { found, .. } if found == FORMAT + 1));
    }
}

#[test]
fn other_bytes_are_rejected() {
    for encoding in [Encoding::Container, Encoding::GzipJson] {
        let packed = bundle().pack_as(encoding).unwrap();
        for bytes in [&b""[..], b"{}", &packed[..40], &packed[..packed.len() - 1]] {
            assert!(matches!(
                Bundle::unpack(bytes),
                Err(PackError::Unreadable(_))
            ));
        }
    }
}

#[test]
fn a_bundle_that_unpacks_to_more_than_the_limit_is_refused() {
    let zeros = vec![0; 1 << 20];
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    let endless = |member: &mut dyn Write| (0..513).try_for_each(|_| member.write_all(&zeros));
    writer.add_with(TRACE, endless).unwrap();
    let packed = writer.finish().unwrap();
    assert!(packed.len() < 100_000, "{}", packed.len());
    assert!(matches!(
        Bundle::unpack(&packed),
        Err(PackError::TooLarge { .. })
    ));
}
