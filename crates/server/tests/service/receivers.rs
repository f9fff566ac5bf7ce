//! Receivers of webhooks, on real sockets.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use plumbline_server::{WebhookRequest, WebhookTransport};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};
use url::Url;

/// Posts to whoever is named, without a guard, and waits for ever for an answer.
pub struct Dialling;

#[async_trait]
impl WebhookTransport for Dialling {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String> {
        let exchange = async {
            let url = Url::parse(&request.url).unwrap();
            let address = url.socket_addrs(|| None)?[0];
            let mut stream = TcpStream::connect(address).await?;
            let head = format!(
                "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
                request.body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(request.body.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        let answer = exchange.await.map_err(|error| error.to_string())?;
        let status = answer.split(' ').nth(1).ok_or("no status")?;
        status.parse().map_err(|_| "no number".to_owned())
    }
}

/// Accepts everybody and never answers.
pub struct Tarpit {
    address: SocketAddr,
    /// Connections accepted, and connections that their other end has closed.
    counts: watch::Receiver<(usize, usize)>,
}

impl Tarpit {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (counting, counts) = watch::channel((0, 0));
        let counting = Arc::new(counting);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counting.send_modify(|(accepted, _)| *accepted += 1);
                let counting = Arc::clone(&counting);
                tokio::spawn(async move {
                    while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
                    counting.send_modify(|(_, closed)| *closed += 1);
                });
            }
        });
        Self { address, counts }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits until so many connections have been accepted.
    pub async fn holds(&self, connections: usize) {
        let mut counts = self.counts.clone();
        let held = counts.wait_for(|(accepted, _)| *accepted >= connections);
        held.await.unwrap();
    }

    pub fn counts(&self) -> (usize, usize) {
        *self.counts.borrow()
    }
}

/// Takes what it is sent, and says yes.
pub struct Receiving {
    address: SocketAddr,
    got: mpsc::UnboundedReceiver<String>,
}

impl Receiving {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (telling, got) = mpsc::unbounded_channel();
        let open = Mutex::new(Vec::new());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"}}") {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0);
                }
                let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
                open.lock().unwrap().push(stream);
                // The test may have seen enough.
                let _ = telling.send(String::from_utf8(request).unwrap());
            }
        });
        Self { address, got }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub async fn told(&mut self) -> String {
        self.got.recv().await.unwrap()
    }
}
