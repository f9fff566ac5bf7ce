//! Sends webhooks: only to addresses that the guard lets be reached, following no redirect.

use std::sync::Arc;

use async_trait::async_trait;
use plumbline_link::{Guard, SystemResolver, connect_guarded};
use plumbline_server::{Post, WebhookRequest};
use url::Url;

use crate::https_client::{HttpsClient, place};

/// An answer is read so that its sender is not cut off, and not beyond this.
const ANSWER_BYTES: usize = 64 * 1024;

pub struct WebhookClient {
    guard: Arc<Guard>,
    https: HttpsClient,
}

impl WebhookClient {
    pub fn new(guard: Arc<Guard>, https: HttpsClient) -> Self {
        Self { guard, https }
    }
}

#[async_trait]
impl Post for WebhookClient {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String> {
        let url = Url::parse(&request.url).map_err(|error| error.to_string())?;
        let (host, port) = place(&url)?;
        let stream = connect_guarded(&self.guard, &SystemResolver, host, port)
            .await
            .map_err(|error| error.to_string())?;
        let (headers, body) = (request.headers, request.body);
        let sent = self.https.post(stream, &url, headers, body, ANSWER_BYTES);
        // What it says beyond its status is of no interest; that it cannot be read neither.
        Ok(sent.await?.status)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::thread;

    use super::*;

    fn request(url: String) -> WebhookRequest {
        WebhookRequest {
            url,
            headers: vec![("x-plumbline-attempt", "1".to_owned())],
            body: "{}".to_owned(),
        }
    }

    fn client(allow: &[&str]) -> WebhookClient {
        let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
        WebhookClient::new(Arc::new(Guard::new(allow)), HttpsClient::new())
    }

    /// Answers everybody the same.
    fn answering(answer: String) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        address
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_not_followed() {
        let private = TcpListener::bind("127.0.0.1:0").unwrap();
        private.set_nonblocking(true).unwrap();
        let elsewhere = private.local_addr().unwrap();
        let redirecting = answering(format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{elsewhere}/\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        ));
        let client = client(&["127.0.0.1"]);
        let answer = client.post(request(format!("http://{redirecting}/"))).await;
        assert_eq!(answer, Ok(307));
        assert!(private.accept().is_err(), "nobody came");
    }

    #[tokio::test]
    async fn addresses_that_the_guard_refuses_are_not_connected_to() {
        let private = TcpListener::bind("127.0.0.1:0").unwrap();
        private.set_nonblocking(true).unwrap();
        let port = private.local_addr().unwrap().port();
        let client = client(&[]);
        for host in [
            "127.0.0.1",
            "localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "2130706433",
        ] {
            let answer = client.post(request(format!("http://{host}:{port}/"))).await;
            let said = answer.unwrap_err();
            assert!(said.starts_with("refused"), "{host}: {said}");
        }
        assert!(private.accept().is_err(), "nobody came");
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read_without_end() {
        let endless = answering(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
            "x".repeat(ANSWER_BYTES + 1)
        ));
        let answer = client(&["127.0.0.1"])
            .post(request(format!("http://{endless}/")))
            .await;
        assert_eq!(answer, Ok(200));
    }

    #[tokio::test]
    async fn https_needs_a_certificate_that_is_trusted() {
        let plain = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
        let answer = client(&["127.0.0.1"])
            .post(request(format!("https://{plain}/")))
            .await;
        assert!(answer.is_err());
    }
}
