//! A minimal HTTP/1.1 client for POST requests, with TLS for `https`. It follows no redirects and
//! uses one connection per request. The caller provides the connection, and so decides which hosts
//! may be reached.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Url;

/// An HTTP client.
#[derive(Clone)]
pub struct HttpsClient {
    tls: TlsConnector,
}

/// The limits of a response.
#[derive(Debug, Clone, Copy)]
pub struct ResponseLimits {
    /// The maximum length of the body.
    pub bytes: usize,
    /// The deadline for the head of the response, including the TLS handshake.
    pub head_deadline: Instant,
    /// The time limit for the body after the head.
    pub body_timeout: Duration,
}

/// A response.
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body; `None` if it exceeds a limit or is incomplete.
    pub body: Option<Bytes>,
}

impl HttpsClient {
    /// Creates a client that trusts the certificate store of this machine, or that in
    /// `SSL_CERT_FILE`.
    pub fn new() -> Self {
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::warn!(%error, "failed to read a certificate store");
        }
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(native.certs);
        if added == 0 {
            tracing::warn!("no trusted certificates: https requests will fail");
        }
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            tls: TlsConnector::from(Arc::new(config)),
        }
    }

    /// Sends a request over a connection to the URL's host. Errors do not contain the URL.
    pub async fn post(
        &self,
        stream: TcpStream,
        url: &Url,
        headers: Vec<(&'static str, String)>,
        body: String,
        limits: ResponseLimits,
    ) -> Result<Response, String> {
        let request = request(url, headers, body)?;
        match url.scheme() {
            "http" => exchange(stream, request, limits).await,
            "https" => {
                let (host, _) = host_and_port(url)?;
                let name = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(name).map_err(message)?;
                let handshake = timeout_at(limits.head_deadline, self.tls.connect(name, stream));
                let stream = handshake.await.map_err(timed_out)?.map_err(message)?;
                exchange(stream, request, limits).await
            }
            other => Err(format!("unsupported scheme {other}")),
        }
    }
}

/// Returns the host and port to connect to.
pub fn host_and_port(url: &Url) -> Result<(&str, u16), String> {
    let host = url.host_str().ok_or("the URL has no host")?;
    let port = url.port_or_known_default().ok_or("the URL has no port")?;
    Ok((host, port))
}

fn request(
    url: &Url,
    headers: Vec<(&'static str, String)>,
    body: String,
) -> Result<Request<Full<Bytes>>, String> {
    let authority = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut request = Request::post(path)
        .header(header::HOST, authority)
        .header(header::CONNECTION, "close");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body(Full::new(Bytes::from(body))).map_err(message)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    limits: ResponseLimits,
) -> Result<Response, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(message)?;
    let exchange = async {
        let response = timeout_at(limits.head_deadline, sender.send_request(request));
        let (head, body) = response
            .await
            .map_err(timed_out)?
            .map_err(message)?
            .into_parts();
        let body = timeout(
            limits.body_timeout,
            Limited::new(body, limits.bytes).collect(),
        );
        let body = body.await.ok().and_then(Result::ok);
        Ok(Response {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.map(http_body_util::Collected::to_bytes),
        })
    };
    // The connection is driven concurrently with the exchange, and dropped with it.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        response = &mut exchange => response,
        result = connection => {
            result.map_err(message)?;
            exchange.await
        }
    }
}

fn timed_out(_: Elapsed) -> String {
    "response timed out".to_owned()
}

fn message(error: impl std::fmt::Display) -> String {
    error.to_string()
}
