//! A loopback web server with fixed responses by path, which refuses WebSockets and records
//! requests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub struct Site {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

/// The response for a path: status line with extra headers, and body.
pub struct Response {
    head: String,
    body: String,
}

impl Response {
    pub fn html(body: impl Into<String>) -> Self {
        Self::new("text/html; charset=utf-8", body)
    }

    pub fn new(content_type: &str, body: impl Into<String>) -> Self {
        Self {
            head: format!("200 OK\r\nContent-Type: {content_type}"),
            body: body.into(),
        }
    }

    pub fn redirect(to: &str) -> Self {
        Self {
            head: format!("302 Found\r\nLocation: {to}"),
            body: String::new(),
        }
    }
}

impl Site {
    pub async fn serve(responses: impl IntoIterator<Item = (&'static str, Response)>) -> Self {
        Self::serve_with(|_| responses.into_iter().collect()).await
    }

    /// Serves responses that contain the site's own address.
    pub async fn serve_with(
        responses: impl FnOnce(SocketAddr) -> HashMap<&'static str, Response>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let responses = Arc::new(responses(address));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (responses, log) = (Arc::clone(&responses), Arc::clone(&log));
                tokio::spawn(async move { handle(stream, &responses, &log).await });
            }
        });
        Self { address, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the paths of all requests in order.
    pub fn requested_paths(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn handle(
    stream: TcpStream,
    responses: &HashMap<&'static str, Response>,
    log: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if stream.read_line(&mut request).await.ok()? == 0 {
            return None;
        }
        let mut upgrade = false;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok()?;
            upgrade |= line.to_ascii_lowercase().starts_with("upgrade: websocket");
            if line.trim().is_empty() {
                break;
            }
        }
        let path = request.split(' ').nth(1)?.to_owned();
        log.lock().unwrap().push(path.clone());
        let text = match responses.get(path.as_str()) {
            _ if upgrade => "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Some(Response { head, body }) => format!(
                "HTTP/1.1 {head}\r\nContent-Length: {}\r\nAccess-Control-Allow-Origin: *\r\n\r\n{body}",
                body.len()
            ),
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        stream.get_mut().write_all(text.as_bytes()).await.ok()?;
    }
}
