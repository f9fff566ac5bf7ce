//! Field data: real visitors' experience of a page, from the Chrome UX Report API.
//!
//! [`CruxClient`] is the client. It sends each query once a day, respects the API's quota and never
//! blocks: callers [start a query](CruxClient::begin) and read the result later.
//!
//! The pure modules are `query` and `response` (the protocol), `rate_limiter` (when the next
//! request may be sent) and `cache` (results that are still valid). `client` connects them to the
//! clock. The caller supplies the HTTP client, the decision which URLs may be disclosed, and the
//! quota shared with others: see [`HttpTransport`], [`PrivacyPolicy`] and [`Quota`].
//!
//! Source of the protocol: developer.chrome.com/docs/crux/api and /history-api; the discovery
//! document of chromeuxreport v1.

mod cache;
mod calendar;
mod client;
mod interfaces;
mod query;
mod rate_limiter;
mod response;

pub use client::{ApiKey, CruxClient, KeyError, PendingQuery};
pub use interfaces::{
    Clock, HttpResponse, HttpTransport, MAX_RESPONSE_BYTES, PrivacyPolicy, Quota, TransportError,
    UnsharedQuota,
};

/// Base URL of the API unless the operator configures another.
pub const DEFAULT_BASE: &str = "https://chromeuxreport.googleapis.com";
