//! Requests to one server, each with a deadline, over connections that are used again.

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

/// Answers are a few hundred bytes.
const ANSWER_BYTES: usize = 1024 * 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Servers close what was idle for 30 s; a connection that is about to be closed is no good.
const IDLE_AT_MOST: Duration = Duration::from_secs(20);
const IDLE_KEPT: usize = 32;

/// Whose certificates are believed, and whether there need be any.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Only the authorities in this file (PEM); without, those that this machine trusts.
    pub ca_file: Option<PathBuf>,
    /// Let the token travel unencrypted, beyond this machine too.
    pub plain_http: bool,
}

/// A server, and the token that it knows us by.
pub struct Server {
    host: String,
    port: u16,
    /// Before every path, without a slash at its end.
    base: String,
    authority: HeaderValue,
    authorization: HeaderValue,
    /// None for plain HTTP.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<Idle>>,
}

type Sender = SendRequest<Full<Bytes>>;

struct Idle {
    sender: Sender,
    since: Instant,
}

/// What a request carries besides its address.
pub(crate) struct Load {
    pub(crate) kind: &'static str,
    pub(crate) bytes: Bytes,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Which protocol the server says that it speaks.
    pub(crate) protocol: Option<String>,
    pub(crate) body: Bytes,
}

impl Server {
    pub fn new(url: &str, token: &str, trust: &Trust) -> Result<Self, RemoteError> {
        let address = |reason: &str| RemoteError::Address(format!("{url}: {reason}"));
        let parsed = Url::parse(url).map_err(|error| address(&error.to_string()))?;
        let host = parsed.host().ok_or_else(|| address("it names no host"))?;
        let port = parsed.port_or_known_default();
        let port = port.ok_or_else(|| address("it has no port"))?;
        let tls = match parsed.scheme() {
            "https" => Some((
                connector(trust)?,
                server_name(&host).map_err(|e| address(&e))?,
            )),
            "http" if trust.plain_http || is_here(&host) => None,
            "http" => {
                return Err(address(
                    "over http the token would travel unencrypted; use https, or say that it may",
                ));
            }
            _ => return Err(address("it must begin with https://")),
        };
        let name = parsed.host_str().unwrap_or_default();
        let authority = match parsed.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| RemoteError::Address("the token is none".to_owned()))?;
        authorization.set_sensitive(true);
        Ok(Self {
            host: name.trim_matches(['[', ']']).to_owned(),
            port,
            base: parsed.path().trim_end_matches('/').to_owned(),
            authority: HeaderValue::try_from(authority)
                .map_err(|error| address(&error.to_string()))?,
            authorization,
            tls,
            idle: Mutex::default(),
        })
    }

    /// Asks, within a time.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        load: Option<Load>,
        within: Duration,
    ) -> Result<Answer, RemoteError> {
        match timeout(within, self.exchange(method, path, load)).await {
            Ok(answer) => answer,
            Err(_) => Err(RemoteError::Unanswered(format!("not within {within:?}"))),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        load: Option<Load>,
    ) -> Result<Answer, RemoteError> {
        let request = || self.request(&method, path, load.as_ref());
        // A kept connection may have been closed from the other side: then a fresh one is asked.
        if let Some(mut kept) = self.kept()
            && let Ok(response) = kept.send_request(request()?).await
        {
            return self.read(kept, response).await;
        }
        let mut sender = self.connect().await?;
        let response = sender.send_request(request()?).await.map_err(unanswered)?;
        self.read(sender, response).await
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        load: Option<&Load>,
    ) -> Result<Request<Full<Bytes>>, RemoteError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, &self.authorization)
            .header(PROTOCOL_HEADER, PROTOCOL);
        if let Some(load) = load {
            request = request.header(header::CONTENT_TYPE, load.kind);
        }
        let body = load.map(|load| load.bytes.clone()).unwrap_or_default();
        request.body(Full::new(body)).map_err(unanswered)
    }

    async fn read(
        &self,
        sender: Sender,
        response: Response<Incoming>,
    ) -> Result<Answer, RemoteError> {
        let status = response.status().as_u16();
        let protocol = response.headers().get(PROTOCOL_HEADER);
        let protocol = protocol.and_then(|version| version.to_str().ok());
        let protocol = protocol.map(str::to_owned);
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect();
        let body = body
            .await
            .map_err(|error| RemoteError::Unanswered(error.to_string()))?;
        self.keep(sender);
        Ok(Answer {
            status,
            protocol,
            body: body.to_bytes(),
        })
    }

    fn kept(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|kept| !kept.sender.is_closed() && kept.since.elapsed() < IDLE_AT_MOST);
        let ready = idle.iter().position(|kept| kept.sender.is_ready())?;
        Some(idle.swap_remove(ready).sender)
    }

    fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !sender.is_closed() && idle.len() < IDLE_KEPT {
            let since = Instant::now();
            idle.push(Idle { sender, since });
        }
    }

    async fn connect(&self) -> Result<Sender, RemoteError> {
        let open = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
            let stream = stream.map_err(unanswered)?;
            // Without it, small requests wait for the acknowledgement of earlier ones.
            stream.set_nodelay(true).map_err(unanswered)?;
            match &self.tls {
                None => speak(stream).await,
                Some((tls, name)) => {
                    let secured = tls.connect(name.clone(), stream).await;
                    speak(secured.map_err(unanswered)?).await
                }
            }
        };
        match timeout(CONNECT_WITHIN, open).await {
            Ok(connected) => connected,
            Err(_) => Err(RemoteError::Unanswered("it does not connect".to_owned())),
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Sender, RemoteError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(unanswered)?;
    // Ends with its sender.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the server ended early");
        }
    });
    Ok(sender)
}

