//! What texts cost on the network: a script or style sheet is known by its length, its request by its bytes.
//! Rules and shares are those of Lighthouse 13.5 (core/lib/script-helpers.js).

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

    /// What usually remains after compression, where there is no request to look at.
    fn usual_share(self) -> f64 {
        match self {
            Self::Script => 0.33,
            Self::StyleSheet => 0.2,
        }
    }

    /// The bytes that the body took, without the headers of the answer.
    pub fn body_bytes(self, request: Option<&Request>, length: f64) -> f64 {
        let Some(request) = request else {
            return (length * self.usual_share()).round();
        };
        let body_bytes = match request.is_compressed() {
            true => (request.transfer_bytes - request.header_bytes).max(0.0),
            false => request.resource_bytes,
        };
        self.share_of(request, body_bytes, length)
    }

    /// The bytes that it took with the headers of the answer.
    pub fn transfer_bytes(self, request: Option<&Request>, length: f64) -> f64 {
        let Some(request) = request else {
            return (length * self.usual_share()).round();
        };
        self.share_of(request, request.transfer_bytes, length)
    }

    /// A text within another file takes its share of that file's bytes.
    fn share_of(self, request: &Request, bytes: f64, length: f64) -> f64 {
        if request.resource_type == self.resource_type() {
            return bytes;
        }
        match request.resource_bytes > 0.0 {
            true => (length * bytes / request.resource_bytes).round(),
            false => length,
        }
    }
}

/// The request that brought a script: the one of its own frame if there is one.
pub fn script_request<'a>(requests: &'a Requests, script: &Script) -> Option<&'a Request> {
    let mut of_url = requests
        .all
        .iter()
        .filter(|request| request.url.as_str() == script.url)
        .peekable();
    let first = of_url.peek().copied();
    let mut request = of_url
        .find(|request| !script.frame.is_empty() && request.frame_id == script.frame)
        .or(first)?;
    // A chain of redirects is never longer than there are requests.
    for _ in 0..requests.all.len() {
        match request.redirected_to.and_then(|at| requests.all.get(at)) {
            Some(next) => request = next,
            None => break,
        }
    }
    Some(request)
}
