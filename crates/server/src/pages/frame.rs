//! The frame of every page: the document, its header with the signed-in account, and its policy.

use std::sync::LazyLock;

use askama::Template;
use plumbline_report::html::{BRAND, Document, HtmlError};

use super::assets::Asset;

/// The content security policy of served pages: nothing from other hosts, nothing inline, no
/// framing.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The content of a page. The template renders what is inside `<main>`.
pub(crate) trait Page: Template {
    /// Returns the title of the document.
    fn title(&self) -> String;

    /// Returns the description of the document.
    fn description(&self) -> String {
        "Audits of web pages: scores, metrics and what to fix first.".to_owned()
    }

    /// Returns additional elements of `<head>`, which are trusted markup.
    fn head(&self) -> &'static str {
        ""
    }
}

/// The frame around the content of a page.
#[derive(Debug, Clone)]
pub(crate) enum PageFrame {
    /// The reader is signed in to this account.
    SignedIn(String),
    /// The reader is not signed in.
    SignedOut,
    /// The reader has a shared link, and may know no other page.
    Shared,
}

#[derive(Template)]
#[template(path = "header.html")]
struct Header<'a> {
    account: Option<&'a str>,
}

impl PageFrame {
    /// Renders a page.
    pub(crate) fn render(&self, page: &impl Page) -> Result<String, HtmlError> {
        let head = [&self.links(), page.head()].join("\n");
        self.document(&page.title(), &page.description(), &head, &page.render()?)
    }

    /// Renders a page whose content is already rendered.
    pub(crate) fn wrap(
        &self,
        title: &str,
        description: &str,
        main: &str,
    ) -> Result<String, HtmlError> {
        self.document(title, description, &self.links(), main)
    }

    /// Returns the elements of `<head>` that all pages have.
    fn links(&self) -> String {
        match self {
            Self::Shared => format!("{}\n<meta name=\"robots\" content=\"noindex\">", *LINKS),
            _ => LINKS.clone(),
        }
    }

    fn document(
        &self,
        title: &str,
        description: &str,
        head: &str,
        main: &str,
    ) -> Result<String, HtmlError> {
        let document = Document {
            title,
            description,
            head,
            header: &self.header()?,
            main,
        };
        Ok(document.render()?)
    }

    fn header(&self) -> Result<String, askama::Error> {
        let account = match self {
            Self::SignedIn(account) => Some(account.as_str()),
            Self::SignedOut => None,
            Self::Shared => return Ok(BRAND.to_owned()),
        };
        Header { account }.render()
    }
}

/// The elements of `<head>` that load stylesheet, icon and script.
static LINKS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "<link rel=\"stylesheet\" href=\"{}\">\n<link rel=\"icon\" href=\"{}\" type=\"image/svg+xml\">\n\
         <script src=\"{}\" defer></script>",
        Asset::Stylesheet.path(),
        Asset::Icon.path(),
        Asset::Script.path()
    )
});
