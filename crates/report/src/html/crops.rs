//! Elements as pieces of their page's pictures. Each picture is loaded once: on a page of the server when the first
//! piece of it comes near, in a file of its own from the one place where it stands.

use std::cell::Cell;

use plumbline_engine::exhibits::{Exhibits, Picture};
use plumbline_engine::facts::{Node, Rect};

use super::figures::coordinate;
use super::pictures::{PictureId, Source};
use super::words::escaped;

/// What pieces are cut from.
#[derive(Default)]
pub(super) struct Scenes {
    /// The first screen, in the device's own pixels.
    screen: Option<Scene>,
    /// The page from top to bottom, in CSS pixels: coarser, and heavier.
    whole: Option<Scene>,
}

struct Scene {
    /// Of its definition, where the page holds the picture itself.
    id: &'static str,
    /// Escaped.
    src: String,
    is_inlined: bool,
    /// In the pixels that elements are measured in.
    width: f64,
    height: f64,
    /// Elements are measured from the screen's corner, which this far into the picture is.
    scrolled: (f64, f64),
    is_used: Cell<bool>,
}

/// Of what is taller a piece shows the top.
const MOST_HEIGHT: f64 = 360.0;

impl Scenes {
    pub(super) fn of(exhibits: &Exhibits, source: &Source) -> Self {
        let screen = exhibits.screenshot.as_ref().and_then(|picture| {
            let css_width = exhibits.screenshot_css_width;
            Scene::of("shot", PictureId::Final, picture, source, css_width)
        });
        let whole = exhibits.whole_page.as_ref().and_then(|page| {
            let scene = Scene::of("whole", PictureId::Whole, &page.picture, source, 0.0)?;
            let scrolled = (page.scrolled_x, page.scrolled_y);
            Some(Scene { scrolled, ..scene })
        });
        Self { screen, whole }
    }

    /// Markup of ours: all of the first screen.
    pub(super) fn still(&self) -> Option<String> {
        self.screen.as_ref().map(Scene::still)
    }

    /// Markup of ours: the element with some of what is around it. None where no picture shows it.
    pub(super) fn crop(&self, node: &Node) -> Option<String> {
        let rect = node.in_picture()?;
        let (screen, whole) = (self.screen.as_ref(), self.whole.as_ref());
        let sharp = screen.filter(|scene| scene.shows_all(rect));
        let scene = sharp
            .or_else(|| whole.filter(|scene| scene.shows(rect)))
            .or_else(|| screen.filter(|scene| scene.shows(rect)))?;
        Some(scene.crop(rect))
    }

    /// Markup of ours: what pieces refer to, where the page holds the pictures itself. To be asked after all of them.
    pub(super) fn definitions(&self) -> Option<String> {
        let used = [&self.screen, &self.whole].into_iter().flatten();
        let used = used.filter(|scene| scene.is_inlined && scene.is_used.get());
        let images: String = used.map(Scene::definition).collect();
        (!images.is_empty()).then(|| {
            format!(
                r#"<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{images}</defs></svg>"#
            )
        })
    }
}

