//! The filmstrip: screenshots at regular intervals, with the milestones of the load.

use plumbline_model::check::{Details, Node, Rect};
use plumbline_model::media::{Frame, PictureId, ReportMedia};
use plumbline_model::report::Report;

use super::charts::Axis;
use super::figures::{coordinate, ms, tick};
use super::load::milestones;
use super::pictures::PictureSource;
use crate::export::Format;
use crate::video;

/// An image of a filmstrip.
pub struct FilmImage {
    pub src: String,
    pub width: u32,
    pub height: u32,
}

/// A filmstrip as a page shows it.
pub struct FilmView {
    pub frames: Vec<FrameView>,
    /// The width and height of its images in pixels; blank frames have the same size.
    pub size: (u32, u32),
    pub marks: String,
    pub aria_label: String,
    /// Why frames at the end are missing, if they are.
    pub note: Option<String>,
    /// The same load as a video, where one is served.
    pub video: Option<FilmImage>,
}

/// A frame of a filmstrip.
pub struct FrameView {
    pub at: String,
    pub image: Option<FilmImage>,
    /// The milestones since the previous frame: `FCP`, `LCP`, `Load`.
    pub events: Vec<&'static str>,
    /// Trusted markup: the outline of the largest content, in the first frame that shows it.
    pub outline: Option<String>,
    /// Whether Chromium recorded no screenshot of this time, although the page changed.
    pub is_missing: bool,
}

impl FrameView {
    /// Returns the time of the frame and what happened since the previous one.
    pub fn caption(&self) -> String {
        match self.events.as_slice() {
            [] => self.at.clone(),
            events => format!("{} · {}", self.at, events.join(", ")),
        }
    }
}

/// The most frames that fit next to each other.
const MAX_FRAMES: f64 = 12.0;
/// The intervals between frames to choose from.
const STEPS_MS: [f64; 14] = [
    100.0, 200.0, 250.0, 300.0, 400.0, 500.0, 750.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0,
    5000.0, 10_000.0,
];

/// The times of the frames of a filmstrip. Two filmstrips on one timeline share them.
#[derive(Debug, Clone, Copy)]
pub struct FilmTimes {
    step_ms: f64,
    frames: usize,
}

impl FilmTimes {
    /// Returns times up to the end of the longest film. The interval is the longest recorded
    /// interval if that gives few enough frames, because then every frame has its own image.
    /// Returns `None` if there is no film.
    pub fn of<'e>(all: impl IntoIterator<Item = &'e ReportMedia>) -> Option<Self> {
        let mut times: Option<(f64, f64)> = None;
        for media in all {
            let (Some(first), Some(last)) = (media.film.first(), media.film.last()) else {
                continue;
            };
            let (step_ms, end_ms) = times.unwrap_or_default();
            times = Some((step_ms.max(first.at_ms), end_ms.max(last.at_ms)));
        }
        let (own_ms, end_ms) = times?;
        let min_ms = own_ms.max(end_ms / MAX_FRAMES).max(1.0);
        let step_ms = if own_ms >= min_ms {
            own_ms
        } else {
            let round = STEPS_MS.into_iter().find(|step| *step >= min_ms);
            round.unwrap_or(min_ms)
        };
        // The last frame is no earlier than the last image.
        let frames = (end_ms / step_ms - 1e-6).ceil().max(1.0) as usize;
        Some(Self { step_ms, frames })
    }
}

/// Returns the filmstrip of one audit.
pub fn film(media: &ReportMedia, source: &PictureSource, times: FilmTimes) -> Option<FilmView> {
    if media.film.is_empty() {
        return None;
    }
    let FilmTimes { step_ms, frames } = times;
    let mut milestones = milestones(&media.marks);
    let last_change = media.marks.last_change_ms;
    milestones.extend(last_change.map(|at_ms| ("Last change", "change", at_ms)));
    let frames_at_steps = (1..=frames).map(|index| {
        let at_ms = step_ms * index as f64;
        let latest = media.film.iter().rfind(|frame| frame.at_ms <= at_ms + 0.5);
        Frame {
            at_ms,
            picture: latest.and_then(|frame| frame.picture),
        }
    });
    let mut previous_ms = 0.0;
    let views = frames_at_steps.map(|frame| {
        let since = previous_ms;
        previous_ms = frame.at_ms;
        FrameView {
            at: tick(frame.at_ms),
            image: frame.picture.and_then(|index| {
                let picture = media.pictures.get(index)?;
                Some(FilmImage {
                    src: source.of(PictureId::Frame(index), picture),
                    width: picture.width_px,
                    height: picture.height_px,
                })
            }),
            events: milestones
                .iter()
                .filter(|(_, _, at)| *at > since && *at <= frame.at_ms)
                .map(|(name, _, _)| *name)
                .collect(),
            outline: None,
            is_missing: frame.picture.is_none()
                && media.film_end_ms.is_some_and(|end_ms| frame.at_ms > end_ms),
        }
    });
    let descriptions: Vec<String> = milestones
        .iter()
        .map(|(name, _, at)| format!("{name} at {}", ms(*at)))
        .collect();
    let axis = Axis {
        end_ms: step_ms * frames as f64,
    };
    let mut sizes = media.pictures.iter();
    let size = sizes.find(|picture| picture.width_px > 0 && picture.height_px > 0);
    Some(FilmView {
        frames: views.collect(),
        size: size.map_or((1, 2), |picture| (picture.width_px, picture.height_px)),
        marks: film_marks(&milestones, axis),
        aria_label: descriptions.join(", "),
        note: media.film_end_ms.map(|end_ms| {
            format!(
                "Chromium stopped recording screenshots after {}, while the page was still changing.",
                ms(end_ms)
            )
        }),
        video: None,
    })
}

