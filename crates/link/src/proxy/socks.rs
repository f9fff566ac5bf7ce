//! The server side of SOCKS version 5 (RFC 1928), as far as a browser needs it: CONNECT without
//! authentication. Everything else is refused with the protocol's replies.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The reply codes of RFC 1928, section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    /// "TTL expired", the closest code to a timeout.
    TimedOut = 6,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

/// The host and port that a client requests a connection to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ConnectRequest {
    pub(super) host: String,
    pub(super) port: u16,
}

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Reads greeting and request. `None` means that the client was refused, or used another protocol.
pub(super) async fn accept<S>(stream: &mut S) -> io::Result<Option<ConnectRequest>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let [version, methods] = read(stream).await?;
    if version != VERSION {
        return Ok(None);
    }
    let mut offered = vec![0; usize::from(methods)];
    stream.read_exact(&mut offered).await?;
    if !offered.contains(&NO_AUTHENTICATION) {
        stream.write_all(&[VERSION, NO_ACCEPTABLE_METHOD]).await?;
        return Ok(None);
    }
    stream.write_all(&[VERSION, NO_AUTHENTICATION]).await?;

    let [version, command, _reserved, kind] = read(stream).await?;
    if version != VERSION {
        return Ok(None);
    }
    let host = match kind {
        1 => Some(Ipv4Addr::from(read::<4, _>(stream).await?).to_string()),
        3 => {
            let [length] = read(stream).await?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await?;
            String::from_utf8(name).ok()
        }
        4 => Some(Ipv6Addr::from(read::<16, _>(stream).await?).to_string()),
        _ => {
            send_reply(stream, Reply::AddressTypeNotSupported).await?;
            return Ok(None);
        }
    };
    let port = u16::from_be_bytes(read(stream).await?);
    if command != CONNECT {
        send_reply(stream, Reply::CommandNotSupported).await?;
        return Ok(None);
    }
    match host {
        Some(host) => Ok(Some(ConnectRequest { host, port })),
        None => {
            send_reply(stream, Reply::GeneralFailure).await?;
            Ok(None)
        }
    }
}

/// Sends a reply. The bound address in it is zero, because clients do not need it for CONNECT.
pub(super) async fn send_reply<S: AsyncWrite + Unpin>(
    stream: &mut S,
    reply: Reply,
) -> io::Result<()> {
    let message = [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0];
    stream.write_all(&message).await
}

async fn read<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the request that the server reads from `sent`, and its reply.
    async fn check(sent: &[u8]) -> (Option<(String, u16)>, Vec<u8>) {
        let (mut client, mut server) = tokio::io::duplex(1024);
        client.write_all(sent).await.unwrap();
        client.shutdown().await.unwrap();
        let request = accept(&mut server).await.ok().flatten();
        drop(server);
        let mut reply = Vec::new();
        client.read_to_end(&mut reply).await.unwrap();
        (request.map(|r| (r.host, r.port)), reply)
    }

    fn request_bytes(head: [u8; 4], rest: &[u8]) -> Vec<u8> {
        [&[5, 1, 0][..], &head, rest].concat()
    }

    #[tokio::test]
    async fn names_and_addresses_are_accepted() {
        let name = request_bytes([5, 1, 0, 3], b"\x0bexample.com\x01\xbb");
        assert_eq!(
            check(&name).await,
            (Some(("example.com".into(), 443)), vec![5, 0])
        );
        let v4 = request_bytes([5, 1, 0, 1], &[127, 0, 0, 1, 0, 80]);
        assert_eq!(check(&v4).await.0, Some(("127.0.0.1".into(), 80)));
        let mut v6 = [0; 18];
        v6[15] = 1;
        v6[17] = 80;
        let v6 = request_bytes([5, 1, 0, 4], &v6);
        assert_eq!(check(&v6).await.0, Some(("::1".into(), 80)));
    }

    #[tokio::test]
    async fn commands_other_than_connect_are_refused() {
        for command in [2, 3, 9] {
            let (request, reply) =
                check(&request_bytes([5, command, 0, 1], &[8, 8, 8, 8, 0, 80])).await;
            assert_eq!(request, None);
            assert_eq!(reply[2..4], [5, 7], "command {command}");
        }
    }

    #[tokio::test]
    async fn other_protocols_get_no_reply() {
        let socks4 = b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00";
        assert_eq!(check(socks4).await, (None, vec![]));
        assert_eq!(check(b"GET / HTTP/1.1\r\n\r\n").await, (None, vec![]));
        assert_eq!(check(b"").await, (None, vec![]));
    }

    #[tokio::test]
    async fn malformed_requests_are_refused() {
        assert_eq!(check(&[5, 1, 2]).await, (None, vec![5, 0xff]));
        let kind = request_bytes([5, 1, 0, 9], &[0; 6]);
        assert_eq!(check(&kind).await.1[2..4], [5, 8]);
        let not_text = request_bytes([5, 1, 0, 3], b"\x02\xff\xfe\x00\x50");
        assert_eq!(check(&not_text).await.1[2..4], [5, 1]);
        let cut_short = request_bytes([5, 1, 0, 3], b"\x0bexamp");
        assert_eq!(check(&cut_short).await, (None, vec![5, 0]));
    }
}
