//! POSTs over HTTP/1.1, with TLS where the address asks for it. No redirects, one request a
//! connection. Who may be connected to is the caller's to decide: it brings the connection.

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

#[derive(Clone)]
pub struct HttpsClient {
    tls: TlsConnector,
}

/// Bounds on an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerBounds {
    /// What is longer is not read.
    pub bytes: usize,
    /// When the head must be there, a TLS handshake included.
    pub head_by: Instant,
    /// How long the body may take after the head.
    pub body_within: Duration,
}

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// None when it is longer or takes longer than it may, or breaks off.
    pub body: Option<Bytes>,
}

impl HttpsClient {
    /// Trusts what this machine's certificate store trusts (`SSL_CERT_FILE` names another).
    pub fn new() -> Self {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate store could not be read");
        }
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            tracing::warn!("no certificates to trust: nothing can be sent over https");
        }
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            tls: TlsConnector::from(Arc::new(config)),
        }
    }

    /// Sends over a connection to the URL's host. What it says when it fails does not name the URL.
    pub async fn post(
        &self,
        stream: TcpStream,
        url: &Url,
        headers: Vec<(&'static str, String)>,
        body: String,
        bounds: AnswerBounds,
    ) -> Result<Answer, String> {
        let request = request(url, headers, body)?;
        match url.scheme() {
            "http" => exchange(stream, request, bounds).await,
            "https" => {
                let (host, _) = place(url)?;
                let name = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(name).map_err(said)?;
                let connected = timeout_at(bounds.head_by, self.tls.connect(name, stream));
                let stream = connected.await.map_err(late)?.map_err(said)?;
                exchange(stream, request, bounds).await
            }
            other => Err(format!("cannot post to {other}")),
        }
    }
}

/// Host and port, as they are to be connected to.
pub fn place(url: &Url) -> Result<(&str, u16), String> {
    let host = url.host_str().ok_or("the address names no host")?;
    let port = url
        .port_or_known_default()
        .ok_or("the address has no port")?;
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
    request.body(Full::new(Bytes::from(body))).map_err(said)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    bounds: AnswerBounds,
) -> Result<Answer, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(said)?;
    let exchange = async {
        let answer = timeout_at(bounds.head_by, sender.send_request(request));
        let (head, body) = answer.await.map_err(late)?.map_err(said)?.into_parts();
        let body = timeout(
            bounds.body_within,
            Limited::new(body, bounds.bytes).collect(),
        );
        let body = body.await.ok().and_then(Result::ok);
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.map(http_body_util::Collected::to_bytes),
        })
    };
    // The connection is driven beside the exchange, and dropped with it.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = connection => {
            ended.map_err(said)?;
            exchange.await
        }
    }
}

fn late(_: Elapsed) -> String {
    "no answer in time".to_owned()
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
