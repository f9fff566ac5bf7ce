//! The only validation of the options of a visit, for the API and the command line.

use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::state::origin_of;
use crate::{Cookie, Expectation, Header, SameSite, View, VisitOptions, VisitState};

/// The largest number of cookies, as of browsers for one site.
const MAX_COOKIES: usize = 180;
/// The largest number of headers, of items of a storage, of origins, or of blocked hosts.
const MAX_ITEMS: usize = 64;
/// The largest size of a name and a value of a cookie together, as of browsers.
const MAX_COOKIE_BYTES: usize = 4096;
const MAX_NAME_BYTES: usize = 256;
const MAX_HEADER_BYTES: usize = 8192;
const MAX_STORED_BYTES: usize = 32 * 1024;
const MAX_SCRIPT_BYTES: usize = 32 * 1024;
/// The largest size of all names and values of a state together. A batch stores them once for each
/// of its audits.
const MAX_STATE_BYTES: usize = 48 * 1024;
const MAX_SUFFIX_BYTES: usize = 256;
const MAX_EXPECTED_BYTES: usize = 1024;
const MAX_URL_BYTES: usize = 2048;

/// Headers that describe a connection or a body, that the browser computes, or that have a member
/// of their own. All that begin with `Sec-` or `Proxy-` are refused as well.
const REFUSED_HEADERS: [&str; 21] = [
    "accept-encoding",
    "access-control-request-headers",
    "access-control-request-method",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "origin",
    "referer",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// An option of a visit that is not valid. The reason never contains a value of the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct InvalidOption {
    /// The member, such as `state.cookies`.
    pub field: &'static str,
    /// The position in the member, from 0, if it is a list.
    pub index: Option<usize>,
    /// A sentence for people.
    pub reason: String,
}

impl InvalidOption {
    pub(crate) fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self {
            field,
            index: None,
            reason: reason.into(),
        }
    }

    /// Returns the error of another member with the same rules.
    pub(crate) fn of(self, field: &'static str) -> Self {
        Self { field, ..self }
    }

    pub(crate) fn at(self, index: usize) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }
}

impl VisitOptions {
    /// Checks sizes and characters of all options, and the places of placeholders.
    pub fn validate(&self) -> Result<(), InvalidOption> {
        self.check_placeholders()?;
        self.check_values()
    }

    /// Checks sizes and characters of all options.
    pub(crate) fn check_values(&self) -> Result<(), InvalidOption> {
        self.steps.check_values()?;
        self.flow.check_values().map_err(|error| error.of("flow"))?;
        if let Some(state) = &self.state {
            check_state(state)?;
        }
        check_view(&self.view)?;
        self.expect.as_deref().map_or(Ok(()), check_expectation)?;
        self.check_nul()
    }

    /// Refuses the character U+0000, which PostgreSQL cannot store.
    fn check_nul(&self) -> Result<(), InvalidOption> {
        let reason = "The character U+0000 is not allowed.";
        for (field, steps) in [("steps", &self.steps), ("flow", &self.flow)] {
            if let Some(index) = steps.0.iter().position(writes_nul) {
                return Err(InvalidOption::new(field, reason).at(index));
            }
        }
        for (field, is_invalid) in [
            ("state", writes_nul(&self.state)),
            ("expect", writes_nul(&self.expect)),
            ("view", writes_nul(&self.view)),
        ] {
            if is_invalid {
                return Err(InvalidOption::new(field, reason));
            }
        }
        Ok(())
    }
}

/// Returns whether a name or a text of an option contains the character U+0000.
fn writes_nul(option: &impl Serialize) -> bool {
    serde_json::to_value(option).is_ok_and(|option| has_nul(&option))
}

/// Returns whether a name or a text contains the character U+0000.
pub fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn check_view(view: &View) -> Result<(), InvalidOption> {
    let View::After(url) = view else {
        return Ok(());
    };
    check_size("view", "The URL of the page before", url, MAX_URL_BYTES)?;
    match Url::parse(url).as_ref().map(Url::scheme) {
        Ok("http" | "https") => Ok(()),
        _ => {
            let reason = "The URL of the page before must begin with http:// or https://.";
            Err(InvalidOption::new("view", reason))
        }
    }
}

