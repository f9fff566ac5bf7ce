//! TLS for connections to PostgreSQL, by the rustls that everything else here uses.
//!
//! Certificates are always verified, against the system's roots (`SSL_CERT_FILE` names others): to encrypt
//! towards whoever answers would protect from nobody who can answer.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::StoreError;

#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(super) fn with_the_systems_roots() -> Result<Self, StoreError> {
        let mut roots = RootCertStore::empty();
        // Some of a system's certificates may be unreadable; a server that needs one is then refused.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::trusting(roots)
    }

    fn trusting(roots: RootCertStore) -> Result<Self, StoreError> {
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
    type TlsConnect = ToServer;
    type Error = Infallible;

    /// Also asked for where no TLS follows, as on a Unix socket, which has no name.
    fn make_tls_connect(&mut self, domain: &str) -> Result<ToServer, Infallible> {
        Ok(ToServer {
            connector: TlsConnector::from(Arc::clone(&self.0)),
            name: domain.to_owned(),
        })
    }
}

pub(super) struct ToServer {
    connector: TlsConnector,
    name: String,
}

impl<S> TlsConnect<S> for ToServer
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
    /// The certificate is verified; binding the password to it as well would need to parse it.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
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
        let made = Command::new("openssl")
            .args(args.split(' '))
            .current_dir(directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "openssl {args}: {said}");
    }

    /// An authority, and a server with a certificate of it for `db.example`.
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

    async fn greeted(tls: &Tls, server: ServerConfig, name: &str) -> io::Result<String> {
        let (near, far) = duplex(64 * 1024);
        let serving = tokio::spawn(async move {
            let mut stream = TlsAcceptor::from(Arc::new(server)).accept(far).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        });
        let Ok(to_server) =
            <Tls as MakeTlsConnect<DuplexStream>>::make_tls_connect(&mut tls.clone(), name);
        let mut stream = TlsConnect::connect(to_server, near).await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        serving.await.unwrap()?;
        Ok(said)
    }

    #[tokio::test]
    async fn only_a_server_whose_name_a_trusted_authority_vouches_for_is_spoken_to() {
        let (authority, server) = authority_and_server();
        let mut roots = RootCertStore::empty();
        roots.add(authority).unwrap();
        let trusting = Tls::trusting(roots).unwrap();
        let said = greeted(&trusting, server.clone(), "db.example").await;
        assert_eq!(said.unwrap(), "hello");
        for name in ["other.example", "", "not a name"] {
            let refused = greeted(&trusting, server.clone(), name).await;
            assert!(refused.is_err(), "{name}");
        }
        let distrusting = Tls::trusting(RootCertStore::empty()).unwrap();
        assert!(greeted(&distrusting, server, "db.example").await.is_err());
    }
}
