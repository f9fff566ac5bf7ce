//! The part that the HTTP cache had in a visit, from the requests of its load.

use plumbline_model::cache_use::{CacheUse, CacheableRequest};

use crate::facts::{Request, Requests};

/// Number of files that are listed.
const MAX_LISTED: usize = 50;

/// Types of resources that rarely depend on the visitor.
const STATIC_TYPES: [&str; 6] = ["Script", "Stylesheet", "Image", "Font", "Media", "Manifest"];

/// Returns how many requests of the load the cache answered, and which it could have answered.
pub(crate) fn cache_use(requests: &Requests) -> CacheUse {
    let mut summary = CacheUse::default();
    // A request that failed has no response.
    let answered = |request: &&Request| request.exchange.response.is_some() && !request.is_local();
    for request in requests.of_load().filter(answered) {
        let bytes = request.exchange.transfer_bytes();
        if is_cached(request) {
            summary.cached.add(size(request));
        } else if is_revalidated(request) {
            summary.revalidated.add(size(request));
        } else {
            summary.transferred.add(bytes);
            if let Some(reason) = reason(request) {
                summary.cacheable.push(CacheableRequest {
                    url: request.url.to_string(),
                    bytes,
                    reason: reason.to_owned(),
                });
            }
        }
    }
    let cacheable = &mut summary.cacheable;
    cacheable.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.url.cmp(&b.url)));
    cacheable.truncate(MAX_LISTED);
    summary
}

/// Returns whether the response came without a request to a server.
fn is_cached(request: &Request) -> bool {
    let exchange = &request.exchange;
    exchange.from_memory || exchange.is_disk_cached() || exchange.is_from_service_worker()
}

/// Returns whether the server only confirmed a response of the cache: the request was conditional,
/// and no body followed although there is one.
fn is_revalidated(request: &Request) -> bool {
    let exchange = &request.exchange;
    is_conditional(request) && exchange.received_bytes == 0 && exchange.resource_bytes > 0
}

fn is_conditional(request: &Request) -> bool {
    let mut headers = request.exchange.request_headers.iter();
    headers.any(|(name, _)| {
        name.eq_ignore_ascii_case("if-none-match") || name.eq_ignore_ascii_case("if-modified-since")
    })
}

/// Returns the size of a response, as it was transferred when it was stored. Without a length in
/// its headers, that of the decoded body is the nearest. A service worker can give its responses
/// any length.
fn size(request: &Request) -> u64 {
    let length = header(request, "content-length").and_then(|length| length.parse().ok());
    length
        .filter(|_| !request.exchange.is_from_service_worker())
        .unwrap_or(request.exchange.resource_bytes)
}

