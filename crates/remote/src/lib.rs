//! The seam over HTTPS: an agent's [`plumbline_agent::Work`] at a server that may be anywhere.
//!
//! `http.rs` speaks HTTP and knows nothing of audits; `work.rs` says what `plumbline_seam` has words
//! for. Every request has a deadline; what matters is repeated until it is answered.

mod error;
mod http;
mod pace;
mod work;

pub use error::RemoteError;
pub use http::{Server, Trust};
pub use work::RemoteWork;
