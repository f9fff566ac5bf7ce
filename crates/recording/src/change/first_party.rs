//! Serves the resources of other hosts from the server of the main document.
//!
//! A URL `https://cdn.test/a.js` becomes `https://first.test/cdn.test/a.js`, so that paths of
//! several hosts do not collide. URLs are replaced as texts, in documents, style sheets, scripts
//! and data, and in headers with URLs.

use std::collections::BTreeSet;

use url::Url;

use super::editor::Editor;
use super::pattern::HostsPattern;
use super::stylesheet::absolute;
use super::{ChangeProblem, Effect, Pattern};
use crate::css;
use crate::{Endpoint, RecordedExchange};

/// Headers whose values contain URLs that the browser requests.
const URL_HEADERS: [&str; 3] = ["location", "link", "content-location"];

impl Editor {
    /// Moves the exchanges of hosts to the server of the main document.
    pub fn serve_from_first_party(&mut self, hosts: &[String]) -> Result<Effect, ChangeProblem> {
        let pattern = Pattern::Hosts(HostsPattern {
            hosts: hosts.to_vec(),
        });
        let mut selected = self.selected(&pattern)?;
        let main = self.recording.main_document();
        let main = main.ok_or(ChangeProblem::NoMainDocument)?;
        let first = self.recording.exchanges[main].endpoint.clone();
        // The visit begins where it began.
        let visited = Endpoint::split_url(&self.recording.url);
        selected.retain(|index| {
            let exchange = &self.recording.exchanges[*index];
            let address = (exchange.endpoint.clone(), exchange.path.clone());
            exchange.endpoint != first && Some(address) != visited
        });
        if selected.is_empty() {
            return Ok(Effect::default());
        }
        let moves = self.moves(&selected, &first);
        let mut effect = self.edit_urls(&moves);
        self.edit_headers(&moves);
        self.move_exchanges(&selected, &moves, &first);
        effect.exchanges = selected.len();
        Ok(effect)
    }

    /// Returns the new places of the servers of exchanges.
    fn moves(&self, selected: &[usize], first: &Endpoint) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        for index in selected {
            let endpoint = &self.recording.exchanges[*index].endpoint;
            if moves.iter().all(|it| it.from != *endpoint) {
                moves.push(Move::new(endpoint, first));
            }
        }
        moves
    }

    /// Replaces URLs in texts.
    fn edit_urls(&mut self, moves: &[Move]) -> Effect {
        let exchanges = self.recording.exchanges.iter().enumerate();
        let texts = exchanges.filter(|(_, exchange)| is_text(exchange));
        let texts: Vec<usize> = texts.map(|(index, _)| index).collect();
        let effect = self.edit_bodies(&texts, |exchange, content| {
            let is_moved = moves.iter().any(|it| it.from == exchange.endpoint);
            let content = if is_moved && media_type(exchange) == "text/css" {
                let sheet = Url::parse(&exchange.url()).ok()?;
                css::replace_urls(content, |url| absolute(&sheet, url))
            } else {
                content.to_vec()
            };
            Some(moves.iter().fold(content, |text, it| it.replaced(&text)))
        });
        let edited = |index: &usize| {
            let exchange = &self.recording.exchanges[*index];
            exchange.is_document() && self.edited_urls.contains(&exchange.url())
        };
        let documents: Vec<usize> = texts.iter().copied().filter(edited).collect();
        self.without_policies(&documents, effect)
    }

    /// Replaces URLs in headers of responses.
    fn edit_headers(&mut self, moves: &[Move]) {
        let exchanges = self.recording.exchanges.iter_mut();
        for response in exchanges.filter_map(|it| it.response.as_mut()) {
            for (name, value) in &mut response.headers {
                if URL_HEADERS.contains(&name.as_str()) {
                    let replace = |text: Vec<u8>, it: &Move| it.replaced(&text);
                    let replaced = moves.iter().fold(value.clone().into_bytes(), replace);
                    *value = String::from_utf8_lossy(&replaced).into_owned();
                }
            }
        }
    }

    /// Moves exchanges. Documents in frames also name resources by a path alone, so that those of
    /// their servers are there without the host in the path, too.
    fn move_exchanges(&mut self, selected: &[usize], moves: &[Move], first: &Endpoint) {
        let exchanges = &self.recording.exchanges;
        let own = exchanges.iter().filter(|it| it.endpoint == *first);
        let own_paths: BTreeSet<&str> = own.map(|it| it.path.as_str()).collect();
        let moved = selected.iter().map(|index| &exchanges[*index]);
        let with_documents = moved.clone().filter(|it| it.is_document());
        let with_documents: BTreeSet<_> = with_documents.map(|it| &it.endpoint).collect();
        let copies = moved.filter(|it| {
            let is_named_by_path = with_documents.contains(&it.endpoint) && !it.is_document();
            is_named_by_path && !own_paths.contains(it.path.as_str())
        });
        let copies = copies.map(|it| RecordedExchange {
            endpoint: first.clone(),
            ..it.clone()
        });
        let copies: Vec<_> = copies.collect();
        for index in selected {
            let exchange = &mut self.recording.exchanges[*index];
            let Some(target) = moves.iter().find(|it| it.from == exchange.endpoint) else {
                continue;
            };
            let is_edited = self.edited_urls.contains(&exchange.url());
            exchange.path = format!("{}{}", target.prefix, exchange.path);
            exchange.endpoint = first.clone();
            for (name, value) in &mut exchange.request_headers {
                if name == "host" {
                    *value = first.authority();
                }
            }
            if is_edited {
                self.edited_urls.insert(exchange.url());
            }
        }
        self.recording.exchanges.extend(copies);
    }
}

