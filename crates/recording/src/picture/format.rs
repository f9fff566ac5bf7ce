//! The formats of pictures, from their first bytes. Servers choose the format by what the browser
//! accepts, so that names do not tell it.

use std::fmt;

/// A format of pictures with pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Jpeg,
    Png,
    Gif,
    WebP,
    Avif,
}

impl Format {
    /// Returns the format of a file; `None` if it is none of these.
    pub fn of(file: &[u8]) -> Option<Self> {
        match file {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::WebP),
            [_, _, _, _, rest @ ..] if matches!(rest.get(..8)?, b"ftypavif" | b"ftypavis") => {
                Some(Self::Avif)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
            Self::Avif => "AVIF",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_the_first_bytes() {
        for (file, name) in [
            (&b"\xff\xd8\xff\xe0"[..], "JPEG"),
            (b"\x89PNG\r\n\x1a\n", "PNG"),
            (b"GIF89a", "GIF"),
            (b"RIFF....WEBPVP8 ", "WebP"),
            (b"\0\0\0\x20ftypavif", "AVIF"),
            (b"\0\0\0\x20ftypavis", "AVIF"),
        ] {
            assert_eq!(
                Format::of(file).map(|it| it.to_string()).as_deref(),
                Some(name)
            );
        }
        for file in [&b""[..], b"<svg>", b"RIFF....WAVE", b"\0\0\0\x20ftypmp42"] {
            assert_eq!(Format::of(file), None, "{file:?}");
        }
    }
}