impl FilmView {
    /// Adds the video of the load, if the page refers to files below its own path.
    pub(super) fn with_video(mut self, source: &PictureSource) -> Self {
        if let PictureSource::Linked(base) = source {
            let (width, height) = video::size(self.size.0, self.size.1);
            self.video = Some(FilmImage {
                src: format!("{base}/export/{}", Format::Video.name()),
                width,
                height,
            });
        }
        self
    }

    /// Adds the outline of the largest content to the first frame that shows it. The outline is
    /// that of the final layout, so this is only right for pages whose layout did not shift.
    pub(super) fn outlined(mut self, outline: Option<&str>) -> Self {
        let src = |frame: &FrameView| frame.image.as_ref().map(|image| image.src.clone());
        let painted = |frame: &FrameView| frame.events.contains(&"LCP");
        let Some(at) = self.frames.iter().position(painted) else {
            return self;
        };
        // Images are a little late: take the first that differs from the one before the paint.
        let previous = at.checked_sub(1).and_then(|index| src(&self.frames[index]));
        let mut later = self.frames[at..].iter();
        let offset = later.position(|frame| src(frame).is_some() && src(frame) != previous);
        let index = at + offset.unwrap_or_default();
        self.frames[index].outline = outline.map(str::to_owned);
        self
    }
}

/// Draws a line per milestone below the filmstrip, with its label to the right. Each has its own
/// level, the latest at the top, so that no line crosses a label.
fn film_marks(milestones: &[(&str, &str, f64)], axis: Axis) -> String {
    use std::fmt::Write;
    let (mut svg, mut labels) = (String::new(), String::new());
    let mut latest_first = milestones.to_vec();
    latest_first.sort_by(|a, b| b.2.total_cmp(&a.2));
    for (level, (name, class, at_ms)) in latest_first.iter().enumerate() {
        let y = 18 + level * 20;
        let at = coordinate(axis.x(*at_ms) / 10.0);
        let _ = write!(
            svg,
            r#"<line class="{class}" x1="{at}%" x2="{at}%" y1="0" y2="{y}"/><circle class="{class}" cx="{at}%" cy="{y}" r="3.5"/>"#,
        );
        let _ = write!(
            labels,
            r#"<text x="{at}%" y="{y}" {} dy=".35em">{name} {}</text>"#,
            // The film may be as wide as the page.
            if at_ms / axis.end_ms > 0.85 {
                r#"dx="-7" text-anchor="end""#
            } else {
                r#"dx="7""#
            },
            ms(*at_ms),
        );
    }
    // Labels come last, so that they are drawn over the lines.
    svg + &labels
}

/// Returns the element of the largest content, text or image.
pub(crate) fn largest_content_node(report: &Report) -> Option<&Node> {
    fn first_element(details: &Details) -> Option<&Node> {
        match details {
            Details::Elements { items } => Some(&items.first()?.node),
            Details::Parts { items } => items.iter().find_map(first_element),
            _ => None,
        }
    }
    let mut checks = report.categories.iter().flat_map(|c| &c.checks);
    let check = checks.find(|check| check.id == "lcp-breakdown-insight")?;
    first_element(check.details.as_ref()?)
}

/// Returns the position of the largest content in the final layout.
pub(super) fn largest_content(report: &Report) -> Option<Rect> {
    let rect = largest_content_node(report)?.rect_in_screenshot();
    rect.filter(|rect| rect.width > 0.0 && rect.height > 0.0)
}

