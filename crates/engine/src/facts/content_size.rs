//! Estimates of the transferred bytes of scripts and style sheets, from the length of the text and
//! the bytes of its request. Rules and ratios are those of Lighthouse 13.5
//! (core/lib/script-helpers.js).

use super::{Request, Requests, Script};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Script,
    StyleSheet,
}

impl TextKind {
    fn resource_type(self) -> &'static str {
        match self {
            Self::Script => "Script",
            Self::StyleSheet => "Stylesheet",
        }
    }

    /// Returns the usual compression ratio, for texts without a request.
    fn usual_ratio(self) -> f64 {
        match self {
            Self::Script => 0.33,
            Self::StyleSheet => 0.2,
        }
    }

    /// Returns the transferred bytes of the body, without the response headers.
    pub fn body_bytes(self, request: Option<&Request>, length: f64) -> f64 {
        let Some(request) = request else {
            return (length * self.usual_ratio()).round();
        };
        let body_bytes = if request.is_compressed() {
            (request.transfer_bytes() - request.header_bytes()).max(0.0)
        } else {
            request.resource_bytes()
        };
        self.share_of(request, body_bytes, length)
    }

    /// Returns the transferred bytes including the response headers.
    pub fn transfer_bytes(self, request: Option<&Request>, length: f64) -> f64 {
        let Some(request) = request else {
            return (length * self.usual_ratio()).round();
        };
        self.share_of(request, request.transfer_bytes(), length)
    }

    /// Returns the bytes of a text; inside another file, such as a document, it gets its share of
    /// the file's bytes.
    fn share_of(self, request: &Request, bytes: f64, length: f64) -> f64 {
        if request.exchange.loaded_type() == self.resource_type() {
            return bytes;
        }
        if request.resource_bytes() > 0.0 {
            (length * bytes / request.resource_bytes()).round()
        } else {
            length
        }
    }
}

/// Returns the request of a script, preferring one of the script's own frame.
pub fn script_request<'a>(requests: &'a Requests, script: &Script) -> Option<&'a Request> {
    let mut of_url = requests
        .all
        .iter()
        .filter(|request| request.url.as_str() == script.url)
        .peekable();
    let first = of_url.peek().copied();
    let mut request = of_url
        .find(|request| !script.frame.is_empty() && request.exchange.frame_id() == script.frame)
        .or(first)?;
    // A chain of redirects is never longer than there are requests.
    for _ in 0..requests.all.len() {
        match requests.redirect_target(request) {
            Some(next) => request = next,
            None => break,
        }
    }
    Some(request)
}

/// Returns the transferred bytes for each code unit of a script, as far as its request tells.
pub fn transferred_share(requests: &Requests, script: &Script) -> f64 {
    let request = script_request(requests, script);
    let length = request
        .map(Request::resource_bytes)
        .filter(|bytes| *bytes > 0.0)
        .unwrap_or(script.length as f64);
    if length > 0.0 {
        TextKind::Script.body_bytes(request, length) / length
    } else {
        0.0
    }
}
