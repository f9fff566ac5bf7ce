//! The state while changes are applied, and what all changes need.

use std::collections::BTreeSet;

use super::{ChangeProblem, Effect, Pattern};
use crate::{RecordedExchange, RecordedResponse, Recording};

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
    /// Bodies that are incomplete or cannot be decoded are left as they are.
    pub fn edit_bodies(
        &mut self,
        indexes: &[usize],
        edit: impl Fn(&RecordedExchange, &[u8]) -> Option<Vec<u8>>,
    ) -> Effect {
        let mut effect = Effect::default();
        for index in indexes {
            let exchange = &mut self.recording.exchanges[*index];
            match edit_body(exchange, &edit) {
                Ok(true) => {
                    effect.exchanges += 1;
                    self.edited_urls.insert(exchange.url());
                }
                Ok(false) => {}
                Err(reason) => effect.notes.push(format!(
                    "{} is not changed, since {reason}.",
                    exchange.url()
                )),
            }
        }
        effect
    }
}

/// Edits the content of a body, and returns whether it changed.
fn edit_body(
    exchange: &mut RecordedExchange,
    edit: impl Fn(&RecordedExchange, &[u8]) -> Option<Vec<u8>>,
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
    let content = response.decoded_body().map_err(|it| it.to_string())?;
    let new_content = edit(exchange, &content).filter(|it| *it != content);
    let (Some(new_content), Some(response)) = (new_content, &mut exchange.response) else {
        return Ok(false);
    };
    let result = response.set_decoded_body(&new_content);
    result.map_err(|it| it.to_string())?;
    Ok(true)
}
