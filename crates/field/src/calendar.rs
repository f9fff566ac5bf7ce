//! The daily update of the dataset.

const MINUTE_MS: i64 = 60 * 1000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// Time of the update: "around 04:00 UTC" every day (developer.chrome.com/docs/crux/api, on
/// updates).
const UPDATE_MS: i64 = 4 * 60 * MINUTE_MS;
/// Maximum delay of the update. Results before its end may be those of the previous day.
const LATE_MS: i64 = 60 * MINUTE_MS;

/// Returns the time until which a result of `now_ms` (since 1970, UTC) is valid.
pub(crate) fn valid_until_ms(now_ms: i64) -> i64 {
    let since_update_ms = (now_ms - UPDATE_MS).rem_euclid(DAY_MS);
    let next_ms = if since_update_ms < LATE_MS {
        LATE_MS
    } else {
        DAY_MS
    };
    now_ms.saturating_add(next_ms - since_update_ms)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(now: &str, until: &str) {
        let ms = |text: &str| {
            let time: jiff::Timestamp = text.parse().unwrap();
            time.as_millisecond()
        };
        assert_eq!(valid_until_ms(ms(now)), ms(until), "{now}");
    }

    #[test]
    fn a_result_is_valid_until_the_next_update() {
        check("2026-11-15T03:59:59.999Z", "2026-11-15T04:00:00Z");
        check("2026-11-15T05:00:00Z", "2026-11-16T04:00:00Z");
        check("2026-11-15T23:30:00Z", "2026-11-16T04:00:00Z");
        check("2026-12-31T12:00:00Z", "2027-01-01T04:00:00Z");
    }

    #[test]
    fn while_an_update_may_be_late_a_result_is_valid_for_less_than_an_hour() {
        check("2026-11-15T04:00:00Z", "2026-11-15T05:00:00Z");
        check("2026-11-15T04:59:59.999Z", "2026-11-15T05:00:00Z");
    }

    proptest! {
        #[test]
        fn a_result_is_valid_for_some_time_and_at_most_a_day(now_ms in -4_000_000_000_000_i64..4_000_000_000_000) {
            let good_ms = valid_until_ms(now_ms) - now_ms;
            prop_assert!((1..=DAY_MS).contains(&good_ms));
        }
    }
}
