//! The page instead of a history if there are no audits of the URL.

use askama::Template;
use axum::{
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};
use url::form_urlencoded::Serializer;

use super::super::frame::Page;
use super::super::session::Visitor;
use crate::errors::Failure;

/// The page of a URL that was never audited.
#[derive(Template)]
#[template(path = "history/no_audits.html")]
struct NoAuditsPage<'a> {
    url: &'a str,
    /// The query of pages that take the URL.
    query: String,
}

impl Page for NoAuditsPage<'_> {
    fn title(&self) -> String {
        format!("History of {} · Plumbline", self.url)
    }
}

/// Returns the page of a URL that was never audited.
pub(super) fn page(visitor: &Visitor, url: &str) -> Result<Response, Failure> {
    let mut query = Serializer::new(String::new());
    let page = NoAuditsPage {
        url,
        query: query.append_pair("url", url).finish(),
    };
    let page = visitor.page_frame().render(&page);
    let page = Html(page.map_err(Failure::internal)?);
    Ok((StatusCode::NOT_FOUND, page).into_response())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{EVIL, assert_text_only};
    use super::*;

    #[test]
    fn the_url_is_escaped() {
        let query = "url=x".to_owned();
        assert_text_only(&NoAuditsPage { url: EVIL, query });
    }
}
