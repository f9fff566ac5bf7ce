//! The form by which the owner of a page shares it by a link.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};
use plumbline_report::html::figures::date;
use plumbline_store::Share;

use crate::{
    errors::Failure,
    share::{invalid_days, valid_days},
    state::SharedState,
};

/// The validity periods of a shared link that the form offers: days, or empty for no expiry.
const EXPIRY: [(&str, &str); 5] = [
    ("", "never"),
    ("1", "after 1 day"),
    ("7", "after 7 days"),
    ("30", "after 30 days"),
    ("90", "after 90 days"),
];

/// The form below the heading of a page by which its owner shares it. The template of the page
/// includes `shared_page/sharing.html`.
pub(super) struct Sharing {
    pub(super) action: String,
    pub(super) fields: Vec<(&'static str, String)>,
    /// The link by which the page is shared, if it is.
    pub(super) link: Option<SharedLink>,
}

impl Sharing {
    /// Returns the choices of the field `days`, with their labels.
    pub(super) fn expiry_choices(&self) -> [(&'static str, &'static str); 5] {
        EXPIRY
    }
}

/// A link by which a page is shared.
pub(super) struct SharedLink {
    pub(super) path: String,
    /// The whole address, to be sent to others.
    pub(super) address: String,
    /// The time at which it expires.
    pub(super) until: Option<String>,
}

impl SharedLink {
    /// Creates the link of a share, which has a path in this folder.
    pub(super) fn new(origin: &Origin, folder: &str, share: &Share) -> Self {
        let path = format!("{folder}/{}", share.token);
        Self {
            address: origin.address(&path),
            until: share.expires_at.map(|at| date(at.0)),
            path,
        }
    }
}

/// The origin of the service as the browser of the reader knows it, such as
/// `https://audits.example`.
pub(crate) struct Origin(String);

impl Origin {
    /// Returns the whole address of a path.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl FromRequestParts<SharedState> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &SharedState,
    ) -> Result<Self, Infallible> {
        let host = parts.headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok());
        // HTTP/2 names the host in the URI.
        let host = host.or(parts.uri.authority().map(|authority| authority.as_str()));
        let scheme = if service.app.limits.uses_https() {
            "https"
        } else {
            "http"
        };
        Ok(Self(host.map_or_else(String::new, |host| {
            format!("{scheme}://{host}")
        })))
    }
}

/// Parses the validity of a link in days; `None` means that it does not expire.
pub(super) fn parse_days(days: &str) -> Result<Option<u32>, Failure> {
    if days.is_empty() {
        return Ok(None);
    }
    let days = days.parse().ok().and_then(valid_days);
    days.map(Some).ok_or_else(invalid_days)
}
