//! The progress page of a running audit.

use askama::Template;
use plumbline_bundle::Phase;

use super::HtmlError;
use super::page_frame::PageFrame;

/// The content of a progress page.
pub struct ProgressPage<'a> {
    pub page_frame: PageFrame,
    pub url: &'a str,
    pub conditions: [&'a str; 3],
    /// The current phase; `None` while the audit is queued.
    pub phase: Option<Phase>,
    /// The path of the event stream with the phases.
    pub events: &'a str,
}

#[derive(Template)]
#[template(path = "progress.html")]
struct ProgressTemplate<'a> {
    page_frame: &'a PageFrame,
    url: &'a str,
    conditions: [&'a str; 3],
    events: &'a str,
    steps: Vec<Step>,
    now: &'static str,
}

struct Step {
    id: &'static str,
    label: &'static str,
    class: &'static str,
}

/// The phases of an audit with their labels, in order.
const STEPS: [(&str, &str); 5] = [
    ("waiting", "Waiting in the queue"),
    ("preparing", "Starting a fresh browser"),
    ("loading", "Loading until network and CPU are idle"),
    ("gathering", "Collecting data"),
    ("judging", "Scoring"),
];

/// Renders the progress page.
pub fn progress_page(progress: &ProgressPage<'_>) -> Result<String, HtmlError> {
    let id = progress.phase.map_or("waiting", Phase::as_str);
    let now = STEPS.iter().position(|(step, _)| *step == id).unwrap_or(0);
    let steps = STEPS.iter().enumerate().map(|(index, (id, label))| Step {
        id,
        label,
        class: match index.cmp(&now) {
            std::cmp::Ordering::Less => "done",
            std::cmp::Ordering::Equal => "now",
            std::cmp::Ordering::Greater => "",
        },
    });
    let template = ProgressTemplate {
        page_frame: &progress.page_frame,
        url: progress.url,
        conditions: progress.conditions,
        events: progress.events,
        steps: steps.collect(),
        now: STEPS[now].1,
    };
    Ok(template.render()?)
}
