//! Limits concurrent requests, in total and per client.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{errors::Failure, peer::network_of};

/// Requests of agents that are served in addition to ordinary ones. A slot uses one while it waits
/// for work.
pub(crate) const AGENT_RESERVE: usize = 64;
/// Readiness probes that are served in addition to ordinary requests.
pub(crate) const PROBE_RESERVE: usize = 8;
/// One address may have one in this many of the ordinary requests.
const ADDRESS_DIVISOR: usize = 2;
/// The long polls and event streams of one key, and of one address, may be one in this many of the
/// ordinary requests.
const WAIT_DIVISOR: usize = 4;

/// The permits for concurrent requests.
pub(crate) struct Capacity {
    ordinary: Arc<Semaphore>,
    agents: Arc<Semaphore>,
    probes: Arc<Semaphore>,
    by_address: ClientCounts,
    waits_by_address: ClientCounts,
    waits_by_key: ClientCounts,
}

/// The kind of a request, which its route determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    /// A liveness probe, which is served regardless of load.
    Liveness,
    Readiness,
    Agent,
    Ordinary,
}

impl RequestKind {
    fn of(route: &str) -> Self {
        match route {
            "/healthz" => Self::Liveness,
            "/readyz" => Self::Readiness,
            _ if route.starts_with("/agent/") => Self::Agent,
            _ => Self::Ordinary,
        }
    }
}

/// The permit of a request, held while it is served.
pub(crate) struct RequestPermit {
    _permit: Option<OwnedSemaphorePermit>,
    _by_address: Option<ClientPermit>,
}

/// The permit of a long poll or an event stream, held while it waits.
pub(crate) struct WaitPermit {
    _by_address: ClientPermit,
    _by_key: ClientPermit,
}

impl Capacity {
    /// Creates permits for `ordinary` requests, in addition to the reserves.
    pub(crate) fn new(ordinary: usize) -> Self {
        let one_in = |divisor: usize| ClientCounts::new((ordinary / divisor).max(1));
        Self {
            ordinary: Arc::new(Semaphore::new(ordinary)),
            agents: Arc::new(Semaphore::new(AGENT_RESERVE)),
            probes: Arc::new(Semaphore::new(PROBE_RESERVE)),
            by_address: one_in(ADDRESS_DIVISOR),
            waits_by_address: one_in(WAIT_DIVISOR),
            waits_by_key: one_in(WAIT_DIVISOR),
        }
    }

    /// Acquires the permit for a request, or fails if a limit is reached.
    pub(crate) fn acquire(&self, route: &str, address: IpAddr) -> Result<RequestPermit, Failure> {
        let reserve = match RequestKind::of(route) {
            RequestKind::Liveness => {
                return Ok(RequestPermit {
                    _permit: None,
                    _by_address: None,
                });
            }
            RequestKind::Readiness => Some(&self.probes),
            RequestKind::Agent => Some(&self.agents),
            RequestKind::Ordinary => None,
        };
        let reserved = reserve.and_then(|permits| Arc::clone(permits).try_acquire_owned().ok());
        if reserved.is_some() {
            return Ok(RequestPermit {
                _permit: reserved,
                _by_address: None,
            });
        }
        let by_address = self.by_address.acquire(&network_of(address));
        let by_address = by_address.ok_or(Failure::TooManyAtOnce)?;
        let permit = Arc::clone(&self.ordinary).try_acquire_owned();
        Ok(RequestPermit {
            _permit: Some(permit.map_err(|_| Failure::Busy)?),
            _by_address: Some(by_address),
        })
    }

    /// Acquires the permit for a long poll or an event stream.
    pub(crate) fn acquire_wait(
        &self,
        address: IpAddr,
        key_id: &str,
    ) -> Result<WaitPermit, Failure> {
        let by_address = self.waits_by_address.acquire(&network_of(address));
        let by_key = self.waits_by_key.acquire(key_id);
        match (by_address, by_key) {
            (Some(by_address), Some(by_key)) => Ok(WaitPermit {
                _by_address: by_address,
                _by_key: by_key,
            }),
            _ => Err(Failure::TooManyWaits),
        }
    }
}

/// The number of permits of each client, limited to `at_most`.
struct ClientCounts {
    at_most: usize,
    counts: Arc<Mutex<HashMap<String, usize>>>,
}

impl ClientCounts {
    fn new(at_most: usize) -> Self {
        Self {
            at_most,
            counts: Arc::default(),
        }
    }

    fn acquire(&self, client: &str) -> Option<ClientPermit> {
        let mut counts = self.counts.lock();
        let count = counts.get(client).copied().unwrap_or_default();
        if count >= self.at_most {
            return None;
        }
        counts.insert(client.to_owned(), count + 1);
        Some(ClientPermit {
            counts: Arc::clone(&self.counts),
            client: client.to_owned(),
        })
    }
}

struct ClientPermit {
    counts: Arc<Mutex<HashMap<String, usize>>>,
    client: String,
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn one_address_gets_half_of_the_ordinary_permits_and_all_together_get_no_more_than_exist() {
        let capacity = Capacity::new(4);
        let acquire = |from| capacity.acquire("/v1/audits", address(from));
        let first = [acquire(1), acquire(1)];
        assert!(first.iter().all(Result::is_ok));
        assert!(matches!(acquire(1), Err(Failure::TooManyAtOnce)));
        let others = [acquire(2), acquire(3)];
        assert!(others.iter().all(Result::is_ok));
        assert!(matches!(acquire(4), Err(Failure::Busy)));
        drop(first);
        assert!(acquire(1).is_ok());
    }

    #[test]
    fn probes_and_agents_are_served_while_all_ordinary_permits_are_in_use() {
        let capacity = Capacity::new(1);
        let _all = capacity.acquire("/", address(1)).unwrap();
        assert!(capacity.acquire("/healthz", address(1)).is_ok());
        assert!(capacity.acquire("/readyz", address(1)).is_ok());
        let agents: Vec<_> = (0..AGENT_RESERVE)
            .map(|_| capacity.acquire("/agent/v1/lease", address(1)))
            .collect();
        assert!(agents.iter().all(Result::is_ok));
        assert!(capacity.acquire("/agent/v1/lease", address(2)).is_err());
        assert!(
            capacity.acquire("/readyz", address(1)).is_ok(),
            "counted separately"
        );
    }

    #[test]
    fn waits_are_limited_by_address_and_by_key() {
        let capacity = Capacity::new(8);
        let here = [
            capacity.acquire_wait(address(1), "a"),
            capacity.acquire_wait(address(1), "b"),
        ];
        assert!(here.iter().all(Result::is_ok));
        assert!(matches!(
            capacity.acquire_wait(address(1), "c"),
            Err(Failure::TooManyWaits)
        ));
        let there = capacity.acquire_wait(address(2), "a").unwrap();
        assert!(
            capacity.acquire_wait(address(3), "a").is_err(),
            "the key has reached its limit"
        );
        drop((here, there));
        assert!(capacity.waits_by_key.counts.lock().is_empty());
        assert!(capacity.waits_by_address.counts.lock().is_empty());
    }
}
