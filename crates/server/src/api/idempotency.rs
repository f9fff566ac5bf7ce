//! Idempotency keys, with which starts can be repeated without being charged twice.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use plumbline_store::{IdempotencyRecord, Timestamp};
use sha2::{Digest, Sha256};

use crate::errors::Failure;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest idempotency key.
pub(crate) const MAX_LENGTH: usize = 255;
/// How long an idempotency key is remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The header's value. It is checked after the key of the account, like the body.
pub(crate) struct IdempotencyKey(Result<Option<String>, Failure>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parse_header(&parts.headers)))
    }
}

fn parse_header(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut values = headers.get_all(HEADER).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return if headers.contains_key(HEADER) {
            Err(Failure::InvalidIdempotencyKey)
        } else {
            Ok(None)
        };
    };
    let is_plain = value.as_bytes().iter().all(u8::is_ascii_graphic);
    let text = value.to_str().unwrap_or_default();
    if is_plain && (1..=MAX_LENGTH).contains(&text.len()) {
        Ok(Some(text.to_owned()))
    } else {
        Err(Failure::InvalidIdempotencyKey)
    }
}

impl IdempotencyKey {
    /// Returns the key, if there is one, or fails if it is invalid.
    pub(crate) fn valid(self) -> Result<Option<String>, Failure> {
        self.0
    }
}

/// Returns the record with which the store replays a reply. `canonical_request` is the request in a
/// normalized format, so that spaces and the order of members do not matter.
pub(crate) fn record(
    key: String,
    canonical_request: &str,
    reply: String,
    now: Timestamp,
) -> IdempotencyRecord {
    IdempotencyRecord {
        key,
        digest: Sha256::digest(canonical_request.as_bytes()).into(),
        reply,
        until: now.plus(REMEMBERED_FOR),
    }
}
