//! The full-page screenshot, for showing elements outside the first screen.

use plumbline_bundle::{Artifact, Bundle, FullPagePicture};
use plumbline_model::media::{FullPageScreenshot, Picture};

use super::film::{MAX_PICTURE_CHARS, is_known_type};

/// Returns the full-page screenshot, or `None` if one screen shows all of the page.
pub(super) fn full_page(bundle: &Bundle) -> Option<FullPageScreenshot> {
    let Artifact::Gathered(raw) = bundle.artifacts.get(FullPagePicture::ARTIFACT)? else {
        return None;
    };
    let gathered: FullPagePicture = serde_json::from_str(raw.get()).ok()?;
    let is_picture = is_known_type(&gathered.mime_type)
        && gathered.data.len() <= 4 * MAX_PICTURE_CHARS
        && gathered.width >= 1.0
        && gathered.height >= 1.0;
    is_picture.then_some(FullPageScreenshot {
        picture: Picture {
            mime_type: gathered.mime_type,
            width_px: gathered.width as u32,
            height_px: gathered.height as u32,
            data: gathered.data,
        },
        scrolled_x: gathered.scrolled_x,
        scrolled_y: gathered.scrolled_y,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::Visit;

    fn read(artifact: &str) -> Option<FullPageScreenshot> {
        let visit = Visit::new().with("full-page-picture", artifact);
        full_page(&visit.bundle())
    }

    #[test]
    fn a_full_page_screenshot_has_its_size_and_scroll_position() {
        let page = read(
            r#"{"mimeType": "image/webp", "width": 412, "height": 4560, "scrolledX": 0, "scrolledY": 70.5, "data": "AAAA"}"#,
        );
        let page = page.unwrap();
        assert_eq!((page.picture.width_px, page.picture.height_px), (412, 4560));
        assert_eq!(page.scrolled_y, 70.5);
    }

    #[test]
    fn an_invalid_picture_is_dropped() {
        assert_eq!(read("null"), None);
        assert_eq!(read(r#"{"mimeType": "image/webp"}"#), None);
        let of = |mime_type: &str, height: &str| {
            read(&format!(
                r#"{{"mimeType": "{mime_type}", "width": 412, "height": {height}, "scrolledX": 0, "scrolledY": 0, "data": "AAAA"}}"#
            ))
        };
        assert!(of("image/webp", "900").is_some());
        assert_eq!(of("text/html", "900"), None);
        assert_eq!(of("image/webp", "0"), None);
        assert_eq!(of("image/webp", "-5"), None);
    }
}