/// Returns trusted markup that outlines `rect` on top of an image of the page. Returns `None` if
/// the image does not show it.
pub(super) fn outline(media: &ReportMedia, rect: Rect) -> Option<String> {
    let picture = media.screenshot.as_ref()?;
    let width = media.screenshot_css_width;
    let height = width * f64::from(picture.height_px) / f64::from(picture.width_px.max(1));
    (width > 0.0 && rect.top < height && rect.left < width && rect.bottom() > 0.0).then(|| {
        format!(
            r#"<svg class="outline" viewBox="0 0 {} {}" preserveAspectRatio="xMidYMin slice" aria-hidden="true"><rect x="{}" y="{}" width="{}" height="{}"/></svg>"#,
            coordinate(width),
            coordinate(height),
            coordinate(rect.left),
            coordinate(rect.top),
            coordinate(rect.width),
            coordinate(rect.height),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_content_is_outlined_whether_text_or_image_where_the_picture_shows_it() {
        let media = ReportMedia {
            screenshot: Some(plumbline_model::media::Picture {
                width_px: 200,
                height_px: 400,
                ..Default::default()
            }),
            screenshot_css_width: 400.0,
            ..ReportMedia::default()
        };
        let rect = |top: f64| Rect {
            left: 10.0,
            top,
            width: 100.0,
            height: 20.0,
        };
        let svg = outline(&media, rect(30.0)).unwrap();
        assert!(svg.contains(r#"viewBox="0 0 400 800""#), "{svg}");
        assert!(svg.contains(r#"<rect x="10" y="30" width="100" height="20"/>"#));
        assert_eq!(outline(&media, rect(900.0)), None);
    }

    #[test]
    fn the_caption_of_a_frame_names_its_time_and_what_happened() {
        let mut frame = FrameView {
            at: "1.5 s".to_owned(),
            image: None,
            events: Vec::new(),
            outline: None,
            is_missing: false,
        };
        assert_eq!(frame.caption(), "1.5 s");
        frame.events = vec!["FCP", "LCP"];
        assert_eq!(frame.caption(), "1.5 s · FCP, LCP");
    }

    #[test]
    fn the_later_of_two_milestones_is_labelled_above_the_earlier() {
        let axis = Axis { end_ms: 1000.0 };
        let marks = film_marks(&[("FCP", "fcp", 500.0), ("LCP", "lcp", 520.0)], axis);
        let level = |name: &str| {
            let label = marks.split("<text").find(|text| text.contains(name));
            let y = label.unwrap().split("y=\"").nth(1).unwrap();
            y.split('"').next().unwrap().parse::<u32>().unwrap()
        };
        assert!(level("LCP") < level("FCP"));
    }

    #[test]
    fn a_label_at_the_end_of_the_film_is_on_the_left_of_its_mark() {
        let axis = Axis { end_ms: 1000.0 };
        let is_left = |at_ms: f64| film_marks(&[("Load", "load", at_ms)], axis).contains("end");
        assert!(is_left(990.0));
        assert!(!is_left(500.0));
    }

    #[test]
    fn frames_that_chromium_did_not_record_are_marked() {
        let mut media = film_of(1000.0, 3);
        media.film[0].picture = Some(0);
        media.pictures = vec![plumbline_model::media::Picture::default()];
        media.marks.last_change_ms = Some(2500.0);
        let times = FilmTimes::of([&media]).unwrap();
        let complete = film(&media, &PictureSource::Inlined, times).unwrap();
        assert_eq!(complete.aria_label, "Last change at 2.50\u{a0}s");
        assert!(complete.note.is_none() && complete.frames.iter().all(|frame| !frame.is_missing));
        media.film_end_ms = Some(1500.0);
        let cut = film(&media, &PictureSource::Inlined, times).unwrap();
        let missing: Vec<_> = cut.frames.iter().map(|frame| frame.is_missing).collect();
        assert_eq!(missing, [false, true, true]);
        assert!(cut.note.unwrap().contains("after 1.50\u{a0}s"));
    }

    fn film_of(step_ms: f64, frames: usize) -> ReportMedia {
        let at = |index: usize| Frame {
            at_ms: step_ms * index as f64,
            picture: None,
        };
        ReportMedia {
            film: (1..=frames).map(at).collect(),
            ..ReportMedia::default()
        }
    }

    #[test]
    fn two_filmstrips_share_the_same_round_times() {
        let (short, long) = (film_of(100.0, 6), film_of(200.0, 7));
        let times = FilmTimes::of([&short, &long]).unwrap();
        assert_eq!((times.step_ms, times.frames), (200.0, 7));
        for media in [&short, &long] {
            let film = film(media, &PictureSource::Inlined, times).unwrap();
            let at: Vec<_> = film.frames.iter().map(|frame| frame.at.as_str()).collect();
            assert_eq!(at[0], "0.2\u{a0}s");
            assert_eq!(at[6], "1.4\u{a0}s");
        }
        let many = film_of(100.0, 30);
        let times = FilmTimes::of([&many]).unwrap();
        assert_eq!((times.step_ms, times.frames), (250.0, 12));
        assert!(FilmTimes::of([&ReportMedia::default()]).is_none());
    }
}
