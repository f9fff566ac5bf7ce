//! A loopback site: fixed answers by path, WebSockets greeted and closed, requests remembered.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub struct Site {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

/// What is answered to a path: status line with extra headers, and body.
pub struct Answer {
    head: String,
    body: String,
}

impl Answer {
    pub fn html(body: impl Into<String>) -> Self {
        Self::of("text/html; charset=utf-8", body)
    }

    pub fn of(kind: &str, body: impl Into<String>) -> Self {
        Self {
            head: format!("200 OK\r\nContent-Type: {kind}"),
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
    pub async fn serve(answers: impl IntoIterator<Item = (&'static str, Answer)>) -> Self {
        Self::serve_with(|_| answers.into_iter().collect()).await
    }

    /// For answers that name the site's own address.
    pub async fn serve_with(
        answers: impl FnOnce(SocketAddr) -> HashMap<&'static str, Answer>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(answers(address));
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, log) = (Arc::clone(&answers), Arc::clone(&log));
                tokio::spawn(async move { converse(stream, &answers, &log).await });
            }
        });
        Self { address, asked }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Paths that were asked for; a connection that asks for nothing leaves an empty one.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn converse(
    stream: TcpStream,
    answers: &HashMap<&'static str, Answer>,
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
        let text = match answers.get(path.as_str()) {
            _ if upgrade => "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Some(Answer { head, body }) => format!(
                "HTTP/1.1 {head}\r\nContent-Length: {}\r\nAccess-Control-Allow-Origin: *\r\n\r\n{body}",
                body.len()
            ),
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        stream.get_mut().write_all(text.as_bytes()).await.ok()?;
    }
}
