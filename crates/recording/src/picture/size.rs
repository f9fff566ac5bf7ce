//! The sizes of pictures, from their first bytes.

/// Returns the width and the height of a JPEG, PNG, GIF or WebP picture in pixels; `None` if it is
/// none of these, or incomplete.
pub fn size(picture: &[u8]) -> Option<(u32, u32)> {
    match picture {
        [0xff, 0xd8, rest @ ..] => jpeg_size(rest),
        [0x89, b'P', b'N', b'G', ..] => Some((big(picture, 16, 4)?, big(picture, 20, 4)?)),
        [b'G', b'I', b'F', b'8', ..] => Some((little(picture, 6, 2)?, little(picture, 8, 2)?)),
        [b'R', b'I', b'F', b'F', ..] if picture.get(8..12)? == b"WEBP" => webp_size(picture),
        _ => None,
    }
}

/// Returns a number of some bytes, the most significant first.
fn big(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + length)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

/// Returns a number of some bytes, the least significant first.
fn little(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + length)?;
    let bytes = bytes.iter().rev();
    Some(bytes.fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Returns the size in the header of the frame, before which there are other segments.
fn jpeg_size(mut segments: &[u8]) -> Option<(u32, u32)> {
    loop {
        let [0xff, marker, rest @ ..] = segments else {
            return None;
        };
        segments = match marker {
            // Fill bytes may precede a marker.
            0xff => &segments[1..],
            // These begin a frame; 0xc4, 0xc8 and 0xcc are other segments.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(rest, 5, 2)?, big(rest, 3, 2)?));
            }
            _ => {
                let length = usize::try_from(big(rest, 0, 2)?).ok()?;
                rest.get(length..)?
            }
        };
    }
}

/// Returns the size of a lossy, lossless or extended WebP picture.
fn webp_size(picture: &[u8]) -> Option<(u32, u32)> {
    match picture.get(12..16)? {
        b"VP8 " => {
            let side = |at| little(picture, at, 2).map(|side| side & 0x3fff);
            Some((side(26)?, side(28)?))
        }
        b"VP8L" => {
            let bits = little(picture, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(picture, 24, 3)? + 1, little(picture, 27, 3)? + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::jpeg;
    use super::*;

    #[test]
    fn sizes_are_read_from_all_formats() {
        assert_eq!(size(&jpeg(40, 80)).map(|(width, _)| width), Some(40));
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x02\0\0\0\x10";
        assert_eq!(size(png), Some((258, 16)));
        assert_eq!(size(b"GIF89a\x02\x01\x10\0"), Some((258, 16)));
        let lossy = b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a\x02\x01\x10\0";
        assert_eq!(size(lossy), Some((258, 16)));
        let lossless = b"RIFF....WEBPVP8L....\x2f\x01\xc1\x03\0";
        assert_eq!(size(lossless), Some((258, 16)));
        let extended = b"RIFF....WEBPVP8X....\0\0\0\0\x01\x01\0\x0f\0\0";
        assert_eq!(size(extended), Some((258, 16)));
    }

    #[test]
    fn other_and_incomplete_files_have_no_size() {
        for file in [
            &b""[..],
            b"<svg>",
            b"GIF89a",
            b"\x89PNG",
            b"RIFF....WEBP",
            b"\xff\xd8\xff",
        ] {
            assert_eq!(size(file), None, "{file:?}");
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(kind in 0_usize..4, rest in proptest::collection::vec(any::<u8>(), 0..60)) {
            let starts = [&b"\xff\xd8"[..], b"\x89PNG", b"GIF8", b"RIFF....WEBP"];
            let file = [starts[kind], &rest].concat();
            size(&file);
        }
    }
}
