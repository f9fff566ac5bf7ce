//! What is judged: one rule, one file. A check looks at facts and says what it found; which checks
//! count how much in which category is the registry's business.

pub mod accessibility;
pub mod best_practices;
mod details;
mod findings;
mod outcome;
pub mod performance;
pub mod pwa;
mod savings;
pub mod seo;
#[cfg(test)]
pub(crate) mod testing;

pub use details::{Answer, ConsoleLine, Details, ElementFound, UrlFound, Value};
pub use findings::{Cell, Column, Findings, Row, SourcePlace, Unit};
pub use outcome::{Figure, Outcome, Verdict};
pub use savings::Savings;

use crate::facts::{Facts, Missing};

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Lighthouse's id where it has the same check, so that results can be held side by side.
    pub id: &'static str,
    /// What is so when the check passes.
    pub title_pass: &'static str,
    /// What is so when it fails. The same as `title_pass` for a check that only informs.
    pub title_fail: &'static str,
    /// The artifacts that it looks at.
    pub needs: &'static [&'static str],
    pub run: fn(&Facts) -> Result<Outcome, Missing>,
    /// The doc comment: the five [`HEADINGS`], each with a paragraph.
    pub doc: &'static str,
}

/// The headings of a check's doc comment, in order.
pub const HEADINGS: [&str; 5] = ["What", "Why", "Scored", "Fix", "Source"];

impl Check {
    /// The paragraph under a heading of the doc comment, on one line.
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

/// Declares the `CHECK` of a file; its doc comment is kept in the record.
macro_rules! check {
    (
        $(#[doc = $doc:literal])+
        id: $id:literal,
        pass: $title_pass:literal,
        fail: $title_fail:literal,
        needs: [$($need:expr),* $(,)?],
        run: $run:expr $(,)?
    ) => {
        $(#[doc = $doc])+
        pub const CHECK: $crate::checks::Check = $crate::checks::Check {
            id: $id,
            title_pass: $title_pass,
            title_fail: $title_fail,
            needs: &[$($need),*],
            run: $run,
            doc: concat!($($doc, "\n"),+),
        };
    };
}
pub(crate) use check;

/// `1 link`, `2 links`: for one-line summaries.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}
