//! TLS for connections to PostgreSQL with rustls, like all other connections.
//!
//! Certificates are always verified against the system's roots, or those that `SSL_CERT_FILE`
//! names. Encryption without verification would not protect against an active attacker.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use plumbline_http::roots;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::StoreError;

#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(super) fn with_system_roots() -> Result<Self, StoreError> {
        Self::trusting(roots::of_system())
    }

    fn trusting(roots: impl Into<Arc<RootCertStore>>) -> Result<Self, StoreError> {
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Backend(format!("TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = ServerConnector;
    type Error = Infallible;

    /// Never fails, because it is also called for connections without TLS, for instance to a Unix
    /// socket, which has no name.
    fn make_tls_connect(&mut self, domain: &str) -> Result<ServerConnector, Infallible> {
        Ok(ServerConnector {
            connector: TlsConnector::from(Arc::clone(&self.0)),
            name: domain.to_owned(),
        })
    }
}

pub(super) struct ServerConnector {
    connector: TlsConnector,
    name: String,
}

impl<S> TlsConnect<S> for ServerConnector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.name).map_err(io::Error::other)?;
            Ok(Encrypted(self.connector.connect(name, stream).await?))
        })
    }
}

pub(super) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    /// Returns no binding: the certificate is verified, and channel binding would require parsing
    /// it.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

    use super::*;

    fn openssl(directory: &Path, args: &str) {
        let output = Command::new("openssl")
            .args(args.split(' '))
            .current_dir(directory)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {args}: {errors}");
    }

    /// Returns a certificate authority, and a server with its certificate for `db.example`.
    fn authority_and_server() -> (CertificateDer<'static>, ServerConfig) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(
            path,
            &format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"),
        );
        openssl(
            path,
            &format!("req {key} -subj /CN=db.example -keyout server.key -out server.csr"),
        );
        fs::write(
            path.join("names"),
            "subjectAltName=DNS:db.example\nbasicConstraints=CA:FALSE\n",
        )
        .unwrap();
        openssl(
            path,
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -outform DER -out server.der",
        );
        openssl(path, "x509 -in ca.pem -outform DER -out ca.der");
        openssl(
            path,
            "pkcs8 -topk8 -nocrypt -in server.key -outform DER -out server.key.der",
        );
        let read = |name: &str| fs::read(path.join(name)).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(read("server.der"))],
                PrivatePkcs8KeyDer::from(read("server.key.der")).into(),
            )
            .unwrap();
        (CertificateDer::from(read("ca.der")), server)
    }

    async fn read_greeting(tls: &Tls, server: ServerConfig, name: &str) -> io::Result<String> {
        let (client_end, server_end) = duplex(64 * 1024);
        let server = tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(server));
            let mut stream = acceptor.accept(server_end).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        });
        let Ok(connector) =
            <Tls as MakeTlsConnect<DuplexStream>>::make_tls_connect(&mut tls.clone(), name);
        let mut stream = TlsConnect::connect(connector, client_end).await?;
        let mut greeting = String::new();
        stream.read_to_string(&mut greeting).await?;
        server.await.unwrap()?;
        Ok(greeting)
    }

    #[tokio::test]
    async fn only_a_server_with_a_trusted_certificate_for_its_name_is_accepted() {
        let (authority, server) = authority_and_server();
        let mut roots = RootCertStore::empty();
        roots.add(authority).unwrap();
        let trusting = Tls::trusting(roots).unwrap();
        let greeting = read_greeting(&trusting, server.clone(), "db.example").await;
        assert_eq!(greeting.unwrap(), "hello");
        for name in ["other.example", "", "not a name"] {
            let result = read_greeting(&trusting, server.clone(), name).await;
            assert!(result.is_err(), "{name}");
        }
        let without_roots = Tls::trusting(RootCertStore::empty()).unwrap();
        let result = read_greeting(&without_roots, server, "db.example").await;
        assert!(result.is_err());
    }
}
