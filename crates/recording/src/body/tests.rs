use proptest::prelude::*;

use super::*;
use crate::testing::exchange;

const CODINGS: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

/// Returns text that compresses about as well as that of pages.
fn text(words: usize) -> String {
    let word = |n: usize| format!("word{} ", n * n % 977);
    (0..words).map(word).collect()
}

/// Returns a response with a body in an encoding, of a level by its position.
fn response(coding: Coding, content: &str, position: usize) -> RecordedResponse {
    let mut response = exchange("https://a.test/", "text/css", "")
        .response
        .unwrap();
    response.set_header("content-encoding", coding.name());
    let body = coding.encode(content.as_bytes(), Effort(Some(position)));
    response.set_body(body.into());
    response
}

#[test]
fn an_edited_body_has_the_same_encoding_and_a_right_length() {
    for coding in CODINGS {
        let mut response = response(coding, "a { color: red }", 0);
        response.set_decoded_body(b"b { color: green }").unwrap();
        assert_eq!(response.decoded_body().unwrap(), "b { color: green }");
        assert_eq!(response.header("content-encoding"), Some(coding.name()));
        let length = response.body.len().to_string();
        assert_eq!(response.header("content-length"), Some(length.as_str()));
        let chunks: u64 = response.chunks.iter().map(|chunk| chunk.bytes).sum();
        assert_eq!(chunks, response.body.len() as u64);
    }
}

#[test]
fn an_equal_content_leaves_the_bytes_as_they_are() {
    let mut response = response(Coding::Gzip, &text(50), 3);
    let before = response.clone();
    response.set_decoded_body(text(50).as_bytes()).unwrap();
    assert_eq!(response, before);
}

#[test]
fn the_effort_of_the_sender_is_found_from_the_size() {
    let content = text(2000);
    for coding in CODINGS {
        for position in 0..4 {
            let mut response = response(coding, &content, position);
            let bytes = response.body.len();
            let edited = content.replacen("word", "term", 1);
            response.set_decoded_body(edited.as_bytes()).unwrap();
            let difference = response.body.len().abs_diff(bytes);
            assert!(
                difference * 50 < bytes,
                "{coding:?} {position}: {difference} of {bytes}"
            );
        }
    }
}

#[test]
fn several_encodings_are_undone_in_reverse() {
    let mut response = exchange("https://a.test/", "text/css", "")
        .response
        .unwrap();
    response.set_header("content-encoding", "gzip, identity, br");
    let body = Coding::Gzip.encode(b"abc", Effort::default());
    let body = Coding::Brotli.encode(&body, Effort::default());
    response.set_body(body.into());
    assert_eq!(response.decoded_body().unwrap(), "abc");
    response.set_decoded_body(b"abcd").unwrap();
    assert_eq!(response.decoded_body().unwrap(), "abcd");
}

#[test]
fn raw_deflate_is_read_like_a_browser_reads_it() {
    use std::io::Write;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"abc").unwrap();
    let raw = encoder.finish().unwrap();
    assert_eq!(Coding::Deflate.decode(&raw, 10, &mut 0).unwrap(), b"abc");
}

#[test]
fn bodies_that_cannot_be_decoded_are_errors() {
    let mut response = response(Coding::Gzip, &text(50), 2);
    response.set_header("content-encoding", "dcb");
    let error = response.decoded_body().unwrap_err();
    assert_eq!(error, BodyError::UnknownCoding("dcb".to_owned()));
    for coding in CODINGS {
        response.set_header("content-encoding", coding.name());
        let valid = coding.encode(text(50).as_bytes(), Effort::default());
        response.set_body(valid[..valid.len() / 2].to_vec().into());
        let error = response.decoded_body().unwrap_err();
        assert!(matches!(error, BodyError::Corrupt(_)), "{coding:?}");
        let bomb = coding.encode(&[0; 10_000], Effort::default());
        assert_eq!(
            coding.decode(&bomb, 9_999, &mut 0),
            Err(BodyError::TooLarge)
        );
        assert!(coding.decode(&bomb, 10_000, &mut 0).is_ok());
    }
}

proptest! {
    #[test]
    fn scaled_chunks_add_up(sizes in prop::collection::vec(0..1000_u64, 0..6), bytes in 0..5000_u64) {
        let chunk = |(n, bytes): (usize, &u64)| BodyChunk { after_ms: n as f64, bytes: *bytes };
        let chunks: Vec<_> = sizes.iter().enumerate().map(chunk).collect();
        let result = scaled(&chunks, bytes);
        prop_assert_eq!(result.iter().map(|chunk| chunk.bytes).sum::<u64>(), bytes);
        prop_assert!(result.iter().all(|chunk| chunk.bytes > 0));
        prop_assert!(result.iter().map(|chunk| chunk.after_ms).is_sorted());
        if sizes.iter().sum::<u64>() == bytes {
            let old: Vec<_> = chunks.into_iter().filter(|chunk| chunk.bytes > 0).collect();
            prop_assert_eq!(result, old);
        }
    }

    #[test]
    fn every_content_survives_every_encoding(content in prop::collection::vec(any::<u8>(), 0..300)) {
        for coding in CODINGS {
            let body = coding.encode(&content, Effort::default());
            prop_assert_eq!(&coding.decode(&body, 300, &mut 0).unwrap(), &content);
        }
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        for coding in CODINGS {
            let _ = coding.decode(&bytes, 10_000, &mut 0);
        }
    }
}

#[test]
fn corrupt_bodies_count_towards_the_limit_of_an_operation() {
    let mut decoder = Decoder {
        remaining_bytes: 1_500_000,
    };
    let content = vec![b'a'; 1_000_000];
    let mut body = Coding::Gzip.encode(&content, Effort::default());
    let checksum = body.len() - 8;
    body[checksum] ^= 1;
    let mut exchange = exchange("https://a.test/", "text/plain", "");
    let response = exchange.response.as_mut().unwrap();
    response.set_header("content-encoding", "gzip");
    response.set_body(body.into());
    let first = decoder.decode(response);
    assert!(matches!(first, Err(BodyError::Corrupt(_))), "{first:?}");
    assert_eq!(decoder.remaining_bytes, 500_000);
    assert_eq!(decoder.decode(response), Err(BodyError::TooLarge));
}
