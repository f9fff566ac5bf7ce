//! Selects elements by a part of CSS selectors: types, ids, classes, attributes, `:not()`,
//! `:first-child`, `:nth-child(N)`, `:first-of-type`, `:nth-of-type(N)`, descendants and children.
//!
//! There is no tree, so that elements whose tags the document leaves out, such as `tbody`, are not
//! seen, and children are those by tags.

mod open_elements;
mod parser;

use super::scanner::{Tag, tags};
use open_elements::{Node, OpenElements};

/// A selector list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    alternatives: Vec<Complex>,
}

/// The reason why a selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the selector `{selector}` is not supported: {reason}")]
pub struct SelectorError {
    pub selector: String,
    pub reason: String,
}

/// Compound selectors with combinators between them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Complex {
    /// The selector of the element itself.
    subject: Compound,
    /// The selectors of its ancestors, from the nearest to the farthest.
    ancestors: Vec<(Combinator, Compound)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combinator {
    Descendant,
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

    /// Returns the start tags of the elements that match.
    pub fn select(&self, html: &[u8]) -> Vec<Tag> {
        let mut open = OpenElements::default();
        let mut selected = Vec::new();
        for tag in tags(html) {
            if tag.is_end {
                open.end(&tag.name);
                continue;
            }
            let node = open.begin(tag);
            let is_match = |complex: &Complex| complex.matches(&node, open.ancestors());
            if self.alternatives.iter().any(is_match) {
                selected.push(node.tag.clone());
            }
            open.push(node);
        }
        selected
    }
}

impl Complex {
    fn matches(&self, node: &Node, ancestors: &[Node]) -> bool {
        self.subject.matches(node) && matches_ancestors(&self.ancestors, ancestors)
    }
}

/// Returns whether ancestors, of which the last is the nearest, match selectors, of which the first
/// is the nearest. All ways to match are followed at once, since there are too many to try each.
fn matches_ancestors(selectors: &[(Combinator, Compound)], ancestors: &[Node]) -> bool {
    // The positions of the elements that match the selectors so far.
    let mut positions = vec![ancestors.len()];
    for (combinator, compound) in selectors {
        let candidates: Vec<usize> = match combinator {
            Combinator::Child => positions
                .iter()
                .filter_map(|it| it.checked_sub(1))
                .collect(),
            Combinator::Descendant => (0..positions.last().copied().unwrap_or(0)).collect(),
        };
        let is_match = |position: &usize| compound.matches(&ancestors[*position]);
        positions = candidates.into_iter().filter(is_match).collect();
    }
    !positions.is_empty()
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
