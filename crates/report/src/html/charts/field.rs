use std::fmt::Write;

use plumbline_model::field::Shares;

use crate::html::figures::coordinate;

const BAR_WIDTH: f64 = 240.0;
const BAR_HEIGHT: f64 = 10.0;
/// The gap between two parts of the bar.
const GAP: f64 = 2.0;

/// Draws the shares of good, middling and poor visits as a bar.
pub(crate) fn distribution(shares: Shares, aria_label: &str) -> String {
    let parts = [
        ("good", shares.good),
        ("middling", shares.needs_improvement),
        ("poor", shares.poor),
    ];
    // The shares add up to 1 except for rounding; the bar is always full.
    let all: f64 = parts.iter().map(|(_, share)| share).sum();
    let all = if all > 0.0 { all } else { 1.0 };
    let mut svg = format!(
        r#"<svg class="distribution" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{aria_label}">"#
    );
    let mut at = 0.0;
    for (class, share) in parts {
        let width = share / all * BAR_WIDTH;
        // All parts except the last are followed by a gap.
        let visible_width = if at + width < BAR_WIDTH - GAP {
            width - GAP
        } else {
            width
        };
        if visible_width > 0.0 {
            let _ = write!(
                svg,
                r#"<rect class="fill {class}" x="{}" width="{}" height="{BAR_HEIGHT}"/>"#,
                coordinate(at),
                coordinate(visible_width)
            );
        }
        at += width;
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_part_is_not_drawn() {
        let shares = Shares {
            good: 1.0,
            needs_improvement: 0.0,
            poor: 0.0,
        };
        let svg = distribution(shares, "all good");
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains(r#"width="240""#), "{svg}");
    }

    proptest! {
        #[test]
        fn a_bar_never_exceeds_its_width(good in 0.0_f64..=1.0, middling in 0.0_f64..=1.0, poor in 0.0_f64..=1.0) {
            let shares = Shares { good, needs_improvement: middling, poor };
            let svg = distribution(shares, "x");
            for rect in svg.split("<rect").skip(1) {
                let number = |name: &str| -> f64 {
                    let after = rect.split(&format!(" {name}=\"")).nth(1).unwrap();
                    after.split('"').next().unwrap().parse().unwrap()
                };
                prop_assert!(number("x") >= 0.0 && number("width") >= 0.0);
                prop_assert!(number("x") + number("width") <= BAR_WIDTH + 0.2);
            }
        }
    }
}
