//! Whether anything may wait for a seat, known where possible without asking.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{PostgresStore, lanes};
use crate::LeaseScope;

type Places = Option<Vec<String>>;

/// By locations: what `Bells::arrived` stood at before a look that found nothing for them.
#[derive(Default)]
pub(super) struct Looks(Mutex<HashMap<Places, u64>>);

impl Looks {
    pub(super) fn found_nothing(&self, places: Places, arrived: u64) {
        let mut found_nothing_at = self.locked();
        let known = found_nothing_at.entry(places).or_default();
        *known = arrived.max(*known);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Places, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostgresStore {
    /// Who has been told that nothing waits asks the database no more until something has arrived, and
    /// then leases without having asked again: that is a look as well.
    ///
    /// `is_due` asks in any case: something may have happened that nobody rang for.
    pub(super) async fn waits_for(&self, seat: &LeaseScope, is_due: bool) -> bool {
        let arrived = self.bells.arrived.load(Ordering::SeqCst);
        let found_nothing_at = self.looks.locked().get(&seat.locations).copied();
        if self.bells.is_listening.load(Ordering::Relaxed)
            && !is_due
            && let Some(found_nothing_at) = found_nothing_at
        {
            return found_nothing_at != arrived;
        }
        let (places, at_most) = (seat.locations.clone(), self.running_per_account);
        let look = self.read(move |db| {
            Box::pin(async move { lanes::any_waits(db, places.as_ref(), at_most).await })
        });
        // A store that cannot answer has nothing to lease either.
        if matches!(look.await, Ok(true)) {
            return true;
        }
        self.looks.found_nothing(seat.locations.clone(), arrived);
        false
    }
}
