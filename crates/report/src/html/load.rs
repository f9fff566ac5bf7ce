//! How the page loaded: filmstrip, waterfall, main thread, and what it all weighed.

use plumbline_engine::checks::Details;
use plumbline_engine::exhibits::{Exhibits, Frame, Marks, RequestShown, Share, WORK_KINDS};
use plumbline_engine::facts::Rect;
use plumbline_engine::report::Report;

use super::charts::{self, Axis};
use super::figures::{bytes, coordinate, count, ms, tick};
use super::pictures::{PictureId, Source};

pub(super) struct Still {
    pub(super) src: String,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// Where the largest content stands at the end, text or image, in a picture of the page.
pub(super) fn largest_content(report: &Report) -> Option<Rect> {
    fn first_element(details: &Details) -> Option<Rect> {
        match details {
            Details::Elements { items } => items.first()?.node.in_picture(),
            Details::Parts { items } => items.iter().find_map(first_element),
            _ => None,
        }
    }
    let mut checks = report.categories.iter().flat_map(|c| &c.checks);
    let check = checks.find(|check| check.id == "lcp-breakdown-insight")?;
    first_element(check.details.as_ref()?).filter(|rect| rect.width > 0.0 && rect.height > 0.0)
}

/// Markup of ours, to be laid over a picture that is as wide as the page and shown from its top.
pub(super) fn outline(exhibits: &Exhibits, rect: Rect) -> Option<String> {
    let picture = exhibits.screenshot.as_ref()?;
    let width = exhibits.screenshot_css_width;
    let height = width * f64::from(picture.height_px) / f64::from(picture.width_px.max(1));
    // What is not in the picture cannot be outlined.
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

pub(super) struct FilmView {
    pub(super) frames: Vec<FrameView>,
    pub(super) marks: String,
    pub(super) said: String,
}

pub(super) struct FrameView {
    pub(super) at: String,
    pub(super) still: Option<Still>,
    /// What happened since the frame before: `FCP`, `LCP`, `Load`.
    pub(super) events: Vec<&'static str>,
    /// Where the largest content is, in the first frame that shows it.
    pub(super) outline: Option<String>,
}

/// The moments of a load that are marked, with their short names and classes.
pub(super) fn moments(marks: &Marks) -> Vec<(&'static str, &'static str, f64)> {
    [
        ("FCP", "fcp", marks.fcp_ms),
        ("LCP", "lcp", marks.lcp_ms),
        ("Load", "load", marks.load_ms),
    ]
    .into_iter()
    .filter_map(|(name, class, at_ms)| Some((name, class, at_ms?)))
    .collect()
}

pub(super) fn film(exhibits: &Exhibits, source: &Source) -> Option<FilmView> {
    film_until(exhibits, source, exhibits.film.last()?.at_ms)
}

/// At even times up to `until_ms`, so that two strips of one length show the same times side by side.
pub(super) fn film_until(exhibits: &Exhibits, source: &Source, until_ms: f64) -> Option<FilmView> {
    const MOST_FRAMES: f64 = 12.0;
    let [first, ..] = &exhibits.film[..] else {
        return None;
    };
    let axis = Axis { end_ms: until_ms };
    let moments = moments(&exhibits.marks);
    // Its own steps where they fit: then every frame is a picture of its own.
    let step_ms = first.at_ms.max(until_ms / MOST_FRAMES).max(1.0);
    let count = (until_ms / step_ms).round().max(1.0) as usize;
    let shown = (1..=count).map(|index| {
        let at_ms = step_ms * index as f64;
        let so_far = exhibits
            .film
            .iter()
            .rfind(|frame| frame.at_ms <= at_ms + 0.5);
        Frame {
            at_ms,
            picture: so_far.and_then(|frame| frame.picture),
        }
    });
    let mut before_ms = 0.0;
    let frames = shown.map(|frame| {
        let since = before_ms;
        before_ms = frame.at_ms;
        FrameView {
            at: tick(frame.at_ms),
            still: frame.picture.and_then(|index| {
                let picture = exhibits.pictures.get(index)?;
                Some(Still {
                    src: source.of(PictureId::Frame(index), picture),
                    width: picture.width_px,
                    height: picture.height_px,
                })
            }),
            events: moments
                .iter()
                .filter(|(_, _, at)| *at > since && *at <= frame.at_ms)
                .map(|(name, _, _)| *name)
                .collect(),
            outline: None,
        }
    });
    let said: Vec<String> = moments
        .iter()
        .map(|(name, _, at)| format!("{name} at {}", ms(*at)))
        .collect();
    Some(FilmView {
        frames: frames.collect(),
        marks: film_marks(&moments, axis),
        said: said.join(", "),
    })
}

impl FilmView {
    /// Only for a page whose layout stood still: the outline is of where things were at the end.
    pub(super) fn outlined(mut self, outline: Option<&str>) -> Self {
        let src = |frame: &FrameView| frame.still.as_ref().map(|still| still.src.clone());
        let painted = |frame: &FrameView| frame.events.contains(&"LCP");
        let Some(at) = self.frames.iter().position(painted) else {
            return self;
        };
        // Pictures come a little after what they show: the first that is another than the one before it was painted.
        let before = at.checked_sub(1).and_then(|index| src(&self.frames[index]));
        let mut later = self.frames[at..].iter();
        let shown = later.position(|frame| src(frame).is_some() && src(frame) != before);
        let shown = at + shown.unwrap_or_default();
        self.frames[shown].outline = outline.map(str::to_owned);
        self
    }
}

/// A line per moment under the strip, each on its own level, the latest on the highest: what is said to the
/// right of a line is never crossed by another.
fn film_marks(moments: &[(&str, &str, f64)], axis: Axis) -> String {
    use std::fmt::Write;
    let (mut svg, mut words) = (String::new(), String::new());
    let mut latest_first = moments.to_vec();
    latest_first.sort_by(|a, b| b.2.total_cmp(&a.2));
    for (level, (name, class, at_ms)) in latest_first.iter().enumerate() {
        let y = 18 + level * 20;
        let at = coordinate(axis.x(*at_ms) / 10.0);
        let _ = write!(
            svg,
            r#"<line class="{class}" x1="{at}%" x2="{at}%" y1="0" y2="{y}"/><circle class="{class}" cx="{at}%" cy="{y}" r="3.5"/>"#,
        );
        let _ = write!(
            words,
            r#"<text x="{at}%" y="{y}" dx="7" dy=".35em">{name} {}</text>"#,
            ms(*at_ms),
        );
    }
    // Words last: they stand over the lines of other moments.
    svg + &words
}

pub(super) struct WaterfallView {
    pub(super) rows: Vec<RowView>,
    pub(super) left_out: usize,
    pub(super) ticks: Vec<(String, String)>,
    pub(super) marks: Vec<MarkView>,
    pub(super) kinds: Vec<(String, usize)>,
    pub(super) summary: String,
    pub(super) thread: String,
    pub(super) work: Vec<WorkView>,
    pub(super) long_tasks: String,
}

pub(super) struct MarkView {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) at: String,
    pub(super) x: String,
}

pub(super) struct WorkView {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) ms: String,
}

