//! The operator's logo, which is printed on reports.

use plumbline_report::html::LogoFile;

/// The largest logo. It is sent with every printed report.
const MAX_BYTES: usize = 512 * 1024;

/// An image file of a known type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logo {
    bytes: Vec<u8>,
    media_type: &'static str,
}

/// The reason why a file cannot be a logo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogoError {
    #[error("not a PNG, JPEG, WebP or SVG file")]
    UnknownType,
    #[error("larger than {} KiB", MAX_BYTES / 1024)]
    TooLarge,
}

impl Logo {
    /// Checks the content of a file.
    pub fn new(bytes: Vec<u8>) -> Result<Self, LogoError> {
        if bytes.len() > MAX_BYTES {
            return Err(LogoError::TooLarge);
        }
        let media_type = media_type(&bytes).ok_or(LogoError::UnknownType)?;
        Ok(Self { bytes, media_type })
    }

    /// Returns the file for pages that contain it.
    pub(crate) fn file(&self) -> LogoFile<'_> {
        LogoFile {
            bytes: &self.bytes,
            media_type: self.media_type,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the value of the `Content-Type` header.
    pub(crate) fn media_type(&self) -> &'static str {
        self.media_type
    }
}

/// Recognises a file by its first bytes; SVG is text that begins with its element or with a
/// declaration or comment before it.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
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
        ] => Some("image/webp"),
        _ => {
            let text = std::str::from_utf8(bytes).ok()?.trim_start();
            let is_svg = ["<svg", "<?xml", "<!--"]
                .iter()
                .any(|begin| text.starts_with(begin))
                && text.contains("<svg");
            is_svg.then_some("image/svg+xml")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logo_is_recognised_by_its_content() {
        for (bytes, media_type) in [
            (&b"\x89PNG\r\n"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"<?xml version='1.0'?><svg/>", Some("image/svg+xml")),
            (b"<html><svg></svg></html>", None),
            (b"", None),
        ] {
            let logo = Logo::new(bytes.to_vec());
            assert_eq!(
                logo.ok().map(|logo| logo.media_type),
                media_type,
                "{bytes:?}"
            );
        }
        let large = Logo::new(vec![0x89; MAX_BYTES + 1]);
        assert_eq!(large, Err(LogoError::TooLarge));
    }
}
