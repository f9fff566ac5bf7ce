//! Shows elements as crops of screenshots. Each screenshot is loaded only once: a served page loads
//! it when the first crop scrolls into view, and a standalone file contains it once.

use std::cell::Cell;

use plumbline_model::check::{Node, Rect};
use plumbline_model::media::{Picture, PictureId, ReportMedia};

use super::code_text::escaped;
use super::figures::coordinate;
use super::pictures::PictureSource;

/// The screenshots that crops are taken from.
#[derive(Default)]
pub(super) struct Screenshots {
    /// The first screen, in device pixels.
    screen: Option<Screenshot>,
    /// The whole page, in CSS pixels: less sharp, and a larger file.
    full_page: Option<Screenshot>,
}

struct Screenshot {
    /// The id of its definition, if the page contains the image.
    id: &'static str,
    /// The escaped URL of the image.
    src: String,
    is_inlined: bool,
    /// The size in CSS pixels, in which elements are measured.
    width: f64,
    height: f64,
    /// The scroll position: elements are measured from the corner of the viewport.
    scroll: (f64, f64),
    is_used: Cell<bool>,
}

/// The maximum height of a crop. Of taller elements it shows the top.
const MAX_HEIGHT: f64 = 360.0;

impl Screenshots {
    pub(super) fn of(media: &ReportMedia, source: &PictureSource) -> Self {
        let screen = media.screenshot.as_ref().and_then(|picture| {
            let css_width = media.screenshot_css_width;
            Screenshot::of("shot", PictureId::Final, picture, source, css_width)
        });
        let full_page = media.full_page.as_ref().and_then(|page| {
            let screenshot = Screenshot::of("whole", PictureId::Whole, &page.picture, source, 0.0)?;
            let scroll = (page.scrolled_x, page.scrolled_y);
            Some(Screenshot {
                scroll,
                ..screenshot
            })
        });
        Self { screen, full_page }
    }

    /// Returns trusted markup that shows the whole first screen.
    pub(super) fn first_screen(&self) -> Option<String> {
        self.screen.as_ref().map(Screenshot::uncropped)
    }

    /// Returns trusted markup that shows the element and its surroundings, or `None` if no
    /// screenshot shows it.
    pub(super) fn crop(&self, node: &Node) -> Option<String> {
        let rect = node.rect_in_screenshot()?;
        let (screen, full_page) = (self.screen.as_ref(), self.full_page.as_ref());
        let sharp = screen.filter(|screenshot| screenshot.shows_all(rect));
        let screenshot = sharp
            .or_else(|| full_page.filter(|screenshot| screenshot.shows(rect)))
            .or_else(|| screen.filter(|screenshot| screenshot.shows(rect)))?;
        Some(screenshot.crop(rect))
    }

    /// Returns trusted markup that defines the images that crops of a standalone page refer to. It
    /// must be called after all crops were made.
    pub(super) fn definitions(&self) -> Option<String> {
        let used = [&self.screen, &self.full_page].into_iter().flatten();
        let used = used.filter(|screenshot| screenshot.is_inlined && screenshot.is_used.get());
        let images: String = used.map(Screenshot::definition).collect();
        (!images.is_empty()).then(|| {
            format!(
                r#"<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{images}</defs></svg>"#
            )
        })
    }
}

impl Screenshot {
    /// Returns `None` for an image without a size. The width of the page defaults to that of the
    /// image.
    fn of(
        id: &'static str,
        picture_id: PictureId,
        picture: &Picture,
        source: &PictureSource,
        css_width: f64,
    ) -> Option<Self> {
        let (width_px, height_px) = (f64::from(picture.width_px), f64::from(picture.height_px));
        if width_px == 0.0 || height_px == 0.0 {
            return None;
        }
        let width = if css_width > 0.0 { css_width } else { width_px };
        Some(Self {
            id,
            src: escaped(&source.of(picture_id, picture)),
            is_inlined: matches!(source, PictureSource::Inlined),
            width,
            height: width * height_px / width_px,
            scroll: (0.0, 0.0),
            is_used: Cell::new(false),
        })
    }

