use plumbline_model::check::{Details, ElementDetail};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Image, Images, Missing, Size, guess_image_type};

check! {
    /// # What
    /// Images are displayed with their natural aspect ratio.
    ///
    /// # Why
    /// Distorted images look broken.
    ///
    /// # Scored
    /// Fails when an `<img>` with `object-fit: fill` deviates from its aspect ratio by two pixels
    /// or more. CSS backgrounds, SVG and images of five pixels or less are ignored.
    ///
    /// # Fix
    /// Set either width or height and leave the other at `auto`, or use `object-fit: cover`.
    ///
    /// # Source
    /// Lighthouse 13.5, `image-aspect-ratio`.
    id: "image-aspect-ratio",
    pass: "Images have the correct aspect ratio",
    fail: "Images have an incorrect aspect ratio",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/image-aspect-ratio/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let images = facts.get::<Images>()?;
    let distorted: Vec<ElementDetail> = images
        .0
        .iter()
        .filter_map(|image| {
            let natural = natural_size(image)?;
            let displayed = image.displayed;
            is_distorted(displayed, natural).then(|| {
                let note = format!(
                    "displayed at {}×{}, file {}×{}",
                    displayed.width, displayed.height, natural.width, natural.height
                );
                ElementDetail::with_note(&image.node, note)
            })
        })
        .collect();
    if distorted.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(distorted.len(), "image", "images");
    Ok(Outcome::fail(summary).with(Details::elements(distorted)))
}

/// Returns the natural size of an image that the check applies to.
fn natural_size(image: &Image) -> Option<Size> {
    let natural = image.natural?;
    let is_candidate = guess_image_type(&image.src) != Some("image/svg+xml")
        && natural.width > 5.0
        && natural.height > 5.0
        && image.displayed.width > 0.0
        && image.displayed.height > 0.0
        && image.object_fit == "fill";
    is_candidate.then_some(natural)
}

/// Returns whether the aspect ratio differs. It compares the smaller dimension, which rounding
/// affects least.
fn is_distorted(displayed: Size, natural: Size) -> bool {
    const TOLERATED_PX: f64 = 2.0;
    let ratio = natural.width / natural.height;
    let fitting = Size {
        width: displayed.height * ratio,
        height: displayed.width / ratio,
    };
    let fault_px = if fitting.height < fitting.width {
        fitting.height - displayed.height
    } else {
        fitting.width - displayed.width
    };
    fault_px.abs() >= TOLERATED_PX
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(displayed: (u32, u32)) -> Verdict {
        let image = format!(
            r#"[{{"src": "https://a.test/x.png", "natural": {{"width": 200, "height": 100}},
                "displayed": {{"width": {}, "height": {}}}, "objectFit": "fill"}}]"#,
            displayed.0, displayed.1
        );
        Visit::new().with("images", &image).verdict(CHECK)
    }

    #[test]
    fn proportions_within_two_pixels_pass() {
        assert_eq!(verdict((100, 50)), Verdict::Pass);
        assert_eq!(verdict((100, 51)), Verdict::Pass);
        assert_eq!(verdict((100, 52)), Verdict::Fail);
        assert_eq!(verdict((100, 100)), Verdict::Fail);
    }

    #[test]
    fn images_without_an_aspect_ratio_are_ignored() {
        assert_eq!(verdict((0, 100)), Verdict::Pass);
        for image in [
            r#"[{"src": "https://a.test/x.svg", "natural": {"width": 200, "height": 100},
                "displayed": {"width": 9, "height": 9}, "objectFit": "fill"}]"#,
            r#"[{"src": "https://a.test/x.png", "natural": {"width": 200, "height": 100},
                "displayed": {"width": 9, "height": 9}, "objectFit": "cover"}]"#,
            r#"[{"src": "https://a.test/x.png", "natural": {"width": 1, "height": 1},
                "displayed": {"width": 9, "height": 99}, "objectFit": "fill"}]"#,
            r#"[{"displayed": {"width": 9, "height": 99}, "objectFit": "fill"}]"#,
            "[]",
        ] {
            assert_eq!(
                Visit::new().with("images", image).verdict(CHECK),
                Verdict::Pass,
                "{image}"
            );
        }
    }

    #[test]
    fn without_the_images_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
