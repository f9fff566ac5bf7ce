//! Subresource integrity: browsers refuse a resource that differs from what its document expects.

use std::collections::BTreeSet;

use url::Url;

use crate::body::Decoder;
use crate::html::{self, Edit, Tag};
use crate::{RecordedExchange, Recording};

impl Recording {
    /// Removes the `integrity` attributes with which documents name resources that were changed.
    pub(crate) fn drop_integrity(&mut self, edited_urls: &BTreeSet<String>) {
        if edited_urls.is_empty() {
            return;
        }
        let mut decoder = Decoder::default();
        let documents = self.exchanges.iter_mut().filter(|it| it.is_document());
        for document in documents {
            drop_from(document, &mut decoder, edited_urls);
        }
    }
}

fn drop_from(
    document: &mut RecordedExchange,
    decoder: &mut Decoder,
    edited_urls: &BTreeSet<String>,
) {
    let Ok(url) = Url::parse(&document.url()) else {
        return;
    };
    let Some(response) = &mut document.response else {
        return;
    };
    let Ok(content) = decoder.decode(response) else {
        return;
    };
    let base = base_url(&content, url);
    let edits = html::tags(&content).filter_map(|tag| edit(&tag, &base, edited_urls));
    if let Ok(Some(content)) = html::apply(&content, edits) {
        // A body that was decoded can be encoded.
        let _ = response.set_decoded_body(&content);
    }
}

/// Returns the URL to which the URLs of a document are relative.
pub(crate) fn base_url(html: &[u8], document: Url) -> Url {
    let mut elements = html::tags(html).filter(|tag| tag.name == "base" && !tag.is_end);
    // The first one with the attribute counts; others set the target of links.
    let href = elements.find_map(|tag| tag.value("href").map(str::to_owned));
    href.and_then(|href| document.join(href.trim()).ok())
        .unwrap_or(document)
}

/// Returns the edit that removes the attribute of an element, if it names an edited resource.
fn edit(tag: &Tag, base: &Url, edited_urls: &BTreeSet<String>) -> Option<Edit> {
    let integrity = tag.attribute("integrity")?;
    let reference = match tag.name.as_str() {
        "script" => tag.value("src"),
        "link" => tag.value("href"),
        _ => None,
    };
    let mut url = base.join(reference?.trim()).ok()?;
    url.set_fragment(None);
    edited_urls.contains(url.as_str()).then(|| Edit {
        span: integrity.span.clone(),
        text: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_base_element_with_a_url_counts() {
        let document = Url::parse("https://a.test/b/c").unwrap();
        let base = |html: &str| base_url(html.as_bytes(), document.clone()).to_string();
        assert_eq!(
            base("<base target=_top><base href=/d/><base href=/e/>"),
            "https://a.test/d/"
        );
        assert_eq!(base("<base target=_top>"), "https://a.test/b/c");
    }
}
