//! The chart of a figure over time, as SVG. It contains numbers and trusted texts only.

use std::fmt::Write;

use plumbline_report::html::figures::coordinate;

/// A value of a trend.
pub(super) struct Point {
    pub(super) value: f64,
    pub(super) class: &'static str,
    /// The tooltip.
    pub(super) title: String,
    /// The label of the horizontal axis.
    pub(super) day: String,
    /// The lower and the upper bound of its interval, if it has one.
    pub(super) interval: Option<[f64; 2]>,
}

/// A vertical axis of round values. It starts at zero, so that a small change looks small.
pub(super) struct Scale {
    step: f64,
    steps: usize,
}

impl Scale {
    /// Returns the scale with the fewest steps that includes `highest`.
    pub(super) fn up_to(highest: f64) -> Self {
        const MAX_STEPS: f64 = 4.0;
        let min_step = if highest > 0.0 { highest } else { 1.0 } / MAX_STEPS;
        let power = 10_f64.powf(min_step.log10().floor());
        let round = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
        let fits = |step: &f64| *step >= min_step * (1.0 - 1e-9);
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

/// The height of the plot in pixels.
const HEIGHT: f64 = 110.0;
/// The height of the labels below the plot.
const BELOW: f64 = 26.0;
/// The most days that fit next to each other on a phone.
const MAX_DAYS: usize = 3;

/// Draws values of a series of audits or periods, oldest first, at equal distances. `None` is a
/// gap. The dashed line is at `guide`. Horizontal positions are in per cent and vertical ones in
/// pixels, so that text has the same size on every screen.
pub(super) fn draw(
    points: &[Option<Point>],
    guide: f64,
    scale: &Scale,
    text: impl Fn(f64) -> String,
    aria_label: &str,
) -> String {
    let y = |value: f64| coordinate(HEIGHT - value / scale.top() * HEIGHT);
    let step = 100.0 / (points.len().max(2) - 1) as f64;
    let x = |index: usize| coordinate(step * index as f64);
    let mut svg = format!(
        r#"<svg class="trend" width="100%" height="{}" role="img" aria-label="{aria_label}">"#,
        HEIGHT + BELOW
    );
    for tick in scale.ticks() {
        let at = y(tick);
        // The stylesheet leaves space for labels left of the plot.
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
    svg.push_str(&band(points, scale));
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

/// Draws the intervals of the values as an area around the line. Areas cannot have positions in
/// per cent, so they are in an image of their own that is stretched to the width of the plot.
fn band(points: &[Option<Point>], scale: &Scale) -> String {
    if points
        .iter()
        .flatten()
        .all(|point| point.interval.is_none())
    {
        return String::new();
    }
    let y = |value: f64| {
        let value = value.clamp(0.0, scale.top());
        coordinate(HEIGHT - value / scale.top() * HEIGHT)
    };
    let step = 1000.0 / (points.len().max(2) - 1) as f64;
    let mut svg = format!(
        r#"<svg class="band" width="100%" height="{HEIGHT}" viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none">"#
    );
    for (index, two) in points.windows(2).enumerate() {
        let [Some(from), Some(to)] = two else {
            continue;
        };
        let [from, to] = [from, to].map(|point| point.interval.unwrap_or([point.value; 2]));
        let (left, right) = (step * index as f64, step * (index + 1) as f64);
        let (left, right) = (coordinate(left), coordinate(right));
        let _ = write!(
            svg,
            r#"<path d="M{left} {}L{right} {}V{}L{left} {}Z"/>"#,
            y(from[1]),
            y(to[1]),
            y(to[0]),
            y(from[0]),
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Returns the points whose days are written below them: the first, the last and one in between,
/// unless the days are equal.
fn days(points: &[Option<Point>]) -> Vec<(usize, &'static str, &str)> {
    let present: Vec<(usize, &str)> = points
        .iter()
        .enumerate()
        .filter_map(|(index, point)| Some((index, point.as_ref()?.day.as_str())))
        .collect();
    let (Some(first), Some(last)) = (present.first(), present.last()) else {
        return Vec::new();
    };
    let middle = present[(present.len() - 1) / 2];
    // Labels at the edges are aligned inwards, so that they stay on the chart.
    let anchor = |index: usize| match index {
        0 => "start",
        at if at + 1 == points.len() => "end",
        _ => "middle",
    };
    let mut labelled = vec![*first];
    // The middle label is left out if it is the same day as the last.
    for (index, day) in [middle, *last] {
        let is_new = labelled.iter().all(|(_, other)| *other != day);
        if is_new && (index == last.0 || day != last.1) && labelled.len() < MAX_DAYS {
            labelled.push((index, day));
        }
    }
    labelled
        .into_iter()
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
            interval: None,
        })
    }

    #[test]
    fn an_uncertain_value_has_a_band() {
        let certain = || point("1");
        let uncertain = |low: f64, high: f64| {
            let interval = Some([low, high]);
            certain().map(|point| Point { interval, ..point })
        };
        let draw = |points: &[Option<Point>]| {
            let scale = Scale::up_to(2.0);
            draw(points, 0.5, &scale, |tick| tick.to_string(), "some")
        };
        let svg = draw(&[uncertain(0.5, 1.5), uncertain(0.0, 2.0)]);
        assert!(svg.contains(r#"d="M0 27.5L1000 0V110L0 82.5Z""#), "{svg}");
        assert!(!draw(&[certain(), certain()]).contains("band"));
        assert!(!draw(&[uncertain(0.5, 1.5), None]).contains("<path"));
    }

    #[test]
    fn scales_are_round_and_include_the_highest_value() {
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
    fn the_first_and_last_day_are_written_and_no_day_twice() {
        let labels = |days_of: &[&str]| {
            let points: Vec<_> = days_of.iter().map(|day| point(day)).collect();
            let days = days(&points).into_iter();
            days.map(|(_, _, day)| day.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[]), [""; 0]);
        assert_eq!(labels(&["1", "1", "1"]), ["1"]);
        assert_eq!(labels(&["1", "2"]), ["1", "2"]);
        assert_eq!(labels(&["1", "2", "3"]), ["1", "2", "3"]);
        assert_eq!(labels(&["1", "1", "3", "3"]), ["1", "3"]);
        assert_eq!(labels(&["1", "3", "3"]), ["1", "3"]);
    }

    #[test]
    fn a_missing_value_is_a_gap() {
        let points = [point("1"), None, point("2"), point("3")];
        let svg = draw(
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