    /// Converts a rectangle to the coordinates of the image.
    fn place(&self, rect: Rect) -> Rect {
        Rect {
            left: rect.left + self.scroll.0,
            top: rect.top + self.scroll.1,
            ..rect
        }
    }

    /// Whether the image shows any part of the rectangle.
    fn shows(&self, rect: Rect) -> bool {
        let rect = self.place(rect);
        rect.width > 0.0
            && rect.height > 0.0
            && rect.left < self.width
            && rect.top < self.height
            && rect.right() > 0.0
            && rect.bottom() > 0.0
    }

    /// Whether the image shows everything that a crop of the rectangle would show.
    fn shows_all(&self, rect: Rect) -> bool {
        let placed = self.place(rect);
        self.shows(rect)
            && placed.top >= 0.0
            && placed.left >= 0.0
            && placed.bottom().min(placed.top + MAX_HEIGHT) <= self.height
    }

    fn crop(&self, rect: Rect) -> String {
        const MARGIN: f64 = 16.0;
        // A crop is displayed about 280 pixels wide; anything smaller would be blurred.
        const MIN_SIZE: (f64, f64) = (280.0, 104.0);
        self.is_used.set(true);
        let rect = self.place(rect);
        let width = (rect.width + 2.0 * MARGIN).max(MIN_SIZE.0).min(self.width);
        let height = (rect.height + 2.0 * MARGIN)
            .clamp(MIN_SIZE.1, MAX_HEIGHT)
            .min(self.height);
        // Centred on the element, or starting at its top if it is taller than the crop.
        let left = rect.left + rect.width / 2.0 - width / 2.0;
        let top = if rect.height < height {
            rect.top + rect.height / 2.0 - height / 2.0
        } else {
            rect.top - MARGIN
        };
        let left = left.clamp(0.0, (self.width - width).max(0.0));
        let top = top.clamp(0.0, (self.height - height).max(0.0));
        format!(
            r#"<svg class="crop" viewBox="{} {} {} {}" aria-hidden="true">{}<rect class="hit" x="{}" y="{}" width="{}" height="{}"/></svg>"#,
            coordinate(left),
            coordinate(top),
            coordinate(width),
            coordinate(height),
            self.image(),
            coordinate(rect.left),
            coordinate(rect.top),
            coordinate(rect.width),
            coordinate(rect.height),
        )
    }

    fn uncropped(&self) -> String {
        const ALT: &str = "The page at the end of the visit";
        self.is_used.set(true);
        let (width, height) = (coordinate(self.width), coordinate(self.height));
        if self.is_inlined {
            return format!(
                r##"<svg class="still" viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMin slice" role="img" aria-label="{ALT}"><use href="#{}"/></svg>"##,
                self.id
            );
        }
        format!(
            r#"<img class="still" src="{}" width="{width}" height="{height}" alt="{ALT}" loading="lazy" decoding="async">"#,
            self.src
        )
    }

