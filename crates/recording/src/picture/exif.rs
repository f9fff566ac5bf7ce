//! The orientation in Exif, which is the only part of it that changes how a picture is shown.

/// The tag of the orientation in the first directory.
const ORIENTATION: u16 = 0x0112;

/// The type of numbers with two bytes.
const SHORT: u16 = 3;

/// Returns the orientation of a TIFF structure, or 1 if it has none.
pub fn orientation(tiff: &[u8]) -> u16 {
    find_orientation(tiff)
        .filter(|it| (1..=8).contains(it))
        .unwrap_or(1)
}

/// Returns whether the stored rows of pictures with an orientation are shown as columns.
pub fn is_on_its_side(orientation: u16) -> bool {
    orientation > 4
}

fn find_orientation(tiff: &[u8]) -> Option<u16> {
    // The decoder may leave the name of the segment.
    let tiff = tiff.strip_prefix(b"Exif\0\0").unwrap_or(tiff);
    let is_little_endian = match tiff.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk::<2>()?;
        Some(if is_little_endian {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };
    let long = |at: usize| {
        let (first, second) = (short(at)?, short(at + 2)?);
        let (low, high) = if is_little_endian {
            (first, second)
        } else {
            (second, first)
        };
        Some(u32::from(high) << 16 | u32::from(low))
    };
    let directory = usize::try_from(long(4)?).ok()?;
    let count = usize::from(short(directory)?);
    let entries = (0..count).map(|index| directory.saturating_add(2 + 12 * index));
    let mut entries = entries.filter(|entry| short(*entry) == Some(ORIENTATION));
    short(entries.next()?.saturating_add(8))
}

/// Returns the content of an Exif segment of JPEG with nothing but an orientation.
pub fn segment(orientation: u16) -> Vec<u8> {
    [&b"Exif\0\0"[..], &tiff(orientation)].concat()
}

/// Returns a TIFF structure with nothing but an orientation.
pub fn tiff(orientation: u16) -> Vec<u8> {
    let mut bytes = b"MM\0\x2a\0\0\0\x08\0\x01".to_vec();
    for value in [ORIENTATION, SHORT, 0, 1, orientation, 0, 0, 0] {
        bytes.extend_from_slice(&value.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_written_orientation_is_read() {
        for value in 1..=8 {
            assert_eq!(orientation(&segment(value)), value);
        }
        assert_eq!(orientation(&segment(9)), 1);
        let little = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        assert_eq!(orientation(little), 6);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            orientation(&bytes);
            orientation(&[b"II", &bytes[..]].concat());
        }
    }
}
