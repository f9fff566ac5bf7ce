//! A client that hides nothing of the wire.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A server to ask.
#[derive(Debug, Clone, Copy)]
pub struct Door {
    pub address: SocketAddr,
}

impl Door {
    pub async fn connect(&self) -> Connection {
        Connection {
            stream: TcpStream::connect(self.address).await.unwrap(),
            read: Vec::new(),
        }
    }

    pub async fn ask(&self, request: &Ask) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.reply_to(&request.method).await
    }

    /// As a browser asks: for a page, in whatever form it comes.
    pub async fn browse(&self, request: &Ask) -> Reply {
        let request = request.clone().header("Accept", "text/html,*/*");
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.raw_reply(&request.method).await
    }

    /// Everything up to the end of the connection, as it came.
    pub async fn stream(&self, request: &Ask) -> String {
        let request = request.clone().header("Connection", "close");
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        while connection.more().await {}
        String::from_utf8(connection.read).unwrap()
    }

    /// Of what is not in an envelope.
    pub async fn ask_for_text(&self, request: &Ask) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        let reply = connection.raw_reply(&request.method).await;
        reply.check_headers();
        reply
    }

    /// Asks and compares status and body.
    #[track_caller]
    pub fn check(
        &self,
        request: Ask,
        status: u16,
        body: Value,
    ) -> impl Future<Output = Reply> + '_ {
        let caller = std::panic::Location::caller();
        async move {
            let reply = self.ask(&request).await;
            let sent = request.bytes();
            assert_eq!(
                (reply.status, &reply.json()),
                (status, &body),
                "\nasked at {caller}: {}",
                sent[..sent.len().min(600)].escape_ascii(),
            );
            reply
        }
    }
}

pub fn get(path: &str) -> Ask {
    Ask::new("GET", path)
}

pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Ask {
    Ask {
        body: body.into(),
        ..Ask::new("POST", path)
    }
}

pub fn put(path: &str, body: impl Into<Vec<u8>>) -> Ask {
    Ask {
        body: body.into(),
        ..Ask::new("PUT", path)
    }
}

#[derive(Clone)]
pub struct Ask {
    pub method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn key(self, key: &str) -> Self {
        self.header("X-SVC-KEY", key)
    }

    pub fn json(self) -> Self {
        self.header("Content-Type", "application/json")
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: plumbline.test\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() || self.method == "POST" {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// What was sent is all there will be.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub async fn reply(&mut self) -> Reply {
        self.reply_to("GET").await
    }

    pub async fn reply_to(&mut self, method: &str) -> Reply {
        let reply = self.raw_reply(method).await;
        reply.check_manners(method);
        reply
    }

    /// Reads up to the end of an interim answer (`100 Continue`).
    pub async fn interim(&mut self) -> u16 {
        self.raw_reply("HEAD").await.status
    }

    async fn raw_reply(&mut self, method: &str) -> Reply {
        let head_end = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(
                self.more().await,
                "closed in a head: {}",
                self.read.escape_ascii()
            );
        };
        let head = String::from_utf8(self.read.drain(..head_end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers: Vec<_> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
        };
        let length = reply
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        if method != "HEAD" {
            while self.read.len() < length {
                assert!(self.more().await, "closed in a body");
            }
            reply.body = self.read.drain(..length).collect();
        }
        reply
    }

    /// Reads on until this has come.
    pub async fn hears(&mut self, text: &str) {
        let has_come = |read: &[u8]| read.windows(text.len()).any(|part| part == text.as_bytes());
        while !has_come(&self.read) {
            assert!(self.more().await, "closed before {text}");
        }
    }

    /// Whether anything has arrived by now.
    pub fn has_answer(&mut self) -> bool {
        self.stream.try_read(&mut [0; 1]).is_ok()
    }

    /// True when the other side closed and sent nothing more.
    pub async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    async fn more(&mut self) -> bool {
        let reading = self.stream.read_buf(&mut self.read);
        // A reset is an end too, only a rude one.
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("no answer")
            .unwrap_or(0)
            > 0
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// The values of a header that may be there more than once.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.headers.iter().filter(move |(found, _)| found == name);
        values.map(|(_, value)| value.as_str())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let value = values.next()?.1.as_str();
        assert!(values.next().is_none(), "{name} twice");
        Some(value)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.body.escape_ascii()))
    }

    /// What holds for every answer, whatever was asked.
    #[track_caller]
    fn check_headers(&self) {
        assert!(
            self.header("x-request-id").is_some_and(|id| !id.is_empty()),
            "{self:?}"
        );
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(self.header("x-frame-options"), Some("DENY"));
        assert_eq!(self.header("referrer-policy"), Some("no-referrer"));
        let policy = self.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
    }

    /// The same, and the envelope.
    #[track_caller]
    fn check_manners(&self, method: &str) {
        let is_file = self.header("content-disposition").is_some();
        assert!(
            is_file || self.header("content-type") == Some("application/json"),
            "{self:?}"
        );
        self.check_headers();
        if method == "HEAD" || is_file {
            return;
        }
        let json = self.json();
        if self.status == 200 {
            assert_eq!(json["status"], "SUCCESS");
            assert_eq!(json.get("message"), None);
        } else {
            assert_eq!(json["status"], "FAILURE");
            assert!(json["message"].is_string());
            assert_eq!(json.as_object().unwrap().len(), 2, "{json}");
        }
    }
}
