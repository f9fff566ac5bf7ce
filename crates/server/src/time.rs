//! The clock, and the parser of times in requests.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::{
    civil::date,
    fmt::temporal::{DateTimeParser, PiecesOffset},
};
use plumbline_store::Timestamp;

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Returns the time of the system's clock.
pub(crate) fn system_time() -> Timestamp {
    // A clock before 1970 is read as 1970: keys then count as not expired, and nothing breaks.
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(0).plus(since_epoch)
}

/// Parses an ISO 8601 / RFC 3339 time with a time zone, such as `2026-01-31T12:00:00Z` or
/// `…+02:00`, into milliseconds since the epoch. A time before 1970 becomes the epoch: nothing was
/// audited then.
pub(crate) fn parse(text: &str) -> Option<i64> {
    // In pieces, since the library's own time stamps end two days before the year 9999 does.
    let pieces = DateTimeParser::new().parse_pieces(text).ok()?;
    if pieces.time_zone_annotation().is_some() {
        return None;
    }
    let offset_s = match pieces.offset()? {
        PiecesOffset::Zulu => 0,
        PiecesOffset::Numeric(offset) => i64::from(offset.offset().seconds()),
        _ => return None,
    };
    let days = pieces.date().duration_since(date(1970, 1, 1));
    let since_midnight = pieces.time()?.duration_since(jiff::civil::Time::midnight());
    let ms = days.as_secs() * 1000 + i64::try_from(since_midnight.as_millis()).ok()?;
    Some((ms - offset_s * 1000).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_parsed_with_its_time_zone() {
        assert_eq!(parse("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(parse("1970-01-01T01:00:00.5+01:00"), Some(500));
        assert_eq!(parse("2026-11-15T02:09:42.007z"), Some(1_794_708_582_007));
        assert_eq!(parse("1969-12-31T00:00:00Z"), Some(0));
        assert_eq!(parse("0000-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse("9999-12-31T23:59:59Z"), Some(253_402_300_799_000));
    }

    #[test]
    fn a_text_that_is_not_a_time_is_refused() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "yesterday",
            "2026-02-30T00:00:00Z",
            "2026-01-31T12:00:00Z[Europe/Berlin]",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
