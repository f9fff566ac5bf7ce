//! The HTTP client of the program, for webhooks, field data, agents and S3, and the certificate
//! authorities that it trusts.
//!
//! The client is hyper-util's with rustls. Unlike a larger client it lets its user open the
//! connections, so that the guard checks every address, also one that a URL contains literally. It
//! follows no redirects, reads no proxy settings, and limits every response in time and size.

mod client;
mod error;
pub mod roots;

pub use client::{BoxError, ClientBuilder, HttpClient, Limits, Response};
pub use error::HttpError;
pub use http_body_util::Full;
pub use hyper::body::Bytes;
pub use hyper::http::{HeaderMap, Method, Request, Uri, header};
pub use tokio_rustls::rustls::RootCertStore;
