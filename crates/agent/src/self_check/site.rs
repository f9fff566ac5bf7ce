//! An HTTP server for the built-in page only.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// Maximum size of a request head. A request of the page has a few hundred bytes.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_DEADLINE: Duration = Duration::from_secs(10);

/// The result that the page reports.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageReport {
    /// The number of ICE candidates that Chromium offered.
    pub candidates: u32,
    /// The reason why WebRTC could not be tried; empty if it was.
    pub error: String,
}

pub(super) struct TestSite {
    address: SocketAddr,
    reports: mpsc::Receiver<PageReport>,
    server: JoinHandle<()>,
}

impl TestSite {
    pub(super) async fn open(page: String) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, reports) = mpsc::channel(1);
        let server = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (page, sender) = (page.clone(), sender.clone());
                connections.spawn(async move {
                    let result = timeout(HEAD_DEADLINE, respond(stream, &page)).await;
                    if let Ok(Ok(Some(report))) = result {
                        let _ = sender.try_send(report);
                    }
                });
            }
        });
        Ok(Self {
            address,
            reports,
            server,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the page's report.
    pub(super) async fn report(mut self) -> Result<PageReport, String> {
        let report = self.reports.recv().await;
        report.ok_or_else(|| "the server of the page stopped".to_owned())
    }
}

impl Drop for TestSite {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn respond(mut stream: TcpStream, page: &str) -> io::Result<Option<PageReport>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES || stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.split(' ').nth(1).unwrap_or_default();
    let report = target.strip_prefix("/result?").map(read_report);
    let (status, body) = match target {
        "/" => ("200 OK", page),
        _ if report.is_some() => ("200 OK", ""),
        _ => ("404 Not Found", ""),
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    Ok(report)
}

fn read_report(query: &str) -> PageReport {
    let field = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    match field("candidates").and_then(|count| count.parse().ok()) {
        Some(candidates) => PageReport {
            candidates,
            error: field("error").unwrap_or_default().to_owned(),
        },
        None => PageReport {
            candidates: 0,
            error: format!("the page sent an invalid report: {query}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_report_is_an_error() {
        let valid = read_report("candidates=3&error=");
        assert_eq!(valid.candidates, 3);
        assert_eq!(valid.error, "");
        assert_eq!(read_report("candidates=0&error=x%20y").error, "x%20y");
        assert!(!read_report("candidates=many").error.is_empty());
    }
}
