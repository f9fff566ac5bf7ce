//! A client that knows HTTP and nothing of our crates.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub json: Value,
}

pub struct Client {
    pub address: SocketAddr,
    pub key: String,
}

impl Client {
    pub fn get(&self, path: &str) -> Answer {
        self.try_get(path).expect("the server answers")
    }

    /// None when the server is not there, or does not answer in time.
    pub fn try_get(&self, path: &str) -> Option<Answer> {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nX-SVC-KEY: {}\r\nConnection: close\r\n\r\n",
            self.key
        ))
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(&self.post_text(path, &body.to_string()))
            .expect("the server answers")
    }

    pub fn get_text(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        let text = self.send_text(&request).expect("the server answers");
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn post_text(&self, path: &str, body: &str) -> String {
        format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nX-SVC-KEY: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.key,
            body.len()
        )
    }

    pub fn start(&self, url: &str) -> Answer {
        self.try_start(url).expect("the server answers")
    }

    /// None when the server is not there, or dies before it has answered.
    pub fn try_start(&self, url: &str) -> Option<Answer> {
        let body = serde_json::json!({
            "url": url, "device": "desktop", "network": "wifiFast", "location": "us-tx",
        })
        .to_string();
        self.send(&self.post_text("/v1/audit/start", &body))
    }

    fn send(&self, request: &str) -> Option<Answer> {
        let text = self.send_text(request)?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some(Answer {
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
