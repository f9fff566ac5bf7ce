//! The HTML document around the content of a page, and the stylesheet and script of a report.

use std::sync::LazyLock;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The stylesheet of reports, with the colours and the type scale of all pages.
pub const STYLESHEET: &str = include_str!("../../assets/report.css");
/// The script of reports.
pub const SCRIPT: &str = include_str!("../../assets/report.js");
/// The icon of all pages, as SVG.
pub const ICON: &str = include_str!("../../assets/icon.svg");

/// The header of a page that has no links to other pages.
pub const BRAND: &str = r#"<span class="brand">Plumbline</span>"#;

/// An HTML document.
#[derive(Template)]
#[template(path = "document.html")]
pub struct Document<'a> {
    pub title: &'a str,
    pub description: &'a str,
    /// Trusted markup: the elements of `<head>` that load stylesheet and script.
    pub head: &'a str,
    /// Trusted markup: the content of the bar at the top.
    pub header: &'a str,
    /// Trusted markup: the content of the page.
    pub main: &'a str,
}

/// The head of a document that is a single file. It has a policy too: it may only use its own
/// script, stylesheet and images.
pub(super) static INLINED_HEAD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'sha256-{}'; script-src 'sha256-{}'\">\n\
         <link rel=\"icon\" href=\"data:image/svg+xml;base64,{}\">\n<style>{STYLESHEET}</style>\n\
         <script type=\"module\">{SCRIPT}</script>",
        STANDARD.encode(Sha256::digest(STYLESHEET)),
        STANDARD.encode(Sha256::digest(SCRIPT)),
        STANDARD.encode(ICON)
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_of_a_single_file_contains_padded_hashes() {
        assert_eq!(INLINED_HEAD.matches("=';").count(), 1);
        assert_eq!(INLINED_HEAD.matches("='\">").count(), 1);
    }

    #[test]
    fn no_inlined_asset_contains_a_closing_tag() {
        for text in [STYLESHEET, SCRIPT] {
            assert!(!text.contains("</s"));
        }
    }
}
