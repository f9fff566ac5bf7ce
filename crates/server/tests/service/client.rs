//! An HTTP client that gives tests full control over the bytes of a connection.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const TIMEOUT: Duration = Duration::from_secs(30);

/// The address of a server under test.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    pub address: SocketAddr,
}

impl Server {
    /// Opens a connection.
    pub async fn connect(&self) -> Connection {
        Connection {
            stream: TcpStream::connect(self.address).await.unwrap(),
            read: Vec::new(),
        }
    }

    /// Sends a request, and checks what holds for every response of the API.
    pub async fn send(&self, request: &HttpRequest) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.reply_to(&request.method).await
    }

    /// Sends a request as a browser does, which accepts HTML.
    pub async fn browse(&self, request: &HttpRequest) -> Reply {
        let request = request.clone().header("Accept", "text/html,*/*");
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.raw_reply(&request.method).await
    }

    /// Sends a request, and returns everything up to the end of the connection.
    pub async fn stream(&self, request: &HttpRequest) -> String {
        let request = request.clone().header("Connection", "close");
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        while connection.more().await {}
        String::from_utf8(connection.read).unwrap()
    }

    /// Sends a request whose response is not in an envelope.
    pub async fn fetch(&self, request: &HttpRequest) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        let reply = connection.raw_reply(&request.method).await;
        reply.check_headers();
        reply
    }

    /// Sends a request and compares status and body.
    #[track_caller]
    pub fn check(
        &self,
        request: HttpRequest,
        status: u16,
        body: Value,
    ) -> impl Future<Output = Reply> + '_ {
        let caller = std::panic::Location::caller();
        async move {
            let reply = self.send(&request).await;
            let sent = request.bytes();
            assert_eq!(
                (reply.status, &reply.json()),
                (status, &body),
                "\nsent at {caller}: {}",
                sent[..sent.len().min(600)].escape_ascii(),
            );
            reply
        }
    }
}

pub fn get(path: &str) -> HttpRequest {
    HttpRequest::new("GET", path)
}

pub fn post(path: &str, body: impl Into<Vec<u8>>) -> HttpRequest {
    HttpRequest {
        body: body.into(),
        ..HttpRequest::new("POST", path)
    }
}

pub fn put(path: &str, body: impl Into<Vec<u8>>) -> HttpRequest {
    HttpRequest {
        body: body.into(),
        ..HttpRequest::new("PUT", path)
    }
}

/// A request as it is sent.
#[derive(Clone)]
pub struct HttpRequest {
    pub method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl HttpRequest {
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

/// A connection to the server.
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Closes the sending half.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub async fn reply(&mut self) -> Reply {
        self.reply_to("GET").await
    }

    pub async fn reply_to(&mut self, method: &str) -> Reply {
        let reply = self.raw_reply(method).await;
        reply.check_envelope(method);
        reply
    }

    /// Reads an interim response (`100 Continue`), and returns its status.
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

    /// Reads until this text has arrived.
    pub async fn wait_for(&mut self, text: &str) {
        let has_arrived =
            |read: &[u8]| read.windows(text.len()).any(|part| part == text.as_bytes());
        while !has_arrived(&self.read) {
            assert!(self.more().await, "closed before {text}");
        }
    }

    /// Whether any data has arrived.
    pub fn has_data(&mut self) -> bool {
        self.stream.try_read(&mut [0; 1]).is_ok()
    }

    /// Whether the server closed the connection and sent nothing more.
    pub async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    async fn more(&mut self) -> bool {
        let reading = self.stream.read_buf(&mut self.read);
        // A reset ends the connection too.
        tokio::time::timeout(TIMEOUT, reading)
            .await
            .expect("no response in time")
            .unwrap_or(0)
            > 0
    }
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// The values of a header that may occur more than once.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.headers.iter().filter(move |(other, _)| other == name);
        values.map(|(_, value)| value.as_str())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let value = values.next()?.1.as_str();
        assert!(values.next().is_none(), "{name} twice");
        Some(value)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Returns the body. What explains a failure in addition to the contract is left out.
    #[track_caller]
    pub fn json(&self) -> Value {
        let mut json = self.whole_json();
        if json["status"] == "FAILURE" {
            for name in ["code", "field", "index", "reason"] {
                json.as_object_mut().unwrap().remove(name);
            }
        }
        json
    }

    /// Returns the whole body.
    #[track_caller]
    pub fn whole_json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.body.escape_ascii()))
    }

    /// Checks the headers that every response has.
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

    /// Checks the headers and the envelope.
    #[track_caller]
    fn check_envelope(&self, method: &str) {
        let is_file = self.header("content-disposition").is_some();
        assert!(
            is_file || self.header("content-type") == Some("application/json"),
            "{self:?}"
        );
        self.check_headers();
        if method == "HEAD" || is_file {
            return;
        }
        let json = self.whole_json();
        if self.status == 200 {
            assert_eq!(json["status"], "SUCCESS");
            assert_eq!(json.get("message"), None);
        } else {
            assert_eq!(json["status"], "FAILURE");
            assert!(json["message"].is_string());
            assert!(json["code"].is_string(), "{json}");
            let allowed = ["status", "message", "code", "field", "index", "reason"];
            for name in json.as_object().unwrap().keys() {
                assert!(allowed.contains(&name.as_str()), "{json}");
            }
        }
    }
}
