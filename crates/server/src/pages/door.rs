//! What every answer to a browser passes on its way out.

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
use plumbline_report::html::{self, CONTENT_SECURITY_POLICY, PageFrame, ProblemPage};

use crate::{door::REQUEST_ID, router::Shared};

/// Below this, compressing gains nothing.
const WORTH_PACKING_BYTES: usize = 512;

/// Waiting longer for a thread to compress on gains nothing.
const PACKED_WITHIN: Duration = Duration::from_secs(2);

/// Stands outside the service's own door, so that whatever it answers (also to a panic or a deadline)
/// becomes a page where a person asked for one.
pub(crate) async fn page_door(
    State(service): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let wants_page = wants_page(&request);
    let takes_gzip = takes_gzip(request.headers());
    let mut response = next.run(request).await;
    if wants_page && is_failure(&response) {
        response = as_page(response);
    }
    if is_of(&response, "text/html") {
        dress(response.headers_mut());
    }
    if takes_gzip {
        response = packed(response, &service).await;
    }
    response
}

/// The API answers in JSON whoever asks; everything else answers a browser with pages.
fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let accepts = request.headers().get(header::ACCEPT);
    let accepts = accepts.and_then(|value| value.to_str().ok());
    path != "/v1" && !path.starts_with("/v1/") && accepts.is_some_and(|a| a.contains("text/html"))
}

fn takes_gzip(headers: &HeaderMap) -> bool {
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
    (status.is_client_error() || status.is_server_error()) && is_of(response, "application/json")
}

fn is_of(response: &Response, media_type: &str) -> bool {
    let found = response.headers().get(header::CONTENT_TYPE);
    found.is_some_and(|found| found.as_bytes().starts_with(media_type.as_bytes()))
}

/// The same answer with a page in it: `Allow`, `Retry-After` and the request's id stay.
fn as_page(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let id = parts.headers.get(REQUEST_ID);
    let made = html::problem_page(&ProblemPage {
        page_frame: PageFrame::signed_out(),
        status: parts.status.as_u16(),
        request_id: id.and_then(|id| id.to_str().ok()),
    });
    match made {
        Ok(page) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            parts.headers.insert(header::CONTENT_TYPE, HTML);
            Response::from_parts(parts, Body::from(page))
        }
        Err(_) => Response::from_parts(parts, body),
    }
}

pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

fn dress(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        // A shared link is a secret: no other site learns it. Forms of ours keep their origin.
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

/// Text that is whole already; a stream stays as it is.
async fn packed(response: Response, service: &Shared) -> Response {
    let is_text = ["text/html", "text/css", "text/javascript", "image/svg+xml"]
        .iter()
        .any(|media_type| is_of(&response, media_type));
    let Some(bytes) = response.body().size_hint().exact() else {
        return response;
    };
    if !is_text || bytes < WORTH_PACKING_BYTES as u64 {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(whole) = body.collect().await else {
        return crate::errors::Failure::internal("a page broke off").into_response();
    };
    let whole = whole.to_bytes();
    let plain = whole.clone();
    let packing = service.renders.run(move || {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&plain).and_then(|()| gzip.finish())
    });
    // Where it cannot be packed in time, the plain text is as good.
    let packed = tokio::time::timeout(PACKED_WITHIN, packing).await;
    let Ok(Ok(Ok(packed))) = packed else {
        return Response::from_parts(parts, Body::from(whole));
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
    fn gzip_is_taken_when_it_is_asked_for_and_not_refused() {
        for (value, takes) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("xgzip", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(takes_gzip(&headers), takes, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
