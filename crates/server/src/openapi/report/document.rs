//! The JSON schemas of the document of a visit and of its URLs.

use serde_json::Value;

use super::{described, integer, nullable, object, text};

/// Returns the schema of the response.
pub(super) fn document() -> Value {
    nullable(object(
        "The response with the main document.",
        &[("status", integer()), ("mime_type", text())],
        &[],
    ))
}

/// Returns the schema of the URLs of the requests.
pub(super) fn document_urls() -> Value {
    object(
        "The URLs between which the request for the document was redirected.",
        &[("first", text()), ("received", text())],
        &[],
    )
}

/// Returns the schema of the URL at the end of the visit.
pub(super) fn final_url() -> Value {
    described(
        nullable(text()),
        "The URL that the measured document had in the end, after redirects and scripts.",
    )
}
