//! The middleware of all requests: id, deadline, panic handling, default headers, log line.
//!
//! This is one function rather than layers of `tower-http`, because the steps share values and
//! their order matters: a permit is released before an unread body is discarded, and the log line
//! and the metrics need the id, the route and the final status. The layers also differ in details:
//! `SetRequestIdLayer` accepts any id of a client, and each default header would need a
//! `SetResponseHeaderLayer` of its own.

use std::{any::Any, panic::AssertUnwindSafe, time::Instant};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use plumbline_store::random_text;
use tracing::{debug, error, info};

use crate::{
    errors::Failure, fault::Fault, guarded_body::with_guard, peer, request_context::RequestContext,
    state::SharedState, unread_body::UnreadBody,
};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The routes that monitoring requests every few seconds; successes are logged at level debug.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Runs a request's handler, and turns everything that can go wrong into a response.
pub(crate) async fn process_request(
    State(service): State<SharedState>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let request_id = client_request_id(request.headers()).unwrap_or_else(new_request_id);
    let method = request.method().clone();
    // The route, not the path: a path may contain secrets, such as the token of a shared report.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let context = RequestContext::default();
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(context.clone());
    let address = peer::client_address(&parts, &service.app.limits);
    let permit = service.capacity.acquire(route, address);
    let (request, unread_body) = UnreadBody::track(Request::from_parts(parts, body));

    let (mut response, mut permit) = match permit {
        Err(failure) => (failure.into_response(), None),
        Ok(permit) => {
            // A panic ends only the request that caused it. Unwind safe: after a panic the future
            // is never polled again, and state that it shares with others (store, buckets) keeps
            // its own invariants.
            let responding = AssertUnwindSafe(next.run(request)).catch_unwind();
            let extra_time = service.extra_times.get(route).copied().unwrap_or_default();
            let timeout = service.app.limits.answer + extra_time;
            let response = match tokio::time::timeout(timeout, responding).await {
                Ok(Ok(response)) => response,
                Ok(Err(panic)) => Failure::internal(panic_message(&*panic)).into_response(),
                Err(elapsed) => Failure::unavailable(elapsed).into_response(),
            };
            (response, Some(permit))
        }
    };
    if response.status().is_client_error() {
        // A refused request needs no permit while the rest of its body is discarded.
        permit = None;
    }
    let close = match unread_body {
        Some(unread_body) => !unread_body.discard().await,
        None => false,
    };

    if let Some(Fault(cause)) = response.extensions_mut().remove() {
        let request_id = request_id.to_str().unwrap_or_default();
        error!(request_id, error = %cause, "request failed");
    }
    let details = context.take();
    if let Some(status) = details.rate_status {
        status.write_to(response.headers_mut());
    }
    apply_default_headers(response.headers_mut(), &request_id, close);
    let duration = started.elapsed();
    let status = response.status();
    service
        .app
        .metrics
        .request(&method, route, status, duration);
    macro_rules! log_request {
        ($level:ident) => {
            $level!(
                method = method.as_str(),
                route,
                status = status.as_u16(),
                duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
                request_id = request_id.to_str().unwrap_or_default(),
                audit = details.audit,
                "request"
            )
        };
    }
    if PROBES.contains(&route) && status.is_success() {
        log_request!(debug);
    } else {
        log_request!(info);
    }
    response.map(|body| with_guard(body, permit))
}

/// The headers of every response that does not set them itself. Most responses belong to one key,
/// and the others are too small to be worth a stale copy. Pages set a content security policy of
/// their own.
pub(crate) const DEFAULT_SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

fn apply_default_headers(headers: &mut HeaderMap, request_id: &HeaderValue, close: bool) {
    headers.insert(REQUEST_ID, request_id.clone());
    for (name, value) in DEFAULT_SECURITY_HEADERS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    if close {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Returns the client's own id if it is short and plain enough for logs and headers.
fn client_request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    const MAX_LENGTH: usize = 64;
    let id = headers.get(REQUEST_ID)?;
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_valid = (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(is_plain);
    is_valid.then(|| id.clone())
}

/// Returns a random id; a counter would reveal to clients how busy the service is.
pub(crate) fn new_request_id() -> HeaderValue {
    random_text(20)
        .ok()
        .and_then(|id| HeaderValue::try_from(id).ok())
        // Without a random source no audit can be started either, so an id need not be unique.
        .unwrap_or(HeaderValue::from_static("none"))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("not a text"))
}
