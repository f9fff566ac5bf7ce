//! Relays requests to a server, and records them with their responses.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode, Uri, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use plumbline_recording::{Endpoint, Protocol};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::sync::Mutex;

use super::Shared;
use super::log::ExchangeEntry;
use crate::body::{BodyFrames, FrameSender, ReadAhead};
use crate::serve::{
    ConnectionError, MAX_HEADER_BYTES, MAX_HEADERS, PendingResponse, endpoint_of, path_of,
    recorded_headers, serve_requests,
};

/// The bytes that a server with HTTP/2 may send before they are read: as much as a fast network
/// carries in a round trip to the other side of the world. They are read at once.
const HTTP2_WINDOW_BYTES: u32 = 16 << 20;

type RequestBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// A connection to a server, for requests.
enum ServerConnection {
    /// One request after the other.
    Http1(Mutex<http1::SendRequest<RequestBody>>),
    Http2(http2::SendRequest<RequestBody>),
}

impl ServerConnection {
    async fn send(&self, request: Request<RequestBody>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Http2(sender) => sender.clone().send_request(request).await,
        }
    }
}

/// Relays the requests of one connection until one side closes it.
pub(super) async fn relay_requests(
    shared: Arc<Shared>,
    endpoint: Endpoint,
    protocol: Protocol,
    browser: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    server: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<(), ConnectionError> {
    let io = TokioIo::new(server);
    let (server, driver): (_, tokio::task::JoinHandle<()>) = match protocol {
        Protocol::Http1 => {
            let (sender, connection) = http1::Builder::new()
                .preserve_header_case(true)
                .max_headers(MAX_HEADERS)
                .handshake(io)
                .await?;
            let driver = tokio::spawn(async move {
                // An error is also reported to the request that it interrupts.
                let _ = connection.with_upgrades().await;
            });
            (ServerConnection::Http1(Mutex::new(sender)), driver)
        }
        Protocol::Http2 => {
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(HTTP2_WINDOW_BYTES)
                .initial_connection_window_size(HTTP2_WINDOW_BYTES)
                .max_header_list_size(MAX_HEADER_BYTES)
                .handshake(io)
                .await?;
            let driver = tokio::spawn(async move {
                let _ = connection.await;
            });
            (ServerConnection::Http2(sender), driver)
        }
    };
    let server = Arc::new(server);
    let respond = move |request: Request<Incoming>| -> PendingResponse {
        let (shared, server) = (Arc::clone(&shared), Arc::clone(&server));
        let connected = endpoint.clone();
        Box::pin(async move { exchange(&shared, &server, &connected, request).await })
    };
    let ended = Box::pin(async {
        let _ = driver.await;
    });
    serve_requests(browser, protocol, Box::new(respond), ended).await
}

async fn exchange(
    shared: &Shared,
    server: &ServerConnection,
    connected: &Endpoint,
    mut request: Request<Incoming>,
) -> Result<Response<BodyFrames>, ConnectionError> {
    let upgrade = request
        .headers()
        .contains_key(header::UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    let entry = shared.log.add_request(
        endpoint_of(&request, connected),
        request.method().to_string(),
        path_of(&request),
        recorded_headers(request.headers()),
    );
    let request = for_server(request, entry.clone(), server)?;
    let response = server.send(request).await.inspect_err(|_| entry.fail())?;
    let headers = recorded_headers(response.headers());
    entry.response(response.status().as_u16(), headers);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(switch_protocols(response, upgrade));
    }
    Ok(relay_response(response, entry, shared.read_ahead.clone()))
}

/// Returns the request as it is sent to the server.
fn for_server(
    request: Request<Incoming>,
    entry: ExchangeEntry,
    server: &ServerConnection,
) -> Result<Request<RequestBody>, ConnectionError> {
    let path = path_of(&request);
    let mut request = request.map(|body| {
        let body = body.map_frame(move |frame: Frame<Bytes>| {
            entry.request_body(frame.data_ref().map_or(0, Bytes::len));
            frame
        });
        body.boxed_unsync()
    });
    if let ServerConnection::Http1(_) = server {
        *request.uri_mut() = Uri::try_from(path).map_err(hyper::http::Error::from)?;
    }
    Ok(request)
}

/// Returns the response with a body that is read from the server at once, and from which the
/// browser takes as much as its network carries.
fn relay_response(
    response: Response<Incoming>,
    entry: ExchangeEntry,
    read_ahead: ReadAhead,
) -> Response<BodyFrames> {
    if response.body().is_end_stream() {
        entry.end();
        return response.map(|_| BodyFrames::empty());
    }
    let size = response.body().size_hint().exact();
    let (sender, frames) = BodyFrames::sent(size);
    response.map(|body| {
        tokio::spawn(read_body(body, sender, entry, read_ahead));
        frames
    })
}

async fn read_body(
    mut body: Incoming,
    sender: FrameSender,
    entry: ExchangeEntry,
    read_ahead: ReadAhead,
) {
    loop {
        // Nobody reads any more if the browser has closed the connection.
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = sender.closed() => return,
        };
        match frame {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    entry.response_body(bytes);
                }
                if !sender.send_ahead(frame, &read_ahead).await {
                    return;
                }
            }
            Some(Err(error)) => {
                entry.fail();
                sender.send(Err(error.into()));
                return;
            }
            None => return entry.end(),
        }
    }
}

/// Connects the two sides of a WebSocket, which is not recorded.
fn switch_protocols(
    mut response: Response<Incoming>,
    upgrade: Option<OnUpgrade>,
) -> Response<BodyFrames> {
    let server = hyper::upgrade::on(&mut response);
    if let Some(browser) = upgrade {
        tokio::spawn(async move {
            if let (Ok(browser), Ok(server)) = tokio::join!(browser, server) {
                let (mut browser, mut server) = (TokioIo::new(browser), TokioIo::new(server));
                // A WebSocket may end in any way.
                let _ = copy_bidirectional(&mut browser, &mut server).await;
            }
        });
    }
    response.map(|_| BodyFrames::empty())
}
