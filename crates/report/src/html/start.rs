//! Where audits begin: sign in, order one, find earlier ones.

use askama::Template;

use super::HtmlError;
use super::chrome::Chrome;
use super::history::{Past, PastView, past_views};

pub struct StartPage<'a> {
    pub chrome: Chrome,
    pub devices: Vec<Choice<'a>>,
    pub networks: Vec<Choice<'a>>,
    pub locations: Vec<Choice<'a>>,
    pub chosen: Chosen,
    /// Where to go on to after signing in.
    pub to: &'a str,
    pub credits: Option<i64>,
    /// The newest first.
    pub past: Vec<Past>,
    /// What was wrong with the last attempt.
    pub problem: Option<&'a str>,
}

/// Something that an audit can be ordered with.
pub struct Choice<'a> {
    pub id: &'a str,
    pub name: &'a str,
}

/// What the form says when it is opened.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    pub url: String,
    pub device: String,
    pub network: String,
    pub location: String,
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartTemplate<'a> {
    chrome: &'a Chrome,
    devices: &'a [Choice<'a>],
    networks: &'a [Choice<'a>],
    locations: &'a [Choice<'a>],
    chosen: &'a Chosen,
    to: &'a str,
    credits: Option<i64>,
    past: Vec<PastView>,
    problem: Option<&'a str>,
}

pub fn start_page(page: &StartPage<'_>) -> Result<String, HtmlError> {
    let template = StartTemplate {
        chrome: &page.chrome,
        devices: &page.devices,
        networks: &page.networks,
        locations: &page.locations,
        chosen: &page.chosen,
        to: page.to,
        credits: page.credits,
        past: past_views(&page.past),
        problem: page.problem,
    };
    Ok(template.render()?)
}
