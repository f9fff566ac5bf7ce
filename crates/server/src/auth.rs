use std::net::IpAddr;

use axum::{extract::FromRequestParts, http::request::Parts};
use plumbline_store::{Key, KeyDigest, KeyRecord, Timestamp};

use crate::{errors::Failure, notes::Notes, peer, router::Shared};

/// Header names are lower case inside the HTTP library; clients may write `X-SVC-KEY`.
const KEY_HEADER: &str = "x-svc-key";

/// Who asks, proven by a key, and counted as one request of that key.
pub(crate) struct Caller {
    pub(crate) key_id: String,
    pub(crate) account_id: String,
    /// The client's address.
    pub(crate) from: IpAddr,
    /// The balance when the key was looked up.
    pub(crate) credits: i64,
    pub(crate) notes: Notes,
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Shared) -> Result<Self, Failure> {
        let (record, notes, now) = prove(parts, service).await?;
        let turn = service.requests.take(&record.id, now, 1).await?;
        notes.turn(turn);
        if turn.is_some_and(|turn| turn.is_refused()) {
            return Err(Failure::RateLimited);
        }
        Ok(Self {
            key_id: record.id,
            account_id: record.account_id,
            from: peer::address_of(parts, &service.app.limits),
            credits: record.credits,
            notes,
        })
    }
}

/// Who wants to start something. Counted by [`Starter::take`], once it is known to be valid.
pub(crate) struct Starter {
    pub(crate) key_id: String,
    pub(crate) account_id: String,
    pub(crate) notes: Notes,
}

impl FromRequestParts<Shared> for Starter {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Shared) -> Result<Self, Failure> {
        let (record, notes, now) = prove(parts, service).await?;
        notes.turn(service.starts.look(&record.id, now));
        Ok(Self {
            key_id: record.id,
            account_id: record.account_id,
            notes,
        })
    }
}

impl Starter {
    pub(crate) async fn take(&self, service: &Shared, starts: u32) -> Result<(), Failure> {
        let now = (service.app.clock)();
        let turn = service.starts.take(&self.key_id, now, starts).await?;
        self.notes.turn(turn);
        match turn {
            Some(turn) if turn.is_refused() => Err(Failure::RateLimited),
            _ => Ok(()),
        }
    }
}

async fn prove(parts: &Parts, service: &Shared) -> Result<(KeyRecord, Notes, Timestamp), Failure> {
    let from = peer::address_of(parts, &service.app.limits);
    let record = prove_key(presented_key(parts), from, service).await?;
    Ok((record, Notes::of(parts), (service.app.clock)()))
}

/// The record of a key that is right. A wrong one counts against the address it came from, whichever
/// door it was tried at.
pub(crate) async fn prove_key(
    key: Option<Key>,
    from: IpAddr,
    service: &Shared,
) -> Result<KeyRecord, Failure> {
    let now = (service.app.clock)();
    service.wrong_keys.check(from, key.as_ref(), now).await?;
    let proven = match &key {
        Some(key) => usable(key, service, now).await?,
        None => None,
    };
    match (&key, proven) {
        (Some(key), Some(record)) => {
            service.wrong_keys.proved(key);
            Ok(record)
        }
        _ => {
            service.wrong_keys.failed(from, key.as_ref(), now).await?;
            Err(Failure::Unauthorized)
        }
    }
}

async fn usable(key: &Key, service: &Shared, now: Timestamp) -> Result<Option<KeyRecord>, Failure> {
    let record = service.app.store.key(key.id()).await?;
    // An unknown id is compared too, so that the time of an answer tells nothing about it.
    let stored = record
        .as_ref()
        .map_or(KeyDigest([0; 32]), |record| record.digest);
    let proven = stored == key.digest();
    Ok(record.filter(|record| proven && record.is_usable(now)))
}

/// Two keys are none: which of them was meant is not ours to guess.
fn presented_key(parts: &Parts) -> Option<Key> {
    let mut values = parts.headers.get_all(KEY_HEADER).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Key::parse(value.to_str().ok()?),
        _ => None,
    }
}
