//! Webhook receivers on real sockets.

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

/// Sends webhooks without a guard, and waits for ever for the response.
pub struct PlainTransport;

#[async_trait]
impl WebhookTransport for PlainTransport {
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
            let mut response = String::new();
            stream.read_to_string(&mut response).await?;
            Ok::<_, std::io::Error>(response)
        };
        let response = exchange.await.map_err(|error| error.to_string())?;
        let status = response.split(' ').nth(1).ok_or("no status")?;
        status.parse().map_err(|_| "no number".to_owned())
    }
}

/// A receiver that accepts connections and never responds.
pub struct Tarpit {
    address: SocketAddr,
    /// The numbers of accepted connections, and of those that the client has closed.
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

    /// Waits until this many connections have been accepted.
    pub async fn wait_for_connections(&self, connections: usize) {
        let mut counts = self.counts.clone();
        let waiting = counts.wait_for(|(accepted, _)| *accepted >= connections);
        waiting.await.unwrap();
    }

    pub fn counts(&self) -> (usize, usize) {
        *self.counts.borrow()
    }
}

/// A receiver that accepts every webhook.
pub struct TestReceiver {
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<String>,
}

impl TestReceiver {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let open = Mutex::new(Vec::new());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"}}") {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0);
                }
                let response = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
                stream.write_all(response).await.unwrap();
                stream.shutdown().await.unwrap();
                open.lock().unwrap().push(stream);
                // Fails when the test has ended.
                let _ = sender.send(String::from_utf8(request).unwrap());
            }
        });
        Self { address, requests }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the next webhook.
    pub async fn next(&mut self) -> String {
        self.requests.recv().await.unwrap()
    }
}
