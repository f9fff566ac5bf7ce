//! An HTTP client for one server, with a deadline for every request and reused connections.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use plumbline_seam::{PROTOCOL, PROTOCOL_HEADER};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

use crate::RemoteError;

/// Maximum size of a response. Responses have a few hundred bytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which an idle connection is not reused. Servers close connections that were idle for
/// 30 s.
const MAX_IDLE_TIME: Duration = Duration::from_secs(20);
const MAX_IDLE_CONNECTIONS: usize = 32;

/// The certificate authorities that are trusted, and whether TLS is required.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// A PEM file with the only trusted authorities; without it, those of this machine are trusted.
    pub ca_file: Option<PathBuf>,
    /// Whether the token may be sent unencrypted to other machines.
    pub plain_http: bool,
}

/// A server, with the token that identifies the agent.
pub struct Server {
    host: String,
    port: u16,
    /// The prefix of every path, without a trailing slash.
    base: String,
    authority: HeaderValue,
    authorization: HeaderValue,
    /// `None` for plain HTTP.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<IdleConnection>>,
}

type Sender = SendRequest<Full<Bytes>>;

struct IdleConnection {
    sender: Sender,
    since: Instant,
}

/// The body of a request.
pub(crate) struct RequestBody {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: Bytes,
}

pub(crate) struct ServerResponse {
    pub(crate) status: u16,
    /// The protocol version that the server announces.
    pub(crate) protocol: Option<String>,
    pub(crate) body: Bytes,
}

impl Server {
    pub fn new(url: &str, token: &str, trust: &Trust) -> Result<Self, RemoteError> {
        let invalid = |reason: &str| RemoteError::Address(format!("{url}: {reason}"));
        let parsed = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
        let host = parsed
            .host()
            .ok_or_else(|| invalid("the URL has no host"))?;
        let port = parsed.port_or_known_default();
        let port = port.ok_or_else(|| invalid("the URL has no port"))?;
        let tls = match parsed.scheme() {
            "https" => Some((
                connector(trust)?,
                server_name(&host).map_err(|e| invalid(&e))?,
            )),
            "http" if trust.plain_http || is_loopback(&host) => None,
            "http" => {
                return Err(invalid(
                    "http would send the token unencrypted; use https, or allow it with --plain-http",
                ));
            }
            _ => return Err(invalid("the URL must begin with https://")),
        };
        let name = parsed.host_str().unwrap_or_default();
        let authority = match parsed.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| RemoteError::Address("invalid agent token".to_owned()))?;
        authorization.set_sensitive(true);
        Ok(Self {
            host: name.trim_matches(['[', ']']).to_owned(),
            port,
            base: parsed.path().trim_end_matches('/').to_owned(),
            authority: HeaderValue::try_from(authority)
                .map_err(|error| invalid(&error.to_string()))?,
            authorization,
            tls,
            idle: Mutex::default(),
        })
    }

    /// Sends a request and reads the response, within a deadline.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<RequestBody>,
        deadline: Duration,
    ) -> Result<ServerResponse, RemoteError> {
        match timeout(deadline, self.exchange(method, path, body)).await {
            Ok(result) => result,
            Err(_) => Err(RemoteError::NoResponse(format!(
                "timed out after {deadline:?}"
            ))),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<RequestBody>,
    ) -> Result<ServerResponse, RemoteError> {
        let request = || self.request(&method, path, body.as_ref());
        // The server may have closed an idle connection; then a new one is opened.
        if let Some(mut sender) = self.take_idle()
            && let Ok(response) = sender.send_request(request()?).await
        {
            return self.read(sender, response).await;
        }
        let mut sender = self.connect().await?;
        let response = sender.send_request(request()?).await;
        self.read(sender, response.map_err(no_response)?).await
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        body: Option<&RequestBody>,
    ) -> Result<Request<Full<Bytes>>, RemoteError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, &self.authorization)
            .header(PROTOCOL_HEADER, PROTOCOL);
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, body.content_type);
        }
        let bytes = body.map(|body| body.bytes.clone()).unwrap_or_default();
        request.body(Full::new(bytes)).map_err(no_response)
    }

    async fn read(
        &self,
        sender: Sender,
        response: Response<Incoming>,
    ) -> Result<ServerResponse, RemoteError> {
        let status = response.status().as_u16();
        let protocol = response.headers().get(PROTOCOL_HEADER);
        let protocol = protocol.and_then(|version| version.to_str().ok());
        let protocol = protocol.map(str::to_owned);
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await
            .map_err(|error| RemoteError::NoResponse(error.to_string()))?;
        self.keep_idle(sender);
        Ok(ServerResponse {
            status,
            protocol,
            body: body.to_bytes(),
        })
    }

    fn take_idle(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| {
            !connection.sender.is_closed() && connection.since.elapsed() < MAX_IDLE_TIME
        });
        let ready = idle
            .iter()
            .position(|connection| connection.sender.is_ready())?;
        Some(idle.swap_remove(ready).sender)
    }

    fn keep_idle(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !sender.is_closed() && idle.len() < MAX_IDLE_CONNECTIONS {
            let since = Instant::now();
            idle.push(IdleConnection { sender, since });
        }
    }

    async fn connect(&self) -> Result<Sender, RemoteError> {
        let connect = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
            let stream = stream.map_err(no_response)?;
            // Without it, small requests wait for the acknowledgement of earlier ones.
            stream.set_nodelay(true).map_err(no_response)?;
            match &self.tls {
                None => handshake(stream).await,
                Some((tls, name)) => {
                    let stream = tls.connect(name.clone(), stream).await;
                    handshake(stream.map_err(no_response)?).await
                }
            }
        };
        match timeout(CONNECT_TIMEOUT, connect).await {
            Ok(result) => result,
            Err(_) => Err(RemoteError::NoResponse("connecting timed out".to_owned())),
        }
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Sender, RemoteError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(no_response)?;
    // The task ends when the sender is dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection to the server failed");
        }
    });
    Ok(sender)
}

