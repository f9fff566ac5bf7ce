//! An HTTP client that uses none of the project's crates.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub json: Value,
}

pub struct Client {
    pub address: SocketAddr,
    pub key: String,
}

impl Client {
    pub fn get(&self, path: &str) -> Response {
        self.try_get(path).expect("the server responds")
    }

    /// Returns `None` if the server is not reachable or does not respond in time.
    pub fn try_get(&self, path: &str) -> Option<Response> {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nX-SVC-KEY: {}\r\nConnection: close\r\n\r\n",
            self.key
        ))
    }

    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.send(&self.post_text(path, &body.to_string()))
            .expect("the server responds")
    }

    pub fn put(&self, path: &str, body: &Value) -> Response {
        let request = self.post_text(path, &body.to_string());
        let request = request.replacen("POST ", "PUT ", 1);
        self.send(&request).expect("the server responds")
    }

    pub fn delete(&self, path: &str) -> Response {
        self.send(&format!(
            "DELETE {path} HTTP/1.1\r\nHost: test\r\nX-SVC-KEY: {}\r\nConnection: close\r\n\r\n",
            self.key
        ))
        .expect("the server responds")
    }

    pub fn get_text(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        let text = self.send_text(&request).expect("the server responds");
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Returns the whole response as it is.
    pub fn get_bytes(&self, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nX-SVC-KEY: {}\r\nConnection: close\r\n\r\n",
            self.key
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        response
    }

    /// Signs in to the web pages, and returns the cookie of the session.
    pub fn sign_in(&self) -> String {
        let body = format!("key={}", self.key);
        let request = format!(
            "POST /sign-in HTTP/1.1\r\nHost: test\r\nSec-Fetch-Site: same-origin\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let response = self.send_text(&request).expect("the server responds");
        let mut lines = response.lines();
        let cookie = lines.find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.unwrap_or_else(|| panic!("no session: {response}"));
        cookie.split(';').next().unwrap().to_owned()
    }

    fn post_text(&self, path: &str, body: &str) -> String {
        format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nX-SVC-KEY: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.key,
            body.len()
        )
    }

    pub fn start(&self, url: &str) -> Response {
        self.try_start(url).expect("the server responds")
    }

    /// Returns `None` if the server is not reachable or terminates before it has responded.
    pub fn try_start(&self, url: &str) -> Option<Response> {
        let body = serde_json::json!({
            "url": url, "device": "desktop", "network": "wifiFast", "location": "us-tx",
            "quick": true,
        })
        .to_string();
        self.send(&self.post_text("/v1/audit/start", &body))
    }

    fn send(&self, request: &str) -> Option<Response> {
        let text = self.send_text(request)?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some(Response {
            status: head.split(' ').nth(1)?.parse().ok()?,
            json: serde_json::from_str(body).ok()?,
        })
    }

    fn send_text(&self, request: &str) -> Option<String> {
        let limit = Duration::from_secs(30);
        let mut stream = TcpStream::connect_timeout(&self.address, limit).ok()?;
        stream.set_read_timeout(Some(limit)).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }
}
