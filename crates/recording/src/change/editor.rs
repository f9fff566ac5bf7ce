//! The state while changes are applied, and what all changes need.

use std::collections::BTreeSet;

use super::{ChangeProblem, Effect, Pattern};
use crate::body::Decoder;
use crate::{MAX_BODY_BYTES, RecordedExchange, RecordedResponse, Recording};

/// The maximum number of notes of a change; pages can cause any number.
const MAX_NOTES: usize = 100;

/// The result of editing a content: the new one, or `None` if it stays, or the reason why it cannot
/// be edited.
pub(super) type Edited = Result<Option<Vec<u8>>, String>;

/// A recording that is being changed.
pub(super) struct Editor {
    pub recording: Recording,
    /// The URLs of scripts and style sheets whose content was changed.
    pub edited_urls: BTreeSet<String>,
}

impl Editor {
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            edited_urls: BTreeSet::new(),
        }
    }

    /// Returns the changed recording, in which the integrity of edited resources is not checked.
    pub fn finish(mut self) -> Recording {
        self.recording.drop_integrity(&self.edited_urls);
        self.recording
    }

    /// Returns the positions of the exchanges that a pattern selects.
    pub fn selected(&self, pattern: &Pattern) -> Result<Vec<usize>, ChangeProblem> {
        pattern.check()?;
        let exchanges = self.recording.exchanges.iter().enumerate();
        let selected = exchanges.filter(|(_, exchange)| pattern.selects(exchange));
        Ok(selected.map(|(index, _)| index).collect())
    }

    /// Returns the positions of the exchanges that a pattern selects, by default of all.
    pub fn selected_or_all(&self, pattern: Option<&Pattern>) -> Result<Vec<usize>, ChangeProblem> {
        match pattern {
            Some(pattern) => self.selected(pattern),
            None => Ok((0..self.recording.exchanges.len()).collect()),
        }
    }

    /// Returns the positions of the documents that a pattern selects, by default of the main one.
    pub fn documents(&self, pattern: Option<&Pattern>) -> Result<Vec<usize>, ChangeProblem> {
        let Some(pattern) = pattern else {
            let main = self.recording.main_document();
            return Ok(vec![main.ok_or(ChangeProblem::NoMainDocument)?]);
        };
        let mut documents = self.selected(pattern)?;
        documents.retain(|index| self.recording.exchanges[*index].is_document());
        Ok(documents)
    }

    /// Changes the responses of exchanges and counts those for which `change` returns true.
    pub fn change_responses(
        &mut self,
        indexes: &[usize],
        change: impl Fn(&mut RecordedResponse) -> bool,
    ) -> Effect {
        let mut effect = Effect::default();
        for index in indexes {
            let response = self.recording.exchanges[*index].response.as_mut();
            if response.is_some_and(&change) {
                effect.exchanges += 1;
            }
        }
        effect
    }

    /// Edits the contents of bodies and counts those for which `edit` returns another content.
    /// Bodies that are incomplete or cannot be decoded or edited are left as they are, and noted.
    pub fn edit_bodies(
        &mut self,
        indexes: &[usize],
        edit: impl Fn(&RecordedExchange, &[u8]) -> Edited,
    ) -> Effect {
        let mut effect = Effect::default();
        let mut total = self.body_bytes();
        let mut decoder = Decoder::default();
        for index in indexes {
            let exchange = &mut self.recording.exchanges[*index];
            let old_bytes = body_bytes(exchange);
            match edit_body(exchange, &mut decoder, &edit) {
                Ok(true) => {
                    effect.exchanges += 1;
                    self.edited_urls.insert(exchange.url());
                }
                Ok(false) => {}
                Err(reason) => effect.note(format!(
                    "{} is not changed, since {reason}.",
                    exchange.url()
                )),
            }
            total = total - old_bytes + body_bytes(exchange);
            if total > MAX_BODY_BYTES {
                // The changed recording is refused anyway, and must not take up more memory.
                break;
            }
        }
        effect
    }

    fn body_bytes(&self) -> u64 {
        self.recording.exchanges.iter().map(body_bytes).sum()
    }
}

impl Effect {
    /// Adds a note, unless there are too many.
    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note);
        }
    }
}

fn body_bytes(exchange: &RecordedExchange) -> u64 {
    let response = exchange.response.as_ref();
    response.map_or(0, |it| it.body.len() as u64)
}

/// Edits the content of a body, and returns whether it changed.
fn edit_body(
    exchange: &mut RecordedExchange,
    decoder: &mut Decoder,
    edit: impl Fn(&RecordedExchange, &[u8]) -> Edited,
) -> Result<bool, String> {
    let Some(response) = &exchange.response else {
        return Ok(false);
    };
    // Responses without a body, and parts of a body.
    if matches!(response.status, 100..=199 | 204 | 206 | 304) || exchange.method == "HEAD" {
        return Ok(false);
    }
    if response.is_cut_off {
        return Err("its body is incomplete".to_owned());
    }
    let content = decoder.decode(response).map_err(|it| it.to_string())?;
    let new_content = edit(exchange, &content)?.filter(|it| *it != content);
    let (Some(new_content), Some(response)) = (new_content, &mut exchange.response) else {
        return Ok(false);
    };
    let result = response.set_decoded_body(&new_content);
    result.map_err(|it| it.to_string())?;
    Ok(true)
}
