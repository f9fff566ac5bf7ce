//! Field data: what visitors of a page met, asked of the Chrome UX Report API.
//!
//! [`Dataset`] is the client. It asks each question once a day, keeps to the API's quota, and never
//! lets anybody wait: who wants to know [begins](Dataset::begin) and looks later.
//!
//! Three pure rooms: `question` and `answer` are the protocol, `pace` says when the next request may
//! leave, `cache` what need not be asked again. `dataset` ties them to the clock. How a request gets
//! out, which pages may be named to a stranger, and who else asks with the same key, is the caller's to say: see
//! [`Transport`], [`Discretion`] and [`Quota`].
//!
//! Source of the protocol: developer.chrome.com/docs/crux/api and /history-api; the discovery document
//! of chromeuxreport v1.

mod answer;
mod cache;
mod calendar;
mod dataset;
mod outside;
mod pace;
mod question;

pub use dataset::{ApiKey, Asked, Dataset, KeyError};
pub use outside::{
    ANSWER_BYTES, Alone, Clock, Discretion, HttpAnswer, Quota, Transport, TransportError,
};

/// Where the API is, unless the operator says otherwise.
pub const DEFAULT_BASE: &str = "https://chromeuxreport.googleapis.com";
