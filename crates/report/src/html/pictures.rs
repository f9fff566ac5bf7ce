//! The pictures of a report: served under their own paths, or inlined into the page.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_PAD_INDIFFERENT};
use plumbline_model::media::{Picture, PictureId, ReportMedia};

use super::HtmlError;

/// The way a page refers to its pictures.
#[derive(Debug, Clone)]
pub enum PictureSource {
    /// Pictures are served below this path.
    Linked(String),
    /// Pictures are data URLs.
    Inlined,
}

/// The image file of the operator's logo, for pages that are a single file.
#[derive(Debug, Clone, Copy)]
pub struct LogoFile<'a> {
    pub bytes: &'a [u8],
    pub media_type: &'static str,
}

impl LogoFile<'_> {
    /// Returns the data URL of the file.
    pub(super) fn data_url(self) -> String {
        format!(
            "data:{};base64,{}",
            self.media_type,
            STANDARD.encode(self.bytes)
        )
    }
}

/// Returns the bytes and media type of a picture in packed report media.
pub fn picture(packed: &[u8], id: PictureId) -> Result<Option<(Vec<u8>, &'static str)>, HtmlError> {
    let picture = ReportMedia::unpack_picture(packed, id)?;
    Ok(picture.and_then(|picture| Some((decode(&picture.data)?, media_type(&picture)))))
}

/// Returns one of three known media types, because the value becomes a header and the bundle is not
/// trusted.
fn media_type(picture: &Picture) -> &'static str {
    match picture.mime_type.as_str() {
        "image/webp" => "image/webp",
        "image/png" => "image/png",
        _ => "image/jpeg",
    }
}

impl PictureSource {
    /// Returns the URL of a picture.
    pub(super) fn of(&self, id: PictureId, picture: &Picture) -> String {
        match self {
            Self::Linked(base) => format!("{base}/{}", id.name()),
            // The data is not trusted to be Base64, so callers escape the URL.
            Self::Inlined => format!("data:{};base64,{}", media_type(picture), picture.data),
        }
    }
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    STANDARD_PAD_INDIFFERENT.decode(base64).ok()
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::Encoding;

    use super::*;

    #[test]
    fn a_picture_is_unpacked_unchanged_with_a_known_media_type() {
        let media = ReportMedia {
            format: plumbline_model::media::FORMAT,
            screenshot: Some(Picture {
                mime_type: "text/html".to_owned(),
                data: "TWFuIQ==".to_owned(),
                ..Picture::default()
            }),
            ..ReportMedia::default()
        };
        for encoding in [Encoding::Container, Encoding::GzipJson] {
            let packed = media.pack_as(encoding).unwrap();
            let (bytes, media_type) = picture(&packed, PictureId::Final).unwrap().unwrap();
            assert_eq!(bytes, b"Man!");
            assert_eq!(
                media_type, "image/jpeg",
                "never the media type of the bundle"
            );
            assert!(picture(&packed, PictureId::Frame(0)).unwrap().is_none());
        }
    }
}