fn connector(trust: &Trust) -> Result<TlsConnector, RemoteError> {
    let wrong = |error: &dyn std::fmt::Display| RemoteError::Certificates(error.to_string());
    let mut roots = RootCertStore::empty();
    match &trust.ca_file {
        Some(file) => {
            let named =
                |error: &dyn std::fmt::Display| wrong(&format!("{}: {error}", file.display()));
            for certificate in CertificateDer::pem_file_iter(file).map_err(|e| named(&e))? {
                let certificate = certificate.map_err(|e| named(&e))?;
                roots.add(certificate).map_err(|e| named(&e))?;
            }
            if roots.is_empty() {
                return Err(named(&"there is no certificate in it"));
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "a certificate store could not be read");
            }
            if roots.add_parsable_certificates(found.certs).0 == 0 {
                return Err(wrong(&"this machine trusts none; name some with --ca"));
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

/// Whether a host is this machine by its very name.
fn is_here(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(v4) => v4.is_loopback(),
        Host::Ipv6(v6) => v6.is_loopback(),
    }
}

fn unanswered(error: impl std::error::Error) -> RemoteError {
    // The outermost says what was attempted, the innermost why it failed.
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let (said, why) = (error.to_string(), innermost.to_string());
    RemoteError::Unanswered(match said == why {
        true => said,
        false => format!("{said}: {why}"),
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
    fn a_token_travels_unencrypted_only_within_this_machine_or_when_told() {
        for here in [
            "http://127.0.0.1:8080",
            "http://localhost/",
            "http://[::1]:1/x/",
        ] {
            assert!(server(here, false).is_ok(), "{here}");
        }
        assert!(server("http://10.0.0.1/", true).is_ok());
        for refused in [
            "http://10.0.0.1/",
            "http://example.com",
            "ftp://localhost/",
            "localhost:80",
            "",
        ] {
            assert!(server(refused, false).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_path_before_ours_is_kept() {
        let behind = server("http://127.0.0.1/plumbline/", false).unwrap();
        let request = behind.request(&Method::GET, "/agent/v1/x", None).unwrap();
        assert_eq!(request.uri(), "/plumbline/agent/v1/x");
        assert_eq!(request.headers()[header::HOST], "127.0.0.1");
        let shown = format!("{:?}", request.headers());
        assert!(!shown.contains("pla_x_y"), "{shown}");
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let trust = Trust {
            ca_file: Some(PathBuf::from("Cargo.toml")),
            plain_http: false,
        };
        let error = Server::new("https://example.com/", "pla_x_y", &trust);
        let said = error.err().map(|error| error.to_string());
        assert!(said.unwrap().contains("Cargo.toml"));
    }
}
