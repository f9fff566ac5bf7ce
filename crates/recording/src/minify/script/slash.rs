//! Decides whether a slash divides or begins a regular expression.

use super::is_line_end;

/// The meaning of a slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slash {
    Division,
    Pattern,
}

/// Keywords after which an expression begins.
const BEFORE_EXPRESSION: [&str; 11] = [
    "return",
    "typeof",
    "case",
    "in",
    "instanceof",
    "new",
    "delete",
    "void",
    "throw",
    "do",
    "else",
];

/// Names that are keywords in some places only.
const SOMETIMES_KEYWORDS: [&str; 4] = ["of", "yield", "await", "let"];

/// Keywords whose parentheses a statement follows.
const BEFORE_CONDITION: [&str; 4] = ["if", "while", "for", "with"];

/// The end of the tokens so far.
#[derive(Debug, Default)]
pub struct Slashes {
    last: String,
    before_last: String,
    /// The meaning of a slash after each open parenthesis is closed.
    parentheses: Vec<Option<Slash>>,
    /// The meaning of a slash after the last closed parenthesis.
    after_parenthesis: Option<Slash>,
}

impl Slashes {
    /// Adds a token.
    pub fn push(&mut self, token: &str) {
        match token {
            "(" => {
                let word = self.last.as_str();
                let is_member = [".", "#"].contains(&self.before_last.as_str());
                let meaning = if word == "await" {
                    // Either `for await (…)` or a value.
                    None
                } else if BEFORE_CONDITION.contains(&word) && !is_member {
                    Some(Slash::Pattern)
                } else {
                    Some(Slash::Division)
                };
                self.parentheses.push(meaning);
            }
            ")" => self.after_parenthesis = self.parentheses.pop().flatten(),
            _ => {}
        }
        self.before_last = std::mem::replace(&mut self.last, token.to_owned());
    }

    /// Returns the meaning of the slash at the beginning of a text. Where it is not certain, a
    /// slash that is the last of its line divides. Returns `None` if neither is certain.
    pub fn meaning(&self, text: &str) -> Option<Slash> {
        self.certain_meaning().or_else(|| {
            let line = text.split(is_line_end).next().unwrap_or_default();
            (!line[1..].contains('/')).then_some(Slash::Division)
        })
    }

    fn certain_meaning(&self) -> Option<Slash> {
        let last = self.last.as_str();
        let Some(end) = last.chars().last() else {
            return Some(Slash::Pattern);
        };
        let is_member = [".", "#"].contains(&self.before_last.as_str());
        let is_repeated = self.before_last == last && ["+", "-"].contains(&last);
        match end {
            ')' => self.after_parenthesis,
            // The end of a block or of an object, and of a template's expression.
            '}' => None,
            // `a++ / b` or `a + +/b/`.
            '+' | '-' if is_repeated => None,
            ']' | '"' | '\'' | '`' | '.' => Some(Slash::Division),
            // A regular expression ends with a slash.
            '/' if last.len() > 1 => Some(Slash::Division),
            // A template whose expression begins.
            '{' => Some(Slash::Pattern),
            _ if "(,=:[!&|?;+-*%~^<>/".contains(end) => Some(Slash::Pattern),
            _ if is_member => Some(Slash::Division),
            _ if BEFORE_EXPRESSION.contains(&last) => Some(Slash::Pattern),
            _ if SOMETIMES_KEYWORDS.contains(&last) => None,
            _ => Some(Slash::Division),
        }
    }
}
