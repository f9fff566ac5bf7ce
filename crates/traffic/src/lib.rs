//! Records the traffic of a visit, and replays it without its servers.
//!
//! Both stand at the far end of a link. A [`Recorder`] ends the browser's TLS with certificates of
//! its own, checks those of the servers, relays the requests, and keeps what passes. A [`Replayer`]
//! answers from a recording and connects to nothing. Their certificates are made with an
//! [`Identity`], a key that exists in the memory of this process only and that only the browsers
//! of such visits trust.

mod body;
mod client_hello;
mod identity;
mod recorder;
mod replayed_body;
mod replayer;
mod serve;

pub use identity::{Identity, IdentityError};
pub use recorder::{RecordError, Recorder};
pub use replayer::{Missing, Replayer};
pub use tokio_rustls::rustls::RootCertStore;
