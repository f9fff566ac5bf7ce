//! Implements [`plumbline_seam::Work`] over HTTPS, for agents on other machines than the server.
//!
//! `http.rs` is the HTTP client and does not know audits; `work.rs` sends the messages that
//! `plumbline_seam` defines. Every request has a deadline, and important requests are repeated
//! until they are answered.

mod backoff;
mod error;
mod http;
mod work;

pub use error::RemoteError;
pub use http::{Server, Trust};
pub use work::RemoteWork;
