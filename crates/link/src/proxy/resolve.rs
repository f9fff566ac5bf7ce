use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use plumbline_clock::{PageClock, PageTime};
use tokio::sync::OnceCell;

/// A future of the addresses of a name, or of the error of its lookup.
pub type Resolution<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names to addresses.
pub trait Resolver: Send + Sync + 'static {
    /// Looks up a name. An empty list means that the name does not exist.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a> {
        Box::pin(async move {
            let resolved = tokio::net::lookup_host((host, 0)).await?;
            let mut addresses: Vec<IpAddr> = Vec::new();
            for address in resolved.map(|a| a.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            Ok(addresses)
        })
    }
}

/// The names that were looked up on a link. Each name is looked up once, so that the addresses that
/// are connected to are those that were checked: a second, different response is never used.
#[derive(Default)]
pub(super) struct LookupCache {
    lookups: Mutex<HashMap<String, Arc<OnceCell<Lookup>>>>,
}

/// The result of a lookup.
#[derive(Clone)]
pub(super) struct Lookup {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) completed_at: PageTime,
}

impl LookupCache {
    /// Returns the addresses of `host`. `look_up` is awaited by the first caller only; a failure is
    /// not cached, so the next caller tries again.
    pub(super) async fn addresses<E>(
        &self,
        clock: &PageClock,
        host: &str,
        look_up: impl Future<Output = Result<Vec<IpAddr>, E>>,
    ) -> Result<Lookup, E> {
        let key = host.trim_end_matches('.').to_ascii_lowercase();
        let cell = {
            let mut lookups = self.lookups.lock();
            Arc::clone(lookups.entry(key).or_default())
        };
        let complete = async {
            let addresses = look_up.await?;
            let completed_at = clock.now();
            Ok(Lookup {
                addresses,
                completed_at,
            })
        };
        cell.get_or_try_init(|| complete).await.cloned()
    }
}