fn check_state(state: &VisitState) -> Result<(), InvalidOption> {
    check_count("state.cookies", state.cookies.len(), MAX_COOKIES)?;
    for (index, cookie) in state.cookies.iter().enumerate() {
        check_cookie(cookie).map_err(|error| error.at(index))?;
    }
    for (field, items) in [
        ("state.localStorage", &state.local_storage),
        ("state.sessionStorage", &state.session_storage),
    ] {
        check_count(field, items.len(), MAX_ITEMS)?;
        for (name, value) in items {
            check_size(field, "A name", name, MAX_NAME_BYTES)?;
            check_size(field, "A value", value.expose(), MAX_STORED_BYTES)?;
        }
    }
    check_count("state.headers", state.headers.len(), MAX_ITEMS)?;
    for (index, header) in state.headers.iter().enumerate() {
        check_header(header).map_err(|error| error.at(index))?;
    }
    check_basic_auth(state)?;
    if let Some(script) = &state.script {
        let field = "state.script";
        if script.expose().is_empty() {
            return Err(InvalidOption::new(field, "The script is empty."));
        }
        check_size(field, "The script", script.expose(), MAX_SCRIPT_BYTES)?;
    }
    check_origins("state.origins", &state.origins)?;
    if let Some(suffix) = &state.user_agent_suffix {
        let field = "state.userAgentSuffix";
        check_size(field, "The suffix", suffix, MAX_SUFFIX_BYTES)?;
        if suffix.trim().is_empty() || !suffix.chars().all(is_header_char) {
            let reason = "The suffix must consist of printable ASCII characters.";
            return Err(InvalidOption::new(field, reason));
        }
    }
    check_count("state.blockedHosts", state.blocked_hosts.len(), MAX_ITEMS)?;
    for (index, host) in state.blocked_hosts.iter().enumerate() {
        if !is_host_pattern(host) {
            let reason = "A blocked host is a name such as example.com, or *.example.com with all \
                          subdomains, without scheme, port and path.";
            return Err(InvalidOption::new("state.blockedHosts", reason).at(index));
        }
    }
    if size_of_state(state) > MAX_STATE_BYTES {
        let reason = format!(
            "All names and values together may have at most {} KiB.",
            MAX_STATE_BYTES / 1024
        );
        return Err(InvalidOption::new("state", reason));
    }
    Ok(())
}

fn check_cookie(cookie: &Cookie) -> Result<(), InvalidOption> {
    let invalid = |reason: &str| Err(InvalidOption::new("state.cookies", reason));
    if cookie.name.is_empty() || !cookie.name.chars().all(is_token_char) {
        return invalid("The name of a cookie consists of letters, digits and !#$%&'*+-.^_`|~.");
    }
    let value = cookie.value.expose();
    if !value.chars().all(|c| is_header_char(c) && c != ';') || value.trim() != value {
        return invalid(
            "The value of a cookie consists of printable ASCII characters without semicolons and \
             without spaces at its ends.",
        );
    }
    if cookie.name.len() + value.len() > MAX_COOKIE_BYTES {
        return invalid("The name and the value of a cookie may have at most 4096 bytes.");
    }
    if let Some(domain) = &cookie.domain
        && !is_host(domain.strip_prefix('.').unwrap_or(domain))
    {
        return invalid("The domain of a cookie is a host name without scheme and port.");
    }
    if let Some(path) = &cookie.path {
        let is_valid = path.starts_with('/')
            && path.len() <= MAX_NAME_BYTES
            && path.chars().all(|c| c.is_ascii_graphic() && c != ';');
        if !is_valid {
            return invalid("The path of a cookie begins with a slash.");
        }
    }
    if cookie.same_site == Some(SameSite::None) && !cookie.secure {
        return invalid("A cookie with sameSite None must be secure.");
    }
    if cookie.name.starts_with("__Host-") && (cookie.domain.is_some() || !cookie.secure) {
        return invalid("A cookie whose name begins with __Host- is secure and has no domain.");
    }
    if cookie.name.starts_with("__Secure-") && !cookie.secure {
        return invalid("A cookie whose name begins with __Secure- must be secure.");
    }
    Ok(())
}

fn check_header(header: &Header) -> Result<(), InvalidOption> {
    let field = "state.headers";
    let invalid = |reason: &str| Err(InvalidOption::new(field, reason));
    if header.name.is_empty()
        || header.name.len() > MAX_NAME_BYTES
        || !header.name.chars().all(is_token_char)
    {
        return invalid("The name of a header consists of letters, digits and !#$%&'*+-.^_`|~.");
    }
    let name = header.name.to_ascii_lowercase();
    if REFUSED_HEADERS.contains(&name.as_str())
        || name.starts_with("sec-")
        || name.starts_with("proxy-")
    {
        return invalid(match name.as_str() {
            "cookie" => "Set cookies with state.cookies: a Cookie header would replace all others.",
            "user-agent" => "The device decides the user agent; see state.userAgentSuffix.",
            _ => "This header is set by the browser and cannot be changed.",
        });
    }
    let value = header.value.expose();
    if !value.chars().all(|c| is_header_char(c) || c == '\t') || value.trim() != value {
        return invalid(
            "The value of a header consists of printable ASCII characters without spaces at its \
             ends.",
        );
    }
    check_size(field, "The value of a header", value, MAX_HEADER_BYTES)?;
    check_origins(field, &header.origins)
}

