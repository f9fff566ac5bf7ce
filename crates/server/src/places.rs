//! How many requests are served at a time, and how many of them one client may hold.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{errors::Failure, peer::network_of};

/// Places for agents beside the ordinary ones. An agent's slot holds one while it waits for work.
pub(crate) const AGENT_RESERVE: usize = 64;
/// Places for readiness probes beside the ordinary ones.
pub(crate) const PROBE_RESERVE: usize = 8;
/// Of the ordinary places, one address may hold this part.
const ADDRESS_PART: usize = 2;
/// Of the ordinary places, the waits and event streams of one key, and of one address, may hold this
/// part.
const WAITING_PART: usize = 4;

/// The places at which requests are served.
pub(crate) struct Places {
    ordinary: Arc<Semaphore>,
    agents: Arc<Semaphore>,
    probes: Arc<Semaphore>,
    by_address: Shares,
    waiting_by_address: Shares,
    waiting_by_key: Shares,
}

/// Who a request is from, as far as its route tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Answered at once, whatever else goes on.
    Liveness,
    Readiness,
    Agent,
    Ordinary,
}

impl Kind {
    fn of(route: &str) -> Self {
        match route {
            "/healthz" => Self::Liveness,
            "/readyz" => Self::Readiness,
            _ if route.starts_with("/agent/") => Self::Agent,
            _ => Self::Ordinary,
        }
    }
}

/// Held while a request is served.
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    _share: Option<Share>,
}

/// Held while a request waits on purpose.
pub(crate) struct WaitingPlace {
    _by_address: Share,
    _by_key: Share,
}

impl Places {
    /// `ordinary` places for everybody, and the reserves.
    pub(crate) fn new(ordinary: usize) -> Self {
        let share = |part: usize| Shares::new((ordinary / part).max(1));
        Self {
            ordinary: Arc::new(Semaphore::new(ordinary)),
            agents: Arc::new(Semaphore::new(AGENT_RESERVE)),
            probes: Arc::new(Semaphore::new(PROBE_RESERVE)),
            by_address: share(ADDRESS_PART),
            waiting_by_address: share(WAITING_PART),
            waiting_by_key: share(WAITING_PART),
        }
    }

    /// A place for a request, or why there is none.
    pub(crate) fn take(&self, route: &str, from: IpAddr) -> Result<Place, Failure> {
        let reserve = match Kind::of(route) {
            Kind::Liveness => {
                return Ok(Place {
                    _permit: None,
                    _share: None,
                });
            }
            Kind::Readiness => Some(&self.probes),
            Kind::Agent => Some(&self.agents),
            Kind::Ordinary => None,
        };
        let reserved = reserve.and_then(|places| Arc::clone(places).try_acquire_owned().ok());
        if reserved.is_some() {
            return Ok(Place {
                _permit: reserved,
                _share: None,
            });
        }
        let share = self.by_address.take(&network_of(from));
        let share = share.ok_or(Failure::TooManyAtOnce)?;
        let permit = Arc::clone(&self.ordinary).try_acquire_owned();
        Ok(Place {
            _permit: Some(permit.map_err(|_| Failure::Busy)?),
            _share: Some(share),
        })
    }

    /// A place to wait at: for a status that is waited for, and for an event stream.
    pub(crate) fn wait(&self, from: IpAddr, key_id: &str) -> Result<WaitingPlace, Failure> {
        let by_address = self.waiting_by_address.take(&network_of(from));
        let by_key = self.waiting_by_key.take(key_id);
        match (by_address, by_key) {
            (Some(by_address), Some(by_key)) => Ok(WaitingPlace {
                _by_address: by_address,
                _by_key: by_key,
            }),
            _ => Err(Failure::TooManyWaits),
        }
    }
}

/// Counts what each of many holds, and lets none hold more than `at_most`.
struct Shares {
    at_most: usize,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

impl Shares {
    fn new(at_most: usize) -> Self {
        Self {
            at_most,
            held: Arc::default(),
        }
    }

    fn take(&self, holder: &str) -> Option<Share> {
        let mut held = locked(&self.held);
        let count = held.get(holder).copied().unwrap_or_default();
        if count >= self.at_most {
            return None;
        }
        held.insert(holder.to_owned(), count + 1);
        Some(Share {
            held: Arc::clone(&self.held),
            holder: holder.to_owned(),
        })
    }
}

struct Share {
    held: Arc<Mutex<HashMap<String, usize>>>,
    holder: String,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = locked(&self.held);
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

fn locked(held: &Mutex<HashMap<String, usize>>) -> MutexGuard<'_, HashMap<String, usize>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn one_address_holds_half_of_the_ordinary_places_and_all_hold_no_more_than_there_are() {
        let places = Places::new(4);
        let take = |from| places.take("/v1/audits", address(from));
        let first = [take(1), take(1)];
        assert!(first.iter().all(Result::is_ok));
        assert!(matches!(take(1), Err(Failure::TooManyAtOnce)));
        let others = [take(2), take(3)];
        assert!(others.iter().all(Result::is_ok));
        assert!(matches!(take(4), Err(Failure::Busy)));
        drop(first);
        assert!(take(1).is_ok());
    }

    #[test]
    fn probes_and_agents_are_served_while_all_ordinary_places_are_taken() {
        let places = Places::new(1);
        let _all = places.take("/", address(1)).unwrap();
        assert!(places.take("/healthz", address(1)).is_ok());
        assert!(places.take("/readyz", address(1)).is_ok());
        let agents: Vec<_> = (0..AGENT_RESERVE)
            .map(|_| places.take("/agent/v1/lease", address(1)))
            .collect();
        assert!(agents.iter().all(Result::is_ok));
        assert!(places.take("/agent/v1/lease", address(2)).is_err());
        assert!(places.take("/readyz", address(1)).is_ok(), "counted apart");
    }

    #[test]
    fn waits_are_bounded_by_address_and_by_key() {
        let places = Places::new(8);
        let here = [places.wait(address(1), "a"), places.wait(address(1), "b")];
        assert!(here.iter().all(Result::is_ok));
        assert!(matches!(
            places.wait(address(1), "c"),
            Err(Failure::TooManyWaits)
        ));
        let there = places.wait(address(2), "a").unwrap();
        assert!(
            places.wait(address(3), "a").is_err(),
            "as many as the key may"
        );
        drop((here, there));
        assert!(locked(&places.waiting_by_key.held).is_empty());
        assert!(locked(&places.waiting_by_address.held).is_empty());
    }
}
