//! Reports on their way in are held in memory: all of them together have a bound.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::Failure;

/// The largest report that is taken. That of a page with much in it has 200 kB.
pub(crate) const REPORT_BYTES: usize = 32 * 1024 * 1024;
/// All reports that are being received and kept at a time.
const ALL_REPORTS_BYTES: usize = 2 * REPORT_BYTES;
/// One permit.
const UNIT_BYTES: usize = 1024;

/// Hands out memory for reports; whoever finds none free waits.
pub(crate) struct ReportRoom(Arc<Semaphore>);

impl Default for ReportRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL_REPORTS_BYTES / UNIT_BYTES)))
    }
}

impl ReportRoom {
    /// Room for a report of this length, or of the largest where the length is not announced. Free
    /// again when the permit is dropped.
    pub(crate) async fn enter(
        &self,
        length: Option<usize>,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        let length = length.unwrap_or(REPORT_BYTES);
        if length > REPORT_BYTES {
            return Err(Failure::BodyTooLarge);
        }
        let units = u32::try_from(length.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).acquire_many_owned(units).await;
        permit.map_err(Failure::unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reports_wait_for_room_and_one_that_is_too_large_for_nothing() {
        let room = ReportRoom::default();
        let unknown = room.enter(None).await.unwrap();
        let small = room.enter(Some(REPORT_BYTES - UNIT_BYTES)).await.unwrap();
        let mut third = Box::pin(room.enter(Some(UNIT_BYTES + 1)));
        tokio::select! {
            biased;
            _ = &mut third => panic!("one unit is free, and two are needed"),
            () = std::future::ready(()) => {}
        }
        drop(unknown);
        assert!(third.await.is_ok());
        drop(small);
        let refused = room.enter(Some(REPORT_BYTES + 1)).await;
        assert!(matches!(refused, Err(Failure::BodyTooLarge)));
    }
}
