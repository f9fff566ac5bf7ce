//! Proxies between agent and server that break or damage connections, add TLS, or respond instead.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A fault of a connection, at a number of bytes that the agent has sent.
#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    Refused,
    CutAfter(u64),
    DamageAt(u64),
}

pub struct FaultyProxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    faults: Mutex<VecDeque<Fault>>,
    breaks: Notify,
    bytes_sent: AtomicU64,
}

impl FaultyProxy {
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let of_proxy = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((agent, _)) = listener.accept().await {
                let shared = Arc::clone(&of_proxy);
                let fault = shared.faults.lock().unwrap().pop_front();
                tokio::spawn(async move {
                    if fault == Some(Fault::Refused) {
                        return;
                    }
                    tokio::select! {
                        _ = forward(agent, server, fault, &shared) => {}
                        () = shared.breaks.notified() => {}
                    }
                });
            }
        });
        Self { address, shared }
    }

    /// Sets the faults of the next connections, one each; later ones have none.
    pub fn add_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.faults.lock().unwrap().extend(faults);
    }

    pub fn break_all(&self) {
        self.shared.breaks.notify_waiters();
    }

    /// The number of bytes that the agent has sent to the server.
    pub fn bytes_sent(&self) -> u64 {
        self.shared.bytes_sent.load(Ordering::SeqCst)
    }
}

async fn forward(
    agent: TcpStream,
    server: SocketAddr,
    fault: Option<Fault>,
    shared: &Shared,
) -> io::Result<()> {
    let (mut from_agent, mut to_agent) = agent.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let up = async {
        let mut sent = 0;
        let mut bytes = [0; 4096];
        loop {
            let read = from_agent.read(&mut bytes).await?;
            if read == 0 {
                return to_server.shutdown().await;
            }
            let end = sent + read as u64;
            match fault {
                Some(Fault::CutAfter(at)) if end >= at => return Err(io::ErrorKind::Other.into()),
                Some(Fault::DamageAt(at)) if (sent..end).contains(&at) => {
                    bytes[usize::try_from(at - sent).unwrap()] ^= 0x20;
                }
                _ => {}
            }
            sent = end;
            shared.bytes_sent.fetch_add(read as u64, Ordering::SeqCst);
            to_server.write_all(&bytes[..read]).await?;
        }
    };
    let down = tokio::io::copy(&mut from_server, &mut to_agent);
    tokio::select! {
        ended = up => ended,
        ended = down => ended.map(|_| ()),
    }
}

/// Starts a proxy that terminates TLS.
pub async fn tls_proxy(server: SocketAddr) -> SocketAddr {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let chain = CertificateDer::pem_file_iter(data.join("server.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(data.join("server.key")).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((agent, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(agent) = acceptor.accept(agent).await {
                    join(agent, server).await;
                }
            });
        }
    });
    address
}

async fn join(mut agent: impl AsyncRead + AsyncWrite + Unpin, server: SocketAddr) {
    let mut server = TcpStream::connect(server).await.unwrap();
    // Errors when the connection ends do not matter.
    let _ = copy_bidirectional(&mut agent, &mut server).await;
}

/// Starts a server that sends the same response to every request.
pub async fn fixed_response(status: &'static str, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut agent, _)) = listener.accept().await {
            let response = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = agent.read(&mut [0; 4096]).await;
            let _ = agent.write_all(response.as_bytes()).await;
        }
    });
    address
}
