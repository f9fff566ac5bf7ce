//! Sends webhooks, only to addresses that the guard allows, and without following redirects.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_http::{Bytes, ClientBuilder, HttpClient, Limits, Request};
use plumbline_link::{Guard, SystemResolver, connect_guarded};
use plumbline_server::{WEBHOOK_HEAD_TIMEOUT, WebhookRequest, WebhookTransport};
use url::Url;

/// The most bytes of a response that are read, so that the receiver does not see an aborted
/// connection.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The time limit for reading the body.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// An HTTP client for webhooks.
pub struct WebhookClient {
    client: HttpClient,
    /// The time limit from the DNS lookup to the head of the response.
    head_timeout: Duration,
}

impl WebhookClient {
    /// Creates a client that opens every connection through the guard. It reuses none, so that
    /// every request is checked.
    pub fn new(guard: Arc<Guard>) -> Self {
        let connect = move |host: String, port: u16| {
            let guard = Arc::clone(&guard);
            async move { connect_guarded(&guard, &SystemResolver, &host, port).await }
        };
        Self {
            client: ClientBuilder::new(WEBHOOK_HEAD_TIMEOUT).build_with(connect),
            head_timeout: WEBHOOK_HEAD_TIMEOUT,
        }
    }
}

#[async_trait]
impl WebhookTransport for WebhookClient {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String> {
        // `Url` normalizes the host, for instance `2130706433` to `127.0.0.1`.
        let url = Url::parse(&request.url).map_err(|error| error.to_string())?;
        let mut post = Request::post(url.as_str());
        for (name, value) in request.headers {
            post = post.header(name, value);
        }
        let post = post.body(Bytes::from(request.body).into());
        let post = post.map_err(|error| error.to_string())?;
        let limits = Limits {
            head: self.head_timeout,
            body: BODY_TIMEOUT,
            total: self.head_timeout + BODY_TIMEOUT,
            bytes: MAX_BODY_BYTES,
        };
        let response = self.client.send(post, limits).await;
        // Only the status matters: an unreadable body is not an error.
        response
            .map(|response| response.status())
            .map_err(|error| error.to_string())
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
        WebhookClient::new(Arc::new(Guard::new(allow)))
    }

    /// Starts a server that sends the same response to every request.
    fn serve(response: String) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(response.as_bytes());
            }
        });
        address
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let private = TcpListener::bind("127.0.0.1:0").unwrap();
        private.set_nonblocking(true).unwrap();
        let target = private.local_addr().unwrap();
        let redirecting = serve(format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{target}/\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        ));
        let client = client(&["127.0.0.1"]);
        let result = client.post(request(format!("http://{redirecting}/"))).await;
        assert_eq!(result, Ok(307));
        assert!(private.accept().is_err(), "there was no connection");
    }

    #[tokio::test]
    async fn no_connection_is_made_to_addresses_that_the_guard_refuses() {
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
            let result = client.post(request(format!("http://{host}:{port}/"))).await;
            let error = result.unwrap_err();
            assert!(error.starts_with("refused"), "{host}: {error}");
        }
        assert!(private.accept().is_err(), "there was no connection");
    }

    #[tokio::test]
    async fn an_endless_response_is_not_read_to_the_end() {
        let endless = serve(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
            "x".repeat(MAX_BODY_BYTES + 1)
        ));
        let result = client(&["127.0.0.1"])
            .post(request(format!("http://{endless}/")))
            .await;
        assert_eq!(result, Ok(200));
    }

    #[tokio::test]
    async fn a_receiver_without_a_response_times_out_and_a_slow_body_is_ignored() {
        let mut client = client(&["127.0.0.1"]);
        client.head_timeout = Duration::from_millis(100);
        for scheme in ["http", "https"] {
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = silent.local_addr().unwrap();
            let result = client.post(request(format!("{scheme}://{address}/"))).await;
            assert_eq!(result, Err("response timed out".to_owned()), "{scheme}");
        }
        client.head_timeout = WEBHOOK_HEAD_TIMEOUT;
        let trickling = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = trickling.local_addr().unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        thread::spawn(move || {
            let (mut stream, _) = trickling.accept().unwrap();
            // A response that arrives before the request was sent would be an error.
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow";
            stream.write_all(head).unwrap();
            // The rest of the body is never sent.
            let _ = released.recv();
        });
        let result = client.post(request(format!("http://{address}/"))).await;
        assert_eq!(result, Ok(200));
        drop(release);
    }

    #[tokio::test]
    async fn https_requires_a_trusted_certificate() {
        let plain = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
        let result = client(&["127.0.0.1"])
            .post(request(format!("https://{plain}/")))
            .await;
        assert!(result.is_err());
    }
}
