//! The recording that was visited in place of the servers of a page, in words.

use jiff::Timestamp;
use plumbline_model::report::ReplayConditions;

use super::figures::date;

/// The most missing requests that are named.
const MAX_NAMES: usize = 3;

/// Returns the time of a recording, for instance as `15 Jan 2027, 08:00 UTC`.
pub(super) fn recorded_at(replay: &ReplayConditions) -> String {
    let time: Result<Timestamp, _> = replay.recorded_at.parse();
    time.map_or_else(
        |_| "unknown time".to_owned(),
        |time| date(time.as_millisecond()),
    )
}

/// Describes a recording by its time and by the requests that were not in it.
pub fn recording_text(replay: &ReplayConditions) -> String {
    let missing = missing_text(replay, "it");
    let missing = missing.map_or_else(String::new, |missing| format!("; {missing}"));
    format!("of {}{missing}", recorded_at(replay))
}

/// Returns a warning if requests of the page were not in the recording.
pub(super) fn warning(replay: &ReplayConditions) -> Option<String> {
    let missing = missing_text(replay, "the recording that was visited")?;
    Some(format!(
        "{missing}. Requests that are not recorded fail, so the page may load differently than \
         from its servers."
    ))
}

/// Describes the requests that were not in a recording, for instance as `2 requests were not in it,
/// such as https://example.com/`; `None` if there were none.
fn missing_text(replay: &ReplayConditions, recording: &str) -> Option<String> {
    let requests = missing_requests(replay.missing_requests)?;
    let names: Vec<&str> = replay.missing.iter().map(String::as_str).collect();
    let names = &names[..names.len().min(MAX_NAMES)];
    let are_all = names.len() as u64 == replay.missing_requests;
    let names = match (names, are_all) {
        ([], _) => String::new(),
        (names, true) => format!(": {}", names.join(", ")),
        (names, false) => format!(", such as {}", names.join(", ")),
    };
    Some(format!("{requests} not in {recording}{names}"))
}

/// Returns the beginning of a sentence about requests that were not in a recording: `2 requests
/// were`; `None` if there were none.
pub(crate) fn missing_requests(count: u64) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 request was".to_owned()),
        _ => Some(format!("{count} requests were")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(missing_requests: u64, names: &[&str]) -> ReplayConditions {
        ReplayConditions {
            recorded_at: "2027-01-15T08:00:00.5Z".to_owned(),
            missing_requests,
            missing: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_recording_is_described_with_the_requests_that_it_lacks() {
        for (missing, names, expected) in [
            (0, &[][..], ""),
            (1, &["a.test"], "; 1 request was not in it: a.test"),
            (2, &["a", "b"], "; 2 requests were not in it: a, b"),
            (9, &["a", "b"], "; 9 requests were not in it, such as a, b"),
            (
                4,
                &["a", "b", "c", "d"],
                "; 4 requests were not in it, such as a, b, c",
            ),
            (3, &[], "; 3 requests were not in it"),
        ] {
            let text = recording_text(&replay(missing, names));
            assert_eq!(text, format!("of 15 Jan 2027, 08:00 UTC{expected}"));
        }
        let unknown = ReplayConditions::default();
        assert_eq!(recording_text(&unknown), "of unknown time");
    }

    #[test]
    fn only_missing_requests_are_a_reason_for_a_warning() {
        assert_eq!(warning(&replay(0, &[])), None);
        let warning = warning(&replay(1, &["a.test"])).unwrap();
        let expected = "1 request was not in the recording that was visited: a.test. ";
        assert!(warning.starts_with(expected), "{warning}");
    }
}
