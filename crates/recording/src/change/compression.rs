//! Compresses texts that were sent without compression.

use super::editor::Editor;
use super::{ChangeProblem, Effect, Pattern};
use crate::body::{Coding, Effort};
use crate::{RecordedExchange, RecordedResponse};

/// The size from which servers compress texts: smaller ones fit into one packet anyway.
const MIN_BYTES: usize = 1400;

impl Editor {
    /// Compresses texts with brotli, or with gzip if the browser did not offer brotli.
    pub fn compress_text(&mut self, pattern: Option<&Pattern>) -> Result<Effect, ChangeProblem> {
        let mut effect = Effect::default();
        for index in self.selected_or_all(pattern)? {
            let exchange = &mut self.recording.exchanges[index];
            let Some(coding) = best_coding(exchange) else {
                continue;
            };
            let Some(response) = exchange.response.as_mut().filter(|it| is_plain_text(it)) else {
                continue;
            };
            let body = coding.encode(&response.body, Effort::default());
            if body.len() < response.body.len() {
                response.set_header("content-encoding", coding.name());
                response.set_body(body.into());
                effect.exchanges += 1;
            }
        }
        Ok(effect)
    }
}

/// Returns whether a response is a text without content encoding.
fn is_plain_text(response: &RecordedResponse) -> bool {
    let media_type = response.media_type();
    let is_text = media_type.starts_with("text/")
        || [
            "javascript",
            "json",
            "xml",
            "wasm",
            "manifest",
            "font/ttf",
            "font/otf",
        ]
        .iter()
        .any(|part| media_type.contains(part));
    is_text
        && response.status == 200
        && !response.is_cut_off
        && response.body.len() >= MIN_BYTES
        && response.codings().is_ok_and(|codings| codings.is_empty())
}

/// Returns the best content encoding that a request offers.
fn best_coding(exchange: &RecordedExchange) -> Option<Coding> {
    let headers = exchange.request_headers.iter();
    let offers = headers.filter(|(name, _)| name == "accept-encoding");
    let offers = offers.flat_map(|(_, value)| value.split(','));
    let names = offers.map(|offer| offer.split(';').next().unwrap_or_default().trim());
    let names: Vec<&str> = names.collect();
    let codings = [Coding::Brotli, Coding::Gzip];
    codings.into_iter().find(|it| names.contains(&it.name()))
}
