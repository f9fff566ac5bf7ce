//! Guarded connections without an emulated line, for requests that the service itself makes to
//! hosts chosen by its users.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Resolver;
use super::dial::{connect_any, interleave_families};
use crate::guard::literal;
use crate::{Guard, LinkError};

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to `host` if the guard permits it. As for a visit, all addresses of the name are
/// checked, and one of the checked addresses is connected to.
pub fn connect_guarded<'a>(
    guard: &'a Guard,
    resolver: &'a dyn Resolver,
    host: &'a str,
    port: u16,
) -> BoxFuture<'a, Result<TcpStream, LinkError>> {
    Box::pin(async move {
        guard.check_host(host, port).map_err(LinkError::Refused)?;
        let fixed = literal(host)
            .map(|ip| vec![ip])
            .or_else(|| guard.loopback_of(host, port));
        let addresses = match fixed {
            Some(addresses) => addresses,
            None => timeout(LOOKUP_TIMEOUT, resolver.resolve(host))
                .await
                .map_err(|_| LinkError::Unreachable(std::io::ErrorKind::TimedOut.into()))?
                .map_err(LinkError::Unreachable)?,
        };
        let addresses: Vec<SocketAddr> = addresses
            .into_iter()
            .map(|ip| SocketAddr::new(ip, port))
            .collect();
        guard
            .check_addresses(host, &addresses)
            .map_err(LinkError::Refused)?;
        let addresses = interleave_families(addresses);
        timeout(CONNECT_TIMEOUT, connect_any(None, &addresses))
            .await
            .map_err(|_| LinkError::Unreachable(std::io::ErrorKind::TimedOut.into()))?
            .map(|(stream, _)| stream)
            .map_err(LinkError::Unreachable)
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::net::TcpListener;

    use super::*;
    use crate::{Resolution, SystemResolver, Target};

    /// A resolver that returns these addresses for every name.
    struct FixedResolver(Vec<IpAddr>);

    impl Resolver for FixedResolver {
        fn resolve<'a>(&'a self, _: &'a str) -> Resolution<'a> {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }

    async fn is_refused(guard: &Guard, resolver: &dyn Resolver, host: &str) -> bool {
        let result = connect_guarded(guard, resolver, host, 80).await;
        matches!(result, Err(LinkError::Refused(_)))
    }

    #[tokio::test]
    async fn private_addresses_are_refused_in_every_spelling_and_under_every_name() {
        let guard = Guard::public_only();
        for host in [
            "127.0.0.1",
            "10.0.0.1",
            "[::1]",
            "localhost",
            "169.254.169.254",
            "0x7f.1",
        ] {
            assert!(is_refused(&guard, &SystemResolver, host).await, "{host}");
        }
        let resolver = |ip: [u8; 4]| FixedResolver(vec![[93, 184, 215, 14].into(), ip.into()]);
        for ip in [[127, 0, 0, 1], [192, 168, 1, 1], [100, 64, 0, 1]] {
            assert!(is_refused(&guard, &resolver(ip), "public.example.com").await);
        }
    }

    #[tokio::test]
    async fn hosts_that_the_operator_allows_are_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let allow: Target = "127.0.0.1".parse().unwrap();
        let guard = Guard::new(vec![allow]);
        let resolver = FixedResolver(vec![address.ip()]);
        for host in ["127.0.0.1", "localhost", "hooks.example.com"] {
            let stream = connect_guarded(&guard, &resolver, host, address.port()).await;
            assert_eq!(stream.unwrap().peer_addr().unwrap(), address, "{host}");
        }
    }
}
