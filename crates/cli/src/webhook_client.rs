//! Sends webhooks: only to addresses that the guard lets be reached, following no redirect.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_link::{Guard, SystemResolver, connect_guarded};
use plumbline_server::{WEBHOOK_HEAD_TIMEOUT, WebhookRequest, WebhookTransport};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::https_client::{AnswerBounds, HttpsClient, place};

/// An answer is read so that its sender is not cut off, and neither beyond this nor for longer.
const ANSWER_BYTES: usize = 64 * 1024;
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

pub struct WebhookClient {
    guard: Arc<Guard>,
    https: HttpsClient,
    /// Until the head of the answer is there, from the lookup of the name on.
    head_within: Duration,
}

impl WebhookClient {
    pub fn new(guard: Arc<Guard>, https: HttpsClient) -> Self {
        Self {
            guard,
            https,
            head_within: WEBHOOK_HEAD_TIMEOUT,
        }
    }
}

#[async_trait]
impl WebhookTransport for WebhookClient {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String> {
        let url = Url::parse(&request.url).map_err(|error| error.to_string())?;
        let (host, port) = place(&url)?;
        let bounds = AnswerBounds {
            bytes: ANSWER_BYTES,
            head_by: Instant::now() + self.head_within,
            body_within: ANSWER_WITHIN,
        };
        let connected = connect_guarded(&self.guard, &SystemResolver, host, port);
        let stream = timeout_at(bounds.head_by, connected)
            .await
            .map_err(|_| "no connection in time")?
            .map_err(|error| error.to_string())?;
        let (headers, body) = (request.headers, request.body);
        let sent = self.https.post(stream, &url, headers, body, bounds);
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
    async fn a_receiver_that_never_answers_is_given_up_and_one_that_trickles_has_answered() {
        let mut client = client(&["127.0.0.1"]);
        client.head_within = Duration::from_millis(100);
        for scheme in ["http", "https"] {
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = silent.local_addr().unwrap();
            let answer = client.post(request(format!("{scheme}://{address}/"))).await;
            assert_eq!(answer, Err("no answer in time".to_owned()), "{scheme}");
        }
        client.head_within = WEBHOOK_HEAD_TIMEOUT;
        let trickling = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = trickling.local_addr().unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        thread::spawn(move || {
            let (mut stream, _) = trickling.accept().unwrap();
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow";
            stream.write_all(head).unwrap();
            // The rest never comes.
            let _ = released.recv();
        });
        let answer = client.post(request(format!("http://{address}/"))).await;
        assert_eq!(answer, Ok(200));
        drop(release);
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
