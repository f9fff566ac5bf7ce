//! Forms, which are accepted only from the service's own pages.

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, header, request::Parts},
    response::Response,
};
use http_body_util::{BodyExt, Limited};
use url::form_urlencoded;

use crate::{errors::Failure, query::invalid, state::SharedState};

/// The fields of a form that was sent from a page of this service.
pub(crate) struct Form(Vec<(String, String)>);

/// The largest form, as large as the body of a start. Forms are also accepted from visitors who
/// have not signed in.
const MAX_BYTES: usize = 64 * 1024;

impl Form {
    /// Removes and returns a field; an absent field is empty. Of several, the last counts.
    pub(crate) fn take(&mut self, name: &str) -> String {
        self.take_all(name).pop().unwrap_or_default()
    }

    /// Removes and returns all fields with a name.
    pub(crate) fn take_all(&mut self, name: &str) -> Vec<String> {
        let fields = self.0.extract_if(.., |(key, _)| key == name);
        fields.map(|(_, value)| value).collect()
    }
}

impl FromRequest<SharedState> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, service: &SharedState) -> Result<Self, Response> {
        use axum::response::IntoResponse;
        if !is_same_origin(request.headers()) {
            return Err(Failure::OtherOrigin.into_response());
        }
        let reading = Limited::new(request.into_body(), MAX_BYTES).collect();
        let result = tokio::time::timeout(service.app.limits.body_read, reading).await;
        let bytes = match result {
            Err(_) => return Err(Failure::BodyTooSlow.into_response()),
            Ok(Err(_)) => return Err(Failure::BodyTooLarge.into_response()),
            Ok(Ok(body)) => body.to_bytes(),
        };
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

/// Returns whether a form comes from this service. Browsers name the origin in one of two headers;
/// forms of other sites are refused even if they carry cookies.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        // Current browsers send one of the headers. For others, the cookie is restricted to this
        // site.
        return true;
    };
    let origin = origin.to_str().ok().and_then(|origin| {
        let (_, host) = origin.split_once("://")?;
        Some(host.to_owned())
    });
    origin.is_some() && origin.as_deref() == text(header::HOST)
}

/// Returns a parameter of the query. One with a NUL is refused: no page has such a link, and
/// PostgreSQL accepts no text with one.
pub(crate) fn query(parts: &Parts, name: &'static str) -> Result<Option<String>, Failure> {
    let query = parts.uri.query().unwrap_or_default();
    let parameter = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name);
    match parameter {
        Some((_, value)) if value.contains('\0') => {
            Err(invalid(name, "contains a character that is not allowed"))
        }
        parameter => Ok(parameter.map(|(_, value)| value.into_owned())),
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
    fn only_forms_of_own_pages_are_accepted() {
        let host = ("host", "audit.example:8080");
        for (sent, expected) in [
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
            assert_eq!(is_same_origin(&headers(&sent)), expected, "{sent:?}");
        }
    }
}
