use plumbline_model::check::{Cell, Findings, Node, Row, Unit};
use plumbline_trace::{ImagePaint, Resource, Trace};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Image, Images, Missing, PageProperties, loaded, time_saved};

check! {
    /// # What
    /// Images are no larger than displayed, and use an efficient format and compression.
    ///
    /// # Why
    /// Images make up most of a page's bytes, and the largest one is often the Largest Contentful
    /// Paint.
    ///
    /// # Scored
    /// Does not affect the score. Lists painted images that would be at least 4 KiB smaller in a
    /// modern format, with stronger compression, as a video (animated GIFs of more than 100 KiB) or
    /// at the displayed size (12 KiB for responsive images; images of style sheets are left out).
    ///
    /// # Fix
    /// Serve AVIF or WebP, offer several sizes with `srcset`, and use videos instead of animated
    /// GIFs.
    ///
    /// # Source
    /// Lighthouse 13.5, `image-delivery-insight`; trace engine, insights/ImageDelivery. Chromium
    /// paints about 4,000 CSS pixels below the viewport; in Lighthouse's emulation that distance is
    /// multiplied by the device pixel ratio. Images in the difference are judged by their elements.
    id: "image-delivery-insight",
    pass: "Image delivery is efficient",
    fail: "Image delivery is inefficient",
    learn: "https://developer.chrome.com/docs/performance/insights/image-delivery",
    run: run,
}

/// The size of an AVIF image of good quality: two bytes for twelve pixels.
const AVIF_BYTES_PER_PX: f64 = 2.0 / 12.0;
const LARGE_GIF_BYTES: f64 = 100.0 * 1024.0;
const MIN_SAVED_BYTES: f64 = 4096.0;
const MIN_SAVED_BYTES_OF_SEVERAL_SIZES: f64 = 12_288.0;

/// The distance below the viewport that Chromium paints; Lighthouse's emulation multiplies it by
/// the pixel ratio.
const PAINTED_AHEAD_PX: f64 = 4000.0;

/// The displayed and natural size of an image, in device pixels.
#[derive(Clone, Copy)]
struct DisplayedImage<'a> {
    width_px: f64,
    height_px: f64,
    natural_width_px: f64,
    natural_height_px: f64,
    is_css: bool,
    has_sizes: bool,
    node: Option<&'a Node>,
}

struct Oversized<'a> {
    resource: &'a Resource,
    displayed: DisplayedImage<'a>,
    saved_bytes: f64,
    ways: Vec<(String, f64)>,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let images = facts.get::<Images>().ok();
    let images = images.as_deref().map_or(&[][..], |images| &images.0);
    let page = facts.get::<PageProperties>().ok();
    let mut oversized: Vec<Oversized> = loaded(&trace)
        .filter(|resource| {
            resource.traced_type() == "Image" && resource.mime_type() != "image/svg+xml"
        })
        .filter_map(|resource| {
            // Paints and elements name the URL before redirects.
            let requested_url = resource.redirects.first().map_or(&resource.url, |r| &r.url);
            let displayed = painted(&trace, images, requested_url)
                .or_else(|| in_document(page.as_deref()?, images, requested_url))?;
            judge(resource, displayed)
        })
        .collect();
    oversized.sort_by(|a, b| {
        let by_savings = b.saved_bytes.total_cmp(&a.saved_bytes);
        by_savings.then(b.resource.resource_bytes.cmp(&a.resource.resource_bytes))
    });
    let saved_bytes: f64 = oversized.iter().map(|image| image.saved_bytes).sum();
    let by_id: Vec<(&str, f64)> = oversized
        .iter()
        .map(|image| (image.resource.id.as_str(), image.saved_bytes))
        .collect();
    let outcome = match oversized.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} smaller.",
            count(number, "image could be", "images could be")
        )),
    };
    let table = Findings::new([
        ("node", "Element", Unit::Element),
        ("url", "URL", Unit::Url),
        ("totalBytes", "Size", Unit::Bytes),
        ("wastedBytes", "Wasted", Unit::Bytes),
    ])
    .rows(oversized.iter().map(|image| {
        Row::new([
            image.displayed.node.map_or(Cell::Nothing, Cell::element),
            Cell::url(&image.resource.url),
            Cell::Bytes(image.resource.resource_bytes as f64),
            Cell::Bytes(image.saved_bytes),
        ])
        .with(image.ways.iter().map(|(way, bytes)| {
            Row::new([
                Cell::Nothing,
                Cell::text(way),
                Cell::Nothing,
                Cell::Bytes(*bytes),
            ])
        }))
    }));
    Ok(outcome
        .with(table.into())
        .with_savings(time_saved(facts, &by_id).with_bytes(saved_bytes)))
}

