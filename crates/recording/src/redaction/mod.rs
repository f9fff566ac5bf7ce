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

use crate::body::Decoder;
use crate::{Endpoint, Header, RecordedResponse, Recording};

/// The length from which a removed value is searched for everywhere. Shorter ones, such as `true`
/// or `de-DE`, are also parts of other texts.
const MIN_VALUE_BYTES: usize = 8;

/// The maximum size of all forms of all values that are searched for, which takes about fifty times
/// as much memory. Those of a page with many cookies have less than 2 MB.
const MAX_FORM_BYTES: usize = 8 << 20;

/// Headers without which a body cannot be sent or shown. They contain no secrets.
const BODY_HEADERS: [&str; 4] = [
    "content-encoding",
    "content-length",
    "content-type",
    "transfer-encoding",
];

/// The character of masks. It has the same meaning in URLs, JSON, markup and Base64.
const MASK: char = 'x';

/// The extent of a redaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redaction {
    /// The number of different values that were removed.
    pub values: usize,
    /// The number of bodies that contained some of them.
    pub bodies: usize,
    /// The number of bodies that could not be searched, since they cannot be decoded or there is
    /// too much to search. They are blank.
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
        let mut decoder = Decoder::default();
        for exchange in &self.exchanges {
            discovery::add_tokens(exchange, &mut decoder, &mut values);
        }
        let public_values = self.public_values();
        let is_searched =
            |value: &String| value.len() >= MIN_VALUE_BYTES && !is_public(value, &public_values);
        let needles = values.iter().filter(|it| is_searched(it));
        let needles = needles.map(String::as_str).collect();
        Redaction {
            values: values.len(),
            ..self.mask_everywhere(&needles)
        }
    }

    /// Replaces values wherever they occur, also percent-encoded, escaped or in Base64, by masks of
    /// the same length.
    pub fn redact_values(&mut self, needles: &[String]) -> Redaction {
        let values: BTreeSet<&str> = needles.iter().map(String::as_str).collect();
        if values.iter().all(|it| it.is_empty()) {
            return Redaction {
                values: values.len(),
                ..Redaction::default()
            };
        }
        self.mask_everywhere(&values)
    }

    /// Masks values wherever they occur, and all bodies in which they cannot be searched for.
    fn mask_everywhere(&mut self, values: &BTreeSet<&str>) -> Redaction {
        let mut redaction = Redaction {
            values: values.len(),
            ..Redaction::default()
        };
        let Some(searcher) = searcher(values) else {
            redaction.blank_bodies = self.mask_all();
            return redaction;
        };
        let mut decoder = Decoder::default();
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
            match mask_body(&searcher, &mut decoder, response) {
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

    /// Masks all paths, headers and bodies, and returns the number of bodies. Hosts stay.
    fn mask_all(&mut self) -> usize {
        let mut bodies = 0;
        self.url = match Endpoint::split_url(&self.url) {
            Some((endpoint, path)) => format!("{endpoint}{}", masked_path(&path)),
            None => mask_of(&self.url),
        };
        for exchange in &mut self.exchanges {
            exchange.path = masked_path(&exchange.path);
            let own_headers = exchange.request_headers.iter_mut();
            own_headers.for_each(mask_header);
            if let Some(response) = &mut exchange.response {
                let headers = response.headers.iter_mut();
                headers.for_each(mask_header);
                bodies += usize::from(!response.body.is_empty());
                blank(response);
            }
        }
        bodies
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

/// Masks the value of a header unless it describes the body.
fn mask_header((name, value): &mut Header) {
    if !BODY_HEADERS.contains(&name.as_str()) {
        *value = mask_of(value);
    }
}

/// Returns a mask as long as a path, which is a path.
fn masked_path(path: &str) -> String {
    let mut masked = mask_of(path);
    if !path.is_empty() {
        masked.replace_range(..1, "/");
    }
    masked
}

/// Returns a searcher for all forms of values, unless there are too many.
fn searcher(values: &BTreeSet<&str>) -> Option<AhoCorasick> {
    let mut forms: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut bytes = 0_usize;
    for value in values {
        let new_forms = forms::all(value);
        bytes = bytes.saturating_add(new_forms.iter().map(Vec::len).sum());
        if bytes > MAX_FORM_BYTES {
            return None;
        }
        forms.extend(new_forms);
    }
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(&forms)
        .ok()
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

fn mask_body(
    searcher: &AhoCorasick,
    decoder: &mut Decoder,
    response: &mut RecordedResponse,
) -> BodyResult {
    let Ok(content) = decoder.decode(response) else {
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
