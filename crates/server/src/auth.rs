use axum::{extract::FromRequestParts, http::request::Parts};
use plumbline_store::{Key, KeyDigest};

use crate::{errors::Failure, router::Shared};

/// Header names are lower case inside the HTTP library; clients may write `X-SVC-KEY`.
const KEY_HEADER: &str = "x-svc-key";

/// Who asks, proven by a key.
pub(crate) struct Caller {
    pub(crate) key_id: String,
    pub(crate) account_id: String,
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Shared) -> Result<Self, Failure> {
        let key = presented_key(parts).ok_or(Failure::Unauthorized)?;
        let record = service.app.store.key(key.id()).await?;
        // An unknown id is compared too, so that the time of an answer tells nothing about it.
        let stored = record
            .as_ref()
            .map_or(KeyDigest([0; 32]), |record| record.digest);
        let proven = stored == key.digest();
        match record {
            Some(record) if proven && record.is_usable((service.app.clock)()) => Ok(Self {
                key_id: record.id,
                account_id: record.account_id,
            }),
            _ => Err(Failure::Unauthorized),
        }
    }
}

/// Two keys are none: which of them was meant is not ours to guess.
fn presented_key(parts: &Parts) -> Option<Key> {
    let mut values = parts.headers.get_all(KEY_HEADER).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Key::parse(value.to_str().ok()?),
        _ => None,
    }
}
