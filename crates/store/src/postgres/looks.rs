//! Whether anything waits for a seat, asked once for all who are woken together.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tokio::sync::Mutex;

use super::{PostgresStore, lanes};
use crate::Seat;

/// By locations: what `Bells::arrived` stood at when nothing was found for them.
#[derive(Default)]
pub(super) struct Looks(Mutex<HashMap<Option<Vec<String>>, u64>>);

impl PostgresStore {
    /// One look at a time, and none where another has just found nothing: of a thousand who are woken for
    /// one audit, a few ask the database.
    ///
    /// `is_due` asks in any case: something may have happened that nobody rang for.
    pub(super) async fn waits_for(&self, seat: &Seat, is_due: bool) -> bool {
        let mut found_nothing_at = self.looks.0.lock().await;
        let arrived = self.bells.arrived.load(Ordering::SeqCst);
        let is_known = self.bells.is_listening.load(Ordering::Relaxed)
            && found_nothing_at.get(&seat.locations) == Some(&arrived);
        if is_known && !is_due {
            return false;
        }
        let (wanted, at_most) = (seat.clone(), self.running_per_account);
        let look = self
            .read(move |db| Box::pin(async move { lanes::any_waits(db, &wanted, at_most).await }));
        // A store that cannot answer has nothing to lease either.
        if matches!(look.await, Ok(true)) {
            return true;
        }
        found_nothing_at.insert(seat.locations.clone(), arrived);
        false
    }
}
