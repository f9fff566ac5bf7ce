//! Who is at the other end, and how many wrong keys came from there.

use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Mutex, PoisonError},
};

use axum::http::request::Parts;
use plumbline_store::{Key, Timestamp};

use crate::{
    Limits,
    errors::Failure,
    rate::{Limit, Turn},
};

/// The address a connection came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The client's address. Behind a proxy it is the last one in `X-Forwarded-For`: the others were
/// written by whoever asked.
pub(crate) fn address_of(parts: &Parts, limits: &Limits) -> IpAddr {
    let connected = parts
        .extensions
        .get::<Peer>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    if !limits.behind_proxy {
        return connected;
    }
    let mut named = parts.headers.get_all("x-forwarded-for").iter();
    named
        .next_back()
        .and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok())
        .unwrap_or(connected)
}

/// Wrong keys, counted by address. Whoever has tried too many is refused before the store is asked,
/// except with a key that has been right before: people behind one address do not lock each other
/// out.
pub(crate) struct WrongKeys {
    tried: Limit,
    proven: Mutex<HashSet<[u8; 32]>>,
}

/// A bound on memory, not on customers: forgetting costs only the exception above.
const PROVEN_AT_MOST: usize = 10_000;

impl WrongKeys {
    pub(crate) fn new(tried: Limit) -> Self {
        Self {
            tried,
            proven: Mutex::default(),
        }
    }

    pub(crate) async fn check(
        &self,
        from: IpAddr,
        key: Option<&Key>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        if key.is_some_and(|key| self.is_proven(key)) {
            return Ok(());
        }
        // Seldom enough to ask: a key that is right is proven from then on.
        match self.tried.look_around(&network_of(from), now).await? {
            Some(turn) if turn.remaining == 0 => Err(too_many(turn, now)),
            _ => Ok(()),
        }
    }

    /// Counts one; fails when there have been too many, here or at other servers. A key that was right
    /// before, and is revoked or expired by now, is no better than any other wrong one from then on.
    pub(crate) async fn failed(
        &self,
        from: IpAddr,
        key: Option<&Key>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        if let Some(key) = key {
            let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
            proven.remove(&key.digest().0);
        }
        match self.tried.take(&network_of(from), now, 1).await? {
            Some(turn) if turn.is_refused() => Err(too_many(turn, now)),
            _ => Ok(()),
        }
    }

    pub(crate) fn proved(&self, key: &Key) {
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if proven.len() >= PROVEN_AT_MOST {
            proven.clear();
        }
        proven.insert(key.digest().0);
    }

    fn is_proven(&self, key: &Key) -> bool {
        self.proven
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&key.digest().0)
    }
}

fn too_many(turn: Turn, now: Timestamp) -> Failure {
    Failure::TooManyFailedKeys((turn.reset_s - now.0.div_euclid(1000)).max(1))
}

/// In IPv6 a single customer commonly has a /64, and all of its addresses.
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
    async fn who_has_tried_too_many_is_refused_unless_the_key_was_right_before() {
        let (wrong, now) = (
            WrongKeys::new(Limit::Alone(Buckets::new(2))),
            Timestamp(1_800_000_000_000),
        );
        let (here, there) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let (good, unknown) = (Key::generate().unwrap(), Key::generate().unwrap());
        wrong.proved(&good);
        wrong.failed(here, None, now).await.unwrap();
        assert!(wrong.check(here, Some(&unknown), now).await.is_ok());
        wrong.failed(here, Some(&unknown), now).await.unwrap();
        assert!(wrong.check(here, Some(&unknown), now).await.is_err());
        assert!(wrong.check(here, None, now).await.is_err());
        assert!(wrong.check(here, Some(&good), now).await.is_ok());
        assert!(wrong.check(there, Some(&unknown), now).await.is_ok());
        let later = Timestamp(now.0 + 30_000);
        assert!(wrong.check(here, Some(&unknown), later).await.is_ok());
        // Revoked meanwhile: refused unread like any other.
        assert!(wrong.failed(there, Some(&good), now).await.is_ok());
        assert!(wrong.check(here, Some(&good), now).await.is_err());
    }
}
