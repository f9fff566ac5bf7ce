//! Renders a report as an HTML page from compile-time templates, with SVG charts.
//!
//! The templates escape every text that comes from an audited page or a client. Only markup that
//! this module builds from numbers and its own texts is written unescaped.
//!
//! The public modules are the parts that pages about several reports are built from, too.

mod cache;
pub mod charts;
mod checks;
mod code_text;
mod comparison;
mod concerns;
mod critical_path;
mod crops;
mod document;
pub mod environment;
pub mod field;
pub mod figures;
pub mod film;
mod fixes;
mod flow;
pub(crate) mod functions;
mod gain;
mod links;
pub mod load;
mod overlaps;
mod pictures;
mod places;
pub mod recording;
mod replays;
mod report_page;
pub(crate) mod responsiveness;
mod steps;
pub mod summary;
mod treemap;
mod typed_table;

pub(crate) use cache::summary as cache_summary;
pub use code_text::CodeText;
pub use document::{BRAND, Document, ICON, SCRIPT, STYLESHEET};
pub(crate) use film::largest_content_node;
pub(crate) use fixes::plain_fixes;
pub use pictures::{LogoFile, PictureSource, picture};
pub use plumbline_model::media::PictureId;
pub use replays::Replays;
pub use report_page::{ReportPage, standalone};

/// An error while rendering a page.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    #[error("the report is unreadable: {0}")]
    Report(#[from] serde_json::Error),
    #[error("the report media are unreadable: {0}")]
    Media(#[from] plumbline_bundle::PackError),
    #[error("the page could not be rendered: {0}")]
    Template(#[from] askama::Error),
}
