use plumbline_model::check::{Details, ElementDetail};

use crate::checks::{Outcome, check, count};
use crate::facts::{
    Facts, Image, Images, Missing, PageProperties, Requests, Size, guess_image_type,
};

check! {
    /// # What
    /// Images in the viewport have enough pixels for the device pixel ratio.
    ///
    /// # Why
    /// On a high-density screen an image with too few pixels looks blurry.
    ///
    /// # Scored
    /// Fails when an `<img>` in the viewport has fewer pixels than its displayed size times the
    /// device pixel ratio, taken as 1, 1.5 or 2; images above 64 pixels need three quarters of
    /// that. CSS backgrounds, SVG, pixel art, images larger than the viewport, and images with
    /// density descriptors in their `srcset` are ignored.
    ///
    /// # Fix
    /// Offer larger files with `srcset` and `sizes`, so that each screen loads the one that fits.
    ///
    /// # Source
    /// Lighthouse 13.5, `image-size-responsive`.
    id: "image-size-responsive",
    pass: "Images have an appropriate resolution",
    fail: "Images have a low resolution",
    learn: "https://web.dev/articles/serve-responsive-images",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let images = facts.get::<Images>()?;
    let page = facts.get::<PageProperties>()?;
    let requests = facts.get::<Requests>();
    let is_svg = |image: &Image| {
        let responses = requests.iter().flat_map(|requests| &requests.all);
        let is_served_as_svg = responses
            .filter(|response| response.exchange.end_us.is_some() && response.status() == Some(200))
            .any(|response| {
                response.exchange.mime_type() == "image/svg+xml"
                    && response.url.as_str() == image.src
            });
        is_served_as_svg || guess_image_type(&image.src) == Some("image/svg+xml")
    };
    let density = match page.device_pixel_ratio {
        ratio if ratio >= 2.0 => 2.0,
        ratio if ratio >= 1.5 => 1.5,
        _ => 1.0,
    };
    let mut blurred: Vec<(&Image, Size)> = Vec::new();
    for image in images.0.iter().filter(|image| is_candidate(image)) {
        let Some(natural) = image.natural.filter(|_| !is_svg(image)) else {
            continue;
        };
        if has_enough_pixels(image.displayed, natural, density) || !is_in_view(image, &page) {
            continue;
        }
        // A file that is displayed several times is listed once, at its largest size.
        match blurred
            .iter_mut()
            .find(|(listed, _)| listed.src == image.src)
        {
            Some((listed, _)) if area(listed.displayed) < area(image.displayed) => *listed = image,
            Some(_) => {}
            None => blurred.push((image, natural)),
        }
    }
    if blurred.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(blurred.len(), "image", "images");
    let items = blurred.into_iter().map(|(image, natural)| {
        let note = format!(
            "displayed at {}×{}, file {}×{}, expected {}×{}",
            image.displayed.width,
            image.displayed.height,
            natural.width,
            natural.height,
            (density * image.displayed.width).ceil(),
            (density * image.displayed.height).ceil(),
        );
        ElementDetail::with_note(&image.node, note)
    });
    Ok(Outcome::fail(summary).with(Details::elements(items)))
}

fn is_candidate(image: &Image) -> bool {
    let has_size = |size: Size| size.width > 0.0 && size.height > 0.0;
    image.displayed.width > 1.0
        && image.displayed.height > 1.0
        && image.natural.is_some_and(has_size)
        && image.object_fit == "fill"
        && !["pixelated", "crisp-edges"].contains(&image.image_rendering.as_str())
        && !has_density_descriptor(&image.srcset)
}

/// Returns whether the `srcset` has a density descriptor: a space, a number and an `x`.
fn has_density_descriptor(srcset: &str) -> bool {
    let digits_end = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    srcset.split(' ').skip(1).any(|word| {
        let whole = digits_end(word);
        let rest = &word[whole..];
        let rest = match rest.strip_prefix('.') {
            Some(decimals) if digits_end(decimals) > 0 => &decimals[digits_end(decimals)..],
            _ => rest,
        };
        whole > 0 && rest.starts_with('x')
    })
}

