//! The certificate of the service, loaded from files and reloaded when they change.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use tokio::task::spawn_blocking;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};
use tracing::{error, info};

/// How often the files are read to detect changes. They are small.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// The reasons why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    /// The certificate file contains no certificate.
    #[error("{}: no PEM certificate found", .0.display())]
    NoCertificate(PathBuf),
    /// The key file contains no private key.
    #[error("{}: no PEM private key found", .0.display())]
    NoKey(PathBuf),
    /// The key does not belong to the certificate.
    #[error("the certificate {} and the key {} do not match", cert.display(), key.display())]
    Mismatch { cert: PathBuf, key: PathBuf },
    /// The certificate or the key is not usable for TLS.
    #[error("{}: {error}", path.display())]
    Unusable { path: PathBuf, error: rustls::Error },
}

/// A certificate chain and its private key, in two PEM files.
pub struct TlsFiles {
    cert: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: Arc<CurrentCertificate>,
    /// The contents when the files were last read.
    last_contents: Option<Contents>,
}

#[derive(PartialEq, Eq)]
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate that new connections use.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl TlsFiles {
    /// Loads the files. Blocks, so it is for use at start-up.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let contents = Contents::read(cert, key)?;
        let certified = contents.certified(cert, key, &provider)?;
        Ok(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            provider,
            current: Arc::new(CurrentCertificate(RwLock::new(Arc::new(certified)))),
            last_contents: Some(contents),
        })
    }

    /// Returns an acceptor that always uses the certificate that was loaded last.
    pub fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Unusable {
                path: self.cert.clone(),
                error,
            })?;
        let mut config = builder
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Loads the certificate again if the files have changed. If the new one cannot be used, the
    /// old one stays in use, and the reason is logged once for each change.
    pub fn reload(&mut self) {
        let loaded = match Contents::read(&self.cert, &self.key) {
            Ok(contents) => {
                if self.last_contents.as_ref() == Some(&contents) {
                    return;
                }
                let certified = contents.certified(&self.cert, &self.key, &self.provider);
                self.last_contents = Some(contents);
                certified
            }
            Err(error) => {
                if self.last_contents.take().is_none() {
                    return;
                }
                Err(error)
            }
        };
        match loaded {
            Ok(certified) => {
                let mut current = self.current.0.write();
                *current = Arc::new(certified);
                info!("TLS certificate reloaded");
            }
            Err(error) => error!(%error, "failed to reload the TLS certificate"),
        }
    }

    /// Reloads changed files for as long as the future is polled.
    pub fn reload_periodically(mut self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                tokio::time::sleep(RELOAD_INTERVAL).await;
                let reloading = spawn_blocking(move || {
                    self.reload();
                    self
                });
                self = match reloading.await {
                    Ok(files) => files,
                    Err(error) => {
                        error!(%error, "reloading of the TLS certificate stopped");
                        return;
                    }
                };
            }
        })
    }
}

impl Contents {
    fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|error| TlsError::Unreadable {
                path: path.to_owned(),
                error,
            })
        };
        Ok(Self {
            cert: read(cert)?,
            key: read(key)?,
        })
    }

    fn certified(
        &self,
        cert: &Path,
        key: &Path,
        provider: &CryptoProvider,
    ) -> Result<CertifiedKey, TlsError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&self.cert)
            .collect::<Result<_, _>>()
            .map_err(|_| TlsError::NoCertificate(cert.to_owned()))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate(cert.to_owned()));
        }
        let private = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| TlsError::NoKey(key.to_owned()))?;
        CertifiedKey::from_der(chain, private, provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch {
                cert: cert.to_owned(),
                key: key.to_owned(),
            },
            rustls::Error::InvalidCertificate(_) => TlsError::Unusable {
                path: cert.to_owned(),
                error,
            },
            _ => TlsError::Unusable {
                path: key.to_owned(),
                error,
            },
        })
    }
}
