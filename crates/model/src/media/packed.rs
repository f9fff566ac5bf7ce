//! Packs report media as a container in which each picture is a member, so that a page is rendered
//! without the pictures, and a picture is served without the rest. Earlier versions stored gzipped
//! JSON, which stays readable.

use plumbline_bundle::container::{Container, ContainerWriter, Limits};
use plumbline_bundle::{Encoding, PackError, gzip_json, versioned_json};

use super::{FORMAT, Picture, PictureId, ReportMedia};

/// The maximum unpacked size; a thousand requests and every picture stay far below.
const LIMITS: Limits = Limits {
    member_bytes: 32 << 20,
    total_bytes: 64 << 20,
};

/// The member with everything but the pictures.
const META: &str = "meta";

impl ReportMedia {
    /// Packs the report media as a container.
    pub fn pack(&self) -> Result<Vec<u8>, PackError> {
        self.pack_as(Encoding::Container)
    }

    /// Packs the report media in an encoding.
    pub fn pack_as(&self, encoding: Encoding) -> Result<Vec<u8>, PackError> {
        match encoding {
            Encoding::Container => self.container().map_err(PackError::unreadable),
            Encoding::GzipJson => gzip_json::pack(self),
        }
    }

    fn container(&self) -> std::io::Result<Vec<u8>> {
        let mut container = ContainerWriter::new(Vec::new())?;
        let mut meta = self.clone();
        for id in self.picture_ids() {
            if let Some(picture) = meta.picture_mut(id) {
                container.add_json(&id.name(), picture)?;
                picture.data = String::new();
            }
        }
        // At the end, so that reading the index usually reads it as well.
        container.add_json(META, &meta)?;
        container.finish()
    }

    /// Unpacks report media with all pictures.
    pub fn unpack(bytes: &[u8]) -> Result<Self, PackError> {
        let mut media = Self::unpack_without_pictures(bytes)?;
        if Container::is_container(bytes) {
            let container = Container::open(bytes, LIMITS)?;
            for id in media.picture_ids() {
                let picture = read_picture(&container, id)?;
                if let (Some(packed), Some(picture)) = (picture, media.picture_mut(id)) {
                    *picture = packed;
                }
            }
        }
        Ok(media)
    }

    /// Unpacks report media whose pictures have a size, but no data. Those of earlier versions have
    /// their data, because they are unpacked whole.
    pub fn unpack_without_pictures(bytes: &[u8]) -> Result<Self, PackError> {
        if !Container::is_container(bytes) {
            return gzip_json::unpack(bytes, FORMAT, LIMITS.total_bytes);
        }
        let meta = Container::open(bytes, LIMITS)?.read(META)?;
        let meta = meta.ok_or_else(|| PackError::Unreadable("there is no meta".to_owned()))?;
        versioned_json::parse(&meta, FORMAT)
    }

    /// Unpacks one picture; returns `None` if there is none with this id.
    pub fn unpack_picture(bytes: &[u8], id: PictureId) -> Result<Option<Picture>, PackError> {
        if Container::is_container(bytes) {
            return read_picture(&Container::open(bytes, LIMITS)?, id);
        }
        let mut media = Self::unpack_without_pictures(bytes)?;
        Ok(media.picture_mut(id).map(std::mem::take))
    }

    /// Returns whether a member of packed report media is needed to render a page.
    pub fn is_page_member(name: &str) -> bool {
        name == META
    }

    fn picture_ids(&self) -> Vec<PictureId> {
        let frames = (0..self.pictures.len()).map(PictureId::Frame);
        let steps = (0..self.steps.len()).map(PictureId::Step);
        let flow = (0..self.flow.len()).map(PictureId::FlowStep);
        let others = [PictureId::Whole, PictureId::Final];
        frames.chain(steps).chain(flow).chain(others).collect()
    }

    fn picture_mut(&mut self, id: PictureId) -> Option<&mut Picture> {
        match id {
            PictureId::Final => self.screenshot.as_mut(),
            PictureId::Whole => self.full_page.as_mut().map(|page| &mut page.picture),
            PictureId::Frame(index) => self.pictures.get_mut(index),
            PictureId::Step(index) => self.steps.get_mut(index)?.picture.as_mut(),
            PictureId::FlowStep(index) => self.flow.get_mut(index)?.as_mut(),
        }
    }
}

