//! The pictures of a report: served under their own paths, or inlined into the page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use plumbline_model::media::{Picture, ReportMedia};

use super::HtmlError;

/// The way a page refers to its pictures.
#[derive(Debug, Clone)]
pub enum PictureSource {
    /// Pictures are served below this path.
    Linked(String),
    /// Pictures are data URLs.
    Inlined,
}

/// One picture of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureId {
    /// The first screen at the end of the visit.
    Final,
    /// The whole page.
    Whole,
    /// A frame of the filmstrip.
    Frame(usize),
}

impl PictureId {
    fn file(self) -> String {
        match self {
            Self::Final => "final".to_owned(),
            Self::Whole => "whole".to_owned(),
            Self::Frame(index) => format!("frame-{index}"),
        }
    }

    /// Parses the last segment of a picture's path.
    pub fn parse(file: &str) -> Option<Self> {
        match file {
            "final" => Some(Self::Final),
            "whole" => Some(Self::Whole),
            _ => Some(Self::Frame(file.strip_prefix("frame-")?.parse().ok()?)),
        }
    }
}

/// Returns the bytes and media type of a picture in packed report media.
pub fn picture(packed: &[u8], id: PictureId) -> Result<Option<(Vec<u8>, &'static str)>, HtmlError> {
    let media = ReportMedia::unpack(packed)?;
    let picture = match id {
        PictureId::Final => media.screenshot.as_ref(),
        PictureId::Whole => media.full_page.as_ref().map(|page| &page.picture),
        PictureId::Frame(index) => media.pictures.get(index),
    };
    Ok(picture.and_then(|picture| Some((decode(&picture.data)?, media_type(picture)))))
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
            Self::Linked(base) => format!("{base}/{}", id.file()),
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
    use super::*;

    #[test]
    fn a_picture_id_is_parsed_from_its_own_path() {
        for id in [
            PictureId::Final,
            PictureId::Whole,
            PictureId::Frame(0),
            PictureId::Frame(11),
        ] {
            assert_eq!(PictureId::parse(&id.file()), Some(id));
        }
        for file in ["", "frame-", "frame--1", "../final", "frame-1.5"] {
            assert_eq!(PictureId::parse(file), None, "{file}");
        }
    }

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
        let packed = media.pack().unwrap();
        let (bytes, media_type) = picture(&packed, PictureId::Final).unwrap().unwrap();
        assert_eq!(bytes, b"Man!");
        assert_eq!(
            media_type, "image/jpeg",
            "never the media type of the bundle"
        );
        assert!(picture(&packed, PictureId::Frame(0)).unwrap().is_none());
    }
}
