//! Selects elements by a part of CSS selectors: types, ids, classes, attributes, `:not()`,
//! `:first-child`, `:nth-child(N)`, `:first-of-type`, `:nth-of-type(N)`, descendants and children.
//!
//! There is no tree, so that elements whose tags the document leaves out, such as `tbody`, are not
//! seen, and children are those by tags.

mod open_elements;
mod parser;

use super::scanner::{Tag, tags};
use open_elements::{Node, OpenElements};

/// A selector list: the steps of all alternatives, one alternative after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    steps: Vec<Step>,
}

/// The reason why a selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the selector `{selector}` is not supported: {reason}")]
pub struct SelectorError {
    pub selector: String,
    pub reason: String,
}

/// The selector of an element or of one of its ancestors. The outermost one comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    place: Place,
    compound: Compound,
    /// True for the last step of an alternative, which selects the element itself.
    is_subject: bool,
}

/// The place of an element of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// Within an element of the step before.
    Descendant,
    /// Directly within an element of the step before.
    Child,
}

/// Conditions that one element meets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Compound {
    /// The name in lower case; `None` stands for every element.
    name: Option<String>,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Attribute {
        name: String,
        test: Test,
    },
    Not(Compound),
    /// The position among the children of the parent, which begins with 1.
    NthChild(usize),
    /// The position among those with the same name.
    NthOfType(usize),
}

/// A test of the value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Present,
    Equals(String),
    HasWord(String),
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    /// The value itself or the value and a hyphen at the beginning, as for languages.
    StartsWithPart(String),
}

impl Selector {
    /// Parses a selector.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        parser::parse(selector).map_err(|reason| SelectorError {
            selector: selector.to_owned(),
            reason,
        })
    }

    /// Returns the start tags of the elements that match, in their order.
    pub fn select<'a>(&'a self, html: &'a [u8]) -> impl Iterator<Item = Tag> + 'a {
        let mut open = OpenElements::default();
        tags(html).filter_map(move |tag| {
            if tag.is_end {
                open.end(&tag.name);
                return None;
            }
            let mut node = open.begin(tag);
            self.match_steps(&mut node, open.parent());
            let mut matches = self.steps.iter().zip(&node.is_match);
            let is_selected = matches.any(|(step, is_match)| step.is_subject && *is_match);
            let selected = is_selected.then(|| node.tag.clone());
            open.push(node);
            selected
        })
    }

    /// Determines which steps an element matches, from those that its parent and the ancestors of
    /// that match. The time does not depend on the depth of the document.
    fn match_steps(&self, node: &mut Node, parent: Option<&Node>) {
        for (index, step) in self.steps.iter().enumerate() {
            let before = index.saturating_sub(1);
            let is_in_place = match step.place {
                Place::Anywhere => true,
                Place::Descendant => parent.is_some_and(|it| it.is_within_match[before]),
                Place::Child => parent.is_some_and(|it| it.is_match[before]),
            };
            let is_match = is_in_place && step.compound.matches(node);
            let is_within_match = parent.is_some_and(|it| it.is_within_match[index]);
            node.is_match.push(is_match);
            node.is_within_match.push(is_match || is_within_match);
        }
    }
}

impl Compound {
    fn matches(&self, node: &Node) -> bool {
        self.name.as_ref().is_none_or(|name| *name == node.tag.name)
            && self.conditions.iter().all(|it| it.matches(node))
    }
}

impl Condition {
    fn matches(&self, node: &Node) -> bool {
        match self {
            Self::Attribute { name, test } => node
                .tag
                .value(name)
                .is_some_and(|value| test.accepts(value)),
            Self::Not(compound) => !compound.matches(node),
            Self::NthChild(number) => node.nth_child == *number,
            Self::NthOfType(number) => node.nth_of_type == *number,
        }
    }
}

impl Test {
    fn accepts(&self, value: &str) -> bool {
        match self {
            Self::Present => true,
            Self::Equals(text) => value == text,
            Self::HasWord(word) => value.split_ascii_whitespace().any(|it| it == word),
            // CSS: an empty text matches nothing.
            Self::StartsWith(text) => !text.is_empty() && value.starts_with(text),
            Self::EndsWith(text) => !text.is_empty() && value.ends_with(text),
            Self::Contains(text) => !text.is_empty() && value.contains(text),
            Self::StartsWithPart(text) => value
                .strip_prefix(text)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
        }
    }
}

#[cfg(test)]
mod tests;