fn read_picture(container: &Container, id: PictureId) -> Result<Option<Picture>, PackError> {
    let text = container.read(&id.name())?;
    let picture = text.map(|text| serde_json::from_slice(&text));
    picture.transpose().map_err(PackError::unreadable)
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::container::{Index, Part};

    use super::*;
    use crate::media::{FullPageScreenshot, StepEntry};

    /// The report media of a small page in the format of earlier versions, written by the last
    /// version that wrote it.
    const GZIPPED: &[u8] = include_bytes!("../../tests/data/small-page.media.gz");

    fn picture(data: &str) -> Picture {
        Picture {
            mime_type: "image/webp".to_owned(),
            width_px: 4,
            height_px: 8,
            data: data.to_owned(),
        }
    }

    fn media() -> ReportMedia {
        ReportMedia {
            format: FORMAT,
            end_ms: 1234.5,
            pictures: vec![picture("AAAA"), picture("not Base64 <")],
            screenshot: Some(picture("BBBB")),
            steps: vec![
                StepEntry::default(),
                StepEntry {
                    title: "click `#a`".to_owned(),
                    picture: Some(picture("DDDD")),
                    ..StepEntry::default()
                },
            ],
            flow: vec![None, Some(picture("EEEE"))],
            full_page: Some(FullPageScreenshot {
                picture: picture("CCCC"),
                ..FullPageScreenshot::default()
            }),
            ..ReportMedia::default()
        }
    }

    #[test]
    fn packed_media_unpack_unchanged_and_other_bytes_are_rejected() {
        for encoding in [Encoding::Container, Encoding::GzipJson] {
            let packed = media().pack_as(encoding).unwrap();
            assert_eq!(ReportMedia::unpack(&packed).unwrap(), media());
            for bytes in [&b""[..], &packed[..20], &packed[..packed.len() - 1]] {
                let error = ReportMedia::unpack(bytes).unwrap_err();
                assert!(matches!(error, PackError::Unreadable(_)));
            }
            let newer = ReportMedia {
                format: FORMAT + 1,
                ..ReportMedia::default()
            };
            let error = ReportMedia::unpack(&newer.pack_as(encoding).unwrap()).unwrap_err();
            assert!(matches!(error, PackError::Newer { .. }));
        }
    }

    #[test]
    fn media_of_an_earlier_version_are_read_with_their_pictures() {
        assert_eq!(GZIPPED[..2], [0x1f, 0x8b]);
        let old = ReportMedia::unpack(GZIPPED).unwrap();
        assert!(!old.pictures.is_empty() && !old.requests.is_empty());
        let first = ReportMedia::unpack_picture(GZIPPED, PictureId::Frame(0)).unwrap();
        assert_eq!(first.as_ref(), old.pictures.first());
        let last = ReportMedia::unpack_picture(GZIPPED, PictureId::Final).unwrap();
        assert_eq!(last, old.screenshot);
        let repacked = ReportMedia::unpack(&old.pack().unwrap()).unwrap();
        assert_eq!(repacked, old);
    }

    #[test]
    fn a_page_and_a_picture_each_need_one_member() {
        let packed = media().pack().unwrap();
        let index = Index::from_tail(&packed).unwrap().unwrap();
        let part = |is_wanted: &dyn Fn(&str) -> bool| {
            let part = Part::new(&index, is_wanted);
            assert_eq!(part.ranges().len(), 1);
            part.assemble(&[(0, &packed)]).unwrap()
        };
        let page = part(&ReportMedia::is_page_member);
        let page = ReportMedia::unpack_without_pictures(&page).unwrap();
        assert_eq!(page.end_ms, media().end_ms);
        assert_eq!(page.pictures[0], picture(""));
        let frame = part(&|name| name == PictureId::Frame(1).name());
        let frame = ReportMedia::unpack_picture(&frame, PictureId::Frame(1)).unwrap();
        assert_eq!(frame, Some(picture("not Base64 <")));
        let none = ReportMedia::unpack_picture(&packed, PictureId::Frame(2)).unwrap();
        assert_eq!(none, None);
    }

    #[test]
    fn media_that_unpack_to_more_than_the_limit_are_refused() {
        let large = ReportMedia {
            screenshot: Some(picture(&"A".repeat(LIMITS.member_bytes as usize))),
            ..media()
        };
        let packed = large.pack().unwrap();
        assert!(packed.len() < 100_000, "{}", packed.len());
        let pictures = ReportMedia::unpack_picture(&packed, PictureId::Final);
        assert!(matches!(pictures, Err(PackError::TooLarge { .. })));
        let page = ReportMedia::unpack_without_pictures(&packed);
        assert!(matches!(page, Err(PackError::TooLarge { .. })));
    }
}
