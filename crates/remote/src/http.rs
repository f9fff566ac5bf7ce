//! An HTTP client for one server, with a deadline for every request and reused connections.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plumbline_http::{
    Bytes, ClientBuilder, Full, HttpClient, HttpError, Limits, Method, Request, RootCertStore,
    header, roots,
};
use plumbline_seam::{PROTOCOL, PROTOCOL_HEADER};
use url::{Host, Url};

use crate::RemoteError;

/// Maximum size of a response. Responses have a few hundred bytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
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
    /// The URL that prefixes every path, without a trailing slash.
    base: String,
    authorization: header::HeaderValue,
    client: HttpClient,
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
        let client = ClientBuilder::new(CONNECT_TIMEOUT).max_idle_connections(MAX_IDLE_CONNECTIONS);
        let client = match parsed.scheme() {
            "https" => client.roots(trusted_roots(trust)?),
            "http" if trust.plain_http || is_loopback(&host) => {
                client.roots(Arc::new(RootCertStore::empty()))
            }
            "http" => {
                return Err(invalid(
                    "http would send the token unencrypted; use https, or allow it with --plain-http",
                ));
            }
            _ => return Err(invalid("the URL must begin with https://")),
        };
        let mut authorization = header::HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| RemoteError::Address("invalid agent token".to_owned()))?;
        authorization.set_sensitive(true);
        let origin = parsed.origin().ascii_serialization();
        let path = parsed.path().trim_end_matches('/');
        Ok(Self {
            base: format!("{origin}{path}"),
            authorization,
            client: client.build(),
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
        self.send_limited(method, path, body, deadline, MAX_RESPONSE_BYTES)
            .await
    }

    /// Sends a request whose response has at most `max_bytes`.
    pub(crate) async fn send_limited(
        &self,
        method: Method,
        path: &str,
        body: Option<RequestBody>,
        deadline: Duration,
        max_bytes: usize,
    ) -> Result<ServerResponse, RemoteError> {
        let request = self.request(method, path, body)?;
        let limits = Limits::total(deadline, max_bytes);
        let failed = |error| match error {
            HttpError::TimedOut => RemoteError::NoResponse(format!("timed out after {deadline:?}")),
            other => RemoteError::NoResponse(other.to_string()),
        };
        let response = self.client.send(request, limits).await.map_err(failed)?;
        let protocol = response.headers().get(PROTOCOL_HEADER);
        let protocol = protocol.and_then(|version| version.to_str().ok());
        Ok(ServerResponse {
            status: response.status(),
            protocol: protocol.map(str::to_owned),
            body: response.body.map_err(failed)?,
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<RequestBody>,
    ) -> Result<Request<Full<Bytes>>, RemoteError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::AUTHORIZATION, &self.authorization)
            .header(PROTOCOL_HEADER, PROTOCOL);
        if let Some(body) = &body {
            request = request.header(header::CONTENT_TYPE, body.content_type);
        }
        let bytes = body.map(|body| body.bytes).unwrap_or_default();
        request
            .body(Full::new(bytes))
            .map_err(|error| RemoteError::Address(error.to_string()))
    }
}

fn trusted_roots(trust: &Trust) -> Result<Arc<RootCertStore>, RemoteError> {
    if let Some(file) = &trust.ca_file {
        return roots::of_file(file).map_err(|error| RemoteError::Certificates(error.to_string()));
    }
    let roots = roots::of_system();
    if roots.is_empty() {
        return Err(RemoteError::Certificates(
            "this machine has no trusted authorities; name a file with --ca".to_owned(),
        ));
    }
    Ok(roots)
}

/// Whether a host is a loopback address or `localhost`.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(v4) => v4.is_loopback(),
        Host::Ipv6(v6) => v6.is_loopback(),
    }
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
        let request = server.request(Method::GET, "/agent/v1/x", None).unwrap();
        assert_eq!(request.uri(), "http://127.0.0.1/plumbline/agent/v1/x");
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