fn connector(trust: &Trust) -> Result<TlsConnector, RemoteError> {
    let invalid = |error: &dyn std::fmt::Display| RemoteError::Certificates(error.to_string());
    let mut roots = RootCertStore::empty();
    match &trust.ca_file {
        Some(file) => {
            let in_file =
                |error: &dyn std::fmt::Display| invalid(&format!("{}: {error}", file.display()));
            for certificate in CertificateDer::pem_file_iter(file).map_err(|e| in_file(&e))? {
                let certificate = certificate.map_err(|e| in_file(&e))?;
                roots.add(certificate).map_err(|e| in_file(&e))?;
            }
            if roots.is_empty() {
                return Err(in_file(&"the file contains no certificate"));
            }
        }
        None => {
            let native = rustls_native_certs::load_native_certs();
            for error in &native.errors {
                tracing::warn!(%error, "failed to read a certificate store");
            }
            if roots.add_parsable_certificates(native.certs).0 == 0 {
                return Err(invalid(
                    &"this machine has no trusted authorities; name a file with --ca",
                ));
            }
        }
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn server_name(host: &Host<&str>) -> Result<ServerName<'static>, String> {
    match host {
        Host::Domain(name) => ServerName::try_from((*name).to_owned()).map_err(|e| e.to_string()),
        Host::Ipv4(v4) => Ok(ServerName::from(IpAddr::V4(*v4))),
        Host::Ipv6(v6) => Ok(ServerName::from(IpAddr::V6(*v6))),
    }
}

/// Whether a host is a loopback address or `localhost`.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(v4) => v4.is_loopback(),
        Host::Ipv6(v6) => v6.is_loopback(),
    }
}

fn no_response(error: impl std::error::Error) -> RemoteError {
    // The outermost error names the operation, the innermost the reason.
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let (operation, reason) = (error.to_string(), innermost.to_string());
    RemoteError::NoResponse(if operation == reason {
        operation
    } else {
        format!("{operation}: {reason}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, plain_http: bool) -> Result<Server, RemoteError> {
        let trust = Trust {
            plain_http,
            ..Trust::default()
        };
        Server::new(url, "pla_x_y", &trust)
    }

    #[test]
    fn a_token_is_sent_unencrypted_only_to_loopback_or_if_allowed() {
        for url in [
            "http://127.0.0.1:8080",
            "http://localhost/",
            "http://[::1]:1/x/",
        ] {
            assert!(server(url, false).is_ok(), "{url}");
        }
        assert!(server("http://10.0.0.1/", true).is_ok());
        for url in [
            "http://10.0.0.1/",
            "http://example.com",
            "ftp://localhost/",
            "localhost:80",
            "",
        ] {
            assert!(server(url, false).is_err(), "{url}");
        }
    }

    #[test]
    fn the_path_of_the_server_url_prefixes_request_paths() {
        let server = server("http://127.0.0.1/plumbline/", false).unwrap();
        let request = server.request(&Method::GET, "/agent/v1/x", None).unwrap();
        assert_eq!(request.uri(), "/plumbline/agent/v1/x");
        assert_eq!(request.headers()[header::HOST], "127.0.0.1");
        let headers = format!("{:?}", request.headers());
        assert!(!headers.contains("pla_x_y"), "{headers}");
    }

    #[test]
    fn the_error_names_a_file_without_certificates() {
        let trust = Trust {
            ca_file: Some(PathBuf::from("Cargo.toml")),
            plain_http: false,
        };
        let server = Server::new("https://example.com/", "pla_x_y", &trust);
        let message = server.err().map(|error| error.to_string());
        assert!(message.unwrap().contains("Cargo.toml"));
    }
}
