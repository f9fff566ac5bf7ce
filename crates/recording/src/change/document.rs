//! Changes of the markup of documents.

use super::editor::Editor;
use super::{ChangeProblem, Effect, Pattern};
use crate::html::{self, Selector};

impl Editor {
    /// Inserts markup at the beginning of the head.
    pub fn insert_head(
        &mut self,
        markup: &str,
        pattern: Option<&Pattern>,
    ) -> Result<Effect, ChangeProblem> {
        let documents = self.documents(pattern)?;
        let effect = self.edit_bodies(&documents, |_, content| {
            html::insert_head(content, markup).map_err(|it| it.to_string())
        });
        Ok(self.without_policies(&documents, effect))
    }

    /// Sets an attribute of elements.
    pub fn set_attribute(
        &mut self,
        selector: &str,
        name: &str,
        value: &str,
        pattern: Option<&Pattern>,
    ) -> Result<Effect, ChangeProblem> {
        let selector = Selector::parse(selector)?;
        let name = attribute_name(name)?;
        let documents = self.documents(pattern)?;
        let effect = self.edit_bodies(&documents, |_, content| {
            html::set_attribute(content, &selector, &name, value).map_err(|it| it.to_string())
        });
        // Policies forbid event handlers in attributes.
        Ok(if name.starts_with("on") {
            self.without_policies(&documents, effect)
        } else {
            effect
        })
    }

    /// Removes an attribute of elements.
    pub fn remove_attribute(
        &mut self,
        selector: &str,
        name: &str,
        pattern: Option<&Pattern>,
    ) -> Result<Effect, ChangeProblem> {
        let selector = Selector::parse(selector)?;
        let name = attribute_name(name)?;
        let documents = self.documents(pattern)?;
        Ok(self.edit_bodies(&documents, |_, content| {
            html::remove_attribute(content, &selector, &name).map_err(|it| it.to_string())
        }))
    }
}

/// Returns the name of an attribute in lower case.
fn attribute_name(name: &str) -> Result<String, ChangeProblem> {
    let name = name.trim().to_ascii_lowercase();
    let is_part_of_name = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'<>/=".contains(c);
    if name.is_empty() || !name.chars().all(is_part_of_name) {
        return Err(ChangeProblem::AttributeName(name));
    }
    Ok(name)
}
