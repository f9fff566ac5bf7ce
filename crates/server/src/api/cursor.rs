//! The cursor of the next page of a list, which clients pass back unchanged.
//!
//! A cursor is two numbers in base 36 after a letter that names the format. It contains no secret
//! and does not reveal how many audits other accounts have.

use plumbline_store::{ListCursor, Timestamp};

/// The rule for a parameter with a cursor.
pub(crate) const RULE: &str = "must be a cursor that an earlier page of the list has named";

const FORMAT: char = 'a';
const SEPARATOR: char = '-';

/// Formats the position after which the next page begins.
pub(crate) fn format(place: ListCursor) -> String {
    let time = base36(place.accepted_at.0.unsigned_abs());
    let number = base36(place.number.unsigned_abs());
    format!("{FORMAT}{time}{SEPARATOR}{number}")
}

/// Parses a cursor.
pub(crate) fn parse(text: &str) -> Option<ListCursor> {
    let (time, number) = text.strip_prefix(FORMAT)?.split_once(SEPARATOR)?;
    let digits = |text: &str| {
        let is_plain = text
            .bytes()
            .all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
        i64::from_str_radix(text, 36).ok().filter(|_| is_plain)
    };
    Some(ListCursor {
        accepted_at: Timestamp(digits(time)?),
        number: digits(number)?,
    })
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % 36).unwrap_or_default();
        digits.extend(char::from_digit(digit, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_that_is_not_a_cursor_is_refused() {
        for text in [
            "", "a", "a-", "a1", "a1-", "a-1", "b1-1", "a1-1-1", "a+1-1", "a1- 1", "aA-1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&format!("a{0}-{0}", "z".repeat(30))), None);
    }

    proptest! {
        #[test]
        fn a_position_is_formatted_and_parsed_without_loss(time in 0..i64::MAX, number in 0..i64::MAX) {
            let place = ListCursor { accepted_at: Timestamp(time), number };
            prop_assert_eq!(parse(&format(place)), Some(place));
        }

        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            parse(&text);
        }
    }
}
