//! The certificate authorities that connections trust.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// A file of certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct InvalidFile {
    path: PathBuf,
    reason: String,
}

/// Returns the authorities that this machine trusts, or those in the file that `SSL_CERT_FILE`
/// names. They are read once for all clients. The store is empty if there are none.
pub fn of_system() -> Arc<RootCertStore> {
    static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::warn!(%error, "failed to read a certificate store");
        }
        let mut roots = RootCertStore::empty();
        // Some certificates may be unreadable; a server that needs one of them is refused.
        let (added, _) = roots.add_parsable_certificates(native.certs);
        if added == 0 {
            tracing::warn!("no trusted certificates: https requests will fail");
        }
        Arc::new(roots)
    });
    Arc::clone(&ROOTS)
}

/// Reads authorities from a PEM file, which contains at least one.
pub fn of_file(path: &Path) -> Result<Arc<RootCertStore>, InvalidFile> {
    let invalid = |reason: &dyn std::fmt::Display| InvalidFile {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| invalid(&e))? {
        let certificate = certificate.map_err(|e| invalid(&e))?;
        roots.add(certificate).map_err(|e| invalid(&e))?;
    }
    if roots.is_empty() {
        return Err(invalid(&"the file contains no certificate"));
    }
    Ok(Arc::new(roots))
}
