//! Forms, as browsers send them, from our own pages only.

use std::collections::HashMap;

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
    response::Response,
};
use http_body_util::{BodyExt, Limited};
use url::form_urlencoded;

use crate::{answer, errors::Failure, router::Shared};

/// The fields of a form that came from a page of ours.
pub(crate) struct Form(HashMap<String, String>);

/// A URL may have 2,048 characters, each of which may be three bytes and three times as long when escaped.
const MOST_BYTES: usize = 32 * 1024;

impl Form {
    pub(crate) fn take(&mut self, name: &str) -> String {
        self.0.remove(name).unwrap_or_default()
    }
}

impl FromRequest<Shared> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, service: &Shared) -> Result<Self, Response> {
        use axum::response::IntoResponse;
        if !is_from_here(request.headers()) {
            return Err(answer::failure(StatusCode::FORBIDDEN, "Forbidden"));
        }
        let whole = Limited::new(request.into_body(), MOST_BYTES).collect();
        let read = tokio::time::timeout(service.app.limits.body_read, whole).await;
        let bytes = match read {
            Err(_) => return Err(Failure::BodyTooSlow.into_response()),
            Ok(Err(_)) => return Err(Failure::BodyTooLarge.into_response()),
            Ok(Ok(whole)) => whole.to_bytes(),
        };
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

/// Browsers say where a form comes from, in one header or the other; what another site sends is not obeyed,
/// whatever cookies come with it.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        // Neither: no browser of the last years. Its cookie would still be kept to our own site.
        return true;
    };
    let origin = origin.to_str().ok().and_then(|origin| {
        let (_, host) = origin.split_once("://")?;
        Some(host.to_owned())
    });
    origin.is_some() && origin.as_deref() == text(header::HOST)
}

/// A parameter of the query. One with a NUL is refused: no page has such a link, and PostgreSQL takes
/// no text with one.
pub(crate) fn query(parts: &Parts, name: &str) -> Result<Option<String>, Failure> {
    let query = parts.uri.query().unwrap_or_default();
    let found = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name);
    match found {
        Some((_, value)) if value.contains('\0') => Err(Failure::InvalidParameter("Query")),
        found => Ok(found.map(|(_, value)| value.into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_our_own_pages_are_obeyed() {
        let host = ("host", "audit.example:8080");
        for (sent, here) in [
            (vec![host, ("sec-fetch-site", "same-origin")], true),
            (vec![host, ("sec-fetch-site", "cross-site")], false),
            (vec![host, ("sec-fetch-site", "same-site")], false),
            (vec![host, ("origin", "http://audit.example:8080")], true),
            (vec![host, ("origin", "https://audit.example:8080")], true),
            (vec![host, ("origin", "http://evil.example")], false),
            (vec![host, ("origin", "null")], false),
            (vec![("origin", "http://audit.example")], false),
            (vec![host], true),
        ] {
            assert_eq!(is_from_here(&headers(&sent)), here, "{sent:?}");
        }
    }
}
