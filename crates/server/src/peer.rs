//! Addresses of clients, and the limit on wrong keys from one address.

use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use axum::http::request::Parts;
use parking_lot::Mutex;
use plumbline_store::{Key, Timestamp};

use crate::{
    app::Limits,
    errors::Failure,
    rate::{RateLimiter, RateStatus},
};

/// The remote address of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Returns the client's address. Behind a proxy it is the last one in `X-Forwarded-For`: the client
/// can write the others itself.
pub(crate) fn client_address(parts: &Parts, limits: &Limits) -> IpAddr {
    let remote = parts
        .extensions
        .get::<Peer>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    if !limits.behind_proxy {
        return remote;
    }
    let mut forwarded = parts.headers.get_all("x-forwarded-for").iter();
    forwarded
        .next_back()
        .and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok())
        .unwrap_or(remote)
}

/// Limits wrong keys by address. After too many, requests from the address are refused without a
/// store access, except those with a key that was valid before: users behind one address do not
/// lock each other out.
pub(crate) struct FailedKeyLimiter {
    limiter: RateLimiter,
    /// The digests of keys that were valid before.
    valid_digests: Mutex<HashSet<[u8; 32]>>,
}

/// The number of digests that are remembered. This limits memory, not customers: without a digest
/// only the exception above is lost.
const MAX_VALID_DIGESTS: usize = 10_000;

impl FailedKeyLimiter {
    pub(crate) fn new(limiter: RateLimiter) -> Self {
        Self {
            limiter,
            valid_digests: Mutex::default(),
        }
    }

    /// Fails if too many wrong keys came from the address, unless this key was valid before.
    pub(crate) async fn check(
        &self,
        address: IpAddr,
        key: Option<&Key>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        if key.is_some_and(|key| self.was_valid(key)) {
            return Ok(());
        }
        // This is rare enough for a store access: a valid key is remembered from then on.
        match self.limiter.peek_shared(&network_of(address), now).await? {
            Some(status) if status.remaining == 0 => Err(too_many(status, now)),
            _ => Ok(()),
        }
    }

    /// Counts a wrong key; fails if there were too many, at this or other servers. A key that was
    /// valid before, but is now revoked or expired, loses its exception.
    pub(crate) async fn record_failure(
        &self,
        address: IpAddr,
        key: Option<&Key>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        if let Some(key) = key {
            self.valid_digests.lock().remove(&key.digest().0);
        }
        match self.limiter.take(&network_of(address), now, 1).await? {
            Some(status) if status.is_refused() => Err(too_many(status, now)),
            _ => Ok(()),
        }
    }

    /// Remembers that a key is valid.
    pub(crate) fn record_success(&self, key: &Key) {
        let mut digests = self.valid_digests.lock();
        if digests.len() >= MAX_VALID_DIGESTS {
            digests.clear();
        }
        digests.insert(key.digest().0);
    }

    fn was_valid(&self, key: &Key) -> bool {
        self.valid_digests.lock().contains(&key.digest().0)
    }
}

fn too_many(status: RateStatus, now: Timestamp) -> Failure {
    Failure::TooManyFailedKeys((status.reset_s - now.0.div_euclid(1000)).max(1))
}

/// Returns the network that counts as one client: the /64 of an IPv6 address, because a single
/// customer commonly has all of its addresses, and any other address itself.
pub(crate) fn network_of(address: IpAddr) -> String {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_none() => {
            let network = u128::from(v6) & !u128::from(u64::MAX);
            Ipv6Addr::from(network).to_string()
        }
        IpAddr::V6(v6) => v6
            .to_ipv4_mapped()
            .map_or_else(|| v6.to_string(), |v4| v4.to_string()),
        IpAddr::V4(v4) => v4.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Buckets;

    #[test]
    fn an_ipv6_network_counts_as_one_and_a_mapped_address_as_itself() {
        let network = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::"));
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
    }

    #[tokio::test]
    async fn after_too_many_wrong_keys_only_keys_that_were_valid_before_are_accepted() {
        let (limiter, now) = (
            FailedKeyLimiter::new(RateLimiter::Local(Buckets::new(2))),
            Timestamp(1_800_000_000_000),
        );
        let (here, there) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let (good, unknown) = (Key::generate().unwrap(), Key::generate().unwrap());
        limiter.record_success(&good);
        limiter.record_failure(here, None, now).await.unwrap();
        assert!(limiter.check(here, Some(&unknown), now).await.is_ok());
        limiter
            .record_failure(here, Some(&unknown), now)
            .await
            .unwrap();
        assert!(limiter.check(here, Some(&unknown), now).await.is_err());
        assert!(limiter.check(here, None, now).await.is_err());
        assert!(limiter.check(here, Some(&good), now).await.is_ok());
        assert!(limiter.check(there, Some(&unknown), now).await.is_ok());
        let later = Timestamp(now.0 + 30_000);
        assert!(limiter.check(here, Some(&unknown), later).await.is_ok());
        // The key was revoked in the meantime, so it is refused like any other.
        assert!(
            limiter
                .record_failure(there, Some(&good), now)
                .await
                .is_ok()
        );
        assert!(limiter.check(here, Some(&good), now).await.is_err());
    }
}
