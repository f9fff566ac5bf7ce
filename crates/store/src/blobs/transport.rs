//! The HTTP client for S3, as `object_store` requires it.

use std::time::Duration;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient as ObjectStoreClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpRequestBody, HttpResponse, HttpService,
};
use plumbline_http::{ClientBuilder, HttpClient, Limits};

/// Deadline of a complete response.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_IDLE_CONNECTIONS: usize = 64;
/// Maximum size of a response. No blob is as large.
const MAX_RESPONSE_BYTES: usize = 512 << 20;

#[derive(Debug, Clone)]
pub(super) struct Transport(HttpClient<HttpRequestBody>);

impl Transport {
    pub(super) fn new() -> Self {
        let client = ClientBuilder::new(CONNECT_TIMEOUT).max_idle_connections(MAX_IDLE_CONNECTIONS);
        Self(client.build())
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let limits = Limits::total(RESPONSE_DEADLINE, MAX_RESPONSE_BYTES);
        let response = self.0.send(request, limits).await.map_err(convert)?;
        let body = response.body.map_err(convert)?;
        Ok(HttpResponse::from_parts(response.head, body.into()))
    }
}

/// Converts an error to one of a kind that decides whether the request is repeated.
fn convert(error: plumbline_http::HttpError) -> HttpError {
    use plumbline_http::HttpError as Reason;
    let kind = match error {
        Reason::Connect(_) => HttpErrorKind::Connect,
        Reason::TimedOut => HttpErrorKind::Timeout,
        Reason::Interrupted(_) | Reason::TooLarge => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<ObjectStoreClient> {
        Ok(ObjectStoreClient::new(self.clone()))
    }
}
