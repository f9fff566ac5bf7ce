//! What every request passes on its way in and out: its id, its deadline, the net under a panic,
//! the headers of every answer, and its line in the log.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use plumbline_seam as seam;
use plumbline_store::random_text;
use tracing::{error, info};

use crate::{
    agents,
    api::audit::WAIT_AT_MOST_S,
    errors::{Failure, Fault},
    held::holding,
    leftover::Leftover,
    notes::Notes,
    peer,
    router::Shared,
};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) async fn front_door(
    State(service): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let request_id = taken_over_id(request.headers()).unwrap_or_else(new_id);
    let method = request.method().clone();
    // The route, not the path: a path may carry what somebody else should not read in a log.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let notes = Notes::default();
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(notes.clone());
    let place = service
        .places
        .take(route, peer::address_of(&parts, &service.app.limits));
    let (request, leftover) = Leftover::lend(Request::from_parts(parts, body));

    let (mut response, mut place) = match place {
        Err(no_place) => (no_place.into_response(), None),
        Ok(place) => {
            let answer = without_panic(next.run(request));
            let within = service.app.limits.answer + held_open(route);
            let response = match tokio::time::timeout(within, answer).await {
                Ok(Ok(response)) => response,
                Ok(Err(panic)) => Failure::internal(said(&*panic)).into_response(),
                Err(late) => Failure::unavailable(late).into_response(),
            };
            (response, Some(place))
        }
    };
    if response.status().is_client_error() {
        // Who is refused holds no place while the rest of the body is thrown away.
        place = None;
    }
    let close = match leftover {
        Some(leftover) => !leftover.discard().await,
        None => false,
    };

    if let Some(Fault(cause)) = response.extensions_mut().remove() {
        let request_id = request_id.to_str().unwrap_or_default();
        error!(request_id, error = %cause, "could not answer");
    }
    let noted = notes.take();
    if let Some(turn) = noted.turn {
        turn.write_to(response.headers_mut());
    }
    dress(response.headers_mut(), &request_id, close);
    let took = began.elapsed();
    let status = response.status();
    service.app.metrics.request(&method, route, status, took);
    info!(
        method = method.as_str(),
        route,
        status = status.as_u16(),
        duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        request_id = request_id.to_str().unwrap_or_default(),
        audit = noted.audit,
        "request"
    );
    response.map(|body| holding(body, place))
}

/// How much longer than others a route may take because it waits on purpose.
fn held_open(route: &str) -> Duration {
    match route {
        "/v1/audit/status/{id}" => Duration::from_secs(WAIT_AT_MOST_S.into()),
        seam::LEASE => agents::WAIT_AT_MOST,
        seam::FINISH => agents::REPORT_WITHIN,
        agents::EVIDENCE_ROUTE => agents::UPLOAD_WITHIN,
        _ => Duration::ZERO,
    }
}

/// On every answer, whoever writes it. Most answers belong to one key, and the rest are too small
/// to be worth a stale copy. A page that needs more than nothing says so itself.
pub(crate) const MANNERS: [(HeaderName, &str); 6] = [
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

fn dress(headers: &mut HeaderMap, request_id: &HeaderValue, close: bool) {
    headers.insert(REQUEST_ID, request_id.clone());
    for (name, value) in MANNERS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    if close {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

/// A client's own id is kept if it is short and plain: it goes into logs and headers.
fn taken_over_id(headers: &HeaderMap) -> Option<HeaderValue> {
    const LONGEST: usize = 64;
    let id = headers.get(REQUEST_ID)?;
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let fits = (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(is_plain);
    fits.then(|| id.clone())
}

/// Random rather than counted: a count would tell clients how busy the service is.
pub(crate) fn new_id() -> HeaderValue {
    random_text(20)
        .ok()
        .and_then(|id| HeaderValue::try_from(id).ok())
        // Without a random source there are no audits either; a log line needs no unique id then.
        .unwrap_or(HeaderValue::from_static("none"))
}

type Panic = Box<dyn Any + Send>;

/// Ends a panic at the request that caused it.
async fn without_panic<T>(work: impl Future<Output = T>) -> Result<T, Panic> {
    let mut work = pin!(work);
    poll_fn(
        // Unwind safe: after a panic the future is never polled again, and what it shared with
        // others (store, buckets) keeps its own invariants.
        |cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("of another kind than text"))
}