/// Returns the largest paint of the image, the last where several are equal.
fn painted<'a>(trace: &Trace, images: &'a [Image], url: &str) -> Option<DisplayedImage<'a>> {
    let paints = trace.resources.image_paints.iter().filter(|paint| {
        paint.url == url && paint.ts_us + paint.dur_us >= trace.navigation.time_origin_us
    });
    let area = |paint: &ImagePaint| paint.width_px * paint.height_px;
    let paint = paints.max_by(|a, b| area(a).total_cmp(&area(b)))?;
    // Images of style sheets have no element of their own.
    let mut elements = images.iter().filter(|_| !paint.is_css);
    Some(DisplayedImage {
        width_px: paint.width_px,
        height_px: paint.height_px,
        natural_width_px: paint.natural_width_px,
        natural_height_px: paint.natural_height_px,
        is_css: paint.is_css,
        has_sizes: paint.is_picture || paint.has_srcset,
        node: elements
            .find(|image| image.src == url)
            .map(|image| &image.node),
    })
}

/// Returns the largest element that shows the image, leaving out elements too far below the
/// viewport or beside it, such as those of closed menus.
fn in_document<'a>(
    page: &PageProperties,
    images: &'a [Image],
    url: &str,
) -> Option<DisplayedImage<'a>> {
    let ratio = page.device_pixel_ratio;
    images
        .iter()
        .filter(|image| image.src == url && image.rect.width * image.rect.height > 0.0)
        .filter(|image| {
            image.rect.top <= page.inner_height + PAINTED_AHEAD_PX * ratio
                && image.rect.left < page.inner_width
                && image.rect.left + image.rect.width > 0.0
                && image.rect.top + image.rect.height > 0.0
        })
        .filter_map(|image| {
            let natural = image.natural?;
            Some(DisplayedImage {
                width_px: image.displayed.width * ratio,
                height_px: image.displayed.height * ratio,
                natural_width_px: natural.width,
                natural_height_px: natural.height,
                is_css: false,
                has_sizes: !image.srcset.is_empty() || image.node.path.contains(",PICTURE,"),
                node: Some(&image.node),
            })
        })
        .max_by(|a, b| a.displayed_px2().total_cmp(&b.displayed_px2()))
}

impl DisplayedImage<'_> {
    fn displayed_px2(&self) -> f64 {
        self.width_px * self.height_px
    }
}

fn judge<'a>(resource: &'a Resource, displayed: DisplayedImage<'a>) -> Option<Oversized<'a>> {
    let file_px2 = displayed.natural_width_px * displayed.natural_height_px;
    let bytes = resource.resource_bytes.min(resource.transfer_bytes()) as f64;
    let mut ways = Vec::new();
    if let Some(way) = by_format(resource, bytes, file_px2) {
        ways.push(way);
    }
    let by_format_bytes = ways.first().map_or(0.0, |(_, saved)| saved.max(0.0));
    let mut saved_bytes = by_format_bytes;
    let too_large = 1.0 - displayed.displayed_px2() / file_px2;
    if too_large > 0.0 && !displayed.is_css {
        let by_size_bytes = (too_large * bytes).round();
        if !displayed.has_sizes || by_size_bytes > MIN_SAVED_BYTES_OF_SEVERAL_SIZES {
            saved_bytes += (too_large * (bytes - by_format_bytes)).round();
            let way = format!(
                "The file has {}x{} pixels but is displayed at {}x{}",
                displayed.natural_width_px.round(),
                displayed.natural_height_px.round(),
                displayed.width_px.round(),
                displayed.height_px.round()
            );
            ways.push((way, by_size_bytes));
        }
    }
    ways.retain(|(_, saved)| *saved > MIN_SAVED_BYTES);
    (!ways.is_empty()).then_some(Oversized {
        resource,
        displayed,
        saved_bytes,
        ways,
    })
}