fn media_type(exchange: &RecordedExchange) -> String {
    let response = exchange.response.as_ref();
    response.map(|it| it.media_type()).unwrap_or_default()
}

/// Returns whether a response is a text that may contain URLs.
fn is_text(exchange: &RecordedExchange) -> bool {
    let media_type = media_type(exchange);
    media_type.starts_with("text/")
        || ["javascript", "json", "xml"]
            .iter()
            .any(|part| media_type.contains(part))
}

/// A server and the place to which its resources are moved.
struct Move {
    from: Endpoint,
    /// The beginning of the new paths.
    prefix: String,
    scheme: &'static str,
    authority: String,
}

impl Move {
    fn new(from: &Endpoint, first: &Endpoint) -> Self {
        // Colons are not allowed in the first part of a relative path.
        let name = from.authority().replace(':', "-").replace(['[', ']'], "");
        Self {
            from: from.clone(),
            prefix: format!("/{name}"),
            scheme: first.scheme(),
            authority: first.authority(),
        }
    }

    /// Replaces the URLs of the server in a text, also those without a scheme, and those in JSON
    /// with escaped slashes.
    fn replaced(&self, text: &[u8]) -> Vec<u8> {
        let old_authority = self.from.authority();
        let mut output = text.to_vec();
        for slash in ["/", "\\/"] {
            let old = format!("{slash}{slash}{old_authority}");
            let path = self.prefix.replace('/', slash);
            let new = format!("{slash}{slash}{}{path}", self.authority);
            output = self.replaced_form(&output, old.as_bytes(), new.as_bytes());
        }
        output
    }

    fn replaced_form(&self, text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
        let mut output = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if rest.starts_with(old) && ends_host(rest.get(old.len()).copied()) {
                let own_scheme = format!("{}:", self.from.scheme());
                let has_scheme = output.ends_with(b":");
                if output.ends_with(own_scheme.as_bytes()) {
                    output.truncate(output.len() - own_scheme.len());
                    output.extend_from_slice(format!("{}:", self.scheme).as_bytes());
                } else if has_scheme {
                    // Another scheme means another server.
                    output.push(text[at]);
                    at += 1;
                    continue;
                }
                output.extend_from_slice(new);
                at += old.len();
            } else {
                output.push(text[at]);
                at += 1;
            }
        }
        output
    }
}

/// Returns whether a character is not part of a host.
fn ends_host(c: Option<u8>) -> bool {
    c.is_none_or(|c| !c.is_ascii_alphanumeric() && !b".-_:@".contains(&c))
}
