//! Inlines style sheets into the main document.

use url::Url;

use super::editor::Editor;
use super::{ChangeProblem, Effect, Pattern};
use crate::body::Decoder;
use crate::css;
use crate::html::{self, Edit, Tag};
use crate::integrity::base_url;
use crate::{RecordedResponse, Recording};

/// The maximum number of links that are replaced; pages with the most have about a hundred.
const MAX_LINKS: usize = 1000;

impl Editor {
    /// Replaces links to style sheets in the main document by their contents.
    pub fn inline_stylesheet(&mut self, pattern: &Pattern) -> Result<Effect, ChangeProblem> {
        pattern.check()?;
        let main = self.recording.main_document();
        let main = main.ok_or(ChangeProblem::NoMainDocument)?;
        let exchange = &self.recording.exchanges[main];
        let mut decoder = Decoder::default();
        let content = match content_of(exchange.response.as_ref(), &mut decoder) {
            Ok(content) => content,
            Err(reason) => {
                let mut effect = Effect::default();
                effect.note(format!("The main document is not changed, since {reason}."));
                return Ok(effect);
            }
        };
        let url = Url::parse(&exchange.url()).map_err(|_| ChangeProblem::NoMainDocument)?;
        let base = base_url(&content, url);
        let links = html::tags(&content).filter_map(|tag| Link::of(tag, &base));
        let links = links.filter(|link| {
            let host = link.url.host_str().unwrap_or_default();
            pattern.selects_url(link.url.as_str(), host)
        });
        let mut notes = Effect::default();
        let edits = links.take(MAX_LINKS).filter_map(|link| {
            let result = link.edit(&self.recording, &mut decoder);
            result.map_err(|note| notes.note(note)).ok()
        });
        let inlined = html::apply(&content, edits).map_err(|it| it.to_string());
        let effect = self.edit_bodies(&[main], |_, _| inlined.clone());
        let mut effect = if effect.exchanges > 0 {
            self.without_policies(&[main], effect)
        } else {
            effect
        };
        effect.notes.extend(notes.notes);
        Ok(effect)
    }
}

/// A link of a document to a style sheet.
struct Link {
    tag: Tag,
    url: Url,
}

impl Link {
    /// Returns the link of a tag, unless it is none or an alternative that is not applied.
    fn of(tag: Tag, base: &Url) -> Option<Self> {
        if tag.name != "link" || tag.is_end || tag.attribute("disabled").is_some() {
            return None;
        }
        let relations = tag.value("rel")?.to_ascii_lowercase();
        let mut words = relations.split_ascii_whitespace();
        let is_sheet = words.clone().any(|it| it == "stylesheet");
        if !is_sheet || words.any(|it| it == "alternate") {
            return None;
        }
        let url = base.join(tag.value("href")?.trim()).ok()?;
        Some(Self { tag, url })
    }

    /// Returns the edit that replaces the link, or a note why there is none.
    fn edit(&self, recording: &Recording, decoder: &mut Decoder) -> Result<Edit, String> {
        let note = |reason: &str| format!("{} is not inlined, since {reason}.", self.url);
        let index = recording.position_of(&self.url);
        let index = index.ok_or_else(|| note("it is not in the recording"))?;
        let response = recording.exchanges[index].response.as_ref();
        let content = content_of(response, decoder).map_err(|reason| note(&reason))?;
        // The URLs of a style sheet are relative to it.
        let content = css::replace_urls(&content, |url| absolute(&self.url, url));
        let content = content.map_err(|error| note(&error.to_string()))?;
        let content = String::from_utf8(content);
        let content = content.map_err(|_| note("it is not in UTF-8"))?;
        let media = self.tag.value("media").map(|media| {
            let media = media.replace('&', "&amp;").replace('"', "&quot;");
            format!(" media=\"{media}\"")
        });
        Ok(Edit {
            span: self.tag.span.clone(),
            text: format!(
                "<style{}>{}</style>",
                media.unwrap_or_default(),
                within_style(&content)
            ),
        })
    }
}

/// Returns the decoded content of a complete and successful response.
fn content_of(
    response: Option<&RecordedResponse>,
    decoder: &mut Decoder,
) -> Result<bytes::Bytes, String> {
    let response = response.filter(|it| it.status == 200);
    let response = response.ok_or("it has no response with status 200")?;
    if response.is_cut_off {
        return Err("its body is incomplete".to_owned());
    }
    let content = decoder.decode(response);
    content.map_err(|error| error.to_string())
}

/// Returns the absolute form of a URL that is relative to a style sheet.
pub(super) fn absolute(sheet: &Url, url: &str) -> Option<String> {
    // Fragments refer to the document, and other schemes are absolute.
    if url.starts_with('#') || Url::parse(url).is_ok() || url.is_empty() {
        return None;
    }
    sheet.join(url).ok().map(String::from)
}

/// Returns a style sheet as it can be the content of an element.
fn within_style(css: &str) -> String {
    let css = css.trim_start_matches('\u{feff}');
    // The declaration of an encoding is only allowed at the beginning of a file.
    let css = match css.strip_prefix("@charset \"") {
        Some(rest) => rest.split_once(';').map_or("", |(_, rest)| rest),
        None => css,
    };
    css.replace("</", "<\\/")
}
