//! Errors as pages: what happened, and what to do.

use askama::Template;

use super::HtmlError;
use super::chrome::Chrome;

pub struct Problem<'a> {
    pub chrome: Chrome,
    pub status: u16,
    /// What can be told to whoever helps.
    pub request_id: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemTemplate<'a> {
    chrome: &'a Chrome,
    title: &'static str,
    happened: &'static str,
    advice: &'static str,
    status: u16,
    request_id: Option<&'a str>,
}

pub fn problem_page(problem: &Problem<'_>) -> Result<String, HtmlError> {
    let (title, happened, advice) = words(problem.status);
    let template = ProblemTemplate {
        chrome: &problem.chrome,
        title,
        happened,
        advice,
        status: problem.status,
        request_id: problem.request_id,
    };
    Ok(template.render()?)
}

fn words(status: u16) -> (&'static str, &'static str, &'static str) {
    match status {
        401 => (
            "You are not signed in",
            "This page belongs to somebody, and nobody is signed in here.",
            "Sign in with a key of the account that it belongs to.",
        ),
        403 => (
            "This came from somewhere else",
            "The form was sent from another site, or the browser hid where it came from.",
            "Go to the start page and send it from there.",
        ),
        404 => (
            "There is nothing here",
            "The address is wrong, the audit belongs to another account, or a shared link was switched \
             off.",
            "Check the address, or ask whoever sent it for a new link.",
        ),
        405 => (
            "That cannot be done here",
            "This address answers to another kind of request.",
            "Go back and try again from the page that you came from.",
        ),
        413 | 431 => (
            "That was too much",
            "What was sent is larger than anything this service needs.",
            "Go back and send less.",
        ),
        429 => (
            "Too many requests",
            "One key, or one address, has asked for more within a minute than it may.",
            "Wait a minute and try again.",
        ),
        402 => (
            "No credits left",
            "An audit costs one credit, and the account has none.",
            "Ask whoever runs this service to add some.",
        ),
        503 => (
            "The service is busy",
            "It cannot answer at the moment; your audits are safe.",
            "Try again in a moment.",
        ),
        500..=599 => (
            "Something went wrong here",
            "This is a fault of ours; your audits are safe.",
            "Try again in a moment. If it stays, tell whoever runs this service the code below.",
        ),
        _ => (
            "That did not work",
            "What was sent is not what this page needs.",
            "Go back, check what you entered, and try again.",
        ),
    }
}
