use plumbline_trace::header;
use serde::Deserialize;

use super::null::or_default;
use super::{ArtifactFact, Fact, Facts, Missing, Request, Requests, equal_without_fragment};

/// The request of the page's document.
#[derive(Debug, Clone)]
pub struct MainResource(pub Request);

impl MainResource {
    /// Returns all values of a response header by its name.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        header(self.0.headers(), name)
    }
}

impl Fact for MainResource {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let requests = facts.get::<Requests>()?;
        let documents = || {
            let is_document = |request: &&Request| {
                request.exchange.loaded_type() == "Document" && request.exchange.failure.is_none()
            };
            requests.all.iter().filter(is_document)
        };
        // The last one, because a page that reloads itself requests the same URL again. If a script
        // changed the URL, none matches; then the last document of the first frame is used.
        let main_frame = documents()
            .next()
            .map(|request| request.exchange.frame_id());
        documents()
            .rfind(|request| equal_without_fragment(request.url.as_str(), &facts.bundle.final_url))
            .or_else(|| {
                documents().rfind(|request| Some(request.exchange.frame_id()) == main_frame)
            })
            .cloned()
            .map(Self)
            .ok_or_else(|| Missing("the log has no request for the document".to_owned()))
    }
}

/// The beginning of the document as the server sent it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DocumentStart {
    #[serde(deserialize_with = "or_default")]
    pub start: String,
    /// The content that needs no script; `None` in bundles of earlier versions.
    pub content: Option<ServedContent>,
}

/// The content of the document that is visible without scripts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServedContent {
    /// The beginning of the text, with single spaces, also where there is only a tag.
    pub text: String,
    /// Whether the text is longer.
    pub is_cut: bool,
    /// The number of images, form controls and the like.
    pub elements: u32,
}

impl ServedContent {
    /// Returns whether nothing is visible without scripts.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.elements == 0
    }

    /// Returns whether the text may contain this one, of which only the beginning is compared.
    pub fn may_contain(&self, text: &str) -> bool {
        /// Longer labels of elements may be cut, or consist of several texts.
        const COMPARED_CHARS: usize = 30;
        let letters = |text: &str| -> String { text.split_whitespace().collect() };
        let beginning: String = letters(text.trim_end_matches('…'))
            .chars()
            .take(COMPARED_CHARS)
            .collect();
        self.is_cut || letters(&self.text).contains(&beginning)
    }
}

impl ArtifactFact for DocumentStart {
    const NAME: &'static str = "main-document";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_whatever_its_markup_is() {
        let content = |text: &str, is_cut: bool| ServedContent {
            text: text.to_owned(),
            is_cut,
            elements: 0,
        };
        // As served: `<b>Hello</b>, world!`
        let served = content("Menu Hello , world! Imprint", false);
        assert!(served.may_contain("Hello, world!"));
        assert!(served.may_contain("Hello, wo…"));
        assert!(!served.may_contain("Goodbye"));
        assert!(content("Menu", true).may_contain("Goodbye"));
    }
}
