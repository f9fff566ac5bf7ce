use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::RemoteError;

/// Between two tries: doubled each time, up to the second.
const AGAIN_AFTER: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];

/// Waits between tries, and an end to them.
pub(crate) struct Pace {
    until: Instant,
    next: Duration,
}

impl Pace {
    pub(crate) fn lasting(at_most: Duration) -> Self {
        Self {
            until: Instant::now() + at_most,
            next: AGAIN_AFTER[0],
        }
    }

    /// The error comes back when there has been time enough.
    pub(crate) async fn wait(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        if Instant::now() + self.next > self.until {
            return Err(error);
        }
        tracing::debug!(%error, "trying again");
        sleep(self.next).await;
        self.next = (self.next * 2).min(AGAIN_AFTER[1]);
        Ok(())
    }
}
