//! The socket between the helper and its callers.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    time::Duration,
};

use rustix::{
    fs::{self as sys, AtFlags},
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{protocol::MAX_MESSAGE, runtime_dir::RuntimeDir};

const NAME: &str = "helper.sock";

/// The longest wait of a caller that needs no answer.
const PATIENCE: Duration = Duration::from_millis(2);

/// Connects without waiting: if the helper is too busy to accept connections, that is an error.
pub(crate) fn connect(dir: &RuntimeDir) -> io::Result<UnixStream> {
    let open = dir.open()?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    net::connect(&socket, &address(dir, &open)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    check_peer(&stream)?;
    Ok(stream)
}

/// Listens. The caller holds the lock that only one helper has.
pub(crate) fn listen(dir: &RuntimeDir, open: &File) -> io::Result<UnixListener> {
    // A socket outlives its process.
    let _ = sys::unlinkat(open, NAME, AtFlags::empty());
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Other users cannot enter the directory, so they cannot connect before the mode is set.
    net::bind(&socket, &address(dir, open)?)?;
    sys::chmodat(open, NAME, sys::Mode::from_raw_mode(0o600), AtFlags::empty())?;
    net::listen(&socket, 4096)?;
    Ok(UnixListener::from(socket))
}

/// The inode of the socket file; `None` if it is gone.
pub(crate) fn socket_inode(open: &File) -> Option<u64> {
    #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
    sys::statat(open, NAME, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_ino as u64)
}

/// A socket address holds about a hundred characters, and a path may have more.
fn address(dir: &RuntimeDir, open: &File) -> io::Result<SocketAddrUnix> {
    let by_path = SocketAddrUnix::new(dir.path().join(NAME));
    if by_path.is_ok() || !cfg!(target_os = "linux") {
        return Ok(by_path?);
    }
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()))?)
}

/// Checks that both ends belong to the same user. The mode of the directory ensures that already; this check also holds
/// if the file system ignores modes.
pub(crate) fn check_peer(stream: &UnixStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let peer = net::sockopt::socket_peercred(stream)?;
        if peer.uid != rustix::process::geteuid() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other end belongs to another user"));
        }
    }
    let _ = stream;
    Ok(())
}

pub(crate) fn send(mut stream: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The next message; `None` at the end of the connection.
pub(crate) fn receive<T: DeserializeOwned>(reader: &mut BufReader<&UnixStream>) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    reader.by_ref().take(MAX_MESSAGE).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long, or was cut off")),
    }
}
