use plumbline_trace::{ImagePaint, Resource, Trace};

use crate::checks::{Cell, Findings, Outcome, Row, Unit, check, count};
use crate::facts::{Facts, Images, Missing, Node, TRACE, loaded, time_saved};

check! {
    /// # What
    /// Images are as large as they are shown, and in a format that is small.
    ///
    /// # Why
    /// Images are most of what pages weigh, and the largest of them is usually what a visitor waits for.
    ///
    /// # Scored
    /// Weighs nothing. Lists images that were painted and would be at least 4 KiB smaller in a modern format, with
    /// stronger compression, as a video (animated GIFs of more than 100 KiB) or at the size they are shown (12 KiB
    /// where there are several sizes to choose from; images of style sheets are left out).
    ///
    /// # Fix
    /// Serve AVIF or WebP, in the sizes that `srcset` names, and videos in place of animated GIFs.
    ///
    /// # Source
    /// Lighthouse 13.5, `image-delivery-insight`; trace engine, insights/ImageDelivery.
    id: "image-delivery-insight",
    pass: "Images are delivered as small as they can be",
    fail: "Images could be delivered smaller",
    needs: [TRACE],
    run: run,
}

/// What an AVIF of good quality needs: two bits for twelve pixels.
const AVIF_BYTES_PER_PX: f64 = 2.0 / 12.0;
const LARGE_GIF_BYTES: f64 = 100.0 * 1024.0;
const MIN_SAVED_BYTES: f64 = 4096.0;
const MIN_SAVED_BYTES_OF_SEVERAL_SIZES: f64 = 12_288.0;

struct Found<'a> {
    resource: &'a Resource,
    paint: &'a ImagePaint,
    saved_bytes: f64,
    ways: Vec<(String, f64)>,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let mut found: Vec<Found> = loaded(&trace)
        .filter_map(|resource| judge(&trace, resource))
        .collect();
    found.sort_by(|a, b| {
        let by_savings = b.saved_bytes.total_cmp(&a.saved_bytes);
        by_savings.then(
            b.resource
                .decoded_bytes
                .total_cmp(&a.resource.decoded_bytes),
        )
    });
    let saved_bytes: f64 = found.iter().map(|found| found.saved_bytes).sum();
    let by_id: Vec<(&str, f64)> = found
        .iter()
        .map(|found| (found.resource.id.as_str(), found.saved_bytes))
        .collect();
    let outcome = match found.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} smaller.",
            count(number, "image could be", "images could be")
        )),
    };
    let images = facts.get::<Images>().ok();
    let table = Findings::new([
        ("node", "Element", Unit::Element),
        ("url", "URL", Unit::Url),
        ("totalBytes", "Size", Unit::Bytes),
        ("wastedBytes", "Wasted", Unit::Bytes),
    ])
    .rows(found.iter().map(|found| {
        let element = images.as_deref().and_then(|images| element(images, found));
        Row::new([
            element.map_or(Cell::Nothing, Cell::element),
            Cell::url(&found.resource.url),
            Cell::Bytes(found.resource.decoded_bytes),
            Cell::Bytes(found.saved_bytes),
        ])
        .with(found.ways.iter().map(|(way, bytes)| {
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
        .saving(time_saved(facts, &by_id).with_bytes(saved_bytes)))
}

/// Images of style sheets have no element of their own.
fn element<'a>(images: &'a Images, found: &Found) -> Option<&'a Node> {
    let mut all = images.0.iter().filter(|_| !found.paint.is_css);
    let image = all.find(|image| image.src == found.paint.url)?;
    Some(&image.node)
}

fn judge<'a>(trace: &'a Trace, resource: &'a Resource) -> Option<Found<'a>> {
    if resource.resource_type != "Image" || resource.mime_type == "image/svg+xml" {
        return None;
    }
    // What is painted is known by the address that the page named.
    let named = resource.redirects.first().map_or(&resource.url, |r| &r.url);
    let painted = trace.resources.image_paints.iter().filter(|paint| {
        paint.url == *named && paint.ts_us + paint.dur_us >= trace.navigation.time_origin_us
    });
    // Of equal ones the last, as a reduction from the left gives.
    let paint = painted.max_by(|a, b| shown_px2(a).total_cmp(&shown_px2(b)))?;
    let file_px2 = paint.natural_width_px * paint.natural_height_px;
    let bytes = resource.decoded_bytes.min(resource.transfer_bytes);
    let mut ways = Vec::new();
    if let Some(way) = by_format(resource, bytes, file_px2) {
        ways.push(way);
    }
    let by_format_bytes = ways.first().map_or(0.0, |(_, saved)| saved.max(0.0));
    let mut saved_bytes = by_format_bytes;
    let too_large = 1.0 - shown_px2(paint) / file_px2;
    if too_large > 0.0 && !paint.is_css {
        let by_size_bytes = (too_large * bytes).round();
        let has_sizes = paint.is_picture || paint.has_srcset;
        if !has_sizes || by_size_bytes > MIN_SAVED_BYTES_OF_SEVERAL_SIZES {
            saved_bytes += (too_large * (bytes - by_format_bytes)).round();
            let way = format!(
                "It has {}x{} pixels and is shown with {}x{}",
                paint.natural_width_px.round(),
                paint.natural_height_px.round(),
                paint.width_px.round(),
                paint.height_px.round()
            );
            ways.push((way, by_size_bytes));
        }
    }
    ways.retain(|(_, saved)| *saved > MIN_SAVED_BYTES);
    (!ways.is_empty()).then_some(Found {
        resource,
        paint,
        saved_bytes,
        ways,
    })
}

fn shown_px2(paint: &ImagePaint) -> f64 {
    paint.width_px * paint.height_px
}

fn by_format(resource: &Resource, bytes: f64, file_px2: f64) -> Option<(String, f64)> {
    if resource.mime_type == "image/gif" {
        // Fitted to a thousand GIFs that were made videos, as Lighthouse has it.
        let share = (29.1 * resource.decoded_bytes.log10() - 100.7).round() / 100.0;
        let saved_bytes = (bytes * share).round();
        return (bytes > LARGE_GIF_BYTES).then(|| ("As a video".to_owned(), saved_bytes));
    }
    if bytes / file_px2 <= AVIF_BYTES_PER_PX {
        return None;
    }
    let saved_bytes = bytes - (AVIF_BYTES_PER_PX * file_px2).round();
    let way = match resource.mime_type.as_str() {
        "image/webp" | "image/avif" => "With stronger compression",
        _ => "In a modern format, or with stronger compression",
    };
    Some((way.to_owned(), saved_bytes))
}
