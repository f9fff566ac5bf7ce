//! Reports and what is around them as pages: HTML from compile-time templates, charts as SVG, one stylesheet.
//!
//! Everything that a page or a client said goes through the templates' escaping. Only markup made here out of
//! numbers and our own words is written as it is.

mod charts;
mod checks;
mod chrome;
mod compare;
mod crops;
mod environment;
mod field;
mod figures;
mod film;
mod fixes;
mod history;
mod load;
mod pairs;
mod pictures;
mod problem;
mod progress;
mod report_page;
mod start;
mod summary;
mod words;

pub use chrome::{Asset, CONTENT_SECURITY_POLICY, Chrome, asset};
pub use compare::{Compared, compare_page};
pub use field::FieldPast;
pub use history::{Past, devices_of, history_page, led_to};
pub use pictures::{PictureId, picture};
pub use plumbline_bundle::Phase;
pub use plumbline_engine::field::{FieldHistory, FieldKind, FieldReason, Period, RecordOf};
pub use problem::{Problem, problem_page};
pub use progress::{Progress, progress_page};
pub use report_page::{ReportPage, Sharing, report_page, standalone};
pub use start::{Choice, Chosen, StartPage, start_page};

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    #[error("the report is unreadable: {0}")]
    Report(#[from] serde_json::Error),
    #[error("the exhibits are unreadable: {0}")]
    Exhibits(#[from] plumbline_engine::exhibits::ExhibitsError),
    #[error("the page could not be written: {0}")]
    Template(#[from] askama::Error),
}
