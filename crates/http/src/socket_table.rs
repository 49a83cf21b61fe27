//! The owner of a TCP socket of this machine, from the kernel. Sockets of other machines and other network namespaces
//! have no owner here.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
};

use rustix::process::geteuid;

/// `TCP_ESTABLISHED`. Sockets in other states may have lost their owner: the kernel shows uid 0 for those.
const ESTABLISHED: u8 = 1;

/// The kernel shows this uid for every user that the user namespace does not map.
const OVERFLOW_UID: u32 = 65534;

/// The kernel interface that reports the owner of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketTable {
    /// netlink, one socket at a time. The cost does not grow with the number of sockets, so that a flood of connections
    /// does not make each of them expensive.
    #[cfg(target_os = "linux")]
    SockDiag,
    /// `/proc/net/tcp` and `/proc/net/tcp6`, which list all sockets.
    ProcNet,
}

/// The owner of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketOwner {
    /// The effective user that created it.
    pub uid: u32,
    /// Its number in `/proc/PID/fd`.
    pub inode: u32,
}

impl SocketTable {
    /// Chooses the source. Some kernels and sandboxes have no `sock_diag`, and report the same error as for a missing
    /// socket. So this looks for a socket that exists: our own listener.
    pub fn detect(listener: SocketAddr) -> Self {
        #[cfg(target_os = "linux")]
        if sock_diag::find(listener, SocketAddr::new(unspecified(listener), 0)).is_some() {
            return Self::SockDiag;
        }
        let _ = listener;
        Self::ProcNet
    }

    /// The owner of the established socket that is bound to `local` and connected to `remote`. `None` if there is no
    /// such socket, or no single owner.
    pub fn owner(self, local: SocketAddr, remote: SocketAddr) -> Option<SocketOwner> {
        match self {
            #[cfg(target_os = "linux")]
            Self::SockDiag => sock_diag::find(local, remote)?.owner(),
            Self::ProcNet => {
                let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
                single_owner(tables.iter().flat_map(|table| owners(table, local, remote)))
            }
        }
    }
}

impl SocketOwner {
    /// Whether this is the effective user of this process. Root has no special rights.
    pub fn is_this_user(self) -> bool {
        self.uid == geteuid().as_raw() && (self.uid != OVERFLOW_UID || maps_every_user())
    }
}

/// Whether each visible uid means one user. In a user namespace of its own, a process of the user `nobody` looks like
/// all users outside.
fn maps_every_user() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SocketRow {
    state: u8,
    owner: SocketOwner,
}

impl SocketRow {
    fn owner(self) -> Option<SocketOwner> {
        (self.state == ESTABLISHED && self.owner.inode != 0).then_some(self.owner)
    }
}

/// If the table changed while it was read, there may be two owners: then neither counts.
fn single_owner(mut owners: impl Iterator<Item = SocketOwner>) -> Option<SocketOwner> {
    let first = owners.next()?;
    owners.all(|owner| owner == first).then_some(first)
}

