//! Renders the service's HTML pages from compile-time templates, with SVG charts and one
//! stylesheet.
//!
//! The templates escape every text that comes from an audited page or a client. Only markup that
//! this module builds from numbers and its own texts is written unescaped.

mod charts;
mod checks;
mod code_text;
mod compare;
mod crops;
mod environment;
mod field;
mod figures;
mod film;
mod fixes;
mod history;
mod load;
mod page_frame;
mod pairs;
mod pictures;
mod problem;
mod progress;
mod report_page;
mod start;
mod summary;

pub use compare::{ComparedAudit, compare_page};
pub use field::DeviceFieldHistory;
pub(crate) use fixes::titles_and_gains;
pub use history::{PastAudit, device_ids, history_page, newest_final_url};
pub use page_frame::{Asset, CONTENT_SECURITY_POLICY, PageFrame, asset};
pub use pictures::{PictureId, picture};
pub use plumbline_bundle::Phase;
pub use plumbline_model::field::{FieldHistory, FieldKind, FieldReason, Period, RecordScope};
pub use problem::{ProblemPage, problem_page};
pub use progress::{ProgressPage, progress_page};
pub use report_page::{ReportPage, Sharing, report_page, standalone};
pub use start::{SelectOption, StartForm, StartPage, start_page};

/// An error while rendering a page.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    #[error("the report is unreadable: {0}")]
    Report(#[from] serde_json::Error),
    #[error("the report media are unreadable: {0}")]
    Media(#[from] plumbline_model::media::ReportMediaError),
    #[error("the page could not be rendered: {0}")]
    Template(#[from] askama::Error),
}