    /// Returns the image element. An HTML image in an SVG can be loaded lazily, an SVG image
    /// cannot.
    fn image(&self) -> String {
        if self.is_inlined {
            return format!(r##"<use href="#{}"/>"##, self.id);
        }
        let (width, height) = (coordinate(self.width), coordinate(self.height));
        format!(
            r#"<foreignObject width="{width}" height="{height}"><img src="{}" width="{width}" height="{height}" alt="" loading="lazy" decoding="async"></foreignObject>"#,
            self.src
        )
    }

    fn definition(&self) -> String {
        format!(
            r#"<image id="{}" href="{}" width="{}" height="{}"/>"#,
            self.id,
            self.src,
            coordinate(self.width),
            coordinate(self.height)
        )
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::media::FullPageScreenshot;

    use super::*;

    fn picture(width_px: u32, height_px: u32) -> Picture {
        Picture {
            mime_type: "image/webp".to_owned(),
            width_px,
            height_px,
            data: "AAAA".to_owned(),
        }
    }

    fn media(full_page: Option<FullPageScreenshot>) -> ReportMedia {
        ReportMedia {
            screenshot: Some(picture(800, 1600)),
            screenshot_css_width: 400.0,
            full_page,
            ..ReportMedia::default()
        }
    }

    fn screenshots(full_page: Option<FullPageScreenshot>) -> Screenshots {
        Screenshots::of(&media(full_page), &PictureSource::Linked("/r/1".to_owned()))
    }

    fn scrolled_by(scrolled_y: f64) -> Option<FullPageScreenshot> {
        Some(FullPageScreenshot {
            picture: picture(400, 3000),
            scrolled_x: 0.0,
            scrolled_y,
        })
    }

    fn node(left: f64, top: f64, width: f64, height: f64) -> Node {
        Node {
            rect: Some(Rect {
                left,
                top,
                width,
                height,
            }),
            ..Node::default()
        }
    }

    #[test]
    fn an_element_is_shown_with_its_surroundings() {
        let crop = screenshots(None)
            .crop(&node(100.0, 300.0, 50.0, 20.0))
            .unwrap();
        assert!(crop.contains(r#"viewBox="0 258 280 104""#), "{crop}");
    }

    #[test]
    fn a_crop_stays_within_the_image() {
        let corner = screenshots(None)
            .crop(&node(380.0, 790.0, 50.0, 40.0))
            .unwrap();
        assert!(corner.contains(r#"viewBox="120 696 280 104""#), "{corner}");
        let huge = screenshots(None)
            .crop(&node(0.0, 100.0, 400.0, 5000.0))
            .unwrap();
        assert!(huge.contains(r#"viewBox="0 84 400 360""#), "{huge}");
    }

    #[test]
    fn an_element_that_no_screenshot_shows_has_no_crop() {
        for hidden in [
            node(0.0, 3100.0, 10.0, 10.0),
            node(-50.0, 0.0, 40.0, 10.0),
            node(0.0, 0.0, 0.0, 10.0),
            Node::default(),
        ] {
            assert_eq!(screenshots(scrolled_by(0.0)).crop(&hidden), None);
        }
        assert_eq!(screenshots(None).crop(&node(0.0, 900.0, 10.0, 10.0)), None);
    }

    #[test]
    fn elements_below_the_first_screen_are_cropped_from_the_full_page() {
        let screenshots = screenshots(scrolled_by(0.0));
        let below = screenshots.crop(&node(100.0, 2000.0, 50.0, 20.0)).unwrap();
        assert!(below.contains(r#"viewBox="0 1958 280 104""#), "{below}");
        assert!(below.contains(r#"src="/r/1/whole""#), "{below}");
        let above = screenshots.crop(&node(100.0, 300.0, 50.0, 20.0)).unwrap();
        assert!(above.contains(r#"src="/r/1/final""#), "{above}");
        let across = screenshots.crop(&node(0.0, 780.0, 400.0, 60.0)).unwrap();
        assert!(across.contains(r#"src="/r/1/whole""#), "{across}");
    }

    #[test]
    fn crops_of_the_full_page_take_the_scroll_position_into_account() {
        let screenshots = screenshots(scrolled_by(1000.0));
        let above = screenshots.crop(&node(100.0, -500.0, 50.0, 20.0)).unwrap();
        assert!(above.contains(r#"viewBox="0 458 280 104""#), "{above}");
        assert!(above.contains(r#"y="500""#), "{above}");
        let beyond = screenshots.crop(&node(100.0, 2100.0, 50.0, 20.0));
        assert_eq!(beyond, None);
    }

    #[test]
    fn a_standalone_page_contains_each_image_once_and_only_if_it_is_used() {
        let media = media(scrolled_by(0.0));
        let screenshots = Screenshots::of(&media, &PictureSource::Inlined);
        assert_eq!(screenshots.definitions(), None);
        assert!(
            screenshots
                .first_screen()
                .unwrap()
                .contains(r##"<use href="#shot"/>"##)
        );
        for top in [1000.0, 1500.0] {
            let crop = screenshots.crop(&node(0.0, top, 10.0, 10.0)).unwrap();
            assert!(crop.contains(r##"<use href="#whole"/>"##), "{crop}");
        }
        let defined = screenshots.definitions().unwrap();
        assert_eq!(defined.matches("data:image/webp").count(), 2, "{defined}");
        for id in [r#"id="shot""#, r#"id="whole""#] {
            assert_eq!(defined.matches(id).count(), 1, "{defined}");
        }
    }
}
