//! An audit on its way, phase by phase.

use askama::Template;
use plumbline_bundle::Phase;

use super::HtmlError;
use super::chrome::Chrome;

pub struct Progress<'a> {
    pub chrome: Chrome,
    pub url: &'a str,
    pub conditions: [&'a str; 3],
    /// None while it waits for its turn.
    pub phase: Option<Phase>,
    /// Where news come from.
    pub events: &'a str,
}

#[derive(Template)]
#[template(path = "progress.html")]
struct ProgressTemplate<'a> {
    chrome: &'a Chrome,
    url: &'a str,
    conditions: [&'a str; 3],
    events: &'a str,
    steps: Vec<Step>,
    now: &'static str,
}

struct Step {
    id: &'static str,
    words: &'static str,
    class: &'static str,
}

const STEPS: [(&str, &str); 5] = [
    ("waiting", "Waiting for its turn"),
    ("preparing", "Preparing a fresh browser"),
    ("loading", "Loading the page until it is quiet"),
    ("gathering", "Gathering the evidence"),
    ("judging", "Judging"),
];

pub fn progress_page(progress: &Progress<'_>) -> Result<String, HtmlError> {
    let id = progress.phase.map_or("waiting", Phase::as_str);
    let now = STEPS.iter().position(|(step, _)| *step == id).unwrap_or(0);
    let steps = STEPS.iter().enumerate().map(|(index, (id, words))| Step {
        id,
        words,
        class: match index.cmp(&now) {
            std::cmp::Ordering::Less => "done",
            std::cmp::Ordering::Equal => "now",
            std::cmp::Ordering::Greater => "",
        },
    });
    let template = ProgressTemplate {
        chrome: &progress.chrome,
        url: progress.url,
        conditions: progress.conditions,
        events: progress.events,
        steps: steps.collect(),
        now: STEPS[now].1,
    };
    Ok(template.render()?)
}
