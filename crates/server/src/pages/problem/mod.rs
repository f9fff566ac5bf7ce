//! The error page: what happened, and what to do.

use askama::Template;

use super::frame::Page;

/// The error page of a response.
#[derive(Template)]
#[template(path = "problem/problem.html")]
pub(super) struct ProblemPage<'a> {
    title: &'static str,
    happened: &'a str,
    advice: &'static str,
    status: u16,
    /// The identifier under which the server logged the request.
    request_id: Option<&'a str>,
}

impl<'a> ProblemPage<'a> {
    /// Creates the page for an HTTP status. A reason says more about an invalid request than the
    /// status.
    pub(super) fn new(status: u16, reason: Option<&'a str>, request_id: Option<&'a str>) -> Self {
        let (title, happened, advice) = texts(status, reason);
        Self {
            title,
            happened,
            advice,
            status,
            request_id,
        }
    }
}

impl Page for ProblemPage<'_> {
    fn title(&self) -> String {
        format!("{} · Plumbline", self.title)
    }
}

/// The title, explanation and advice for an HTTP status.
fn texts(status: u16, reason: Option<&str>) -> (&'static str, &str, &'static str) {
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
            reason.unwrap_or("The request does not contain what this page needs."),
            "Go back, check what you entered, and try again.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EVIL, assert_text_only};
    use super::*;

    #[test]
    fn texts_of_a_request_are_escaped() {
        assert_text_only(&ProblemPage::new(406, Some(EVIL), Some(EVIL)));
    }
}