fn by_format(resource: &Resource, bytes: f64, file_px2: f64) -> Option<(String, f64)> {
    if resource.mime_type() == "image/gif" {
        // Lighthouse's fit to a thousand GIFs that were converted to videos.
        let share = (29.1 * (resource.resource_bytes as f64).log10() - 100.7).round() / 100.0;
        let saved_bytes = (bytes * share).round();
        return (bytes > LARGE_GIF_BYTES).then(|| ("Use a video format".to_owned(), saved_bytes));
    }
    if bytes / file_px2 <= AVIF_BYTES_PER_PX {
        return None;
    }
    let saved_bytes = bytes - (AVIF_BYTES_PER_PX * file_px2).round();
    let way = match resource.mime_type() {
        "image/webp" | "image/avif" => "Increase compression",
        _ => "Use a modern format or increase compression",
    };
    Some((way.to_owned(), saved_bytes))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::{Value, json};

    use super::super::traced::Traced;
    use super::CHECK;

    const IMAGE: &str = "https://example.test/a.jpg";

    fn saved(mime_type: &str, bytes: u64, painted: Value) -> Option<f64> {
        let mut paint =
            json!({"url": IMAGE, "width": 100, "height": 100, "srcWidth": 100, "srcHeight": 100});
        if let (Some(paint), Value::Object(painted)) = (paint.as_object_mut(), painted) {
            paint.extend(painted);
        }
        let outcome = Traced::new()
            .loads(
                "2.1",
                IMAGE,
                150,
                500,
                json!({"resourceType": "Image"}),
                json!({"mimeType": mime_type}),
                json!({"encodedDataLength": bytes + 300, "decodedBodyLength": bytes}),
            )
            .event("PaintImage", json!({"data": paint}))
            .judge(CHECK);
        let saved_bytes = outcome.savings.and_then(|savings| savings.wasted_bytes);
        match outcome.verdict {
            Verdict::Fail => saved_bytes,
            _ => None,
        }
    }

    #[test]
    fn an_inefficient_format_saves_the_bytes_above_a_good_avif() {
        // 10,000 pixels fit into 1,667 bytes.
        assert_eq!(saved("image/jpeg", 10_000, json!({})), Some(8333.0));
        assert_eq!(saved("image/webp", 10_000, json!({})), Some(8333.0));
        assert_eq!(
            saved("image/jpeg", 5_000, json!({})),
            None,
            "less than 4 KiB"
        );
        assert_eq!(saved("image/svg+xml", 10_000, json!({})), None);
    }

    #[test]
    fn an_oversized_image_saves_the_excess() {
        let large = json!({"srcWidth": 200, "srcHeight": 200});
        assert_eq!(saved("image/avif", 6_600, large.clone()), Some(4950.0));
        let of_style = json!({"srcWidth": 200, "srcHeight": 200, "isCSS": true});
        assert_eq!(saved("image/avif", 6_600, of_style), None);
        let of_several = json!({"srcWidth": 200, "srcHeight": 200, "srcsetAttribute": "a 1x"});
        assert_eq!(saved("image/avif", 6_600, of_several), None);
    }

    #[test]
    fn an_element_that_was_not_painted_yet_is_judged_by_its_box() {
        let image_at = |left: i32, top: u32, width: u32| {
            Traced::new()
                .loads("2.1", IMAGE, 150, 500, json!({"resourceType": "Image"}), json!({"mimeType": "image/jpeg"}),
                       json!({"encodedDataLength": 10_300, "decodedBodyLength": 10_000}))
                .visit()
                .with("page", r#"{"innerWidth": 400, "innerHeight": 800, "devicePixelRatio": 2}"#)
                .with("images", &format!(
                    r#"[{{"src": "{IMAGE}", "displayed": {{"width": 50, "height": 50}}, "rect": {{"left": {left}, "top": {top}, "width": {width}, "height": 50}},
                         "natural": {{"width": 100, "height": 100}}}}]"#
                ))
                .verdict(CHECK)
        };
        let image = |top: u32, width: u32| image_at(0, top, width);
        assert_eq!(image(8800, 50), Verdict::Fail);
        assert_eq!(image_at(-60, 100, 50), Verdict::Pass, "in a closed menu");
        assert_eq!(image(100, 0), Verdict::Pass, "not shown at all");
        assert_eq!(
            image(8900, 50),
            Verdict::Pass,
            "further down than Chromium looks"
        );
    }

    #[test]
    fn large_gifs_should_be_videos_and_unpainted_images_are_left_out() {
        assert_eq!(saved("image/gif", 90_000, json!({})), None);
        assert!(saved("image/gif", 200_000, json!({})).is_some());
        assert_eq!(
            saved(
                "image/jpeg",
                10_000,
                json!({"url": "https://example.test/b"})
            ),
            None
        );
    }
}
