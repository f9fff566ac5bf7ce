//! A SOCKS5 proxy that forwards all connections to one server and records the requested hosts.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

pub struct Socks {
    pub address: SocketAddr,
    hosts: Arc<Mutex<Vec<String>>>,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Socks {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Socks {
    pub async fn forwarding_to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&hosts);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let hosts = Arc::clone(&shared);
                tokio::spawn(async move { serve(stream, server, &hosts).await.ok() });
            }
        });
        Self {
            address,
            hosts,
            server: task,
        }
    }

    /// Returns the distinct names and addresses that were requested.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts = self.hosts.lock().unwrap().clone();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

/// Serves one connection by RFC 1928, as far as a browser needs it.
async fn serve(
    mut browser: TcpStream,
    server: SocketAddr,
    hosts: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let [_, methods] = read(&mut browser).await?;
    browser.read_exact(&mut vec![0; methods.into()]).await?;
    browser.write_all(&[5, 0]).await?;
    let [_, _, _, kind] = read(&mut browser).await?;
    let host = match kind {
        1 => std::net::Ipv4Addr::from(read::<4>(&mut browser).await?).to_string(),
        3 => {
            let [length] = read(&mut browser).await?;
            let mut name = vec![0; length.into()];
            browser.read_exact(&mut name).await?;
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => std::net::Ipv6Addr::from(read::<16>(&mut browser).await?).to_string(),
    };
    let [_, _] = read(&mut browser).await?;
    hosts.lock().unwrap().push(host);
    let mut upstream = TcpStream::connect(server).await?;
    browser.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    copy_bidirectional(&mut browser, &mut upstream).await?;
    Ok(())
}

async fn read<const N: usize>(stream: &mut TcpStream) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
