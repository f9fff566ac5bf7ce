//! The wire format of Protocol Buffers.

use crate::ConversionError::{self, Malformed, TooLarge};

/// The maximum number of fields that are held together. Chromium's events have a dozen.
const MAX_HELD_FIELDS: usize = 10_000;

/// The value of a field, by its type on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A string, a message or a list of numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns the integer; 0 if there is none.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => number,
            Self::Fixed32(number) => number.into(),
            Self::Bytes(_) => 0,
        }
    }

    /// Returns the bytes; none if it is a number.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

/// The fields of a message, each with its number.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a>(&'a [u8]);

/// Returns the fields of a message.
pub(crate) fn fields(message: &[u8]) -> Fields<'_> {
    Fields(message)
}

/// Returns the fields of a message that are held together, because a few bytes can be many fields.
/// Too many are an error.
pub(crate) fn held_fields<'a>(
    message: &'a [u8],
) -> impl Iterator<Item = Result<(u32, Value<'a>), ConversionError>> {
    fields(message).enumerate().map(|(at, field)| {
        if at < MAX_HELD_FIELDS {
            field
        } else {
            Err(TooLarge)
        }
    })
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), ConversionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read_field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(Malformed))
    }
}

impl<'a> Fields<'a> {
    fn read_field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = read_varint(&mut self.0)?;
        let number = u32::try_from(key >> 3).ok()?;
        let value = match key & 7 {
            0 => Value::Varint(read_varint(&mut self.0)?),
            1 => Value::Fixed64(u64::from_le_bytes(*self.take_array()?)),
            2 => {
                let len = read_varint(&mut self.0)?;
                Value::Bytes(self.take(usize::try_from(len).ok()?)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(*self.take_array()?)),
            _ => return None,
        };
        Some((number, value))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }
}

/// Reads a number of one to ten bytes, with seven bits each.
pub(crate) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Returns a number whose sign is its lowest bit.
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
pub(crate) mod testing {
    //! Writes messages.

    /// A message under construction.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Message(pub Vec<u8>);

    impl Message {
        pub(crate) fn varint(mut self, number: u32, value: u64) -> Self {
            self.write_varint(u64::from(number) << 3);
            self.write_varint(value);
            self
        }

        pub(crate) fn fixed64(mut self, number: u32, value: u64) -> Self {
            self.write_varint(u64::from(number) << 3 | 1);
            self.0.extend(value.to_le_bytes());
            self
        }

        pub(crate) fn fixed32(mut self, number: u32, value: u32) -> Self {
            self.write_varint(u64::from(number) << 3 | 5);
            self.0.extend(value.to_le_bytes());
            self
        }

        pub(crate) fn bytes(mut self, number: u32, value: impl AsRef<[u8]>) -> Self {
            let value = value.as_ref();
            self.write_varint(u64::from(number) << 3 | 2);
            self.write_varint(value.len() as u64);
            self.0.extend(value);
            self
        }

        pub(crate) fn message(self, number: u32, value: Self) -> Self {
            self.bytes(number, value.0)
        }

        fn write_varint(&mut self, mut value: u64) {
            while value >= 0x80 {
                self.0.push((value & 0x7f) as u8 | 0x80);
                value >>= 7;
            }
            self.0.push(value as u8);
        }
    }

    pub(crate) fn message() -> Message {
        Message::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testing::message;
    use super::*;

    #[test]
    fn fields_have_the_values_that_were_written() {
        let written = message()
            .varint(1, 300)
            .fixed64(2, u64::MAX)
            .fixed32(3, 7)
            .bytes(2000, "text");
        let read: Result<Vec<_>, _> = fields(&written.0).collect();
        let values = [
            (1, Value::Varint(300)),
            (2, Value::Fixed64(u64::MAX)),
            (3, Value::Fixed32(7)),
            (2000, Value::Bytes(b"text")),
        ];
        assert_eq!(read.unwrap(), values);
    }

    #[test]
    fn a_message_that_ends_too_early_is_an_error() {
        let written = message().bytes(1, "text").0;
        for len in 1..written.len() {
            let read: Vec<_> = fields(&written[..len]).collect();
            assert_eq!(read, [Err(Malformed)], "{len}");
        }
        assert_eq!(fields(&[0x0b]).next(), Some(Err(Malformed)));
        assert_eq!(fields(&[0xff; 20]).next(), Some(Err(Malformed)));
    }

    #[test]
    fn too_many_fields_are_not_held() {
        let mut written = message();
        for _ in 0..MAX_HELD_FIELDS {
            written = written.varint(1, 1);
        }
        assert!(held_fields(&written.0).all(|field| field.is_ok()));
        let written = written.varint(1, 1);
        assert_eq!(held_fields(&written.0).last(), Some(Err(TooLarge)));
        assert!(fields(&written.0).all(|field| field.is_ok()));
    }

    #[test]
    fn the_sign_of_a_number_is_its_lowest_bit() {
        assert_eq!([0, 1, 2, 3].map(unzigzag), [0, -1, 1, -2]);
        assert_eq!(unzigzag(u64::MAX), i64::MIN);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(fields(&bytes).count() <= bytes.len());
        }
    }
}
