//! The certificate that the service shows, read from files and read again when they change.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

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

/// How often the files are read to see whether they have changed. They are small.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Why there is no certificate to show.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{}: there is no PEM certificate in it", .0.display())]
    NoCertificate(PathBuf),
    #[error("{}: there is no PEM private key in it", .0.display())]
    NoKey(PathBuf),
    #[error("{} and {} do not belong together", cert.display(), key.display())]
    Mismatch { cert: PathBuf, key: PathBuf },
    #[error("{}: {error}", path.display())]
    Unusable { path: PathBuf, error: rustls::Error },
}

/// A certificate chain and its private key, in two PEM files.
pub struct TlsFiles {
    cert: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    shown: Arc<Shown>,
    /// What the files held when they were last looked at.
    seen: Option<Contents>,
}

#[derive(PartialEq, Eq)]
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
}

#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(
            self.0
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        )
    }
}

impl TlsFiles {
    /// Blocks while the files are read: for use at start-up.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let contents = Contents::read(cert, key)?;
        let certified = contents.certified(cert, key, &provider)?;
        Ok(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            provider,
            shown: Arc::new(Shown(RwLock::new(Arc::new(certified)))),
            seen: Some(contents),
        })
    }

    /// Shows whichever certificate was loaded last.
    pub fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Unusable {
                path: self.cert.clone(),
                error,
            })?;
        let mut config = builder
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Takes over what the files hold if that has changed. While it cannot be used, the certificate
    /// stays as it is, and the log says why, once for each change.
    pub fn reload(&mut self) {
        let found = Contents::read(&self.cert, &self.key);
        let loaded = match found {
            Ok(contents) => {
                if self.seen.as_ref() == Some(&contents) {
                    return;
                }
                let certified = contents.certified(&self.cert, &self.key, &self.provider);
                self.seen = Some(contents);
                certified
            }
            Err(error) => {
                if self.seen.take().is_none() {
                    return;
                }
                Err(error)
            }
        };
        match loaded {
            Ok(certified) => {
                let mut shown = self.shown.0.write().unwrap_or_else(PoisonError::into_inner);
                *shown = Arc::new(certified);
                info!("the TLS certificate was replaced");
            }
            Err(error) => error!(%error, "the TLS certificate could not be replaced"),
        }
    }

    /// Reloads for as long as it is polled.
    pub async fn reload_by_itself(mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let reloaded = spawn_blocking(move || {
                self.reload();
                self
            });
            self = match reloaded.await {
                Ok(files) => files,
                Err(error) => {
                    error!(%error, "the TLS certificate is not reloaded any more");
                    return;
                }
            };
        }
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
