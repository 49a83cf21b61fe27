//! TLS for the connection to the server.

use std::{
    fs::File,
    future::Future,
    io::{self, BufReader},
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;
use surehand_store::board::BoardError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CertificateTrust {
    /// Servers with a certificate that the system trusts.
    Platform,
    /// Servers with a certificate from the authorities in this file.
    File(PathBuf),
    /// Any server: this protects only against passive listeners.
    Any,
}

#[derive(Clone)]
pub(crate) struct TlsConnector(Arc<ClientConfig>);

impl TlsConnector {
    /// Reads the certificates of the trusted authorities.
    pub(crate) fn new(trust: CertificateTrust) -> Result<Self, BoardError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let failed = |why: String| BoardError::BadValue(format!("TLS for the board cannot be set up: {why}"));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?;
        let builder = match trust {
            CertificateTrust::Platform => builder.with_platform_verifier().map_err(|error| failed(error.to_string()))?,
            CertificateTrust::File(path) => {
                let roots = read_roots(&path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
                builder.with_root_certificates(roots)
            }
            CertificateTrust::Any => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider))),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

fn read_roots(path: &PathBuf) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_reader_iter(BufReader::new(File::open(path)?)) {
        let certificate = certificate.map_err(|error| io::Error::other(format!("{error:?}")))?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    match roots.is_empty() {
        true => Err(io::Error::other("it has no certificate in PEM form")),
        false => Ok(roots),
    }
}

/// Accepts any certificate, for `sslmode=require` and `prefer`.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

pub(crate) struct HostConnector {
    config: Arc<ClientConfig>,
    /// `None` for a Unix socket, which does not use TLS.
    name: Option<ServerName<'static>>,
}

impl MakeTlsConnect<Socket> for TlsConnector {
    type Stream = TlsStream;
    type TlsConnect = HostConnector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<HostConnector> {
        Ok(HostConnector { config: Arc::clone(&self.0), name: ServerName::try_from(host.to_owned()).ok() })
    }
}

impl TlsConnect<Socket> for HostConnector {
    type Stream = TlsStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or_else(|| io::Error::other("the host has no name that a certificate could have"))?;
            Ok(TlsStream(tokio_rustls::TlsConnector::from(self.config).connect(name, socket).await?))
        })
    }
}

pub(crate) struct TlsStream(tokio_rustls::client::TlsStream<Socket>);

impl AsyncRead for TlsStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl tokio_postgres::tls::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
