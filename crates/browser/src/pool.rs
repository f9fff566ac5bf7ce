//! Browsers that are started before they are needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc};

use crate::launch::OnDrop;
use crate::{Browser, BrowserError, Launcher};

/// Maximum time to wait for a browser. A start has its own deadline; this one is for several starts
/// in a row, and for the turns of other visits.
const TAKE_DEADLINE: Duration = Duration::from_secs(300);

/// A pool of spare browsers, each of which is used once.
///
/// The next spare is not started when one is taken, but when that visit begins to gather artifacts
/// or has ended: starting a browser takes half a second of CPU time on a core that the page is
/// being measured on.
pub struct Pool {
    shared: Arc<Shared>,
    ready: Mutex<mpsc::UnboundedReceiver<Result<Browser, BrowserError>>>,
}

struct Shared {
    launcher: Launcher,
    max_spares: usize,
    /// Number of browsers that are ready or being started and have not been claimed.
    spares: AtomicUsize,
    started: mpsc::UnboundedSender<Result<Browser, BrowserError>>,
    counts: PoolTotals,
    /// Runtime on which spares are started, because a drop may happen outside of it.
    runtime: Handle,
}

#[derive(Default)]
struct PoolTotals {
    started: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
}

/// Numbers of browsers since the pool was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCounts {
    pub started: u64,
    /// Browsers that failed to start.
    pub failed: u64,
    /// Spare browsers that did not respond when they were needed.
    pub dead: u64,
}

impl Pool {
    /// Starts `spares` browsers in the background. Must be called inside a tokio runtime.
    pub fn start(launcher: Launcher, spares: usize) -> Self {
        let (started, ready) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            launcher,
            max_spares: spares,
            spares: AtomicUsize::new(0),
            started,
            counts: PoolTotals::default(),
            runtime: Handle::current(),
        });
        shared.restock();
        Self {
            shared,
            ready: Mutex::new(ready),
        }
    }

    /// Returns a function that reads the current counts and does not keep the pool alive.
    pub fn counter(&self) -> impl Fn() -> PoolCounts + Send + Sync + 'static {
        let shared = Arc::downgrade(&self.shared);
        move || {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            shared
                .upgrade()
                .map_or_else(PoolCounts::default, |shared| PoolCounts {
                    started: read(&shared.counts.started),
                    failed: read(&shared.counts.failed),
                    dead: read(&shared.counts.dead),
                })
        }
    }

    /// Returns the launcher that starts the browsers of this pool.
    pub fn launcher(&self) -> &Launcher {
        &self.shared.launcher
    }

    /// Returns a browser that responds, immediately if a spare is ready.
    pub fn take<'a>(&'a self) -> BoxFuture<'a, Result<Browser, BrowserError>> {
        Box::pin(async move {
            tokio::time::timeout(TAKE_DEADLINE, self.take_unbounded())
                .await
                .unwrap_or_else(|_| {
                    Err(BrowserError::Start {
                        reason: "no browser was ready in time".to_owned(),
                    })
                })
        })
    }

    async fn take_unbounded(&self) -> Result<Browser, BrowserError> {
        loop {
            if !self.shared.claim() {
                self.shared.start_one();
            }
            let Some(result) = self.ready.lock().await.recv().await else {
                return Err(BrowserError::Start {
                    reason: "no browser is being started".to_owned(),
                });
            };
            match result {
                Ok(mut browser) if browser.is_healthy().await => {
                    browser.restock = Some(self.restock_on_drop());
                    return Ok(browser);
                }
                Ok(dead) => {
                    self.shared.counts.dead.fetch_add(1, Ordering::Relaxed);
                    dead.close().await;
                }
                // The error may be old, so another start is attempted.
                Err(_) => {
                    let mut browser = self.shared.launch().await?;
                    browser.restock = Some(self.restock_on_drop());
                    return Ok(browser);
                }
            }
        }
    }

    /// Returns a value that starts the next spare when it is dropped.
    fn restock_on_drop(&self) -> OnDrop {
        let shared = Arc::clone(&self.shared);
        OnDrop::new(move || {
            if !shared.started.is_closed() {
                shared.restock();
            }
        })
    }
}

impl Shared {
    /// Claims a spare and returns whether there was one.
    fn claim(&self) -> bool {
        let decrement = |spares: usize| spares.checked_sub(1);
        self.spares
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement)
            .is_ok()
    }

    fn restock(self: &Arc<Self>) {
        let increment = |spares: usize| (spares < self.max_spares).then_some(spares + 1);
        while self
            .spares
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, increment)
            .is_ok()
        {
            self.start_one();
        }
    }

    async fn launch(&self) -> Result<Browser, BrowserError> {
        let result = self.launcher.launch().await;
        let count = match &result {
            Ok(_) => &self.counts.started,
            Err(_) => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        result
    }

    fn start_one(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            let result = shared.launch().await;
            if let Err(error) = &result {
                tracing::warn!(%error, "failed to start a spare browser");
            }
            // If the pool has been dropped, the browser is dropped as well, which ends it.
            let _ = shared.started.send(result);
        });
    }
}
