//! The page from top to bottom, for showing elements that are not on the first screen.

use plumbline_bundle::{Artifact, Bundle};
use serde::{Deserialize, Serialize};

use super::film::{LARGEST_PICTURE_CHARS, Picture, is_known_type};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WholePage {
    /// Its pixels are CSS pixels.
    pub picture: Picture,
    /// How far the page was scrolled: elements are measured from the screen's corner, the picture is not.
    pub scrolled_x: f64,
    pub scrolled_y: f64,
}

/// The artifact's shape; sizes in CSS pixels (browser: gather/full_page.rs).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gathered {
    mime_type: String,
    width: f64,
    height: f64,
    scrolled_x: f64,
    scrolled_y: f64,
    data: String,
}

/// None where one screen shows all of the page.
pub(super) fn whole_page(bundle: &Bundle) -> Option<WholePage> {
    let Artifact::Gathered(raw) = bundle.artifacts.get("full-page-picture")? else {
        return None;
    };
    let found: Gathered = serde_json::from_str(raw.get()).ok()?;
    let is_picture = is_known_type(&found.mime_type)
        && found.data.len() <= 4 * LARGEST_PICTURE_CHARS
        && found.width >= 1.0
        && found.height >= 1.0;
    is_picture.then_some(WholePage {
        picture: Picture {
            mime_type: found.mime_type,
            width_px: found.width as u32,
            height_px: found.height as u32,
            data: found.data,
        },
        scrolled_x: found.scrolled_x,
        scrolled_y: found.scrolled_y,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::Visit;

    fn read(artifact: &str) -> Option<WholePage> {
        let visit = Visit::new().with("full-page-picture", artifact);
        whole_page(&visit.bundle())
    }

    #[test]
    fn a_whole_page_keeps_its_size_and_how_far_it_was_scrolled() {
        let page = read(
            r#"{"mimeType": "image/webp", "width": 412, "height": 4560, "scrolledX": 0, "scrolledY": 70.5, "data": "AAAA"}"#,
        );
        let page = page.unwrap();
        assert_eq!((page.picture.width_px, page.picture.height_px), (412, 4560));
        assert_eq!(page.scrolled_y, 70.5);
    }

    #[test]
    fn what_is_no_picture_is_not_kept() {
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
