//! The checks, one per file. A check reads facts and returns an outcome; the registry decides
//! which check belongs to which category and with what weight.

pub mod accessibility;
pub mod agentic;
pub mod best_practices;
mod outcome;
pub mod performance;
pub mod pwa;
pub mod seo;
#[cfg(test)]
pub(crate) mod testing;

pub use outcome::Outcome;

use crate::facts::{Facts, Missing};

/// One check: its id, titles, documentation and the function that runs it.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Lighthouse's id where it has the same check, so that results can be compared.
    pub id: &'static str,
    /// The title shown when the check passes, is informative or not applicable.
    pub title_pass: &'static str,
    /// The title shown when the check fails; the same as `title_pass` for an informative check.
    pub title_fail: &'static str,
    /// The page that Lighthouse refers to for more about the check, if it refers to one.
    pub learn_more: Option<&'static str>,
    pub run: fn(&Facts) -> Result<Outcome, Missing>,
    /// The doc comment of the check: the five [`HEADINGS`], each with a paragraph.
    pub doc: &'static str,
}

/// The headings of a check's doc comment, in order.
pub const HEADINGS: [&str; 5] = ["What", "Why", "Scored", "Fix", "Source"];

impl Check {
    /// Returns the paragraph under a heading of the doc comment, on one line.
    pub fn section(&self, heading: &str) -> String {
        let mut lines = self.doc.lines().map(str::trim);
        lines.find(|line| line.strip_prefix("# ") == Some(heading));
        lines
            .take_while(|line| !line.starts_with("# "))
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub fn why(&self) -> String {
        self.section("Why")
    }

    pub fn fix(&self) -> String {
        self.section("Fix")
    }
}

/// Declares the `CHECK` of a file and copies its doc comment into [`Check::doc`].
macro_rules! check {
    (
        $(#[doc = $doc:literal])+
        id: $id:literal,
        pass: $title_pass:literal,
        fail: $title_fail:literal,
        $(learn: $learn_more:literal,)?
        run: $run:expr $(,)?
    ) => {
        $(#[doc = $doc])+
        pub const CHECK: $crate::checks::Check = $crate::checks::Check {
            id: $id,
            title_pass: $title_pass,
            title_fail: $title_fail,
            learn_more: $crate::checks::optional(&[$($learn_more)?]),
            run: $run,
            doc: concat!($($doc, "\n"),+),
        };
    };
}
pub(crate) use check;

/// Returns the first of at most one value, for optional members of [`check!`].
pub(crate) const fn optional(values: &[&'static str]) -> Option<&'static str> {
    match values {
        [first, ..] => Some(*first),
        [] => None,
    }
}

/// Formats a count with its noun for a summary: `1 link`, `2 links`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}
