//! Limits the memory for reports that are being received.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::Failure;

/// The largest report that is accepted. The report of a page with much content has 200 kB.
pub(crate) const REPORT_BYTES: usize = 32 * 1024 * 1024;
/// The size of all reports that are received and stored at the same time.
const ALL_REPORTS_BYTES: usize = 2 * REPORT_BYTES;
/// The number of bytes per permit of the semaphore.
const UNIT_BYTES: usize = 1024;

/// Hands out memory for reports; a request waits until enough is free.
pub(crate) struct ReportMemory(Arc<Semaphore>);

impl Default for ReportMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL_REPORTS_BYTES / UNIT_BYTES)))
    }
}

impl ReportMemory {
    /// Reserves memory for a report of this length, or of the largest if the length is unknown. The
    /// memory is released when the permit is dropped.
    pub(crate) async fn reserve(
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
    async fn reports_wait_for_memory_and_one_that_is_too_large_is_refused_at_once() {
        let memory = ReportMemory::default();
        let unknown = memory.reserve(None).await.unwrap();
        let small = memory.reserve(Some(REPORT_BYTES - UNIT_BYTES)).await;
        let small = small.unwrap();
        let mut third = Box::pin(memory.reserve(Some(UNIT_BYTES + 1)));
        tokio::select! {
            biased;
            _ = &mut third => panic!("one unit is free, and two are needed"),
            () = std::future::ready(()) => {}
        }
        drop(unknown);
        assert!(third.await.is_ok());
        drop(small);
        let too_large = memory.reserve(Some(REPORT_BYTES + 1)).await;
        assert!(matches!(too_large, Err(Failure::BodyTooLarge)));
    }
}
