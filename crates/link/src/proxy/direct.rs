//! The guard without the line: for requests of the service itself to addresses that strangers name.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Resolver;
use super::dial::{by_turns, connect_any};
use crate::guard::literal;
use crate::{Guard, LinkError};

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to an address of `host` that the guard lets be reached. Decided, as for a visit, on all
/// addresses the name has, and connected to one that was decided on.
pub async fn connect_guarded(
    guard: &Guard,
    resolver: &dyn Resolver,
    host: &str,
    port: u16,
) -> Result<TcpStream, LinkError> {
    guard.check_host(host, port).map_err(LinkError::Refused)?;
    let known = literal(host)
        .map(|ip| vec![ip])
        .or_else(|| guard.loopback_of(host, port));
    let addresses = match known {
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
    let connected = timeout(CONNECT_TIMEOUT, connect_any(None, &by_turns(addresses))).await;
    connected
        .map_err(|_| LinkError::Unreachable(std::io::ErrorKind::TimedOut.into()))?
        .map(|(stream, _)| stream)
        .map_err(LinkError::Unreachable)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::net::TcpListener;

    use super::*;
    use crate::{Resolution, SystemResolver, Target};

    /// Says that every name has these addresses.
    struct Says(Vec<IpAddr>);

    impl Resolver for Says {
        fn resolve<'a>(&'a self, _: &'a str) -> Resolution<'a> {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }

    async fn refused(guard: &Guard, resolver: &dyn Resolver, host: &str) -> bool {
        let connected = connect_guarded(guard, resolver, host, 80).await;
        matches!(connected, Err(LinkError::Refused(_)))
    }

    #[tokio::test]
    async fn private_addresses_are_refused_however_they_are_named() {
        let guard = Guard::public_only();
        for host in [
            "127.0.0.1",
            "10.0.0.1",
            "[::1]",
            "localhost",
            "169.254.169.254",
            "0x7f.1",
        ] {
            assert!(refused(&guard, &SystemResolver, host).await, "{host}");
        }
        let private = |ip: [u8; 4]| Says(vec![[93, 184, 215, 14].into(), ip.into()]);
        for ip in [[127, 0, 0, 1], [192, 168, 1, 1], [100, 64, 0, 1]] {
            assert!(refused(&guard, &private(ip), "public.example.com").await);
        }
    }

    #[tokio::test]
    async fn what_the_operator_allowed_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let allow: Target = "127.0.0.1".parse().unwrap();
        let guard = Guard::new(vec![allow]);
        let there = Says(vec![address.ip()]);
        for host in ["127.0.0.1", "localhost", "hooks.example.com"] {
            let stream = connect_guarded(&guard, &there, host, address.port()).await;
            assert_eq!(stream.unwrap().peer_addr().unwrap(), address, "{host}");
        }
    }
}
