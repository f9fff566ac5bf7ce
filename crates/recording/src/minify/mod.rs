//! Removes comments and blanks from scripts and style sheets where that cannot change their
//! meaning. Names stay, and so do line ends that may end a statement.
//!
//! A text that is not understood for certain is not minified: an experiment must not break a page.

mod script;
mod sheet;

pub(crate) use script::minified_script;
pub(crate) use sheet::minified_sheet;

/// Returns whether a comment is a licence, which minifiers keep.
fn is_kept(comment: &str) -> bool {
    comment.starts_with("/*!")
        || ["@license", "@preserve"]
            .iter()
            .any(|it| comment.contains(it))
}
