//! Formats numbers, dates and grades for people.

use plumbline_model::category::Fraction;
use plumbline_model::report::Metric;
use plumbline_model::size::size;

/// A no-break space.
const NBSP: char = '\u{a0}';

/// Formats a duration in milliseconds or seconds.
pub fn ms(ms: f64) -> String {
    let ms = ms.max(0.0);
    if ms.round() < 1000.0 {
        format!("{}{NBSP}ms", ms.round())
    } else if ms < 10_000.0 {
        format!("{:.2}{NBSP}s", ms / 1000.0)
    } else {
        format!("{:.1}{NBSP}s", ms / 1000.0)
    }
}

/// Formats a time on an axis in seconds, without trailing zeros.
pub fn tick(ms: f64) -> String {
    if ms == 0.0 {
        return "0".to_owned();
    }
    let seconds = ms / 1000.0;
    let text = format!("{seconds:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{NBSP}s")
}

/// Formats a size on one line.
pub fn bytes(bytes: u64) -> String {
    size(bytes as f64).replace(' ', "\u{a0}")
}

/// Formats a number with its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1{NBSP}{one}"),
        _ => format!("{number}{NBSP}{many}"),
    }
}

/// Formats a coordinate of a chart. A tenth of a unit is less than a pixel.
pub fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A grade by Lighthouse's limits for scores: good from 90, middling from 50.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    Good,
    Middling,
    Poor,
    Unknown,
}

impl Grade {
    /// Returns the grade of a score from 0 to 100.
    pub fn of_score(score: Option<u8>) -> Self {
        match score {
            Some(90..) => Self::Good,
            Some(50..) => Self::Middling,
            Some(_) => Self::Poor,
            None => Self::Unknown,
        }
    }

    /// Returns the grade of a category that is shown by its passed checks.
    pub fn of_fraction(fraction: Fraction) -> Self {
        Self::of_score((fraction.of > 0).then(|| fraction.percentage()))
    }

    /// Returns the grade of a metric.
    pub fn of_metric(metric: Option<Metric>) -> Self {
        Self::of_score(metric.map(|metric| (metric.score * 100.0).round() as u8))
    }

    /// The class name in the stylesheet.
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Middling => "middling",
            Self::Poor => "poor",
            Self::Unknown => "unknown",
        }
    }

    /// The grade as text, because colour alone is not accessible.
    pub fn label(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Middling => "needs improvement",
            Self::Poor => "poor",
            Self::Unknown => "not measured",
        }
    }
}

/// Formats a time, for instance as `15 Nov 2026, 05:18 UTC`.
pub fn date(ms_since_epoch: i64) -> String {
    let time =
        jiff::Timestamp::from_millisecond(ms_since_epoch).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%-d %b %Y, %H:%M UTC").to_string()
}

/// Formats a day, for instance as `15 Nov 2026`.
pub fn day(ms_since_epoch: i64) -> String {
    date(ms_since_epoch)
        .split(',')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Returns a catalog name without its figures: `Slow 4G` for `Slow 4G (1.6 Mbps down …)`.
pub fn short_name(name: &str) -> &str {
    name.split_once(" (").map_or(name, |(short, _)| short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        for (value, text) in [
            (0.0, "0\u{a0}ms"),
            (999.4, "999\u{a0}ms"),
            (999.6, "1.00\u{a0}s"),
            (1545.4, "1.55\u{a0}s"),
            (31_250.0, "31.2\u{a0}s"),
        ] {
            assert_eq!(ms(value), text);
        }
        assert_eq!(tick(2500.0), "2.5\u{a0}s");
        for (value, text) in [
            (999, "999\u{a0}B"),
            (1_000, "1.0\u{a0}KiB"),
            (9_332, "9.1\u{a0}KiB"),
            (10_235, "10\u{a0}KiB"),
            (186_877, "182\u{a0}KiB"),
            (1_023_800, "0.98\u{a0}MiB"),
            (1_250_000, "1.19\u{a0}MiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(day(1_800_000_000_000), "15 Jan 2027");
        assert_eq!(short_name("Slow 4G (1.6 Mbps down)"), "Slow 4G");
        assert_eq!(short_name("Dallas, Texas, USA"), "Dallas, Texas, USA");
    }

    #[test]
    fn grades_change_at_ninety_and_fifty() {
        assert_eq!(Grade::of_score(Some(90)), Grade::Good);
        assert_eq!(Grade::of_score(Some(89)), Grade::Middling);
        assert_eq!(Grade::of_score(Some(49)), Grade::Poor);
        assert_eq!(Grade::of_score(None), Grade::Unknown);
    }
}
