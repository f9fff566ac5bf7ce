use std::fmt::Write;

use plumbline_engine::field::Shares;

use super::Point;
use crate::html::figures::coordinate;

const BAR_WIDTH: f64 = 240.0;
const BAR_HEIGHT: f64 = 10.0;
/// Between two parts of the bar.
const GAP: f64 = 2.0;

/// Parts of all visits side by side, good ones first.
pub(crate) fn distribution(shares: Shares, said: &str) -> String {
    let parts = [
        ("good", shares.good),
        ("middling", shares.needs_improvement),
        ("poor", shares.poor),
    ];
    // What they add up to is 1 but for rounding; the bar is always full.
    let all: f64 = parts.iter().map(|(_, share)| share).sum();
    let all = if all > 0.0 { all } else { 1.0 };
    let mut svg = format!(
        r#"<svg class="distribution" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{said}">"#
    );
    let mut at = 0.0;
    for (class, share) in parts {
        let width = share / all * BAR_WIDTH;
        // The last part reaches the edge, the others leave room for the next.
        let shown = if at + width < BAR_WIDTH - GAP {
            width - GAP
        } else {
            width
        };
        if shown > 0.0 {
            let _ = write!(
                svg,
                r#"<rect class="fill {class}" x="{}" width="{}" height="{BAR_HEIGHT}"/>"#,
                coordinate(at),
                coordinate(shown)
            );
        }
        at += width;
    }
    svg.push_str("</svg>");
    svg
}

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;
const EDGE: f64 = 8.0;

/// Values over collection periods, the oldest first, at even distances; a period without a value is a gap. The
/// dashed line is up to where values are good.
pub(crate) fn periods(points: &[Option<Point>], good_up_to: f64, said: &str) -> String {
    let values = points.iter().flatten().map(|point| point.value);
    let top = values.fold(good_up_to, f64::max) * 1.1;
    let y = |value: f64| HEIGHT - EDGE - value / top * (HEIGHT - 2.0 * EDGE);
    let step = (WIDTH - 2.0 * EDGE) / (points.len().max(2) - 1) as f64;
    let x = |index: usize| EDGE + step * index as f64;
    let mut svg = format!(
        r#"<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}"><path class="base" d="M0 {base}H{WIDTH}"/><path class="median" d="M0 {limit}H{WIDTH}"/><path class="line" d=""#,
        base = coordinate(y(0.0)),
        limit = coordinate(y(good_up_to)),
    );
    let mut pen = 'M';
    for (index, point) in points.iter().enumerate() {
        let Some(point) = point else {
            pen = 'M';
            continue;
        };
        let (px, py) = (coordinate(x(index)), coordinate(y(point.value)));
        let _ = write!(svg, "{pen}{px} {py}");
        pen = 'L';
    }
    svg.push_str(r#""/>"#);
    for (index, point) in points.iter().enumerate() {
        let Some(point) = point else { continue };
        let _ = write!(
            svg,
            r#"<circle class="dot {}" cx="{}" cy="{}" r="4"><title>{}</title></circle>"#,
            point.class,
            coordinate(x(index)),
            coordinate(y(point.value)),
            point.title,
        );
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_that_is_none_is_not_drawn() {
        let shares = Shares {
            good: 1.0,
            needs_improvement: 0.0,
            poor: 0.0,
        };
        let svg = distribution(shares, "all good");
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains(r#"width="240""#), "{svg}");
    }

    #[test]
    fn a_period_without_a_value_is_a_gap() {
        let point = |value| {
            Some(Point {
                value,
                class: "good",
                title: String::new(),
                day: String::new(),
            })
        };
        let svg = periods(&[point(1.0), None, point(2.0), point(3.0)], 2.5, "some");
        let line = svg.split(r#"class="line" d=""#).nth(1).unwrap();
        let line = line.split('"').next().unwrap();
        assert_eq!(
            (line.matches('M').count(), line.matches('L').count()),
            (2, 1)
        );
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    proptest! {
        #[test]
        fn a_bar_never_leaves_its_box(good in 0.0_f64..=1.0, middling in 0.0_f64..=1.0, poor in 0.0_f64..=1.0) {
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
