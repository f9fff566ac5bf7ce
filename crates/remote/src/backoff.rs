use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::RemoteError;

const MIN_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// Backoff between repeated requests, doubling from `MIN_DELAY` to `MAX_DELAY`, with a deadline.
pub(crate) struct Backoff {
    deadline: Instant,
    delay: Duration,
}

impl Backoff {
    pub(crate) fn new(max_time: Duration) -> Self {
        Self {
            deadline: Instant::now() + max_time,
            delay: MIN_DELAY,
        }
    }

    /// Waits before the next try, or returns the error if the deadline would be exceeded.
    pub(crate) async fn wait(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        if Instant::now() + self.delay > self.deadline {
            return Err(error);
        }
        tracing::debug!(%error, "request failed; retrying");
        sleep(self.delay).await;
        self.delay = (self.delay * 2).min(MAX_DELAY);
        Ok(())
    }
}
