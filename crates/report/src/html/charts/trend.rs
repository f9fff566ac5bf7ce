use std::fmt::Write;

use crate::html::figures::coordinate;

/// One audit's value.
pub(crate) struct Point {
    pub(crate) value: f64,
    pub(crate) class: &'static str,
    /// What a pointer over it says.
    pub(crate) title: String,
    /// The day it was made on.
    pub(crate) day: String,
}

/// Round values from zero, so that a small change looks small, up to one that nothing lies above.
pub(crate) struct Scale {
    step: f64,
    steps: usize,
}

impl Scale {
    pub(crate) fn up_to(highest: f64) -> Self {
        const MOST_STEPS: f64 = 4.0;
        let least = if highest > 0.0 { highest } else { 1.0 } / MOST_STEPS;
        let power = 10_f64.powf(least.log10().floor());
        let round = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
        let fits = |step: &f64| *step >= least * (1.0 - 1e-9);
        let step = round.into_iter().find(fits).unwrap_or(10.0 * power);
        Self {
            step,
            steps: (highest / step - 1e-9).ceil().max(1.0) as usize,
        }
    }

    fn top(&self) -> f64 {
        self.step * self.steps as f64
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=self.steps).map(|index| self.step * index as f64)
    }
}

/// The plot's height in pixels, and what stands below it.
const HEIGHT: f64 = 110.0;
const BELOW: f64 = 26.0;
/// Days that stand beside each other without touching, on a phone too.
const MOST_DAYS: usize = 3;

/// Values over a series of audits or periods, oldest first, at even distances; one without a value is a gap. The
/// dashed line stands at `guide`. Across in per cent, up in pixels: words keep their size on every screen.
pub(crate) fn trend(
    points: &[Option<Point>],
    guide: f64,
    scale: &Scale,
    text: impl Fn(f64) -> String,
    said: &str,
) -> String {
    let y = |value: f64| coordinate(HEIGHT - value / scale.top() * HEIGHT);
    let step = 100.0 / (points.len().max(2) - 1) as f64;
    let x = |index: usize| coordinate(step * index as f64);
    let mut svg = format!(
        r#"<svg class="trend" width="100%" height="{}" role="img" aria-label="{said}">"#,
        HEIGHT + BELOW
    );
    for tick in scale.ticks() {
        let at = y(tick);
        // Left of the plot, where the stylesheet leaves room.
        let _ = write!(
            svg,
            r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/><text class="axis" x="-10" y="{at}" dy=".35em" text-anchor="end">{}</text>"#,
            text(tick)
        );
    }
    let m = y(guide);
    let _ = write!(
        svg,
        r#"<line class="median" x1="0" x2="100%" y1="{m}" y2="{m}"/>"#
    );
    for (index, two) in points.windows(2).enumerate() {
        let [Some(from), Some(to)] = two else {
            continue;
        };
        let _ = write!(
            svg,
            r#"<line class="line" x1="{}%" x2="{}%" y1="{}" y2="{}"/>"#,
            x(index),
            x(index + 1),
            y(from.value),
            y(to.value)
        );
    }
    for (index, point) in points.iter().enumerate() {
        let Some(point) = point else { continue };
        let _ = write!(
            svg,
            r#"<circle class="dot {}" cx="{}%" cy="{}" r="4.5"><title>{}</title></circle>"#,
            point.class,
            x(index),
            y(point.value),
            point.title,
        );
    }
    for (index, anchor, day) in days(points) {
        let _ = write!(
            svg,
            r#"<text class="axis" x="{}%" y="{}" text-anchor="{anchor}">{}</text>"#,
            x(index),
            HEIGHT + BELOW - 6.0,
            day
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Which points have their day written below them: the first, the last and one between, where they differ.
fn days(points: &[Option<Point>]) -> Vec<(usize, &'static str, &str)> {
    let there: Vec<(usize, &str)> = points
        .iter()
        .enumerate()
        .filter_map(|(index, point)| Some((index, point.as_ref()?.day.as_str())))
        .collect();
    let (Some(first), Some(last)) = (there.first(), there.last()) else {
        return Vec::new();
    };
    let middle = there[(there.len() - 1) / 2];
    // At the edges a word stands inwards, so that it stays on the chart.
    let anchor = |index: usize| match index {
        0 => "start",
        at if at + 1 == points.len() => "end",
        _ => "middle",
    };
    let mut shown = vec![*first];
    // The middle one gives way where it leaves the last without its day.
    for (index, day) in [middle, *last] {
        let is_new = shown.iter().all(|(_, other)| *other != day);
        if is_new && (index == last.0 || day != last.1) && shown.len() < MOST_DAYS {
            shown.push((index, day));
        }
    }
    let placed = shown.into_iter();
    placed
        .map(|(index, day)| (index, anchor(index), day))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(day: &str) -> Option<Point> {
        Some(Point {
            value: 1.0,
            class: "good",
            title: String::new(),
            day: day.to_owned(),
        })
    }

    #[test]
    fn scales_are_round_and_hold_everything() {
        for (highest, top, steps) in [
            (100.0, 100.0, 4),
            (5290.0, 6000.0, 3),
            (0.25, 0.3, 3),
            (600.0, 600.0, 3),
            (0.0, 0.25, 1),
        ] {
            let scale = Scale::up_to(highest);
            assert!(
                (scale.top() - top).abs() < 1e-9,
                "{highest}: {}",
                scale.top()
            );
            assert_eq!(scale.steps, steps, "{highest}");
        }
    }

    #[test]
    fn days_are_written_once_and_always_the_first_and_the_last() {
        let shown = |days_of: &[&str]| {
            let points: Vec<_> = days_of.iter().map(|day| point(day)).collect();
            let days = days(&points).into_iter();
            days.map(|(_, _, day)| day.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[]), [""; 0]);
        assert_eq!(shown(&["1", "1", "1"]), ["1"]);
        assert_eq!(shown(&["1", "2"]), ["1", "2"]);
        assert_eq!(shown(&["1", "2", "3"]), ["1", "2", "3"]);
        assert_eq!(shown(&["1", "1", "3", "3"]), ["1", "3"]);
        assert_eq!(shown(&["1", "3", "3"]), ["1", "3"]);
    }

    #[test]
    fn one_without_a_value_is_a_gap() {
        let points = [point("1"), None, point("2"), point("3")];
        let svg = trend(
            &points,
            0.5,
            &Scale::up_to(1.0),
            |tick| tick.to_string(),
            "some",
        );
        assert_eq!(svg.matches(r#"class="line""#).count(), 1);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(days(&[None, None]), []);
    }
}
