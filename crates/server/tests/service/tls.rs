//! HTTPS without a proxy.

use std::{fs, path::Path, sync::Arc, time::Duration};

use plumbline_server::{ServeOptions, TlsError, TlsFiles, router, serve_with};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{
    rig::{HttpRequest, Rig, Server, get},
    visitor::form,
};

const CERTIFICATES: [&str; 2] = [
    include_str!("certificates/one.cert.pem"),
    include_str!("certificates/two.cert.pem"),
];
const KEYS: [&str; 2] = [
    include_str!("certificates/one.key.pem"),
    include_str!("certificates/two.key.pem"),
];

fn write(dir: &Path, cert: &str, key: &str) {
    fs::write(dir.join("cert.pem"), cert).unwrap();
    fs::write(dir.join("key.pem"), key).unwrap();
}

fn load(dir: &Path) -> Result<TlsFiles, TlsError> {
    TlsFiles::load(&dir.join("cert.pem"), &dir.join("key.pem"))
}

/// A server with TLS and pages that uses the first certificate.
struct TlsServer {
    server: Server,
    files: TlsFiles,
    key: String,
    dir: TempDir,
    _rig: Rig,
}

impl TlsServer {
    async fn with(options: ServeOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), CERTIFICATES[0], KEYS[0]);
        let files = load(dir.path()).unwrap();
        let mut app = None;
        let rig = Rig::with_pages_and(|rig_app| app = Some(rig_app.clone())).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
        };
        let acceptor = files.acceptor().unwrap();
        tokio::spawn(serve_with(
            listener,
            Some(acceptor),
            router(app.unwrap()),
            options,
            std::future::pending(),
        ));
        Self {
            server,
            files,
            key: rig.key.clone(),
            dir,
            _rig: rig,
        }
    }

    /// Sends a request, and returns the response if the server uses the trusted certificate.
    async fn send(&self, trusted: &str, request: HttpRequest) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        let trusted = CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap();
        roots.add(trusted).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.server.address).await.unwrap();
        let name = ServerName::try_from("plumbline.test").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        let request = request.header("Connection", "close");
        stream.write_all(&request.bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        Ok(response)
    }

    async fn uses(&self, certificate: usize) -> bool {
        let results = [
            self.send(CERTIFICATES[0], get("/healthz")).await.is_ok(),
            self.send(CERTIFICATES[1], get("/healthz")).await.is_ok(),
        ];
        assert_ne!(results[0], results[1]);
        results[certificate]
    }
}

#[tokio::test]
async fn requests_are_served_over_tls_and_cookies_are_secure() {
    let server = TlsServer::with(ServeOptions::default()).await;
    let response = server.send(CERTIFICATES[0], get("/healthz")).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with("{\"status\":\"SUCCESS\",\"data\":{\"alive\":true}}"));
    let sign_in = form("/sign-in", &format!("key={}", server.key));
    let response = server.send(CERTIFICATES[0], sign_in).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 303 "), "{response}");
    assert!(response.contains("; Secure"), "{response}");
}

#[tokio::test]
async fn plain_text_gets_no_response_and_a_handshake_has_the_time_of_a_head() {
    let options = ServeOptions {
        head: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    let server = TlsServer::with(options).await;
    let mut plain = TcpStream::connect(server.server.address).await.unwrap();
    plain.write_all(&get("/healthz").bytes()).await.unwrap();
    let mut response = Vec::new();
    let _ = plain.read_to_end(&mut response).await;
    let text = response.escape_ascii();
    assert!(!response.starts_with(b"HTTP"), "{text}");
    let mut silent = server.server.connect().await;
    assert!(silent.is_closed().await);
}

#[tokio::test]
async fn a_changed_certificate_is_used_unless_it_is_invalid() {
    let mut server = TlsServer::with(ServeOptions::default()).await;
    assert!(server.uses(0).await);
    write(server.dir.path(), CERTIFICATES[1], KEYS[1]);
    server.files.reload();
    assert!(server.uses(1).await);
    for (cert, key) in [
        (CERTIFICATES[0], KEYS[1]),
        ("nonsense", KEYS[0]),
        (CERTIFICATES[0], ""),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            KEYS[0],
        ),
    ] {
        write(server.dir.path(), cert, key);
        server.files.reload();
        assert!(server.uses(1).await);
    }
    fs::remove_file(server.dir.path().join("key.pem")).unwrap();
    server.files.reload();
    assert!(server.uses(1).await);
    write(server.dir.path(), CERTIFICATES[0], KEYS[0]);
    server.files.reload();
    assert!(server.uses(0).await);
}

#[test]
fn an_unusable_file_is_named_when_it_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let message = |result: Result<TlsFiles, TlsError>| match result {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    };
    let missing = message(load(dir.path()));
    assert!(missing.contains("cert.pem: No such file"), "{missing}");
    for (cert, key, expected) in [
        ("", KEYS[0], "cert.pem: no PEM certificate found"),
        (CERTIFICATES[0], "x", "key.pem: no PEM private key found"),
        (CERTIFICATES[0], KEYS[1], "key.pem do not match"),
    ] {
        write(dir.path(), cert, key);
        let refused = message(load(dir.path()));
        assert!(refused.contains(expected), "{refused}");
    }
}
