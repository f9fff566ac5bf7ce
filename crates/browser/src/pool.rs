//! Browsers that are started before anybody needs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc};

use crate::{Browser, BrowserError, Launcher};

/// A start has its own deadline; this is for several that wait behind each other.
const TAKE_DEADLINE: Duration = Duration::from_secs(30);

/// Keeps spare browsers, each used once.
///
/// The next spare is not started when one is taken but when that visit has begun to gather, or has
/// ended: starting a browser takes half a second of a core that the page is being measured on.
pub struct Pool {
    shared: Arc<Shared>,
    ready: Mutex<mpsc::UnboundedReceiver<Result<Browser, BrowserError>>>,
}

struct Shared {
    launcher: Launcher,
    wanted: usize,
    /// Browsers that are ready or being started and that nobody has claimed.
    stock: AtomicUsize,
    started: mpsc::UnboundedSender<Result<Browser, BrowserError>>,
    counts: Counts,
    /// Spares may be asked for by a drop outside the runtime.
    runtime: Handle,
}

#[derive(Default)]
struct Counts {
    started: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
}

/// Browsers since the pool was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCounts {
    pub started: u64,
    /// Would not start.
    pub failed: u64,
    /// Were dead when they were to be used.
    pub dead: u64,
}

impl Pool {
    /// Starts `spares` browsers in the background. Must be called inside a tokio runtime.
    pub fn start(launcher: Launcher, spares: usize) -> Self {
        let (started, ready) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            launcher,
            wanted: spares,
            stock: AtomicUsize::new(0),
            started,
            counts: Counts::default(),
            runtime: Handle::current(),
        });
        shared.restock();
        Self {
            shared,
            ready: Mutex::new(ready),
        }
    }

    /// Reads the counts, now and later, without holding the pool.
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

    pub fn launcher(&self) -> &Launcher {
        &self.shared.launcher
    }

    /// A browser that answers, at once if a spare is ready.
    pub async fn take(&self) -> Result<Browser, BrowserError> {
        tokio::time::timeout(TAKE_DEADLINE, self.take_unbounded())
            .await
            .unwrap_or_else(|_| {
                Err(BrowserError::Start {
                    reason: "no browser was ready in time".to_owned(),
                })
            })
    }

    async fn take_unbounded(&self) -> Result<Browser, BrowserError> {
        loop {
            if !self.shared.claim() {
                self.shared.start_one();
            }
            let arrived = self.ready.lock().await.recv().await;
            let Some(arrived) = arrived else {
                return Err(BrowserError::Start {
                    reason: "no browser is being started".to_owned(),
                });
            };
            match arrived {
                Ok(mut browser) if browser.is_healthy().await => {
                    browser.restock = Some(Restock(Arc::clone(&self.shared)));
                    return Ok(browser);
                }
                Ok(dead) => {
                    self.shared.counts.dead.fetch_add(1, Ordering::Relaxed);
                    dead.close().await;
                }
                // It may be old: the reason is asked for again.
                Err(_) => {
                    let mut browser = self.shared.launch().await?;
                    browser.restock = Some(Restock(Arc::clone(&self.shared)));
                    return Ok(browser);
                }
            }
        }
    }
}

impl Shared {
    /// Takes one of the stock, if there is any.
    fn claim(&self) -> bool {
        let less = |stock: usize| stock.checked_sub(1);
        self.stock
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_ok()
    }

    fn restock(self: &Arc<Self>) {
        let more = |stock: usize| (stock < self.wanted).then_some(stock + 1);
        while self
            .stock
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
        {
            self.start_one();
        }
    }

    async fn launch(&self) -> Result<Browser, BrowserError> {
        let launched = self.launcher.launch().await;
        let count = match &launched {
            Ok(_) => &self.counts.started,
            Err(_) => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        launched
    }

    fn start_one(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            let browser = shared.launch().await;
            if let Err(error) = &browser {
                tracing::warn!(%error, "a spare browser could not be started");
            }
            // Without a pool there is nobody to use it: the browser ends as it is dropped.
            let _ = shared.started.send(browser);
        });
    }
}

/// Starts the next spare when dropped.
pub(crate) struct Restock(Arc<Shared>);

impl Drop for Restock {
    fn drop(&mut self) {
        if !self.0.started.is_closed() {
            self.0.restock();
        }
    }
}
