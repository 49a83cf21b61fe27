//! One blocking HTTP request on a thread of its own, so that the caller can stop waiting at once. The thread ends
//! when the receiver is gone or the server is silent for too long. An async client would allow the same and bring
//! three times the crates.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use ureq::{
    Agent, Proxy,
    http::{HeaderMap, HeaderValue, Uri},
    tls::{RootCerts, TlsConfig},
};

use super::{
    request_error::{RequestError, TransientKind},
    retry::CANCEL_POLL,
};
use crate::cancel::CancelToken;

const CONNECT: Duration = Duration::from_secs(30);

/// Pieces of an answer that may wait in the queue.
const QUEUE: usize = 64;

#[derive(Debug)]
pub(super) struct HttpClient {
    agent: Agent,
    idle: Duration,
    url: Uri,
    headers: HeaderMap,
}

impl HttpClient {
    /// A client for requests to one address. An answer may pause for `idle` at most.
    pub(super) fn new(url: Uri, headers: HeaderMap, idle: Duration, proxy: Option<Proxy>) -> Self {
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        // The caller gives up after `idle`. The thread waits a little longer, so that the error is always the caller's.
        let slow = Some(idle.saturating_add(Duration::from_secs(1)));
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(proxy)
            .http_status_as_error(false)
            // A redirect would send the key to an address that the user did not choose.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("surehand/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(slow)
            .timeout_per_write(slow)
            .build();
        Self { agent: config.new_agent(), idle, url, headers }
    }

    /// The address without its query, which may contain a key.
    pub(super) fn shown_url(&self) -> String {
        let url = self.url.to_string();
        url.split('?').next().unwrap_or_default().to_owned()
    }

    pub(super) fn post(&self, body: Vec<u8>, cancel: &CancelToken) -> Result<HttpResponse, RequestError> {
        if cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        let (head_sender, head) = sync_channel(1);
        let (body_sender, body_receiver) = sync_channel(QUEUE);
        let mut request = self.agent.post(self.url.clone());
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
        }
        let send = move || match request.send(body) {
            Ok(response) => {
                let (head, body) = response.into_parts();
                if head_sender.send(Ok((head.status.as_u16(), head.headers))).is_ok() {
                    forward_body(body.into_reader(), &body_sender);
                }
            }
            Err(error) => drop(head_sender.send(Err(request_error(error)))),
        };
        thread::Builder::new()
            .name("surehand-model".to_owned())
            .spawn(send)
            .map_err(|error| RequestError::transient(TransientKind::Unreached, format!("no thread for the request: {error}")))?;
        let (status, headers) = receive(&head, cancel, self.idle)?;
        Ok(HttpResponse { status, headers, body: body_receiver })
    }
}

type Received<T> = Result<T, RequestError>;

/// The head of an answer, and its body as it arrives.
pub(super) struct HttpResponse {
    pub status: u16,
    headers: HeaderMap,
    body: Receiver<Received<Option<Vec<u8>>>>,
}

impl HttpResponse {
    /// The next bytes of the body; `None` at its end. Waits no longer than `idle`.
    pub(super) fn next_bytes(&mut self, cancel: &CancelToken, idle: Duration) -> Received<Option<Vec<u8>>> {
        receive(&self.body, cancel, idle)
    }

    /// The encoding of the body, if it is still encoded.
    pub(super) fn unknown_encoding(&self) -> Option<&str> {
        self.header("content-encoding").map(str::trim).filter(|name| !matches!(*name, "" | "identity"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn receive<T>(receiver: &Receiver<Received<T>>, cancel: &CancelToken, idle: Duration) -> Received<T> {
    let start = Instant::now();
    loop {
        if cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        match receiver.recv_timeout(CANCEL_POLL.min(idle)) {
            Ok(received) => return received,
            Err(RecvTimeoutError::Timeout) if start.elapsed() < idle => {}
            Err(RecvTimeoutError::Timeout) => {
                let why = format!("nothing came for {} seconds", idle.as_secs_f64());
                return Err(RequestError::transient(TransientKind::Silent, why));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(RequestError::malformed("the request ended without an answer")),
        }
    }
}

/// Forwards the body; `None` marks its end. A send fails only if the receiver is gone, so those errors are ignored.
fn forward_body(mut reader: impl Read, sender: &SyncSender<Received<Option<Vec<u8>>>>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(buffer[..count].to_vec())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(RequestError::malformed(format!("the answer broke off: {error}"))),
        };
        let is_over = !matches!(read, Ok(Some(_)));
        if sender.send(read).is_err() || is_over {
            return;
        }
    }
}

fn request_error(error: ureq::Error) -> RequestError {
    use ureq::Error;
    if let Some(why) = certificate_error(&error) {
        return RequestError::Permanent(why);
    }
    match error {
        Error::Timeout(ureq::Timeout::Connect) => RequestError::transient(TransientKind::Unreached, "no connection in time"),
        Error::Timeout(_) => RequestError::transient(TransientKind::Silent, "nothing came for too long"),
        Error::HostNotFound => RequestError::transient(TransientKind::Unreached, "no such host"),
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl => RequestError::Permanent(error.to_string()),
        Error::Protocol(error) => RequestError::malformed(format!("invalid HTTP: {error}")),
        Error::Io(error) => RequestError::transient(TransientKind::Unreached, error.to_string()),
        error => RequestError::transient(TransientKind::Unreached, error.to_string()),
    }
}

/// Why a certificate is not trusted. This is permanent, and retrying would look like an attack.
fn certificate_error(error: &ureq::Error) -> Option<String> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<rustls::Error>()?,
        _ => return None,
    };
    let hint = "its root has to be in the system's store: install ca-certificates, or your company's root, or name a file in SSL_CERT_FILE";
    match error {
        rustls::Error::InvalidCertificate(_) => Some(format!("its certificate is not trusted: {error}\n{hint}")),
        rustls::Error::General(_) => Some(format!("{error}\n{hint}")),
        _ => None,
    }
}

/// The value of a header, which debug output must not show; `None` if it has invalid characters.
pub(super) fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
