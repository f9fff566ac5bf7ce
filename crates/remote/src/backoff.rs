use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::RemoteError;

const MIN_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// Backoff between repeated requests, doubling from `MIN_DELAY` to `MAX_DELAY`, with a deadline.
pub(crate) struct Backoff {
    deadline: Instant,
    delays: ExponentialBackoff,
}

impl Backoff {
    pub(crate) fn new(max_time: Duration) -> Self {
        Self {
            deadline: Instant::now() + max_time,
            delays: ExponentialBuilder::new()
                .with_min_delay(MIN_DELAY)
                .with_max_delay(MAX_DELAY)
                .without_max_times()
                .build(),
        }
    }

    /// Waits before the next try, or returns the error if the deadline would be exceeded.
    pub(crate) async fn wait(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        // There is always another delay, because their number is not limited.
        let delay = self.delays.next().unwrap_or(MAX_DELAY);
        if Instant::now() + delay > self.deadline {
            return Err(error);
        }
        tracing::debug!(%error, "request failed; retrying");
        sleep(delay).await;
        Ok(())
    }
}
