//! Where a page's pictures are: at addresses of the server, or within the page.

use plumbline_engine::exhibits::{Exhibits, Picture};

use super::HtmlError;

/// How pages name their pictures.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Below this address.
    Below(String),
    Inlined,
}

/// One picture of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureId {
    /// The first screen at the end of the visit.
    Final,
    /// The page from top to bottom.
    Whole,
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

    /// From the last part of its address.
    pub fn parse(file: &str) -> Option<Self> {
        match file {
            "final" => Some(Self::Final),
            "whole" => Some(Self::Whole),
            _ => Some(Self::Frame(file.strip_prefix("frame-")?.parse().ok()?)),
        }
    }
}

/// The picture's bytes and media type, out of packed exhibits.
pub fn picture(packed: &[u8], id: PictureId) -> Result<Option<(Vec<u8>, &'static str)>, HtmlError> {
    let exhibits = Exhibits::unpack(packed)?;
    let found = match id {
        PictureId::Final => exhibits.screenshot.as_ref(),
        PictureId::Whole => exhibits.whole_page.as_ref().map(|page| &page.picture),
        PictureId::Frame(index) => exhibits.pictures.get(index),
    };
    Ok(found.and_then(|picture| Some((decode(&picture.data)?, media_type(picture)))))
}

/// Only these three, whatever the evidence says: it goes into a header.
fn media_type(picture: &Picture) -> &'static str {
    match picture.mime_type.as_str() {
        "image/webp" => "image/webp",
        "image/png" => "image/png",
        _ => "image/jpeg",
    }
}

impl Source {
    pub(super) fn of(&self, id: PictureId, picture: &Picture) -> String {
        match self {
            Self::Below(base) => format!("{base}/{}", id.file()),
            // Anything but the alphabet of Base64 could end the attribute; escaping sees to that too.
            Self::Inlined => format!("data:{};base64,{}", media_type(picture), picture.data),
        }
    }
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    let text = base64.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for symbol in group {
            let sextet = match symbol {
                b'A'..=b'Z' => symbol - b'A',
                b'a'..=b'z' => symbol - b'a' + 26,
                b'0'..=b'9' => symbol - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(sextet);
        }
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=group.len() * 6 / 8]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_by_the_address_they_are_shown_at() {
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
    fn a_picture_comes_out_of_its_exhibits_as_it_went_in() {
        let exhibits = Exhibits {
            format: plumbline_engine::exhibits::FORMAT,
            screenshot: Some(Picture {
                mime_type: "text/html".to_owned(),
                data: "TWFuIQ==".to_owned(),
                ..Picture::default()
            }),
            ..Exhibits::default()
        };
        let packed = exhibits.pack().unwrap();
        let (bytes, media_type) = picture(&packed, PictureId::Final).unwrap().unwrap();
        assert_eq!(bytes, b"Man!");
        assert_eq!(media_type, "image/jpeg", "never what the evidence says");
        assert!(picture(&packed, PictureId::Frame(0)).unwrap().is_none());
    }
}
