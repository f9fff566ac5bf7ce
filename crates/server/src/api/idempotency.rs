//! Starts that can be repeated without being paid for twice.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use plumbline_store::{IdempotencyRecord, Timestamp};
use sha2::{Digest, Sha256};

use crate::errors::Failure;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const LONGEST: usize = 255;
pub(crate) const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// What the header says; judged after the key of the account, like the body.
pub(crate) struct IdempotencyKey(Result<Option<String>, Failure>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(given(&parts.headers)))
    }
}

fn given(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut values = headers.get_all(HEADER).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return match headers.contains_key(HEADER) {
            true => Err(Failure::InvalidIdempotencyKey),
            false => Ok(None),
        };
    };
    let is_plain = value.as_bytes().iter().all(u8::is_ascii_graphic);
    let text = value.to_str().unwrap_or_default();
    match is_plain && (1..=LONGEST).contains(&text.len()) {
        true => Ok(Some(text.to_owned())),
        false => Err(Failure::InvalidIdempotencyKey),
    }
}

impl IdempotencyKey {
    pub(crate) fn valid(self) -> Result<Option<String>, Failure> {
        self.0
    }
}

/// `asked` is what was asked for, in one fixed form: spaces and the order of members do not count.
pub(crate) fn replay(key: String, asked: &str, reply: String, now: Timestamp) -> IdempotencyRecord {
    IdempotencyRecord {
        key,
        digest: Sha256::digest(asked.as_bytes()).into(),
        reply,
        until: now.plus(REMEMBERED),
    }
}