/// Returns the reason why a file that rarely changes was transferred. `None` if it is not known, as
/// for a file that was not loaded before.
fn reason(request: &Request) -> Option<&'static str> {
    let response = request.exchange.response.as_ref()?;
    let resource_type = response.resource_type.as_deref()?;
    if request.exchange.method != "GET"
        || request.status() != Some(200)
        || !STATIC_TYPES.contains(&resource_type)
    {
        return None;
    }
    let control = header(request, "cache-control").unwrap_or_default();
    let has = |directive: &str| {
        let mut directives = control.split(',');
        directives.any(|part| part.trim().eq_ignore_ascii_case(directive))
    };
    let has_validator =
        header(request, "etag").is_some() || header(request, "last-modified").is_some();
    if has("no-store") {
        Some("Its `Cache-Control` contains `no-store`.")
    } else if is_conditional(request) {
        Some("The server sent it again instead of confirming it with status 304.")
    } else if (has("no-cache") || has("max-age=0")) && !has_validator {
        Some("It must be confirmed by the server, and has neither `ETag` nor `Last-Modified`.")
    } else if control.is_empty() && header(request, "expires").is_none() && !has_validator {
        Some("It has no `Cache-Control`, `Expires`, `ETag` or `Last-Modified`.")
    } else {
        None
    }
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let mut headers = request.headers().iter();
    let found = headers.find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plumbline_trace::{Exchange, Response};

    use super::*;

    fn request(url: &str, change: impl FnOnce(&mut Exchange, &mut Response)) -> Request {
        let mut response = Response {
            status: Some(200),
            resource_type: Some("Script".to_owned()),
            protocol: "h2".to_owned(),
            ..Response::default()
        };
        let mut exchange = Exchange {
            url: url.to_owned(),
            method: "GET".to_owned(),
            resource_bytes: 9_000,
            received_bytes: 3_000,
            wire_bytes: Some(3_200),
            end_us: Some(1.0),
            ..Exchange::default()
        };
        change(&mut exchange, &mut response);
        exchange.response = Some(response);
        Request::new(Arc::new(exchange), url.parse().unwrap())
    }

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn summary(all: Vec<Request>) -> CacheUse {
        let mut requests = Requests::default();
        requests.all = all;
        cache_use(&requests)
    }

    #[test]
    fn requests_are_counted_by_the_part_of_the_cache() {
        let cached = request("https://a.example/cached.js", |exchange, response| {
            response.from_disk = true;
            response.headers = headers(&[("Content-Length", "2500")]);
            (exchange.received_bytes, exchange.wire_bytes) = (0, Some(0));
        });
        let revalidated = request("https://a.example/same.js", |exchange, _| {
            exchange.request_headers = headers(&[("If-None-Match", "x")]);
            (exchange.received_bytes, exchange.wire_bytes) = (0, Some(180));
        });
        let transferred = request("https://a.example/new.js", |_, response| {
            response.headers = headers(&[("cache-control", "max-age=60")]);
        });
        let failed = Request::new(
            Arc::new(Exchange::default()),
            "https://b.example/".parse().unwrap(),
        );
        let summary = summary(vec![cached, revalidated, transferred, failed]);
        assert_eq!((summary.cached.requests, summary.cached.bytes), (1, 2_500));
        let revalidated = summary.revalidated;
        assert_eq!((revalidated.requests, revalidated.bytes), (1, 9_000));
        let transferred = summary.transferred;
        assert_eq!((transferred.requests, transferred.bytes), (1, 3_200));
        // It may be new on this page.
        assert_eq!(summary.cacheable, []);
    }

    #[test]
    fn a_service_worker_does_not_state_the_size_of_its_responses() {
        let served = |name: &str| {
            request(&format!("https://a.example/{name}"), |_, response| {
                response.from_service_worker = true;
                response.headers = headers(&[("Content-Length", "18446744073709551615")]);
            })
        };
        let summary = summary(vec![served("a.js"), served("b.js")]);
        assert_eq!((summary.cached.requests, summary.cached.bytes), (2, 18_000));
    }

    #[test]
    fn files_that_could_have_been_cached_have_a_reason_and_the_largest_is_first() {
        let file = |name: &str, bytes, response_headers: &[(&str, &str)]| {
            request(
                &format!("https://a.example/{name}"),
                |exchange, response| {
                    exchange.wire_bytes = Some(bytes);
                    response.headers = headers(response_headers);
                },
            )
        };
        let again = request("https://a.example/again", |exchange, response| {
            exchange.request_headers = headers(&[("if-modified-since", "x")]);
            exchange.wire_bytes = Some(5);
            response.headers = headers(&[("ETag", "x")]);
        });
        let posted = request("https://a.example/posted", |exchange, _| {
            exchange.method = "POST".to_owned();
        });
        let data = request("https://a.example/data", |_, response| {
            response.resource_type = Some("Fetch".to_owned());
        });
        let summary = summary(vec![
            file("store", 10, &[("Cache-Control", "private, no-store")]),
            file("zero", 30, &[("Cache-Control", "max-age=0")]),
            file(
                "confirmed",
                40,
                &[("Cache-Control", "max-age=0"), ("ETag", "x")],
            ),
            file("none", 20, &[]),
            again,
            posted,
            data,
        ]);
        let listed: Vec<_> = summary
            .cacheable
            .iter()
            .map(|file| file.url.rsplit_once('/').unwrap().1)
            .collect();
        assert_eq!(listed, ["zero", "none", "store", "again"]);
        assert!(summary.cacheable[2].reason.contains("no-store"));
    }
}
