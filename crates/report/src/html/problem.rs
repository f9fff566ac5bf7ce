//! The error page: what happened, and what to do.

use askama::Template;

use super::HtmlError;
use super::page_frame::PageFrame;

/// The content of an error page.
pub struct ProblemPage<'a> {
    pub page_frame: PageFrame,
    pub status: u16,
    /// The identifier under which the server logged the request.
    pub request_id: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemTemplate<'a> {
    page_frame: &'a PageFrame,
    title: &'static str,
    happened: &'static str,
    advice: &'static str,
    status: u16,
    request_id: Option<&'a str>,
}

/// Renders an error page.
pub fn problem_page(problem: &ProblemPage<'_>) -> Result<String, HtmlError> {
    let (title, happened, advice) = texts(problem.status);
    let template = ProblemTemplate {
        page_frame: &problem.page_frame,
        title,
        happened,
        advice,
        status: problem.status,
        request_id: problem.request_id,
    };
    Ok(template.render()?)
}

/// The title, explanation and advice for an HTTP status.
fn texts(status: u16) -> (&'static str, &'static str, &'static str) {
    match status {
        401 => (
            "You are not signed in",
            "This page belongs to an account, and you are not signed in.",
            "Sign in with a key of that account.",
        ),
        403 => (
            "Request from another site",
            "The form was sent from another site, or the browser did not say where it came from.",
            "Open the start page and send the form from there.",
        ),
        404 => (
            "Page not found",
            "The address is wrong, the audit belongs to another account, or the report is no longer shared.",
            "Check the address, or ask the sender for a new link.",
        ),
        405 => (
            "Method not allowed",
            "This address does not support this kind of request.",
            "Go back and try again from the page that you came from.",
        ),
        413 | 431 => (
            "Request too large",
            "The request is larger than this service accepts.",
            "Go back and send less.",
        ),
        429 => (
            "Too many requests",
            "This key or IP address has sent too many requests within a minute.",
            "Wait a minute and try again.",
        ),
        402 => (
            "No credits left",
            "An audit costs one credit, and the account has none.",
            "Ask the operator of this service for more.",
        ),
        503 => (
            "The service is busy",
            "It cannot respond at the moment. Your audits are safe.",
            "Try again in a moment.",
        ),
        500..=599 => (
            "Internal error",
            "Something went wrong in this service. Your audits are safe.",
            "Try again in a moment. If it happens again, tell the operator of this service the request ID below.",
        ),
        _ => (
            "Invalid request",
            "The request does not contain what this page needs.",
            "Go back, check what you entered, and try again.",
        ),
    }
}
