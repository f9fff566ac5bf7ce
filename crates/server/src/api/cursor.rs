//! Where a page of a list goes on, as a text that clients hand back unread.
//!
//! Two numbers in base 36 with a letter in front that names the form: nothing in it is secret, and
//! nothing in it tells how many audits others have.

use plumbline_store::{ListCursor, Timestamp};

const FORM: char = 'a';
const BETWEEN: char = '-';

pub(crate) fn write(place: ListCursor) -> String {
    let time = base36(place.accepted_at.0.unsigned_abs());
    let number = base36(place.number.unsigned_abs());
    format!("{FORM}{time}{BETWEEN}{number}")
}

pub(crate) fn read(text: &str) -> Option<ListCursor> {
    let (time, number) = text.strip_prefix(FORM)?.split_once(BETWEEN)?;
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
    fn what_is_no_cursor_is_none() {
        for text in [
            "", "a", "a-", "a1", "a1-", "a-1", "b1-1", "a1-1-1", "a+1-1", "a1- 1", "aA-1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&format!("a{0}-{0}", "z".repeat(30))), None);
    }

    proptest! {
        #[test]
        fn a_place_comes_back_as_it_was(time in 0..i64::MAX, number in 0..i64::MAX) {
            let place = ListCursor { accepted_at: Timestamp(time), number };
            prop_assert_eq!(read(&write(place)), Some(place));
        }

        #[test]
        fn any_text_is_read_without_harm(text in "\\PC*") {
            read(&text);
        }
    }
}
