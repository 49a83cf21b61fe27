//! The process at the other end of a connection on this machine. Over the newest revision of the protocol a call does not say whose
//! it is, and clients open and close connections as they like; but the process stays the same as long as the client runs.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
};

use crate::ancestry::Process;

/// A name for the process that has the other end of a connection: its number and when it began. `None` where the system does not
/// tell: on another machine, of another user, or not on Linux.
pub(super) fn at(far: SocketAddr, near: SocketAddr) -> Option<String> {
    if !far.ip().to_canonical().is_loopback() {
        return None;
    }
    let socket = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let table = fs::read_to_string(table).ok()?;
        inode(&table, far, near)
    })?;
    owner(&format!("socket:[{socket}]"))
}

/// The inode of the socket at `far`, in a table of the system.
fn inode(table: &str, far: SocketAddr, near: SocketAddr) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_it = address(columns.get(1)?)? == canonical(far) && address(columns.get(2)?)? == canonical(near);
        is_it.then(|| columns.get(9).map(|inode| (*inode).to_owned()))?
    })
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `0100007F:1EC1`: groups of four bytes, each as a number of this machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let groups = (0..ip.len()).step_by(8).map(|at| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok());
    let bytes: Vec<u8> = groups.collect::<Option<Vec<u32>>>()?.into_iter().flat_map(u32::to_ne_bytes).collect();
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

/// The process that has a socket open. Of several, one that was forked from the other, the first.
fn owner(socket: &str) -> Option<String> {
    let mut numbers: Vec<u32> =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let has_it = |number: &u32| {
        let open = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten();
        open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).any(|link| link.as_os_str() == socket)
    };
    numbers.into_iter().find(has_it).and_then(Process::find).map(|process| process.name())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn an_address_is_read_as_the_system_writes_it() {
        let written = |ip: &str| format!("{ip}:1EC1");
        assert_eq!(address(&written("0100007F")), Some("127.0.0.1:7873".parse().unwrap()));
        assert_eq!(address(&written("00000000000000000000000001000000")), Some("[::1]:7873".parse().unwrap()));
        assert_eq!(address(&written("0000000000000000FFFF00000100007F")), Some("127.0.0.1:7873".parse().unwrap()));
        assert_eq!(address("7873"), None);
    }

    #[test]
    fn both_ends_of_a_connection_within_a_process_are_that_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, far) = listener.accept().unwrap();
        let found = at(far, server.local_addr().unwrap()).unwrap();
        assert!(found.starts_with(&format!("{}-", std::process::id())), "{found}");
        assert_eq!(at(server.local_addr().unwrap(), client.local_addr().unwrap()), Some(found));
    }

    #[test]
    fn an_address_that_nobody_has_leads_nowhere() {
        assert_eq!(at("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap()), None);
        assert_eq!(at("192.0.2.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap()), None);
    }
}
