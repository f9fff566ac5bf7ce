//! How S3 is spoken to: one pool of HTTP/1.1 connections over rustls, each answer bounded in time and size.

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

/// For one answer, all of it.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// An idle connection is closed before balancers close it on us.
const IDLE: Duration = Duration::from_secs(20);
/// No blob of ours is as large.
const LARGEST_ANSWER_BYTES: usize = 512 << 20;

#[derive(Debug, Clone)]
pub(super) struct Transport {
    client: Client<HttpsConnector<Tcp>, HttpRequestBody>,
}

impl Transport {
    /// Trusts what this machine's certificate store trusts (`SSL_CERT_FILE` names another).
    pub(super) fn new() -> Self {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate store could not be read");
        }
        roots.add_parsable_certificates(found.certs);
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Self { client }
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.client.request(request).await.map_err(|error| {
            let kind = match error.is_connect() {
                true => HttpErrorKind::Connect,
                false => HttpErrorKind::Interrupted,
            };
            HttpError::new(kind, error)
        })?;
        let (head, body) = response.into_parts();
        let whole = Limited::new(body, LARGEST_ANSWER_BYTES).collect().await;
        let whole = whole.map_err(|error: Box<dyn Error + Send + Sync>| {
            HttpError::new_boxed(HttpErrorKind::Interrupted, error)
        })?;
        Ok(HttpResponse::from_parts(head, whole.to_bytes().into()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match tokio::time::timeout(ANSWER_WITHIN, self.answer(request)).await {
            Ok(answer) => answer,
            Err(late) => Err(HttpError::new(HttpErrorKind::Timeout, late)),
        }
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
