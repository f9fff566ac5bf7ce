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
    ///
    /// Only letters and digits are compared, without case: the text of an element on the page has
    /// `text-transform` applied, and punctuation is often written as a character reference.
    pub fn may_contain(&self, text: &str) -> bool {
        /// Longer labels of elements may be cut, or consist of several texts.
        const COMPARED_CHARS: usize = 30;
        let label: Vec<char> = letters(text).take(COMPARED_CHARS).collect();
        self.is_cut
            || contains(letters(&self.text).map(Some), &label)
            || contains(letters_and_references(&self.text), &label)
    }
}

/// Returns the letters and digits of a text without their case. Capitals are compared because `ß`
/// becomes two of them, and small letters are made first because those of some languages differ in
/// a mark only, such as the Turkish `İ`.
fn letters(text: &str) -> impl Iterator<Item = char> {
    let small = text.chars().flat_map(char::to_lowercase);
    small
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_uppercase)
}

/// Returns the letters and digits of a text, and `None` for each character reference in it.
fn letters_and_references(text: &str) -> impl Iterator<Item = Option<char>> {
    let mut parts = text.split('&');
    let first = parts.next().unwrap_or_default();
    let others = parts.flat_map(|part| {
        let is_name = |name: &str| {
            let name = name.strip_prefix('#').unwrap_or(name);
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let reference = part.split_once(';').filter(|(name, _)| is_name(name));
        let rest = reference.map_or(part, |(_, rest)| rest);
        let unknown = reference.map(|_| None);
        unknown.into_iter().chain(letters(rest).map(Some))
    });
    letters(first).map(Some).chain(others)
}

/// Returns whether a text contains a label of at most 63 letters. An unknown character of the text,
/// `None`, stands for at most two letters, as `&szlig;` does in capitals.
fn contains(text: impl Iterator<Item = Option<char>>, label: &[char]) -> bool {
    // Bit n is set if the text so far ends with the first n letters of the label.
    let mut ends: u64 = 1;
    let whole = 1 << label.len();
    for character in text {
        let longer = match character {
            Some(character) => {
                let equal = (0..label.len()).filter(|at| label[*at] == character);
                (ends & equal.fold(0, |bits, at| bits | 1 << at)) << 1
            }
            None => ends | ends << 1 | ends << 2,
        };
        ends = longer | 1;
        if ends & whole != 0 {
            return true;
        }
    }
    ends & whole != 0
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
        assert!(content("", false).may_contain("★"));
    }

    #[test]
    fn a_text_is_found_whatever_its_case_and_punctuation_are() {
        for (served, label) in [
            // Bundles of earlier versions have undecoded references.
            ("Don&#8217;t panic", "Don’t panic"),
            ("Don’t panic", "DON’T PANIC"),
            (
                "Le caf&eacute; &ccedil;a va &mdash; oui",
                "CAFÉ ÇA VA — OUI",
            ),
            ("caf&#xe9; noir", "Café noir"),
            ("Große Straße", "GROSSE STRASSE"),
            ("Gro&szlig;e Stra&#223;e", "GROSSE STRASSE"),
            ("istanbul", "İSTANBUL"),
            ("Rock & Roll; more", "Rock & Roll"),
            ("Write &eacute; for é", "Write &eacute; for é"),
            ("Q&A; R&D", "Q&A; R&D"),
        ] {
            let served = ServedContent {
                text: served.to_owned(),
                ..ServedContent::default()
            };
            assert!(served.may_contain(label), "{label}");
            assert!(!served.may_contain("Something else"), "{label}");
            assert!(!served.may_contain(&format!("{label} and more")), "{label}");
        }
    }

    #[test]
    fn many_unknown_characters_take_no_exponential_time() {
        let served = ServedContent {
            text: format!("{}z", "&eacute;".repeat(14)).repeat(160),
            ..ServedContent::default()
        };
        assert!(!served.may_contain(&"a".repeat(30)));
    }
}
