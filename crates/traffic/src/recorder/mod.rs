//! Relays the connections of a visit to their servers and records them.

mod connection;
mod log;
mod relay;

use std::sync::Arc;

use plumbline_link::{ConnectionOutcome, ConnectionRecord, RecordedConnection};
use plumbline_recording::{
    ConnectFailure, ConnectResult, Endpoint, MAX_EXCHANGES, RecordedEndpoint, Recording,
};
use tokio::runtime::Handle;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::body::ReadAhead;
use crate::serve::Connections;
use crate::{Identity, IdentityError};
use log::RecordingLog;

/// Records all connections of a link that it is given to.
pub struct Recorder {
    shared: Arc<Shared>,
    runtime: Handle,
    connections: Connections,
}

/// The state that the connections of a recorder share.
struct Shared {
    identity: Arc<Identity>,
    client_config: ClientConfig,
    log: RecordingLog,
    read_ahead: ReadAhead,
}

/// The reason why a visit was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("the page transfers more than {} MB, which is too much for a recording", max_bytes / 1_000_000)]
    TooManyBytes { max_bytes: u64 },
    #[error("the page makes more than {MAX_EXCHANGES} requests, which is too many for a recording")]
    TooManyRequests,
}

impl Recorder {
    /// Creates a recorder that trusts servers with certificates of `roots`, and keeps at most
    /// `max_bytes` of bodies. It also holds at most as much that the browser has not taken yet. Its
    /// connections run on the runtime of the caller.
    pub fn new(
        identity: Arc<Identity>,
        roots: Arc<RootCertStore>,
        max_bytes: u64,
    ) -> Result<Self, IdentityError> {
        let client_config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS12, &TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            shared: Arc::new(Shared {
                identity,
                client_config,
                log: RecordingLog::new(max_bytes),
                read_ahead: ReadAhead::new(max_bytes),
            }),
            // Connections do not run on the thread of the link, which has to be on time.
            runtime: Handle::current(),
            connections: Connections::default(),
        })
    }

    /// Returns what was recorded until now of a visit to `url` that began at `recorded_at`.
    /// `connections` are those of the link.
    pub fn recording(
        &self,
        url: &str,
        recorded_at: String,
        connections: &[ConnectionRecord],
    ) -> Result<Recording, RecordError> {
        let (mut endpoints, exchanges) = self.shared.log.contents()?;
        for connection in connections {
            endpoints.extend(failed_endpoint(connection));
        }
        let mut known = std::collections::HashSet::new();
        endpoints.retain(|it| known.insert(it.endpoint.clone()));
        Ok(Recording {
            url: url.to_owned(),
            recorded_at,
            endpoints,
            exchanges,
        })
    }
}

impl plumbline_link::Recorder for Recorder {
    fn record(&self, connection: RecordedConnection) {
        let shared = Arc::clone(&self.shared);
        self.connections.start(
            &self.runtime,
            Box::pin(connection::relay(shared, connection)),
        );
    }
}

/// Returns the endpoint of a connection that could not be made. Whether it would have used TLS is
/// not known, and is guessed by its port.
fn failed_endpoint(connection: &ConnectionRecord) -> Option<RecordedEndpoint> {
    let failure = match &connection.outcome {
        ConnectionOutcome::Connected
        | ConnectionOutcome::Pending
        | ConnectionOutcome::BrowserService => return None,
        ConnectionOutcome::NameNotFound | ConnectionOutcome::LookupTimedOut => {
            ConnectFailure::NameNotFound
        }
        ConnectionOutcome::ConnectionRefused | ConnectionOutcome::Failed(_) => {
            ConnectFailure::Refused
        }
        ConnectionOutcome::ConnectTimedOut => ConnectFailure::TimedOut,
        ConnectionOutcome::Unreachable => ConnectFailure::Unreachable,
        ConnectionOutcome::Blocked(_) | ConnectionOutcome::OverLimit => ConnectFailure::NotAllowed,
    };
    Some(RecordedEndpoint {
        endpoint: Endpoint {
            is_secure: connection.port == 443,
            host: connection.host.to_ascii_lowercase(),
            port: connection.port,
        },
        result: ConnectResult::Failed(failure),
    })
}
