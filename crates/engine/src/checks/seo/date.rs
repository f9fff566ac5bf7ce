//! A parser for the date formats of `unavailable_after` and HTTP headers: ISO 8601, and day, month
//! name and year in the two common orders.

/// Parses a date into seconds since 1970. A date without a time is midnight UTC, a time without a
/// zone is UTC.
pub(crate) fn parse_s(text: &str) -> Option<f64> {
    let text = text.trim();
    iso(text).or_else(|| named_month(text))
}

fn iso(text: &str) -> Option<f64> {
    let (date, time) = text.split_once(['t', 'T', ' ']).unwrap_or((text, ""));
    let mut parts = date.split('-');
    let year = parts.next().filter(|year| year.len() == 4)?;
    let days = days_since_1970(
        year.parse().ok()?,
        parts.next().unwrap_or("1").parse().ok()?,
        parts.next().unwrap_or("1").parse().ok()?,
    )?;
    if parts.next().is_some() {
        return None;
    }
    let zone_at = time.find(['z', 'Z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone_at);
    Some(days * DAY_S + time_s(time)? - zone_s(zone)?)
}

/// Parses a date with a named month: `25 Jun 2010 15:00:00 PST`, `25-Jun-10`, `Fri, 25 Jun 2010`,
/// `June 25, 2010`.
fn named_month(text: &str) -> Option<f64> {
    let (mut day, mut month, mut year) = (None, None, None);
    let (mut clock_s, mut offset_s) = (0.0, 0.0);
    let words = text.split([' ', ',', '\t']).flat_map(split_date_word);
    for word in words.filter(|word| !word.is_empty()) {
        if let Ok(number) = word.parse::<i64>() {
            match day {
                None => day = Some(number),
                Some(_) => year = year.or(Some(full_year(number))),
            }
        } else if word.contains(':') {
            clock_s = time_s(word)?;
        } else if let Some(position) = month_of(word) {
            month = Some(position);
        } else if !is_weekday(word) {
            offset_s = zone_s(word)?;
        }
    }
    Some(days_since_1970(year?, month?, day?)? * DAY_S + clock_s - offset_s)
}

/// Splits `25-Jun-10` into three words; `-0800` and `GMT-3` stay one.
fn split_date_word(word: &str) -> Vec<&str> {
    match word.split('-').collect::<Vec<_>>() {
        parts if parts.len() == 3 => parts,
        _ => vec![word],
    }
}

fn full_year(year: i64) -> i64 {
    match year {
        0..=49 => year + 2000,
        50..=99 => year + 1900,
        _ => year,
    }
}

fn month_of(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let start = word.get(..3)?.to_lowercase();
    let position = MONTHS.iter().position(|month| *month == start)?;
    i64::try_from(position + 1).ok()
}

fn is_weekday(word: &str) -> bool {
    let start = word.get(..3).unwrap_or_default().to_lowercase();
    ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].contains(&start.as_str())
}

const DAY_S: f64 = 86_400.0;

/// Parses a time of day, `15`, `15:00` or `15:00:00.5`, into seconds; an empty text is midnight.
fn time_s(time: &str) -> Option<f64> {
    let mut seconds = 0.0;
    for (part, unit_s) in time.split(':').zip([3600.0, 60.0, 1.0]) {
        let part = part.trim();
        if !part.is_empty() {
            seconds += part.parse::<f64>().ok().filter(|part| *part >= 0.0)? * unit_s;
        }
    }
    Some(seconds)
}

/// Returns the offset of a time zone from UTC in seconds.
fn zone_s(zone: &str) -> Option<f64> {
    let zone = zone.trim().to_uppercase();
    let named_h = match zone.as_str() {
        "" | "Z" | "UT" | "UTC" | "GMT" => Some(0.0),
        "EST" | "CDT" => Some(-5.0),
        "EDT" => Some(-4.0),
        "CST" | "MDT" => Some(-6.0),
        "MST" | "PDT" => Some(-7.0),
        "PST" => Some(-8.0),
        _ => None,
    };
    if let Some(hours) = named_h {
        return Some(hours * 3600.0);
    }
    let offset = zone.trim_start_matches("UTC").trim_start_matches("GMT");
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1.0, digits),
        ("-", digits) => (-1.0, digits),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    let number: f64 = digits.parse().ok()?;
    let (hours, minutes) = if digits.len() <= 2 {
        (number, 0.0)
    } else {
        ((number / 100.0).floor(), number % 100.0)
    };
    Some(sign * (hours * 3600.0 + minutes * 60.0))
}

/// Returns the number of days since 1970 in the Gregorian calendar, counted in eras of 400 years
/// from 1 March.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<f64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(0..=9999).contains(&year) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some((era * 146_097 + day_of_era - 719_468) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn common_date_formats_are_parsed() {
        for (text, seconds) in [
            ("1970-01-01", 0.0),
            ("2010-06-25", 1_277_424_000.0),
            ("2010-06-25T15:00:00Z", 1_277_478_000.0),
            ("2010-06-25t17:00:00+02:00", 1_277_478_000.0),
            ("25 Jun 2010 15:00:00 GMT", 1_277_478_000.0),
            ("25 jun 2010 07:00:00 pst", 1_277_478_000.0),
            ("Friday 25-Jun-10 15:00:00 UTC", 1_277_478_000.0),
            ("June 25 2010", 1_277_424_000.0),
            ("29 Feb 2000", 951_782_400.0),
        ] {
            assert_eq!(parse_s(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn an_invalid_date_is_rejected() {
        for text in [
            "",
            "soon",
            "25",
            "2010-13-01",
            "2010-06-25-1",
            "Jun 2010 never",
        ] {
            assert_eq!(parse_s(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(?s).{0,60}") {
            parse_s(&text);
        }
    }
}
