//! Field data: what visitors of a page met, asked of the Chrome UX Report API.
//!
//! [`Dataset`] is the client. It asks each question once a day, keeps to the API's quota, and never
//! lets anybody wait: who wants to know [begins](Dataset::begin) and looks later.
//!
//! Three pure rooms: `question` and `answer` are the protocol, `pace` says when the next request may
//! leave, `cache` what need not be asked again. `dataset` ties them to the clock. How a request gets
//! out, and which pages may be named to a stranger, is the caller's to say: see [`Transport`] and
//! [`Discretion`].
//!
//! Source of the protocol: developer.chrome.com/docs/crux/api and /history-api; the discovery document
//! of chromeuxreport v1.

mod answer;
mod cache;
mod calendar;
mod dataset;
mod pace;
mod question;

pub use dataset::{
    ANSWER_BYTES, ApiKey, Asked, Clock, Dataset, Discretion, HttpAnswer, KeyError, Transport,
    TransportError,
};

/// Where the API is, unless the operator says otherwise.
pub const DEFAULT_BASE: &str = "https://chromeuxreport.googleapis.com";