pub(super) struct RowView {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) host: Option<String>,
    pub(super) url: String,
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) failed: bool,
    pub(super) blocking: bool,
    pub(super) lcp: bool,
    pub(super) size: String,
    pub(super) time: String,
    pub(super) bar: String,
    /// For sorting: bytes and milliseconds.
    pub(super) bytes: u64,
    pub(super) took_ms: i64,
    pub(super) facts: Vec<(String, String)>,
}

/// Round times with their places in per cent.
pub(super) fn ticks(axis: Axis) -> Vec<(String, String)> {
    axis.ticks()
        .into_iter()
        .map(|(x, label)| (coordinate(x / 10.0), label))
        .collect()
}

pub(super) fn waterfall(exhibits: &Exhibits) -> WaterfallView {
    let axis = Axis {
        end_ms: exhibits.end_ms,
    };
    let mut kinds: Vec<(String, usize)> = exhibits
        .by_type
        .iter()
        .map(|share| (share.name.clone(), share.requests))
        .collect();
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let rows = exhibits.requests.iter().enumerate();
    let total: u64 = exhibits.requests.iter().map(|r| r.transfer_bytes).sum();
    let blocking = exhibits.requests.iter().filter(|r| r.render_blocking);
    let requests = exhibits.requests.len() + exhibits.requests_left_out;
    let thread = &exhibits.main_thread;
    let work: Vec<WorkView> = WORK_KINDS
        .iter()
        .zip(["script", "layout", "paint", "parse", "other"])
        .zip(thread.total_ms)
        .map(|(((name, _), class), total)| WorkView {
            class,
            name,
            ms: ms(total),
        })
        .collect();
    let said: Vec<String> = work
        .iter()
        .map(|w| format!("{} {}", w.name, w.ms))
        .collect();
    let said = format!("Main thread activity: {}", said.join(", "));
    let longest = thread
        .long_tasks
        .iter()
        .map(|task| task.1)
        .fold(0.0, f64::max);
    WaterfallView {
        rows: rows.map(|(index, r)| row(index + 1, r, axis)).collect(),
        left_out: exhibits.requests_left_out,
        ticks: ticks(axis),
        marks: moments(&exhibits.marks)
            .into_iter()
            .map(|(name, class, at_ms)| MarkView {
                class,
                name,
                at: ms(at_ms),
                x: coordinate(axis.x(at_ms) / 10.0),
            })
            .collect(),
        kinds,
        summary: format!(
            "{}, {} over the network, {} render-blocking.",
            count(requests, "request", "requests"),
            bytes(total),
            blocking.count()
        ),
        thread: charts::main_thread(thread, axis, &said),
        work,
        long_tasks: match thread.long_tasks.len() {
            0 => "No task took longer than 50 ms.".to_owned(),
            many => format!(
                "{} longer than 50 ms, the longest {}.",
                count(many, "task took", "tasks took"),
                ms(longest)
            ),
        },
    }
}

