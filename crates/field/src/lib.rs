//! Field data: real visitors' experience of a page, from the Chrome UX Report API.
//!
//! [`Dataset`] is the client. It sends each query once a day, respects the API's quota and never
//! blocks: callers [start a query](Dataset::begin) and read the result later.
//!
//! The pure modules are `query` and `response` (the protocol), `rate_limiter` (when the next
//! request may be sent) and `cache` (results that are still valid). `dataset` connects them to the
//! clock. The caller supplies the HTTP client, the decision which URLs may be disclosed, and the
//! quota shared with others: see [`Transport`], [`PrivacyPolicy`] and [`Quota`].
//!
//! Source of the protocol: developer.chrome.com/docs/crux/api and /history-api; the discovery
//! document of chromeuxreport v1.

mod cache;
mod calendar;
mod dataset;
mod interfaces;
mod query;
mod rate_limiter;
mod response;

pub use dataset::{ApiKey, Asked, Dataset, KeyError};
pub use interfaces::{
    ANSWER_BYTES, Alone, Clock, HttpAnswer, PrivacyPolicy, Quota, Transport, TransportError,
};

/// Base URL of the API unless the operator configures another.
pub const DEFAULT_BASE: &str = "https://chromeuxreport.googleapis.com";
