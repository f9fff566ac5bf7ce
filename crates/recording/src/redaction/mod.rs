//! Removes secrets from recordings before they leave the service.
//!
//! The values of cookies, of headers for authentication and of parameters with telling names are
//! masked where they are, and wherever else they occur: in other headers, paths and bodies, also
//! percent-encoded, escaped or in Base64. Tokens that only occur in bodies are found by the names
//! that JSON and markup give them. Masks are as long as what they replace, so that sizes stay the
//! same.

mod discovery;
mod forms;
mod headers;
mod names;
mod parameters;
mod percent;

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::{Endpoint, RecordedResponse, Recording};

/// The length from which a removed value is searched for everywhere. Shorter ones, such as `true`
/// or `de-DE`, are also parts of other texts.
const MIN_VALUE_BYTES: usize = 8;

/// The character of masks. It has the same meaning in URLs, JSON, markup and Base64.
const MASK: char = 'x';

/// The extent of a redaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redaction {
    /// The number of different values that were removed.
    pub values: usize,
    /// The number of bodies that contained some of them.
    pub bodies: usize,
    /// The number of bodies that could not be decoded and hence not be searched. They are blank.
    pub blank_bodies: usize,
}

impl Recording {
    /// Removes secrets: cookies, credentials, tokens and keys.
    pub fn redact(&mut self) -> Redaction {
        let mut values = BTreeSet::new();
        self.url = parameters::masked(&self.url, &mut values);
        for exchange in &mut self.exchanges {
            exchange.path = parameters::masked(&exchange.path, &mut values);
            headers::mask(&mut exchange.request_headers, &mut values);
            if let Some(response) = &mut exchange.response {
                headers::mask(&mut response.headers, &mut values);
            }
        }
        for exchange in &self.exchanges {
            discovery::add_tokens(exchange, &mut values);
        }
        let public_values = self.public_values();
        let is_searched =
            |value: &String| value.len() >= MIN_VALUE_BYTES && !is_public(value, &public_values);
        let needles: Vec<String> = values
            .iter()
            .filter(|it| is_searched(it))
            .cloned()
            .collect();
        Redaction {
            values: values.len(),
            ..self.redact_values(&needles)
        }
    }

    /// Replaces values wherever they occur, also percent-encoded, escaped or in Base64, by masks of
    /// the same length.
    pub fn redact_values(&mut self, needles: &[String]) -> Redaction {
        let values: BTreeSet<&str> = needles.iter().map(String::as_str).collect();
        let forms: BTreeSet<Vec<u8>> = values.iter().copied().flat_map(forms::all).collect();
        let mut redaction = Redaction {
            values: values.len(),
            ..Redaction::default()
        };
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms);
        let Ok(searcher) = searcher else {
            unreachable!("there are fewer than four thousand million bytes of values");
        };
        if forms.is_empty() {
            return redaction;
        }
        mask_text(&searcher, &mut self.url);
        for recorded in &mut self.endpoints {
            mask_text(&searcher, &mut recorded.endpoint.host);
        }
        let mut edited_urls = BTreeSet::new();
        for exchange in &mut self.exchanges {
            mask_text(&searcher, &mut exchange.endpoint.host);
            mask_path(&searcher, &mut exchange.path);
            let headers = exchange.request_headers.iter_mut();
            headers.for_each(|(_, value)| mask_text(&searcher, value));
            let Some(response) = &mut exchange.response else {
                continue;
            };
            let headers = response.headers.iter_mut();
            headers.for_each(|(_, value)| mask_text(&searcher, value));
            match mask_body(&searcher, response) {
                BodyResult::Unchanged => {}
                BodyResult::Masked => {
                    redaction.bodies += 1;
                    edited_urls.insert(exchange.url());
                }
                BodyResult::Blank => redaction.blank_bodies += 1,
            }
        }
        self.drop_integrity(&edited_urls);
        redaction
    }

    /// Returns values that are no secrets, since the recording shows them anyway: hosts, origins
    /// and the address of the page. A cookie with such a value would otherwise remove all links.
    fn public_values(&self) -> BTreeSet<String> {
        let endpoints = self.exchanges.iter().map(|it| &it.endpoint);
        let endpoints: BTreeSet<&Endpoint> = endpoints
            .chain(self.endpoints.iter().map(|it| &it.endpoint))
            .collect();
        let page = self.url.split(['?', '#']).next().unwrap_or_default();
        let mut values = BTreeSet::from([page.trim_end_matches('/').to_owned()]);
        for endpoint in endpoints {
            values.extend([endpoint.authority(), endpoint.to_string()]);
            // The host and the domains that it is in, as cookies name them.
            let labels: Vec<&str> = endpoint.host.split('.').collect();
            for start in 0..labels.len().saturating_sub(1) {
                let domain = labels[start..].join(".");
                values.insert(format!(".{domain}"));
                values.insert(domain);
            }
        }
        values
    }
}

/// Returns whether a value, as it is meant, is among public ones.
fn is_public(value: &str, public_values: &BTreeSet<String>) -> bool {
    public_values.contains(percent::decode(value).trim_end_matches('/'))
}

/// Returns a mask as long as a value.
fn mask_of(value: &str) -> String {
    MASK.to_string().repeat(value.len())
}

fn mask_text(searcher: &AhoCorasick, text: &mut String) {
    if searcher.is_match(text.as_str()) {
        let masked = masked(searcher, text.as_bytes());
        *text = String::from_utf8_lossy(&masked).into_owned();
    }
}

/// Masks values in a path, which still begins with a slash if a value does.
fn mask_path(searcher: &AhoCorasick, path: &mut String) {
    let begins_with_slash = path.starts_with('/');
    mask_text(searcher, path);
    if begins_with_slash {
        path.replace_range(..1, "/");
    }
}

fn masked(searcher: &AhoCorasick, content: &[u8]) -> Vec<u8> {
    let mut output = content.to_vec();
    for found in searcher.find_iter(content) {
        output[found.range()].fill(MASK as u8);
    }
    output
}

/// The effect of a redaction on a body.
enum BodyResult {
    Unchanged,
    Masked,
    Blank,
}

fn mask_body(searcher: &AhoCorasick, response: &mut RecordedResponse) -> BodyResult {
    let Ok(content) = response.decoded_body() else {
        return blank(response);
    };
    if !searcher.is_match(&content[..]) {
        return BodyResult::Unchanged;
    }
    match response.set_decoded_body(&masked(searcher, &content)) {
        Ok(()) => BodyResult::Masked,
        Err(_) => blank(response),
    }
}

fn blank(response: &mut RecordedResponse) -> BodyResult {
    let zeros = vec![0; response.body.len()];
    response.set_body(zeros.into());
    BodyResult::Blank
}

#[cfg(test)]
mod tests;
