use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes};
use hyper::http::{HeaderMap, HeaderValue, Request, Uri, header};
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower::util::{BoxCloneSyncService, service_fn};
use tower::{Service, ServiceExt};

use crate::{HttpError, roots};

/// Time after which an idle connection is closed. Servers, and load balancers before them, close
/// connections that were idle for 30 s or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// An error of a function that opens connections.
pub type BoxError = Box<dyn Error + Send + Sync>;

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

/// An HTTP/1.1 client with TLS for `https`. Clones share its connections.
#[derive(Debug, Clone)]
pub struct HttpClient<B = Full<Bytes>> {
    client: Client<Connector, B>,
    reuses_connections: bool,
}

/// The settings of a client.
#[derive(Debug)]
pub struct ClientBuilder {
    connect_timeout: Duration,
    max_idle_connections: usize,
    roots: Option<Arc<RootCertStore>>,
}

/// The limits of a response.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time limit from the start of the request to the head of the response.
    pub head: Duration,
    /// The time limit for the body after the head.
    pub body: Duration,
    /// The time limit for the request and the complete response.
    pub total: Duration,
    /// The maximum length of the body.
    pub bytes: usize,
}

impl Limits {
    /// Limits the time of the complete response only.
    pub fn total(total: Duration, bytes: usize) -> Self {
        Self {
            head: total,
            body: total,
            total,
            bytes,
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The head of the response.
    pub head: hyper::http::response::Parts,
    /// The complete body, or the reason why it could not be read.
    pub body: Result<Bytes, HttpError>,
}

impl Response {
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }
}

impl ClientBuilder {
    /// Creates the settings of a client that trusts the authorities of this machine and does not
    /// reuse connections. The timeout includes the TLS handshake.
    pub fn new(connect_timeout: Duration) -> Self {
        Self {
            connect_timeout,
            max_idle_connections: 0,
            roots: None,
        }
    }

    /// Trusts these authorities instead of those of this machine.
    pub fn roots(self, roots: Arc<RootCertStore>) -> Self {
        Self {
            roots: Some(roots),
            ..self
        }
    }

    /// Keeps up to this number of idle connections to each host.
    pub fn max_idle_connections(self, max_idle_connections: usize) -> Self {
        Self {
            max_idle_connections,
            ..self
        }
    }

    /// Builds a client that connects to any host.
    pub fn build<B>(self) -> HttpClient<B>
    where
        B: Body + Send + 'static + Unpin,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Without it, small requests wait for the acknowledgement of earlier ones.
        tcp.set_nodelay(true);
        self.build_over(tcp)
    }

    /// Builds a client whose connections are opened by `connect`, from host and port. It is called
    /// for names and for literal addresses; the latter have brackets if they are IPv6 addresses.
    pub fn build_with<B, F, R, E>(self, connect: F) -> HttpClient<B>
    where
        B: Body + Send + 'static + Unpin,
        B::Data: Send,
        B::Error: Into<BoxError>,
        F: Fn(String, u16) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<TcpStream, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.build_over(service_fn(move |uri: Uri| {
            let host = uri.host().unwrap_or_default().to_owned();
            let default_port = if uri.scheme_str() == Some("https") {
                443
            } else {
                80
            };
            let connection = connect(host, uri.port_u16().unwrap_or(default_port));
            async move { connection.await.map(TokioIo::new).map_err(Into::into) }
        }))
    }

    fn build_over<B, S>(self, tcp: S) -> HttpClient<B>
    where
        B: Body + Send + 'static + Unpin,
        B::Data: Send,
        B::Error: Into<BoxError>,
        S: Service<Uri, Response = TokioIo<TcpStream>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
    {
        let tls = ClientConfig::builder()
            .with_root_certificates(self.roots.unwrap_or_else(roots::of_system))
            .with_no_client_auth();
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let connect_timeout = self.connect_timeout;
        let connector = service_fn(move |uri: Uri| {
            let connection = timeout(connect_timeout, https.clone().oneshot(uri));
            async move {
                connection
                    .await
                    .unwrap_or_else(|_| Err("connecting timed out".into()))
            }
        });
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(self.max_idle_connections)
            .build(BoxCloneSyncService::new(connector));
        HttpClient {
            client,
            reuses_connections: self.max_idle_connections > 0,
        }
    }
}

impl<B> HttpClient<B>
where
    B: Body + Send + 'static + Unpin,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    /// Sends a request to its absolute URL and reads the response. Dropping the future cancels the
    /// request.
    pub async fn send(
        &self,
        mut request: Request<B>,
        limits: Limits,
    ) -> Result<Response, HttpError> {
        if !self.reuses_connections {
            let close = HeaderValue::from_static("close");
            request.headers_mut().insert(header::CONNECTION, close);
        }
        let start = Instant::now();
        let head_deadline = start + limits.head.min(limits.total);
        let (head, body) = timeout_at(head_deadline, self.client.request(request))
            .await
            .map_err(|_| HttpError::TimedOut)?
            .map_err(|error| HttpError::of_client(&error))?
            .into_parts();
        let body_deadline = (start + limits.total).min(Instant::now() + limits.body);
        let body = Limited::new(body, limits.bytes).collect();
        let body = match timeout_at(body_deadline, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) => Err(HttpError::of_body(&*error)),
            Err(_) => Err(HttpError::TimedOut),
        };
        Ok(Response { head, body })
    }
}
