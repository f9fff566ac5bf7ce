//! Cookies, which are hidden from scripts and from other sites, and restricted to HTTPS where it is
//! used.

use std::time::Duration;

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};

use crate::state::SharedState;

/// The prefix of cookies that browsers accept only over HTTPS and for exactly one host (RFC
/// 6265bis, 4.1.3.2), so that no other host can set one.
const HOST_PREFIX: &str = "__Host-";

/// Reads the cookies of a request, and sets those of its response.
pub(super) struct Cookies<'r> {
    headers: &'r HeaderMap,
    is_https: bool,
}

impl<'r> Cookies<'r> {
    pub(super) fn of(service: &SharedState, headers: &'r HeaderMap) -> Self {
        Self {
            headers,
            is_https: service.app.limits.uses_https(),
        }
    }

    /// Returns the value of a cookie. Over HTTPS one without the prefix does not count: another
    /// host, or plain HTTP, may have set it.
    pub(super) fn get(&self, name: &str) -> Option<&'r str> {
        cookie(self.headers, &self.full_name(name))
    }

    /// Returns the values of all cookies of this name, with and without the prefix.
    pub(super) fn get_any(&self, name: &str) -> impl Iterator<Item = &'r str> {
        let values = names(name).map(|name| cookie(self.headers, &name));
        values.into_iter().flatten()
    }

    /// Sets a cookie.
    pub(super) fn set(&self, response: &mut Response, name: &str, value: &str, max_age: Duration) {
        let forwarded = self.headers.get("x-forwarded-proto");
        let is_secure = self.is_https || forwarded.is_some_and(|proto| proto == "https");
        append(response, &self.full_name(name), value, max_age, is_secure);
    }

    /// Removes the cookies of this name that the browser has, with and without the prefix.
    pub(super) fn remove(&self, response: &mut Response, name: &str) {
        self.remove_where(response, name, |_| true);
    }

    /// Removes the same cookies as [`Self::remove`], except the one that [`Self::set`] writes.
    pub(super) fn remove_others(&self, response: &mut Response, name: &str) {
        let own_name = self.full_name(name);
        self.remove_where(response, name, |full_name| full_name != own_name);
    }

    fn remove_where(&self, response: &mut Response, name: &str, matches: impl Fn(&str) -> bool) {
        for full_name in names(name) {
            if cookie(self.headers, &full_name).is_some() && matches(&full_name) {
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

fn append(response: &mut Response, name: &str, value: &str, max_age: Duration, is_secure: bool) {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
        max_age.as_secs()
    );
    // Names and values are generated here, of letters and digits.
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

/// Returns a cookie's value; if there are two of one name, the first, which is the more specific.
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
