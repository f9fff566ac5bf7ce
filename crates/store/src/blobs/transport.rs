//! The HTTP client for S3: a pool of HTTP/1.1 connections over rustls, with limits of time and size
//! for every response.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpService,
};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Deadline of a complete response.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which an idle connection is closed, before a load balancer closes it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a response. No blob is as large.
const MAX_RESPONSE_BYTES: usize = 512 << 20;

#[derive(Debug, Clone)]
pub(super) struct Transport {
    client: Client<HttpsConnector<Tcp>, HttpRequestBody>,
}

impl Transport {
    /// Creates a client that trusts the certificate store of this machine, or the file that
    /// `SSL_CERT_FILE` names.
    pub(super) fn new() -> Self {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::warn!(%error, "failed to read a certificate store");
        }
        roots.add_parsable_certificates(native.certs);
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(connector);
        Self { client }
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.client.request(request).await.map_err(|error| {
            let kind = if error.is_connect() {
                HttpErrorKind::Connect
            } else {
                HttpErrorKind::Interrupted
            };
            HttpError::new(kind, error)
        })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|error: Box<dyn Error + Send + Sync>| {
            HttpError::new_boxed(HttpErrorKind::Interrupted, error)
        })?;
        Ok(HttpResponse::from_parts(head, body.to_bytes().into()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match tokio::time::timeout(RESPONSE_DEADLINE, self.send(request)).await {
            Ok(result) => result,
            Err(elapsed) => Err(HttpError::new(HttpErrorKind::Timeout, elapsed)),
        }
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
