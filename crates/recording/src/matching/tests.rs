use proptest::prelude::*;

use super::*;
use crate::testing::{endpoint, exchange, recording_of, recordings};

/// Returns a matcher for `GET` requests of a server.
fn matcher(paths: &[&str]) -> Matcher {
    let url = |path: &&str| format!("https://a.test{path}");
    let exchanges = paths.iter().map(url);
    let exchanges = exchanges.map(|url| exchange(&url, "text/plain", ""));
    Matcher::new(&recording_of(exchanges.collect()))
}

/// Returns the positions that answer requests in turn, and whether they are exact.
fn found(matcher: &mut Matcher, paths: &[&str]) -> Vec<Option<(usize, bool)>> {
    let endpoint = endpoint("https://a.test/");
    let find = |path: &&str| matcher.find(&endpoint, "GET", path);
    let to_pair = |found: Match| (found.index, found.kind == MatchKind::Exact);
    paths.iter().map(find).map(|it| it.map(to_pair)).collect()
}

#[test]
fn equal_requests_are_answered_in_the_order_of_the_recording() {
    let mut matcher = matcher(&["/a", "/b", "/a", "/a?x=1"]);
    assert_eq!(
        found(&mut matcher, &["/a", "/a", "/a", "/a?x=1", "/b"]),
        [(0, true), (2, true), (2, true), (3, true), (1, true)].map(Some)
    );
}

#[test]
fn a_request_with_another_timestamp_is_similar() {
    let mut matcher = matcher(&["/ping?id=7&t=1700000000", "/ping?id=8&t=1700000005"]);
    assert_eq!(
        found(
            &mut matcher,
            &[
                "/ping?id=8&t=1800000000",
                "/ping?id=7&t=1800000001",
                "/ping?id=7&t=1800000002",
                "/ping?id=9&t=1800000003",
            ]
        ),
        [(1, false), (0, false), (0, false), (0, false)].map(Some)
    );
}

#[test]
fn beacons_are_answered_in_turn() {
    let mut matcher = matcher(&["/b?r=1", "/b?r=2", "/b?r=3"]);
    assert_eq!(
        found(&mut matcher, &["/b?r=7", "/b?r=8", "/b?r=9", "/b?r=10"]),
        [(0, false), (1, false), (2, false), (0, false)].map(Some)
    );
}

#[test]
fn an_exact_request_is_answered_exactly_after_similar_ones() {
    let mut matcher = matcher(&["/b?r=1", "/b?r=2"]);
    assert_eq!(
        found(&mut matcher, &["/b?r=9", "/b?r=1", "/b?r=2"]),
        [(0, false), (0, true), (1, true)].map(Some)
    );
}

#[test]
fn other_parameters_other_paths_and_other_servers_do_not_match() {
    let mut matcher = matcher(&["/a?x=1&y=2&z=3", "/b"]);
    assert_eq!(
        found(
            &mut matcher,
            &["/a", "/a?x=1", "/a?u=1&v=2", "/b?c=1", "/c"]
        ),
        [None; 5]
    );
    for url in ["http://a.test/", "https://b.test/"] {
        assert_eq!(matcher.find(&endpoint(url), "GET", "/b"), None);
    }
    let https = endpoint("https://a.test/");
    assert_eq!(matcher.find(&https, "POST", "/b"), None);
    assert_eq!(matcher.unused(), [0, 1]);
}

#[test]
fn volatile_parts_of_a_path_may_differ() {
    let mut matcher = matcher(&["/v/1700000000/main.3f9a1c7e.js?q=1"]);
    assert_eq!(
        found(&mut matcher, &["/v/1800000000/main.aa9a1c7f.js?q=1"]),
        [Some((0, false))]
    );
    assert!(matcher.unused().is_empty());
}

#[test]
fn something_else_with_a_number_is_not_a_volatile_part() {
    let mut matcher = matcher(&["/img/1234567.jpg", "/img/7654321.jpg"]);
    assert_eq!(
        found(
            &mut matcher,
            &["/img/1234567.jpg", "/img/7654321.jpg", "/img/9999999.jpg"]
        ),
        [Some((0, true)), Some((1, true)), None]
    );
}

#[test]
fn an_equal_path_is_better_than_a_similar_one() {
    let mut matcher = matcher(&["/a/1111111?x=1&y=2", "/a/2222222?x=3&y=4"]);
    assert_eq!(
        found(&mut matcher, &["/a/2222222?x=1&y=2"]),
        [Some((1, false))]
    );
}

#[test]
fn a_head_request_is_answered_like_a_get_request() {
    let mut matcher = matcher(&["/a"]);
    let https = endpoint("https://a.test/");
    let found = matcher.find(&https, "HEAD", "/a").unwrap();
    assert_eq!((found.index, found.kind), (0, MatchKind::Exact));
    assert_eq!(matcher.find(&https, "OPTIONS", "/a"), None);
}

#[test]
fn a_similar_request_is_found_quickly_among_many() {
    let paths: Vec<String> = (0..20_000).map(|n| format!("/a?x={n}&y=2")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut matcher = matcher(&paths);
    assert_eq!(
        found(&mut matcher, &["/a?x=-1&y=2", "/a?x=19999&y=3"]),
        [Some((0, false)), Some((19_999, false))]
    );
}

proptest! {
    #[test]
    fn every_recorded_request_has_an_exact_match(recording in recordings()) {
        let mut matcher = Matcher::new(&recording);
        for exchange in &recording.exchanges {
            let found = matcher.find(&exchange.endpoint, &exchange.method, &exchange.path);
            let found = found.unwrap();
            prop_assert_eq!(found.kind, MatchKind::Exact);
            let other = &recording.exchanges[found.index];
            prop_assert_eq!(&exchange.path, &other.path);
            prop_assert_eq!(&exchange.method, &other.method);
            prop_assert_eq!(&exchange.endpoint, &other.endpoint);
        }
        prop_assert!(matcher.unused().is_empty());
    }
}