fn has_enough_pixels(displayed: Size, natural: Size, density: f64) -> bool {
    const SMALL_PX: f64 = 64.0;
    const ENOUGH_WHEN_LARGE: f64 = 0.75;
    let is_small = displayed.width <= SMALL_PX && displayed.height <= SMALL_PX;
    let factor = if is_small { 1.0 } else { ENOUGH_WHEN_LARGE };
    natural.width >= (factor * density * displayed.width).ceil()
        && natural.height >= (factor * density * displayed.height).ceil()
}

fn is_in_view(image: &Image, page: &PageProperties) -> bool {
    let rect = image.rect;
    rect.width * rect.height > 0.0
        && rect.top <= page.inner_height
        && rect.bottom() >= 0.0
        && rect.left <= page.inner_width
        && rect.right() >= 0.0
        && rect.height <= page.inner_height
        && rect.width <= page.inner_width
}

fn area(size: Size) -> f64 {
    size.width * size.height
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::{CHECK, has_density_descriptor};
    use crate::checks::testing::{Visit, verdict_without_evidence};

    const PAGE: &str = r#"{"innerWidth": 400, "innerHeight": 800, "devicePixelRatio": 2.6}"#;

    fn image(natural: u32, displayed: u32, more: &str) -> String {
        format!(
            r#"{{"src": "https://a.test/x.png", "natural": {{"width": {natural}, "height": {natural}}},
                "displayed": {{"width": {displayed}, "height": {displayed}}}, "objectFit": "fill",
                "rect": {{"left": 0, "top": 0, "width": {displayed}, "height": {displayed}}} {more}}}"#
        )
    }

    fn verdict(images: &str) -> Verdict {
        Visit::new()
            .with("page", PAGE)
            .with("images", &format!("[{images}]"))
            .verdict(CHECK)
    }

    #[test]
    fn large_images_need_less_than_small_ones() {
        assert_eq!(verdict(&image(150, 100, "")), Verdict::Pass);
        assert_eq!(verdict(&image(149, 100, "")), Verdict::Fail);
        assert_eq!(verdict(&image(128, 64, "")), Verdict::Pass);
        assert_eq!(verdict(&image(127, 64, "")), Verdict::Fail);
    }

    #[test]
    fn images_that_need_no_higher_resolution_are_ignored() {
        for more in [
            r#", "imageRendering": "pixelated""#,
            r#", "srcset": "https://a.test/x.png 1.5x""#,
        ] {
            assert_eq!(verdict(&image(10, 100, more)), Verdict::Pass, "{more}");
        }
        assert_eq!(
            verdict(&image(10, 500, "")),
            Verdict::Pass,
            "wider than the viewport"
        );
        assert_eq!(verdict(""), Verdict::Pass);
    }

    #[test]
    fn svg_is_recognised_by_the_response_type() {
        let visit = Visit::new()
            .with("page", PAGE)
            .with("images", &format!("[{}]", image(10, 100, "")))
            .requests("https://a.test/x.png", "Image", "image/svg+xml");
        assert_eq!(visit.verdict(CHECK), Verdict::Pass);
    }

    #[test]
    fn one_file_is_listed_once() {
        let outcome = Visit::new()
            .with("page", PAGE)
            .with(
                "images",
                &format!("[{},{}]", image(10, 100, ""), image(10, 200, "")),
            )
            .judge(CHECK);
        assert_eq!(outcome.details.map(|details| details.len()), Some(1));
    }

    #[test]
    fn density_descriptors_are_distinguished_from_widths() {
        assert!(has_density_descriptor("a.png, b.png 2x"));
        assert!(has_density_descriptor("b.png 1.5x"));
        assert!(!has_density_descriptor("a.png 300w, b.png 600w"));
        assert!(!has_density_descriptor("2x.png"));
        assert!(!has_density_descriptor(""));
    }

    #[test]
    fn without_the_images_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
        let without_page = Visit::new().with("images", "[]");
        assert_eq!(without_page.verdict(CHECK), Verdict::CouldNotMeasure);
    }
}
