//! Changes of the main document's markup.

use url::Url;

use super::{attribute_text, in_head};
use crate::html::{self, Tag};
use crate::integrity::base_url;
use crate::{Change, Recording};

/// The start tags of the main document that changes are made of.
pub(super) struct MainDocument {
    tags: Vec<Tag>,
    /// The URL to which the URLs of the document are relative.
    base: Url,
}

impl MainDocument {
    /// Returns the main document of a recording, if it can be read.
    pub(super) fn of(recording: &Recording) -> Option<Self> {
        let exchange = &recording.exchanges[recording.main_document()?];
        let content = exchange.response.as_ref()?.decoded_body().ok()?;
        let names = ["script", "link", "img"];
        let tags = html::tags(&content);
        let tags = tags.filter(|tag| !tag.is_end && names.contains(&tag.name.as_str()));
        let tags = tags.collect();
        let base = base_url(&content, Url::parse(&exchange.url()).ok()?);
        Some(Self { tags, base })
    }

    /// Returns the start tags with a name of which an attribute is a URL.
    fn elements<'a>(
        &'a self,
        name: &'a str,
        attribute: &'a str,
        url: &'a str,
    ) -> impl Iterator<Item = &'a Tag> {
        let url = Url::parse(url).ok();
        let is_url = move |value: &str| url.is_some() && self.base.join(value).ok() == url;
        let elements = self.tags.iter().filter(move |tag| tag.name == name);
        elements.filter(move |tag| tag.value(attribute).is_some_and(&is_url))
    }
}

/// Returns a selector of the elements with a name and an attribute. A value with both kinds of
/// quotes cannot be expressed.
fn selector(name: &str, attribute: &str, value: &str) -> Option<String> {
    let quote = ['"', '\'']
        .into_iter()
        .find(|quote| !value.contains(*quote));
    quote.map(|quote| format!("{name}[{attribute}={quote}{value}{quote}]"))
}

fn set(selector: &str, name: &str, value: &str) -> Change {
    Change::SetAttribute {
        selector: selector.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        pattern: None,
    }
}

/// Returns changes by which a script or style sheet does not block rendering: scripts run after the
/// document, and style sheets apply when they have come.
pub(super) fn not_blocking(document: Option<&MainDocument>, url: &str) -> Vec<Change> {
    let Some(document) = document else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    for tag in document.elements("script", "src", url) {
        let src = tag.value("src").unwrap_or_default();
        changes.extend(selector("script", "src", src).map(|it| set(&it, "defer", "")));
    }
    for tag in document.elements("link", "href", url) {
        let rel = tag.value("rel").unwrap_or_default();
        let is_sheet = rel
            .split_ascii_whitespace()
            .any(|it| it.eq_ignore_ascii_case("stylesheet"));
        let href = tag.value("href").unwrap_or_default();
        let Some(selector) = selector("link", "href", href).filter(|_| is_sheet) else {
            continue;
        };
        let media = tag.value("media").filter(|it| !it.contains(['\'', '\\']));
        let onload = format!("this.media='{}'", media.unwrap_or("all"));
        changes.push(set(&selector, "onload", &onload));
        changes.push(set(&selector, "media", "print"));
    }
    changes.dedup();
    changes
}

/// Returns changes by which the browser requests a picture as early as possible.
pub(super) fn discoverable(document: Option<&MainDocument>, url: &str) -> Vec<Change> {
    let preload = format!(
        r#"<link rel="preload" as="image" href="{}" fetchpriority="high">"#,
        attribute_text(url)
    );
    let mut changes = vec![in_head(&preload)];
    let Some(document) = document else {
        return changes;
    };
    for tag in document.elements("img", "src", url) {
        let selector = selector("img", "src", tag.value("src").unwrap_or_default());
        if let (Some(selector), Some(_)) = (selector, tag.value("loading")) {
            changes.push(Change::RemoveAttribute {
                selector,
                name: "loading".to_owned(),
                pattern: None,
            });
        }
    }
    changes.dedup();
    changes
}

/// The rule that keeps the proportions of pictures that get a size: without it, those whose width a
/// style sheet sets would keep the height of the file. It yields to every rule of the page.
const KEEP_PROPORTIONS: &str = "<style>:where(img[data-sized]) { height: auto }</style>";

/// Returns changes by which the elements of pictures have the sizes of their files, so that their
/// space is known before they have come.
pub(super) fn sized<'a>(
    document: Option<&MainDocument>,
    pictures: impl Iterator<Item = (&'a str, (u32, u32))>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for (url, (width, height)) in pictures {
        for tag in document
            .iter()
            .flat_map(|it| it.elements("img", "src", url))
        {
            let src = tag.value("src").unwrap_or_default();
            let Some(selector) = selector("img", "src", src) else {
                continue;
            };
            changes.push(set(&selector, "width", &width.to_string()));
            changes.push(set(&selector, "height", &height.to_string()));
            changes.push(set(&selector, "data-sized", ""));
        }
    }
    if !changes.is_empty() {
        changes.insert(0, in_head(KEEP_PROPORTIONS));
    }
    changes
}
