//! Landlock for files, ports and signals, and a filter of system calls for all other sockets.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{self as sys, Dir, FileType, Mode, OFlags};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use super::ConfinementSupport;

/// Older versions do not restrict truncation, so a file could be emptied anywhere.
const NEEDED: ABI = ABI::V3;

/// The version that is requested. The kernel applies the parts that it knows.
const WANTED: ABI = ABI::V7;

/// Devices that store nothing. They include no terminal: a command is in a session of its own.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

pub(super) struct Restrictions {
    files: RulesetCreated,
    /// Refuses sockets, unless they are allowed.
    sockets: Option<BpfProgram>,
}

/// A file or directory, opened only to refer to it.
pub(super) struct GrantedEntry {
    fd: OwnedFd,
    pub(super) is_dir: bool,
    /// Whether it is a regular file, a pipe or a socket, and not a link or a device.
    pub(super) is_writable_file: bool,
    pub(super) identity: (u64, u64),
}

/// Restricts this thread, to find out how much the kernel supports.
pub(super) fn try_out() -> io::Result<ConfinementSupport> {
    let status = match Restrictions::new(false).and_then(|restrictions| restrictions.apply()) {
        Ok(status) => status,
        Err(error) => return Ok(ConfinementSupport::Missing { why: error.to_string() }),
    };
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Ok(ConfinementSupport::Missing { why: NO_LANDLOCK.to_owned() });
    };
    let details = [(ABI::V5, "commands to devices"), (ABI::V6, "signals to other programs of yours")];
    let not_covered = details.into_iter().filter(|(since, _)| effective_abi < *since).map(|(_, detail)| detail).collect();
    Ok(ConfinementSupport::InForce { not_covered })
}

const NO_LANDLOCK: &str = "the kernel has no Landlock, or not the version of Linux 6.2 or newer";

impl Restrictions {
    /// Restrictions that so far grant only harmless devices.
    pub(super) fn new(allow_network: bool) -> io::Result<Self> {
        let files = ruleset(allow_network).map_err(|_| io::Error::other(NO_LANDLOCK))?;
        let sockets = if allow_network { None } else { Some(socket_filter()?) };
        let mut restrictions = Self { files, sockets };
        for device in DEVICES.iter().filter_map(|path| open(Path::new(path)).ok()) {
            restrictions.grant(&device, AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev)?;
        }
        Ok(restrictions)
    }

    /// Grants everything in a directory except devices.
    pub(super) fn grant_dir(&mut self, entry: &GrantedEntry) -> io::Result<()> {
        self.grant(entry, AccessFs::from_write(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev))
    }

    pub(super) fn grant_file(&mut self, entry: &GrantedEntry) -> io::Result<()> {
        self.grant(entry, AccessFs::WriteFile | AccessFs::Truncate)
    }

    fn grant(&mut self, entry: &GrantedEntry, rights: BitFlags<AccessFs>) -> io::Result<()> {
        (&mut self.files).add_rule(PathBeneath::new(entry.fd.as_fd(), rights)).map(drop).map_err(io::Error::other)
    }

    /// Restricts the calling thread; this cannot be undone.
    pub(super) fn apply(&self) -> io::Result<RestrictionStatus> {
        let status = self.files.try_clone()?.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(io::Error::other(NO_LANDLOCK));
        }
        if let Some(filter) = &self.sockets {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(status)
    }
}

/// Rules under which nothing may be written.
fn ruleset(allow_network: bool) -> Result<RulesetCreated, RulesetError> {
    let files = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(WANTED))?;
    if allow_network {
        return files.scope(Scope::Signal)?.create();
    }
    files.handle_access(AccessNet::from_all(WANTED))?.scope(Scope::from_all(WANTED))?.create()
}

/// Refuses to create a socket. Landlock restricts TCP ports, but only newer kernels restrict sockets with a name in the
/// file system, and through such a socket a command could ask any program to act. A pair of connected sockets leads
/// nowhere else and is allowed.
fn socket_filter() -> io::Result<BpfProgram> {
    /// Marks a call of the x32 interface of x86-64.
    const X32: i64 = 0x4000_0000;
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    // io_uring creates sockets without the first call.
    let calls = [libc::SYS_socket, libc::SYS_io_uring_setup];
    let others = calls.map(|call| call | X32).into_iter().filter(|_| cfg!(target_arch = "x86_64"));
    let rules: BTreeMap<i64, _> = calls.into_iter().chain(others).map(|call| (call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EACCES as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(io::Error::other)?;
    BpfProgram::try_from(filter).map_err(io::Error::other)
}

const ONLY_NAMED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the end of a path. A link there is not followed.
pub(super) fn open(path: &Path) -> io::Result<GrantedEntry> {
    GrantedEntry::of(sys::open(path, ONLY_NAMED, Mode::empty())?)
}

impl GrantedEntry {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        let stat = sys::fstat(&fd)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_writable_file = matches!(kind, FileType::RegularFile | FileType::Fifo | FileType::Socket);
        Ok(Self { fd, is_dir: kind == FileType::Directory, is_writable_file, identity: (stat.st_dev, stat.st_ino) })
    }

    /// Opens an entry of this directory. A link is not followed.
    pub(super) fn open(&self, name: &OsStr) -> io::Result<Self> {
        Self::of(sys::openat(&self.fd, name, ONLY_NAMED, Mode::empty())?)
    }

    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = sys::openat(&self.fd, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }
}
