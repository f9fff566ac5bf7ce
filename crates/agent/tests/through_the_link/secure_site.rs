//! A loopback web server with HTTP/2, whose certificate nobody trusts unless told so.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use plumbline_traffic::RootCertStore;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

pub struct SecureSite {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    requests: Arc<AtomicUsize>,
}

/// The content type and body of a path.
type Responses = HashMap<&'static str, (&'static str, &'static str)>;

impl SecureSite {
    /// Serves responses, each a path with a content type and a body.
    pub async fn serve(responses: &[(&'static str, &'static str, &'static str)]) -> Self {
        let responses = responses
            .iter()
            .map(|(path, kind, body)| (*path, (*kind, *body)));
        let responses: Arc<Responses> = Arc::new(responses.collect());
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, responses) = (acceptor.clone(), Arc::clone(&responses));
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    // Browsers that do not trust the certificate end the handshake.
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(|request: Request<Incoming>| {
                        count.fetch_add(1, Ordering::Relaxed);
                        let response = respond(&responses, request.uri().path());
                        async { Ok::<_, Infallible>(response) }
                    });
                    let _ = http2::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            address,
            certificate,
            requests,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Returns the authorities that trust this site.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }

    /// Returns the number of requests until now.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

fn respond(responses: &Responses, path: &str) -> Response<Full<Bytes>> {
    let response = Response::builder();
    let response = match responses.get(path) {
        Some((kind, body)) => response
            .header("content-type", *kind)
            .body(Full::from(body.as_bytes())),
        None => response.status(404).body(Full::default()),
    };
    response.unwrap()
}
