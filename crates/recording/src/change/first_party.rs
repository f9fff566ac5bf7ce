//! Serves the resources of other hosts from the server of the main document.
//!
//! A URL `https://cdn.test/a.js` becomes `https://first.test/cdn.test/a.js`, so that paths of
//! several hosts do not collide. URLs are replaced as texts, in documents, style sheets, scripts
//! and data, and in headers with URLs.

mod moves;

use std::collections::BTreeSet;

use url::Url;

use super::editor::Editor;
use super::pattern::HostsPattern;
use super::stylesheet::absolute;
use super::{ChangeProblem, Effect, Pattern};
use crate::css;
use crate::{Endpoint, InvalidRecording, RecordedExchange};
use moves::Moves;

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
        let exchanges = selected.iter().map(|it| &self.recording.exchanges[*it]);
        let servers: BTreeSet<Endpoint> = exchanges.map(|it| it.endpoint.clone()).collect();
        let count = servers.len();
        let moves = Moves::new(servers, &first);
        let moves = moves.ok_or(InvalidRecording::TooManyEndpoints { count })?;
        let mut effect = self.edit_urls(&moves);
        self.edit_headers(&moves);
        self.move_exchanges(&selected, &first);
        effect.exchanges = selected.len();
        Ok(effect)
    }

    /// Replaces URLs in texts.
    fn edit_urls(&mut self, moves: &Moves) -> Effect {
        let exchanges = self.recording.exchanges.iter().enumerate();
        let texts = exchanges.filter(|(_, exchange)| is_text(exchange));
        let texts: Vec<usize> = texts.map(|(index, _)| index).collect();
        let effect = self.edit_bodies(&texts, |exchange, content| {
            let is_sheet = media_type(exchange) == "text/css";
            let sheet = Url::parse(&exchange.url()).ok();
            let sheet = sheet.filter(|_| is_sheet && moves.has(&exchange.endpoint));
            let replaced = match sheet {
                Some(sheet) => css::replace_urls(content, |url| absolute(&sheet, url))
                    .and_then(|content| moves.replaced(&content)),
                None => moves.replaced(content),
            };
            replaced.map(Some).map_err(|it| it.to_string())
        });
        let edited = |index: &usize| {
            let exchange = &self.recording.exchanges[*index];
            exchange.is_document() && self.edited_urls.contains(&exchange.url())
        };
        let documents: Vec<usize> = texts.iter().copied().filter(edited).collect();
        self.without_policies(&documents, effect)
    }

    /// Replaces URLs in headers of responses.
    fn edit_headers(&mut self, moves: &Moves) {
        let exchanges = self.recording.exchanges.iter_mut();
        for response in exchanges.filter_map(|it| it.response.as_mut()) {
            for (name, value) in &mut response.headers {
                if URL_HEADERS.contains(&name.as_str())
                    && let Ok(replaced) = moves.replaced(value.as_bytes())
                {
                    *value = String::from_utf8_lossy(&replaced).into_owned();
                }
            }
        }
    }

    /// Moves exchanges. Documents in frames also name resources by a path alone, so that those of
    /// their servers are there without the host in the path, too.
    fn move_exchanges(&mut self, selected: &[usize], first: &Endpoint) {
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
            let is_edited = self.edited_urls.contains(&exchange.url());
            exchange.path = format!("{}{}", moves::prefix(&exchange.endpoint), exchange.path);
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
