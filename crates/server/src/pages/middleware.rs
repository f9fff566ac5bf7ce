//! Processes the responses to browsers: error pages, headers, compression.

use std::{io::Write, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use flate2::{Compression, write::GzEncoder};
use http_body_util::BodyExt;

use super::frame::{CONTENT_SECURITY_POLICY, PageFrame};
use super::problem::ProblemPage;
use super::session::Visitor;
use crate::{envelope::Reason, errors::Failure, middleware::REQUEST_ID, state::SharedState};

/// The smallest response that is compressed; below it, compression gains nothing.
const MIN_COMPRESSED_BYTES: usize = 512;

/// How long to wait for the session of a reader who gets an error page.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for a thread that compresses; waiting longer gains nothing.
const COMPRESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Processes a response. This runs outside the middleware of all requests, so that every failure
/// (including a panic or a timeout) becomes a page if a browser requested one.
pub(crate) async fn process_response(
    State(service): State<SharedState>,
    request: Request,
    next: Next,
) -> Response {
    let cookies = wants_page(&request).then(|| cookies(request.headers()));
    let accepts_gzip = accepts_gzip(request.headers());
    let mut response = next.run(request).await;
    if let Some(cookies) = cookies
        && is_failure(&response)
    {
        let page_frame = frame_of_reader(&cookies, &service).await;
        response = as_page(response, &page_frame);
    }
    if has_media_type(&response, "text/html") {
        apply_page_headers(response.headers_mut());
    }
    if accepts_gzip {
        response = compressed(response, &service).await;
    }
    response
}

/// Returns whether failures of this request are shown as pages: everywhere but in the API, if the
/// client accepts HTML.
fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let accepts = request.headers().get(header::ACCEPT);
    let accepts = accepts.and_then(|value| value.to_str().ok());
    path != "/v1"
        && !path.starts_with("/v1/")
        && accepts.is_some_and(|types| types.contains("text/html"))
}

/// Returns the cookies of a request, which identify its session.
fn cookies(headers: &HeaderMap) -> HeaderMap {
    let cookies = headers.get_all(header::COOKIE).iter();
    let named = |value: &HeaderValue| (header::COOKIE, value.clone());
    HeaderMap::from_iter(cookies.map(named))
}

/// Returns the frame with the account of the reader. If the store does not answer in time, the
/// reader is shown as signed out.
async fn frame_of_reader(cookies: &HeaderMap, service: &SharedState) -> PageFrame {
    let visitor = Visitor::of(cookies, service);
    match tokio::time::timeout(SESSION_TIMEOUT, visitor).await {
        Ok(Ok(Some(visitor))) => visitor.page_frame(),
        _ => PageFrame::SignedOut,
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut encodings = encodings.filter_map(|value| value.to_str().ok());
    encodings.any(|value| {
        value.split(',').any(|encoding| {
            let mut parts = encoding.split(';').map(str::trim);
            parts.next() == Some("gzip") && parts.next().is_none_or(|q| q != "q=0")
        })
    })
}

fn is_failure(response: &Response) -> bool {
    let status = response.status();
    (status.is_client_error() || status.is_server_error())
        && has_media_type(response, "application/json")
}

fn has_media_type(response: &Response, media_type: &str) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(media_type.as_bytes()))
}

/// Replaces the body of a failure by a page; `Allow`, `Retry-After` and the request's id stay.
fn as_page(response: Response, page_frame: &PageFrame) -> Response {
    let (mut parts, body) = response.into_parts();
    let id = parts.headers.get(REQUEST_ID);
    let id = id.and_then(|id| id.to_str().ok());
    let reason = parts.extensions.get().map(|Reason(reason)| &**reason);
    let page = ProblemPage::new(parts.status.as_u16(), reason, id);
    match page_frame.render(&page) {
        Ok(page) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            parts.headers.insert(header::CONTENT_TYPE, HTML);
            Response::from_parts(parts, Body::from(page))
        }
        Err(_) => Response::from_parts(parts, body),
    }
}

pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

fn apply_page_headers(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        // A shared link is a secret that other sites must not learn. Own forms keep their origin.
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Compresses a response that is a complete text; a stream stays as it is. Reports have hundreds of
/// kilobytes, so this is work for the pool that renders pages; the layer of `tower-http` would
/// compress them on the threads that serve all other requests.
async fn compressed(response: Response, service: &SharedState) -> Response {
    let is_text = ["text/html", "text/css", "text/javascript", "image/svg+xml"]
        .iter()
        .any(|media_type| has_media_type(&response, media_type));
    let Some(bytes) = response.body().size_hint().exact() else {
        return response;
    };
    if !is_text || bytes < MIN_COMPRESSED_BYTES as u64 {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body.collect().await else {
        return Failure::internal("failed to read the body of a page").into_response();
    };
    let plain = body.to_bytes();
    let input = plain.clone();
    let compressing = service.render_pool.run(move || {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&input).and_then(|()| gzip.finish())
    });
    // If it cannot be compressed in time, it is sent as it is.
    let result = tokio::time::timeout(COMPRESSION_TIMEOUT, compressing).await;
    let Ok(Ok(Ok(packed))) = result else {
        return Response::from_parts(parts, Body::from(plain));
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let gzip = HeaderValue::from_static("gzip");
    parts.headers.insert(header::CONTENT_ENCODING, gzip);
    let vary = HeaderValue::from_static("Accept-Encoding");
    parts.headers.append(header::VARY, vary);
    Response::from_parts(parts, Body::from(packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_if_it_is_accepted_and_not_refused() {
        for (value, expected) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("xgzip", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