impl Scene {
    /// None of a picture without a size. Its own width is the page's where that is not known.
    fn of(
        id: &'static str,
        picture_id: PictureId,
        picture: &Picture,
        source: &Source,
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
            is_inlined: matches!(source, Source::Inlined),
            width,
            height: width * height_px / width_px,
            scrolled: (0.0, 0.0),
            is_used: Cell::new(false),
        })
    }

    fn place(&self, rect: Rect) -> Rect {
        Rect {
            left: rect.left + self.scrolled.0,
            top: rect.top + self.scrolled.1,
            ..rect
        }
    }

    /// Some of it.
    fn shows(&self, rect: Rect) -> bool {
        let rect = self.place(rect);
        rect.width > 0.0
            && rect.height > 0.0
            && rect.left < self.width
            && rect.top < self.height
            && rect.right() > 0.0
            && rect.bottom() > 0.0
    }

    /// All that a piece shows of it.
    fn shows_all(&self, rect: Rect) -> bool {
        let placed = self.place(rect);
        self.shows(rect)
            && placed.top >= 0.0
            && placed.left >= 0.0
            && placed.bottom().min(placed.top + MOST_HEIGHT) <= self.height
    }

    fn crop(&self, rect: Rect) -> String {
        const AROUND: f64 = 16.0;
        // A piece is some 280 pixels wide where it is shown: of less it would be a blur.
        const LEAST: (f64, f64) = (280.0, 104.0);
        self.is_used.set(true);
        let rect = self.place(rect);
        let width = (rect.width + 2.0 * AROUND).max(LEAST.0).min(self.width);
        let height = (rect.height + 2.0 * AROUND)
            .clamp(LEAST.1, MOST_HEIGHT)
            .min(self.height);
        // Around the element's middle, or from its top where it is taller than the piece.
        let left = rect.left + rect.width / 2.0 - width / 2.0;
        let top = if rect.height < height {
            rect.top + rect.height / 2.0 - height / 2.0
        } else {
            rect.top - AROUND
        };
        let left = left.clamp(0.0, (self.width - width).max(0.0));
        let top = top.clamp(0.0, (self.height - height).max(0.0));
        format!(
            r#"<svg class="crop" viewBox="{} {} {} {}" aria-hidden="true">{}<rect class="hit" x="{}" y="{}" width="{}" height="{}"/></svg>"#,
            coordinate(left),
            coordinate(top),
            coordinate(width),
            coordinate(height),
            self.shown(),
            coordinate(rect.left),
            coordinate(rect.top),
            coordinate(rect.width),
            coordinate(rect.height),
        )
    }

    fn still(&self) -> String {
        const SAID: &str = "The page at the end of the visit";
        self.is_used.set(true);
        let (width, height) = (coordinate(self.width), coordinate(self.height));
        if self.is_inlined {
            return format!(
                r##"<svg class="still" viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMin slice" role="img" aria-label="{SAID}"><use href="#{}"/></svg>"##,
                self.id
            );
        }
        format!(
            r#"<img class="still" src="{}" width="{width}" height="{height}" alt="{SAID}" loading="lazy" decoding="async">"#,
            self.src
        )
    }

    /// SVG's own images are loaded at once, HTML's when they come near.
    fn shown(&self) -> String {
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
    use plumbline_engine::exhibits::WholePage;

    use super::*;

    fn picture(width_px: u32, height_px: u32) -> Picture {
        Picture {
            mime_type: "image/webp".to_owned(),
            width_px,
            height_px,
            data: "AAAA".to_owned(),
        }
    }

    fn exhibits(whole_page: Option<WholePage>) -> Exhibits {
        Exhibits {
            screenshot: Some(picture(800, 1600)),
            screenshot_css_width: 400.0,
            whole_page,
            ..Exhibits::default()
        }
    }

    fn scenes(whole_page: Option<WholePage>) -> Scenes {
        Scenes::of(&exhibits(whole_page), &Source::Below("/r/1".to_owned()))
    }

    fn scrolled_by(scrolled_y: f64) -> Option<WholePage> {
        Some(WholePage {
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
    fn an_element_is_shown_with_what_is_around_it() {
        let crop = scenes(None).crop(&node(100.0, 300.0, 50.0, 20.0)).unwrap();
        assert!(crop.contains(r#"viewBox="0 258 280 104""#), "{crop}");
    }

    #[test]
    fn a_crop_stays_within_the_picture() {
        let corner = scenes(None).crop(&node(380.0, 790.0, 50.0, 40.0)).unwrap();
        assert!(corner.contains(r#"viewBox="120 696 280 104""#), "{corner}");
        let huge = scenes(None).crop(&node(0.0, 100.0, 400.0, 5000.0)).unwrap();
        assert!(huge.contains(r#"viewBox="0 84 400 360""#), "{huge}");
    }

    #[test]
    fn what_is_in_no_picture_has_no_crop() {
        for gone in [
            node(0.0, 3100.0, 10.0, 10.0),
            node(-50.0, 0.0, 40.0, 10.0),
            node(0.0, 0.0, 0.0, 10.0),
            Node::default(),
        ] {
            assert_eq!(scenes(scrolled_by(0.0)).crop(&gone), None);
        }
        assert_eq!(scenes(None).crop(&node(0.0, 900.0, 10.0, 10.0)), None);
    }

    #[test]
    fn what_the_first_screen_does_not_show_is_cut_from_the_whole_page() {
        let scenes = scenes(scrolled_by(0.0));
        let below = scenes.crop(&node(100.0, 2000.0, 50.0, 20.0)).unwrap();
        assert!(below.contains(r#"viewBox="0 1958 280 104""#), "{below}");
        assert!(below.contains(r#"src="/r/1/whole""#), "{below}");
        let above = scenes.crop(&node(100.0, 300.0, 50.0, 20.0)).unwrap();
        assert!(above.contains(r#"src="/r/1/final""#), "{above}");
        let across = scenes.crop(&node(0.0, 780.0, 400.0, 60.0)).unwrap();
        assert!(across.contains(r#"src="/r/1/whole""#), "{across}");
    }

    #[test]
    fn elements_of_a_scrolled_page_are_found_where_the_whole_page_has_them() {
        let scenes = scenes(scrolled_by(1000.0));
        let above = scenes.crop(&node(100.0, -500.0, 50.0, 20.0)).unwrap();
        assert!(above.contains(r#"viewBox="0 458 280 104""#), "{above}");
        assert!(above.contains(r#"y="500""#), "{above}");
        let beyond = scenes.crop(&node(100.0, 2100.0, 50.0, 20.0));
        assert_eq!(beyond, None);
    }

    #[test]
    fn a_page_of_its_own_holds_each_picture_once_and_only_where_it_is_shown() {
        let exhibits = exhibits(scrolled_by(0.0));
        let scenes = Scenes::of(&exhibits, &Source::Inlined);
        assert_eq!(scenes.definitions(), None);
        assert!(scenes.still().unwrap().contains(r##"<use href="#shot"/>"##));
        for top in [1000.0, 1500.0] {
            let crop = scenes.crop(&node(0.0, top, 10.0, 10.0)).unwrap();
            assert!(crop.contains(r##"<use href="#whole"/>"##), "{crop}");
        }
        let defined = scenes.definitions().unwrap();
        assert_eq!(defined.matches("data:image/webp").count(), 2, "{defined}");
        for id in [r#"id="shot""#, r#"id="whole""#] {
            assert_eq!(defined.matches(id).count(), 1, "{defined}");
        }
    }
}
