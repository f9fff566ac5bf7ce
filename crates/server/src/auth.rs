//! Authentication of clients with keys.

use std::net::IpAddr;

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, request::Parts},
};
use plumbline_store::{Key, KeyDigest, KeyRecord, Timestamp};

use crate::{errors::Failure, peer, request_context::RequestContext, state::SharedState};

/// The header of the key. Header names are lower case inside the HTTP library; clients may write
/// `X-SVC-KEY`.
const KEY_HEADER: &str = "x-svc-key";

/// The reason for a request whose key is not valid.
const WRONG_KEY: &str = "The key is not valid. It may be mistyped, expired or revoked.";
/// The reason for a request without a key.
const NO_KEY: &str = "The header X-SVC-KEY with the key is missing, or was sent more than once.";

/// An authenticated client whose request was counted against the limit of its key.
pub(crate) struct Caller {
    pub(crate) key_id: String,
    pub(crate) account_id: String,
    /// The client's address.
    pub(crate) address: IpAddr,
    /// The balance when the key was looked up.
    pub(crate) credits: i64,
    pub(crate) context: RequestContext,
}

impl FromRequestParts<SharedState> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &SharedState) -> Result<Self, Failure> {
        let (record, context, now) = authenticate(parts, service).await?;
        let status = service.requests.take(&record.id, now, 1).await?;
        context.set_rate_status(status);
        if status.is_some_and(|status| status.is_refused()) {
            return Err(Failure::RateLimited);
        }
        Ok(Self {
            key_id: record.id,
            account_id: record.account_id,
            address: peer::client_address(parts, &service.app.limits),
            credits: record.credits,
            context,
        })
    }
}

/// An authenticated client that starts audits. [`Starter::take`] counts the audits against the
/// limit of its key once the request is known to be valid.
pub(crate) struct Starter {
    pub(crate) key_id: String,
    pub(crate) account_id: String,
    pub(crate) context: RequestContext,
}

impl FromRequestParts<SharedState> for Starter {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &SharedState) -> Result<Self, Failure> {
        let (record, context, now) = authenticate(parts, service).await?;
        context.set_rate_status(service.starts.peek(&record.id, now));
        Ok(Self {
            key_id: record.id,
            account_id: record.account_id,
            context,
        })
    }
}

impl Starter {
    /// Counts this many starts against the limit of the key, or fails.
    pub(crate) async fn take(&self, service: &SharedState, starts: u32) -> Result<(), Failure> {
        let now = (service.app.clock)();
        let status = service.starts.take(&self.key_id, now, starts).await?;
        self.context.set_rate_status(status);
        match status {
            Some(status) if status.is_refused() => Err(Failure::RateLimited),
            _ => Ok(()),
        }
    }
}

async fn authenticate(
    parts: &Parts,
    service: &SharedState,
) -> Result<(KeyRecord, RequestContext, Timestamp), Failure> {
    let address = peer::client_address(parts, &service.app.limits);
    let record = authenticate_key(presented_key(parts), address, service).await;
    let record = record.map_err(|failure| match failure {
        Failure::Unauthorized(_) if key_header(parts).is_none() => Failure::Unauthorized(NO_KEY),
        failure => failure,
    })?;
    Ok((record, RequestContext::of(parts), (service.app.clock)()))
}

/// Returns the record of a valid key. A wrong key counts against the address it came from, whether
/// it was sent to the API or to the sign-in page.
pub(crate) async fn authenticate_key(
    key: Option<Key>,
    address: IpAddr,
    service: &SharedState,
) -> Result<KeyRecord, Failure> {
    let now = (service.app.clock)();
    let failed_keys = &service.failed_keys;
    failed_keys.check(address, key.as_ref(), now).await?;
    let record = match &key {
        Some(key) => usable_record(key, service, now).await?,
        None => None,
    };
    match (&key, record) {
        (Some(key), Some(record)) => {
            failed_keys.record_success(key);
            Ok(record)
        }
        _ => {
            let key = key.as_ref();
            failed_keys.record_failure(address, key, now).await?;
            Err(Failure::Unauthorized(WRONG_KEY))
        }
    }
}

async fn usable_record(
    key: &Key,
    service: &SharedState,
    now: Timestamp,
) -> Result<Option<KeyRecord>, Failure> {
    let record = service.app.store.key(key.id()).await?;
    // An unknown id is compared too, so that response times do not reveal which ids exist.
    let stored = record
        .as_ref()
        .map_or(KeyDigest([0; 32]), |record| record.digest);
    let is_equal = stored == key.digest();
    Ok(record.filter(|record| is_equal && record.is_usable(now)))
}

/// Returns the key of a request, if it has a plausible one.
fn presented_key(parts: &Parts) -> Option<Key> {
    Key::parse(key_header(parts)?.to_str().ok()?)
}

/// Returns the header of the key. A request with two keys is ambiguous, so it has none.
fn key_header(parts: &Parts) -> Option<&HeaderValue> {
    let mut values = parts.headers.get_all(KEY_HEADER).iter();
    values.next().filter(|_| values.next().is_none())
}
