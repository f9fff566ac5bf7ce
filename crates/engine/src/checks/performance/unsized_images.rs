use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};

use crate::checks::{Outcome, check, count};
use crate::facts::{
    Facts, ImageSizing, Missing, SizedImage, SizingRules, guess_image_type, shorten_data_url,
};

check! {
    /// # What
    /// Images have a width and a height, set by attributes or CSS.
    ///
    /// # Why
    /// Without them the browser cannot reserve space for an image, and the content below shifts
    /// when it loads.
    ///
    /// # Scored
    /// Fails for each image in the flow of the page that lacks a width or a height and has no
    /// aspect ratio instead.
    ///
    /// # Fix
    /// Set the `width` and `height` attributes; `height: auto` in CSS keeps the aspect ratio.
    ///
    /// # Source
    /// Lighthouse 13.5, `unsized-images`.
    id: "unsized-images",
    pass: "Image elements have `width` and `height`",
    fail: "Image elements lack `width` or `height`",
    learn: "https://web.dev/articles/optimize-cls#images_without_dimensions",
    run: run,
}

/// URL schemes that do not load from the network (Lighthouse, core/lib/url-utils.js).
const NOT_FROM_NETWORK: [&str; 6] = [
    "blob:",
    "data:",
    "intent:",
    "file:",
    "filesystem:",
    "chrome-extension:",
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let images = facts.get::<ImageSizing>()?;
    let unsized_images: Vec<&SizedImage> =
        images.0.iter().filter(|image| is_unsized(image)).collect();
    let table = Findings::new([
        ("node", "Element", Unit::Element),
        ("url", "URL", Unit::Url),
    ])
    .rows(unsized_images.iter().map(|image| {
        let url = Cell::url(shorten_data_url(&image.src));
        Row::new([Cell::element(&image.node), url])
    }));
    let outcome = match unsized_images.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} a width or a height.",
            count(number, "image lacks", "images lack")
        )),
    };
    Ok(outcome.with(table.into()).with_savings(Savings {
        cls: Some(0.0),
        ..Savings::default()
    }))
}

fn is_unsized(image: &SizedImage) -> bool {
    let is_out_of_flow = matches!(image.position.as_str(), "fixed" | "absolute");
    let is_inline_svg = guess_image_type(&image.src) == Some("image/svg+xml")
        && NOT_FROM_NETWORK
            .iter()
            .any(|scheme| image.src.starts_with(scheme));
    let is_shown = image
        .node
        .rect
        .is_none_or(|rect| rect.width != 0.0 || rect.height != 0.0);
    // An image whose rules could not be read is not reported.
    let is_sized = image
        .rules
        .as_ref()
        .is_none_or(|rules| is_sized(image, rules));
    !is_out_of_flow && !is_inline_svg && is_shown && !is_sized
}

fn is_sized(image: &SizedImage, rules: &SizingRules) -> bool {
    let has_width = is_length(image.width_attribute.as_deref()) || is_set(rules.width.as_deref());
    let has_height =
        is_length(image.height_attribute.as_deref()) || is_set(rules.height.as_deref());
    let has_ratio = is_set(rules.aspect_ratio.as_deref());
    u8::from(has_width) + u8::from(has_height) + u8::from(has_ratio) >= 2
}

/// Returns whether browsers read the attribute as a length: a whole number of 0 or more without a
/// plus sign; characters after it are ignored.
fn is_length(attribute: Option<&str>) -> bool {
    let text = attribute.unwrap_or_default().trim_start();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = digits.split(|c: char| !c.is_ascii_digit()).next();
    let number = number.filter(|number| !number.is_empty());
    match number {
        None => false,
        Some(number) => digits.len() == text.len() || number.bytes().all(|digit| digit == b'0'),
    }
}

fn is_set(property: Option<&str>) -> bool {
    property.is_some_and(|value| !["", "auto", "initial", "unset", "inherit"].contains(&value))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::{CHECK, is_length};
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn verdict(image: &str) -> Verdict {
        Visit::new()
            .with("image-sizing", &format!("[{image}]"))
            .verdict(CHECK)
    }

    fn shown(more: &str) -> Verdict {
        verdict(&format!(
            r#"{{"src": "https://a.test/i.png", "node": {{"rect": {{"width": 9, "height": 9}}}}, {more}}}"#
        ))
    }

    #[test]
    fn two_of_width_height_and_ratio_are_required() {
        for (more, expected) in [
            (r#""rules": {}"#, Verdict::Fail),
            (r#""rules": {}, "widthAttribute": "10""#, Verdict::Fail),
            (
                r#""rules": {}, "widthAttribute": "10", "heightAttribute": "0""#,
                Verdict::Pass,
            ),
            (
                r#""rules": {}, "widthAttribute": "+10", "heightAttribute": "10""#,
                Verdict::Fail,
            ),
            (
                r#""rules": {"width": "100%", "height": "auto"}"#,
                Verdict::Fail,
            ),
            (
                r#""rules": {"width": "100%", "height": "1em"}"#,
                Verdict::Pass,
            ),
            (
                r#""rules": {"width": "100%", "aspectRatio": "4 / 3"}"#,
                Verdict::Pass,
            ),
            (r#""rules": {}, "position": "absolute""#, Verdict::Pass),
            (r#""rules": null"#, Verdict::Pass),
        ] {
            assert_eq!(shown(more), expected, "{more}");
        }
    }

    #[test]
    fn a_length_is_a_number_of_zero_or_more() {
        for (text, expected) in [
            ("10", true),
            ("10px", true),
            (" 7", true),
            ("-0", true),
            ("-1", false),
            ("+1", false),
            ("auto", false),
            ("", false),
        ] {
            assert_eq!(is_length(Some(text)), expected, "{text:?}");
        }
        assert!(!is_length(None));
    }

    #[test]
    fn an_image_without_a_box_needs_no_size() {
        let hidden = r#"{"src": "https://a.test/i.png", "rules": {},
            "node": {"rect": {"width": 0, "height": 0}}}"#;
        assert_eq!(verdict(hidden), Verdict::Pass);
        let inline = r#"{"src": "data:image/svg+xml;utf8,<svg/>", "rules": {}}"#;
        assert_eq!(verdict(inline), Verdict::Pass);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
