//! Sends webhooks: only to addresses that the guard lets be reached, following no redirect.

use std::sync::Arc;

use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use plumbline_link::{Guard, SystemResolver, connect_guarded};
use plumbline_server::{Post, WebhookRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Url;

/// An answer is read so that its sender is not cut off, and not beyond this.
const ANSWER_BYTES: usize = 64 * 1024;

pub struct WebhookClient {
    guard: Arc<Guard>,
    tls: TlsConnector,
}

impl WebhookClient {
    /// Trusts what this machine's certificate store trusts (`SSL_CERT_FILE` names another).
    pub fn new(guard: Arc<Guard>) -> Self {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate store could not be read");
        }
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            tracing::warn!("no certificates to trust: webhooks over https will fail");
        }
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            guard,
            tls: TlsConnector::from(Arc::new(config)),
        }
    }
}

#[async_trait]
impl Post for WebhookClient {
    async fn post(&self, request: WebhookRequest) -> Result<u16, String> {
        let url = Url::parse(&request.url).map_err(said)?;
        let host = url
            .host_str()
            .ok_or("the address names no host")?
            .to_owned();
        let port = url
            .port_or_known_default()
            .ok_or("the address has no port")?;
        let stream = connect_guarded(&self.guard, &SystemResolver, &host, port)
            .await
            .map_err(said)?;
        match url.scheme() {
            "http" => send(stream, &url, request).await,
            "https" => {
                let name = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(name).map_err(said)?;
                let stream = self.tls.connect(name, stream).await.map_err(said)?;
                send(stream, &url, request).await
            }
            other => Err(format!("cannot post to {other}")),
        }
    }
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    url: &Url,
    webhook: WebhookRequest,
) -> Result<u16, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(said)?;
    let authority = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut request = Request::post(path)
        .header(header::HOST, authority)
        .header(header::CONNECTION, "close");
    for (name, value) in webhook.headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(webhook.body)))
        .map_err(said)?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(said)?;
        let status = answer.status().as_u16();
        // What it says beyond its status is of no interest; that it cannot be read neither.
        let _ = Limited::new(answer.into_body(), ANSWER_BYTES)
            .collect()
            .await;
        Ok(status)
    };
    // The connection is driven beside the exchange, and dropped with it.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        status = &mut exchange => status,
        ended = connection => {
            ended.map_err(said)?;
            exchange.await
        }
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
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