fn check_basic_auth(state: &VisitState) -> Result<(), InvalidOption> {
    let Some(credentials) = &state.basic_auth else {
        return Ok(());
    };
    let field = "state.basicAuth";
    // RFC 7617, 2: the user name ends at the first colon, and neither has control characters.
    let has_control = |text: &str| text.chars().any(char::is_control);
    if credentials.username.contains(':') || has_control(&credentials.username) {
        let reason = "The user name contains no colon and no control characters.";
        return Err(InvalidOption::new(field, reason));
    }
    if has_control(credentials.password.expose()) {
        let reason = "The password contains no control characters.";
        return Err(InvalidOption::new(field, reason));
    }
    check_size(
        field,
        "The user name",
        &credentials.username,
        MAX_NAME_BYTES,
    )?;
    check_size(
        field,
        "The password",
        credentials.password.expose(),
        MAX_NAME_BYTES,
    )?;
    let mut names = state.headers.iter().map(|header| &header.name);
    if names.any(|name| name.eq_ignore_ascii_case("authorization")) {
        let reason = "Set either basicAuth or a header Authorization.";
        return Err(InvalidOption::new(field, reason));
    }
    Ok(())
}

fn check_origins(field: &'static str, origins: &[String]) -> Result<(), InvalidOption> {
    check_count(field, origins.len(), MAX_ITEMS)?;
    let is_valid = |origin: &String| {
        let parsed = url::Url::parse(origin).ok();
        origin.len() <= MAX_NAME_BYTES
            && origin_of(origin).is_some()
            && parsed.is_some_and(|url| {
                url.path() == "/"
                    && url.query().is_none()
                    && url.fragment().is_none()
                    && url.username().is_empty()
                    && url.password().is_none()
            })
    };
    if origins.iter().all(is_valid) {
        return Ok(());
    }
    let reason = "An origin is a scheme, a host and an optional port, such as https://example.com.";
    Err(InvalidOption::new(field, reason))
}

pub(crate) fn check_expectation(expect: &Expectation) -> Result<(), InvalidOption> {
    for (field, text) in [
        ("expect.selector", &expect.selector),
        ("expect.text", &expect.text),
        ("expect.url", &expect.url),
        ("expect.cookie", &expect.cookie),
    ] {
        let Some(text) = text else { continue };
        if text.trim().is_empty() {
            return Err(InvalidOption::new(field, "The expectation is empty."));
        }
        check_size(field, "The expectation", text, MAX_EXPECTED_BYTES)?;
    }
    Ok(())
}

fn check_count(field: &'static str, count: usize, at_most: usize) -> Result<(), InvalidOption> {
    if count <= at_most {
        return Ok(());
    }
    Err(InvalidOption::new(
        field,
        format!("At most {at_most} are allowed."),
    ))
}

fn check_size(
    field: &'static str,
    subject: &str,
    text: &str,
    at_most: usize,
) -> Result<(), InvalidOption> {
    if text.len() <= at_most {
        return Ok(());
    }
    let reason = format!("{subject} may have at most {at_most} bytes.");
    Err(InvalidOption::new(field, reason))
}

fn size_of_state(state: &VisitState) -> usize {
    let lists = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let cookies = state.cookies.iter().map(|cookie| {
        let domain = cookie.domain.as_ref().map_or(0, String::len);
        let path = cookie.path.as_ref().map_or(0, String::len);
        cookie.name.len() + cookie.value.expose().len() + domain + path
    });
    let headers = state
        .headers
        .iter()
        .map(|header| header.name.len() + header.value.expose().len() + lists(&header.origins));
    let stored = state.local_storage.iter().chain(&state.session_storage);
    let stored = stored.map(|(name, value)| name.len() + value.expose().len());
    let script = state
        .script
        .as_ref()
        .map_or(0, |script| script.expose().len());
    let items: usize = cookies.chain(headers).chain(stored).sum();
    items + script + lists(&state.origins) + lists(&state.blocked_hosts)
}

/// Returns whether a character may be part of a name (RFC 9110, 5.6.2: token).
fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// Returns whether a character may be part of a value. Characters outside ASCII have no agreed
/// encoding in headers.
fn is_header_char(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic()
}

fn is_host_pattern(pattern: &str) -> bool {
    is_host(pattern.strip_prefix("*.").unwrap_or(pattern))
}

/// Returns whether a text is a host name or an IP address, as URLs contain it.
fn is_host(host: &str) -> bool {
    let is_plain = host.len() <= MAX_NAME_BYTES
        && !host.is_empty()
        && host
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':'));
    // A host and a port would be two labels of an IPv6 address at most.
    let has_port = host.contains(':') && !host.starts_with('[');
    is_plain && !has_port && url::Host::parse(host).is_ok()
}

#[cfg(test)]
mod tests;
