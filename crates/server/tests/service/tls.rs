//! HTTPS without a proxy in front.

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
    rig::{Ask, Door, Rig, get},
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

/// A server over TLS, with pages, that shows the first certificate.
struct Encrypted {
    door: Door,
    files: TlsFiles,
    key: String,
    dir: TempDir,
    _rig: Rig,
}

impl Encrypted {
    async fn with(options: ServeOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), CERTIFICATES[0], KEYS[0]);
        let files = load(dir.path()).unwrap();
        let mut app = None;
        let rig = Rig::with_pages_and(|made| app = Some(made.clone())).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = Door {
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
            door,
            files,
            key: rig.key.clone(),
            dir,
            _rig: rig,
        }
    }

    /// The answer, if the server shows the certificate that is trusted.
    async fn ask(&self, trusted: &str, ask: Ask) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        let trusted = CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap();
        roots.add(trusted).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.door.address).await.unwrap();
        let name = ServerName::try_from("plumbline.test").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        let ask = ask.header("Connection", "close");
        stream.write_all(&ask.bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    async fn shows(&self, which: usize) -> bool {
        let answers = [
            self.ask(CERTIFICATES[0], get("/healthz")).await.is_ok(),
            self.ask(CERTIFICATES[1], get("/healthz")).await.is_ok(),
        ];
        assert_ne!(answers[0], answers[1]);
        answers[which]
    }
}

#[tokio::test]
async fn requests_are_answered_over_tls_and_cookies_are_kept_from_plain_text() {
    let server = Encrypted::with(ServeOptions::default()).await;
    let answer = server.ask(CERTIFICATES[0], get("/healthz")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("{\"status\":\"SUCCESS\",\"data\":{\"alive\":true}}"));
    let sign_in = form("/sign-in", &format!("key={}", server.key));
    let answer = server.ask(CERTIFICATES[0], sign_in).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
    assert!(answer.contains("; Secure"), "{answer}");
}

#[tokio::test]
async fn who_speaks_no_tls_gets_no_answer_and_a_handshake_has_the_time_of_a_head() {
    let options = ServeOptions {
        head: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    let server = Encrypted::with(options).await;
    let mut plain = TcpStream::connect(server.door.address).await.unwrap();
    plain.write_all(&get("/healthz").bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{}", answer.escape_ascii());
    let mut silent = server.door.connect().await;
    assert!(silent.is_closed().await);
}

#[tokio::test]
async fn a_changed_certificate_is_taken_over_and_a_bad_one_is_not() {
    let mut server = Encrypted::with(ServeOptions::default()).await;
    assert!(server.shows(0).await);
    write(server.dir.path(), CERTIFICATES[1], KEYS[1]);
    server.files.reload();
    assert!(server.shows(1).await);
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
        assert!(server.shows(1).await);
    }
    fs::remove_file(server.dir.path().join("key.pem")).unwrap();
    server.files.reload();
    assert!(server.shows(1).await);
    write(server.dir.path(), CERTIFICATES[0], KEYS[0]);
    server.files.reload();
    assert!(server.shows(0).await);
}

#[test]
fn what_cannot_be_used_is_named_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let said = |error: Result<TlsFiles, TlsError>| match error {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    };
    let missing = said(load(dir.path()));
    assert!(missing.contains("cert.pem: No such file"), "{missing}");
    for (cert, key, expected) in [
        ("", KEYS[0], "cert.pem: there is no PEM certificate in it"),
        (
            CERTIFICATES[0],
            "x",
            "key.pem: there is no PEM private key in it",
        ),
        (CERTIFICATES[0], KEYS[1], "key.pem do not belong together"),
    ] {
        write(dir.path(), cert, key);
        let refused = said(load(dir.path()));
        assert!(refused.contains(expected), "{refused}");
    }
}
