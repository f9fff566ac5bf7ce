//! Cookies: not for scripts, not for other sites, and over HTTPS not for plain HTTP.

use std::time::Duration;

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};

use crate::router::Shared;

/// Browsers take a cookie of such a name only over HTTPS, for the whole of one host and for no other
/// (RFC 6265bis, 4.1.3.2): no other host can plant one.
const HOST_PREFIX: &str = "__Host-";

/// The cookies of a request, and how an answer to it sets them.
pub(super) struct Cookies<'r> {
    headers: &'r HeaderMap,
    is_https: bool,
}

impl<'r> Cookies<'r> {
    pub(super) fn of(service: &Shared, headers: &'r HeaderMap) -> Self {
        Self {
            headers,
            is_https: service.app.limits.behind_proxy || service.app.limits.serves_https,
        }
    }

    /// The value of a cookie that was set under this name. Over HTTPS one without the prefix does not
    /// count: another host, or plain HTTP, may have planted it.
    pub(super) fn get(&self, name: &str) -> Option<&'r str> {
        cookie(self.headers, &self.full_name(name))
    }

    /// The values of all cookies of this name, with and without the prefix.
    pub(super) fn get_any(&self, name: &str) -> impl Iterator<Item = &'r str> {
        let values = names(name).map(|name| cookie(self.headers, &name));
        values.into_iter().flatten()
    }

    pub(super) fn set(&self, response: &mut Response, name: &str, value: &str, lasts: Duration) {
        let forwarded = self.headers.get("x-forwarded-proto");
        let is_secure = self.is_https || forwarded.is_some_and(|proto| proto == "https");
        append(response, &self.full_name(name), value, lasts, is_secure);
    }

    /// Removes the cookies of this name that the browser has, with and without the prefix.
    pub(super) fn remove(&self, response: &mut Response, name: &str) {
        self.remove_where(response, name, |_| true);
    }

    /// As [`Self::remove`], but for the one that [`Self::set`] writes.
    pub(super) fn remove_others(&self, response: &mut Response, name: &str) {
        let written = self.full_name(name);
        self.remove_where(response, name, |full_name| full_name != written);
    }

    fn remove_where(&self, response: &mut Response, name: &str, fits: impl Fn(&str) -> bool) {
        for full_name in names(name) {
            if cookie(self.headers, &full_name).is_some() && fits(&full_name) {
                let is_secure = self.is_https || full_name.starts_with(HOST_PREFIX);
                append(response, &full_name, "", Duration::ZERO, is_secure);
            }
        }
    }

    fn full_name(&self, name: &str) -> String {
        if self.is_https {
            format!("{HOST_PREFIX}{name}")
        } else {
            name.to_owned()
        }
    }
}

fn names(name: &str) -> [String; 2] {
    [format!("{HOST_PREFIX}{name}"), name.to_owned()]
}

fn append(response: &mut Response, name: &str, value: &str, lasts: Duration, is_secure: bool) {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
        lasts.as_secs()
    );
    // Names and values are letters and digits of ours.
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

/// A cookie's value; of two of one name the first, which is the more specific.
fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .find_map(|pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name).then_some(value)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static("xa=1; a=2; b");
        headers.insert(header::COOKIE, value);
        assert_eq!(cookie(&headers, "a"), Some("2"));
        assert_eq!(cookie(&headers, "b"), None);
    }
}