/// The owners of a socket in the text of `/proc/net/tcp`.
fn owners(table: &str, local: SocketAddr, remote: SocketAddr) -> impl Iterator<Item = SocketOwner> {
    let (local, remote) = (canonical(local), canonical(remote));
    table.lines().skip(1).filter_map(move |line| {
        let mut columns = line.split_whitespace().skip(1);
        let (from, to) = (columns.next()?, columns.next()?);
        let state = u8::from_str_radix(columns.next()?, 16).ok()?;
        // Most rows may belong to closed connections, so their addresses are not parsed.
        if state != ESTABLISHED || address(from)? != local || address(to)? != remote {
            return None;
        }
        let owner = SocketOwner { uid: columns.nth(3)?.parse().ok()?, inode: columns.nth(1)?.parse().ok()? };
        SocketRow { state, owner }.owner()
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

#[cfg(target_os = "linux")]
fn unspecified(like: SocketAddr) -> IpAddr {
    match like.ip().to_canonical() {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// `NETLINK_SOCK_DIAG`, see sock_diag(7).
#[cfg(target_os = "linux")]
mod sock_diag {
    use std::net::{IpAddr, SocketAddr};

    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, netlink, recv, send, socket_with};

    use super::{SocketOwner, SocketRow, canonical};

    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    /// The length of `struct nlmsghdr` with `struct inet_diag_req_v2` behind it.
    const REQUEST_LENGTH: u32 = 72;

    /// The socket with these two addresses, in any state. If there is none, the kernel returns a socket that listens at
    /// `local`.
    pub(super) fn find(local: SocketAddr, remote: SocketAddr) -> Option<SocketRow> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG)).ok()?;
        send(&socket, &request(canonical(local), canonical(remote)), SendFlags::empty()).ok()?;
        let mut reply = [0; 512];
        // The kernel answers before `send` returns.
        let (length, _) = recv(&socket, &mut reply, RecvFlags::DONTWAIT).ok()?;
        parse(reply.get(..length)?)
    }

    fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
        let family = if local.is_ipv4() && remote.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let protocol = u8::try_from(ipproto::TCP.as_raw().get()).expect("it is 6");
        let family = u8::try_from(family.as_raw()).expect("it is 2 or 10");
        let mut bytes = Vec::new();
        bytes.extend(REQUEST_LENGTH.to_ne_bytes());
        bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        bytes.extend(NLM_F_REQUEST.to_ne_bytes());
        // The number of the message and the port of the sender.
        bytes.extend([0; 8]);
        // No extensions, a byte of padding, and all states.
        bytes.extend([family, protocol, 0, 0]);
        bytes.extend(u32::MAX.to_ne_bytes());
        bytes.extend(local.port().to_be_bytes());
        bytes.extend(remote.port().to_be_bytes());
        bytes.extend(octets(local.ip()));
        bytes.extend(octets(remote.ip()));
        // Any interface, and `INET_DIAG_NOCOOKIE`.
        bytes.extend([0; 4]);
        bytes.extend([u8::MAX; 8]);
        bytes
    }

    fn octets(ip: IpAddr) -> [u8; 16] {
        let mut octets = [0; 16];
        match ip {
            IpAddr::V4(ip) => octets[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => octets = ip.octets(),
        }
        octets
    }

    /// `struct inet_diag_msg`, unless it is an error.
    fn parse(reply: &[u8]) -> Option<SocketRow> {
        let number = |at: usize| Some(u32::from_ne_bytes(reply.get(at..at + 4)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(reply.get(4..6)?.try_into().ok()?);
        let row = SocketRow { state: *reply.get(17)?, owner: SocketOwner { uid: number(80)?, inode: number(84)? } };
        (kind == SOCK_DIAG_BY_FAMILY).then_some(row)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const HEADER: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// A row of 127.0.0.1:1 to 127.0.0.1:2.
    fn row(state: &str, uid: u32, inode: u32) -> String {
        format!("   0: 0100007F:0001 0100007F:0002 {state} 00000000:00000000 00:00000000 00000000  {uid} 0 {inode} 1 0\n")
    }

    #[track_caller]
    fn check_rows(table: &[String], expected: Option<SocketOwner>) {
        let table = format!("{HEADER}{}", table.concat());
        let (local, remote) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        assert_eq!(single_owner(owners(&table, local, remote)), expected, "{table}");
        assert_eq!(single_owner(owners(&table, remote, local)), None, "{table}");
    }

    #[test]
    fn only_an_established_socket_with_one_owner_counts() {
        let owner = |uid, inode| Some(SocketOwner { uid, inode });
        check_rows(&[], None);
        check_rows(&[row("01", 1000, 7)], owner(1000, 7));
        check_rows(&[row("06", 0, 0)], None);
        check_rows(&[row("04", 0, 7)], None);
        check_rows(&[row("01", 0, 0)], None);
        check_rows(&[row("06", 0, 0), row("01", 1000, 7)], owner(1000, 7));
        check_rows(&[row("01", 1000, 7), row("01", 1000, 7)], owner(1000, 7));
        check_rows(&[row("01", 1000, 7), row("01", 0, 8)], None);
        check_rows(&["garbage\n".to_owned(), row("xx", 0, 7), row("01", 1000, 7)], owner(1000, 7));
    }

    #[test]
    fn an_address_is_read_as_the_system_writes_it() {
        let written = |ip: &str| format!("{ip}:1EC1");
        assert_eq!(address(&written("0100007F")), Some("127.0.0.1:7873".parse().unwrap()));
        assert_eq!(address(&written("00000000000000000000000001000000")), Some("[::1]:7873".parse().unwrap()));
        assert_eq!(address(&written("0000000000000000FFFF00000100007F")), Some("127.0.0.1:7873".parse().unwrap()));
        assert_eq!(address("7873"), None);
    }

    /// Both sources find the owner of both ends of a connection, and no owner once the far end is closed.
    #[track_caller]
    fn check_connection(listen: &str, connect: &str) {
        let Ok(listener) = TcpListener::bind(listen) else {
            eprintln!("not run: {listen} is not there");
            return;
        };
        let listening = listener.local_addr().unwrap();
        let client = TcpStream::connect((connect, listening.port())).unwrap();
        let (server, far) = listener.accept().unwrap();
        let near = server.local_addr().unwrap();
        let detected = SocketTable::detect(listening);
        let owner = detected.owner(far, near).unwrap();
        assert!(owner.is_this_user(), "{owner:?}");
        assert_eq!(SocketTable::ProcNet.owner(far, near), Some(owner));
        drop(client);
        for table in [detected, SocketTable::ProcNet] {
            assert_eq!(table.owner(far, near), None, "{table:?}");
        }
    }

    #[test]
    fn the_owner_of_the_far_end_is_found_in_both_families() {
        check_connection("127.0.0.1:0", "127.0.0.1");
        check_connection("127.0.0.1:0", "::ffff:127.0.0.1");
        check_connection("[::1]:0", "::1");
        check_connection("[::]:0", "127.0.0.1");
    }

    #[test]
    fn a_socket_that_listens_owns_no_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (here, elsewhere) = (listener.local_addr().unwrap(), "127.0.0.1:1".parse().unwrap());
        for table in [SocketTable::detect(here), SocketTable::ProcNet] {
            assert_eq!(table.owner(here, elsewhere), None);
            assert_eq!(table.owner(elsewhere, here), None);
        }
    }

    #[test]
    fn another_user_is_not_this_one_and_neither_is_root() {
        let this = geteuid().as_raw();
        let is_this_user = |uid| SocketOwner { uid, inode: 7 }.is_this_user();
        assert!(is_this_user(this));
        assert!(!is_this_user(this + 1));
        assert_eq!(is_this_user(0), this == 0);
    }
}
