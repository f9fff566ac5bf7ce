use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::OnceCell;

/// The addresses of a name, or why there are none.
pub type Resolution<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Turns names into addresses.
pub trait Resolver: Send + Sync + 'static {
    /// An empty answer means that the name does not exist.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a>;
}

/// The machine's own way of resolving names.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            let mut addresses: Vec<IpAddr> = Vec::new();
            for address in found.map(|a| a.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            Ok(addresses)
        })
    }
}

/// Names already looked up on this link. A name is asked for once, so that what was checked is
/// what is connected to: a second, different answer is never heard.
#[derive(Default)]
pub(super) struct Names {
    known: Mutex<HashMap<String, Arc<OnceCell<Known>>>>,
}

#[derive(Clone)]
pub(super) struct Known {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) since: Instant,
}

impl Names {
    /// The addresses of `host`; `ask` is awaited by the first who wants to know. A failure is not
    /// kept, the next one asks again.
    pub(super) async fn addresses<E>(
        &self,
        host: &str,
        ask: impl Future<Output = Result<Vec<IpAddr>, E>>,
    ) -> Result<Known, E> {
        let key = host.trim_end_matches('.').to_ascii_lowercase();
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        let ask = async {
            let addresses = ask.await?;
            let since = Instant::now();
            Ok(Known { addresses, since })
        };
        cell.get_or_try_init(|| ask).await.cloned()
    }
}