fn row(number: usize, request: &RequestShown, axis: Axis) -> RowView {
    let took_ms = request.end_ms.map(|end_ms| end_ms - request.start_ms);
    let failed = request.error.is_some() || request.status.is_some_and(|s| s >= 400);
    let status = match (request.status, &request.error) {
        (Some(status), _) => status.to_string(),
        (None, Some(_)) => "failed".to_owned(),
        (None, None) => "open".to_owned(),
    };
    RowView {
        number,
        name: last_part(&request.url),
        host: request.third_party.then(|| request.host.clone()),
        url: request.url.clone(),
        kind: request.kind.clone(),
        status,
        failed,
        blocking: request.render_blocking,
        lcp: request.is_lcp,
        size: if request.cached {
            "cache".to_owned()
        } else {
            bytes(request.transfer_bytes)
        },
        time: took_ms.map_or("–".to_owned(), ms),
        bar: charts::bar(request, axis),
        bytes: request.transfer_bytes,
        took_ms: took_ms.unwrap_or_default().round() as i64,
        facts: facts(request),
    }
}

/// What a click opens: only what there is.
fn facts(request: &RequestShown) -> Vec<(String, String)> {
    let phases = &request.phases;
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name.to_owned(), value));
        }
    };
    fact("Failed with", request.error.clone());
    fact("Starts", Some(ms(request.start_ms)));
    for (name, phase) in [
        ("Queued", Some(phases.queue_ms).filter(|ms| *ms >= 1.0)),
        ("DNS", phases.dns_ms),
        ("Connect", phases.connect_ms),
        ("TLS", phases.tls_ms),
        ("Wait", phases.wait_ms),
        ("Receive", phases.receive_ms),
    ] {
        fact(name, phase.map(ms));
    }
    fact(
        "Unpacked",
        Some(request.resource_bytes).filter(|b| *b > 0).map(bytes),
    );
    fact("Priority", Some(request.priority.clone()));
    fact("Protocol", Some(request.protocol.clone()));
    fact(
        "Method",
        Some(request.method.clone()).filter(|method| method != "GET"),
    );
    fact("Asked for by", request.initiator.clone());
    for (name, value) in &request.headers {
        fact(name, Some(value.clone()));
    }
    facts
}

/// What people call a resource: its file name, or its host where there is none.
pub(super) fn last_part(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    let after_scheme = plain.split_once("://").map_or(plain, |(_, rest)| rest);
    let trimmed = after_scheme.trim_end_matches('/');
    let name = trimmed.rsplit('/').next().unwrap_or(trimmed);
    let query = url.split_once('?').map(|(_, query)| query);
    match query.filter(|query| !query.is_empty()) {
        Some(query) => format!("{name}?{query}"),
        None => name.to_owned(),
    }
}

pub(super) struct ShareView {
    pub(super) name: String,
    pub(super) third_party: bool,
    pub(super) requests: usize,
    pub(super) bytes: String,
    /// Of the heaviest, in per cent.
    pub(super) width: String,
}

/// More hosts than this say no more.
const MOST_SHARES: usize = 15;

pub(super) fn shares(shares: &[Share]) -> Vec<ShareView> {
    let heaviest = shares.iter().map(|share| share.bytes).max().unwrap_or(0);
    shares
        .iter()
        .take(MOST_SHARES)
        .map(|share| ShareView {
            name: share.name.clone(),
            third_party: share.third_party,
            requests: share.requests,
            bytes: bytes(share.bytes),
            width: coordinate(share.bytes as f64 / heaviest.max(1) as f64 * 100.0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_content_is_outlined_whether_text_or_image_where_the_picture_shows_it() {
        let exhibits = Exhibits {
            screenshot: Some(plumbline_engine::exhibits::Picture {
                width_px: 200,
                height_px: 400,
                ..Default::default()
            }),
            screenshot_css_width: 400.0,
            ..Exhibits::default()
        };
        let rect = |top: f64| Rect {
            left: 10.0,
            top,
            width: 100.0,
            height: 20.0,
        };
        let shown = outline(&exhibits, rect(30.0)).unwrap();
        assert!(shown.contains(r#"viewBox="0 0 400 800""#), "{shown}");
        assert!(shown.contains(r#"<rect x="10" y="30" width="100" height="20"/>"#));
        assert_eq!(outline(&exhibits, rect(900.0)), None);
    }

    #[test]
    fn of_two_moments_the_later_is_told_above_so_that_no_line_crosses_words() {
        let axis = Axis { end_ms: 1000.0 };
        let marks = film_marks(&[("FCP", "fcp", 500.0), ("LCP", "lcp", 520.0)], axis);
        let level = |name: &str| {
            let words = marks.split("<text").find(|text| text.contains(name));
            let y = words.unwrap().split("y=\"").nth(1).unwrap();
            y.split('"').next().unwrap().parse::<u32>().unwrap()
        };
        assert!(level("LCP") < level("FCP"));
    }

    #[test]
    fn a_request_is_called_by_its_file_or_its_host() {
        for (url, name) in [
            ("https://a.test/css/app.css?v=1", "app.css?v=1"),
            ("https://a.test/", "a.test"),
            ("https://a.test/blog/", "blog"),
            ("https://a.test", "a.test"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(last_part(url), name);
        }
    }
}
