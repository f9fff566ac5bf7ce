//! The key and the certificates with which TLS of the browser is ended.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use plumbline_recording::Protocol;
use rcgen::{CertificateParams, KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, ServerConfig};

/// A key with which certificates for any host are made.
///
/// It is made anew in each process and never leaves its memory.
pub struct Identity {
    key: KeyPair,
    /// A second key, which no browser trusts, for servers whose certificates are not valid.
    untrusted_key: KeyPair,
    certificates: Mutex<HashMap<(String, bool), CertificateDer<'static>>>,
}

/// The reason why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("failed to make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("failed to use a certificate: {0}")]
    Tls(#[from] rustls::Error),
}

/// The largest number of certificates that are kept; a page can connect to any number of names.
const MAX_CERTIFICATES: usize = 1000;

impl Identity {
    /// Makes an identity with a new key.
    pub fn generate() -> Result<Self, IdentityError> {
        Ok(Self {
            key: KeyPair::generate()?,
            untrusted_key: KeyPair::generate()?,
            certificates: Mutex::default(),
        })
    }

    /// Returns the fingerprint of the key for Chromium's `--ignore-certificate-errors-spki-list`:
    /// the SHA-256 hash of its public part, in Base64.
    pub fn fingerprint(&self) -> String {
        BASE64_STANDARD.encode(Sha256::digest(self.key.subject_public_key_info()))
    }

    /// Returns the configuration of a server for a host. `is_trusted` is false for a certificate
    /// that browsers refuse.
    pub(crate) fn server_config(
        &self,
        host: &str,
        protocol: Protocol,
        is_trusted: bool,
    ) -> Result<Arc<ServerConfig>, IdentityError> {
        let key = if is_trusted {
            &self.key
        } else {
            &self.untrusted_key
        };
        let certificate = self.certificate(host, key, is_trusted)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS12, &TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.alpn_protocols = match protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        };
        // A visit is cold: no connection resumes an earlier one.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn certificate(
        &self,
        host: &str,
        key: &KeyPair,
        is_trusted: bool,
    ) -> Result<CertificateDer<'static>, IdentityError> {
        let mut certificates = self.certificates.lock();
        let id = (host.to_owned(), is_trusted);
        if let Some(certificate) = certificates.get(&id) {
            return Ok(certificate.clone());
        }
        let params = CertificateParams::new(vec![host.to_owned()])?;
        let certificate = params.self_signed(key)?.der().clone();
        if certificates.len() >= MAX_CERTIFICATES {
            certificates.clear();
        }
        certificates.insert(id, certificate.clone());
        Ok(certificate)
    }
}
