//! The process at the other end of a connection on this machine. By the newest revision of the protocol a call does not
//! name its session, and clients open and close connections at any time; but the process stays the same while the
//! client runs.

use std::fs;

use surehand_engine::client_process::ClientProcess;
use surehand_http::SocketOwner;

/// A name for the process that has a socket open: its number and its start. If a fork shares the socket, the older
/// process counts. `None` for processes of other users, and on other systems than Linux.
pub(super) fn holding(socket: SocketOwner) -> Option<String> {
    let socket = format!("socket:[{}]", socket.inode);
    let mut numbers: Vec<u32> =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let has_it = |number: &u32| {
        let open = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten();
        open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).any(|link| link.as_os_str() == socket.as_str())
    };
    numbers.into_iter().find(has_it).and_then(ClientProcess::find).map(|process| process.name())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use surehand_http::SocketTable;

    use super::*;

    #[test]
    fn both_ends_of_a_connection_within_a_process_are_that_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = listener.local_addr().unwrap();
        let _client = TcpStream::connect(near).unwrap();
        let (_server, far) = listener.accept().unwrap();
        let sockets = SocketTable::detect(near);
        let found = [sockets.owner(far, near), sockets.owner(near, far)].map(|owner| holding(owner.unwrap()).unwrap());
        assert!(found[0].starts_with(&format!("{}-", std::process::id())), "{found:?}");
        assert_eq!(found[0], found[1]);
    }

    #[test]
    fn a_socket_without_a_process_has_no_name() {
        assert_eq!(holding(SocketOwner { uid: 0, inode: u32::MAX }), None);
    }
}
