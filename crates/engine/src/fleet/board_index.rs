//! An index of the local copy for hooks: the entries about a few files can be found without reading the rest. So a hook
//! reads the same number of bytes from the board of a large fleet as from that of a small one.
//!
//! The file has a head, a table of slots, and records. A record is found by the hash of its key: its slot is the range
//! of the file that holds all records with this hash. A claim is stored under the literal directory of its pattern, so
//! the claims on a path are those of its parents.

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt};

use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, PathPattern, RelPath, timestamp::Millis};
use surehand_store::board::{AgentId, BoardCopy, Checkout, CheckoutId, FileChange, PathClaim, Presence};

use super::{agent_of, overview::names_of};
use crate::{
    SessionId,
    fleet_link::{CopyVersion, LocalCopy, LostClaim},
    workspace::Workspace,
};

const MAX_BYTES: u64 = 1 << 30;

/// The first bytes of the file. They end with the number of the format.
const FORMAT: u64 = u64::from_be_bytes(*b"SHBIDX02");

/// The maximum number of bytes that are read from one slot.
const MOST_IN_SLOT: u64 = 32 << 20;

/// The entries under one key.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<(CheckoutId, FileChange)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claims: Vec<PathClaim>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<LostClaim>,
    /// The checkouts and agents that the entries mention, and their short names, which are unique among all agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checkouts: Vec<Checkout>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agents: Vec<Presence>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    names: BTreeMap<AgentId, String>,
}

/// The fixed beginning of the file: numbers of eight bytes.
struct IndexHeader {
    version: CopyVersion,
    read_at: Millis,
    now: Millis,
    slots: u64,
    lost: u64,
}

pub(super) const HEAD: usize = 6 * 8;

/// The version of the copy that an index belongs to; `None` if the file has another format.
pub(super) fn version_in(head: &[u8; HEAD]) -> Option<CopyVersion> {
    IndexHeader::of(head).map(|head| head.version)
}

impl Workspace {
    /// The entries of the board about these files of the work tree; `None` if there is no index.
    pub fn board_about(&self, paths: &[RelPath]) -> io::Result<Option<LocalCopy>> {
        let keys = paths.iter().flat_map(|path| [Key::File(path)].into_iter().chain(parents(path).map(Key::ClaimsIn)));
        self.look_up(keys)
    }

    /// The claims that this session has lost; `None` if there is no index.
    pub(super) fn board_about_session(&self, session: &SessionId) -> io::Result<Option<LocalCopy>> {
        let agent = agent_of(session);
        self.look_up([Key::LostBy(&agent)])
    }

    fn look_up<'a>(&self, keys: impl IntoIterator<Item = Key<'a>>) -> io::Result<Option<LocalCopy>> {
        let Some(file) = self.open_copy_file("index", MAX_BYTES)? else { return Ok(None) };
        let Some(head) = IndexHeader::read(&file)? else { return Ok(None) };
        let board = BoardCopy { now: head.now, ..BoardCopy::default() };
        let mut copy = LocalCopy { read_at: Some(head.read_at), board, version: head.version, ..LocalCopy::default() };
        if let Some(age) = self.copy_age()? {
            copy.set_age(age);
        }
        for key in keys.into_iter().filter(|key| head.lost > 0 || !matches!(key, Key::LostBy(_))) {
            if let Some(record) = head.find(&file, &key.text())? {
                record.add_to(&mut copy);
            }
        }
        Ok(Some(copy))
    }
}

/// The subject of a record.
enum Key<'a> {
    File(&'a RelPath),
    ClaimsIn(&'a str),
    LostBy(&'a AgentId),
}

impl Key<'_> {
    fn text(&self) -> String {
        match self {
            Self::File(path) => format!("file {path}"),
            Self::ClaimsIn(directory) => format!("claims {directory}"),
            Self::LostBy(agent) => format!("lost {agent}"),
        }
    }
}

/// The path itself and all its parents. The root is the empty string.
fn parents(path: &RelPath) -> impl Iterator<Item = &str> {
    let path = path.as_str();
    let ends = path.match_indices('/').map(|(at, _)| at);
    [0].into_iter().chain(ends).chain([path.len()]).map(|end| &path[..end])
}

/// The part of a pattern before the first name with a wildcard.
fn literal_part(pattern: &PathPattern) -> &str {
    let pattern = pattern.as_str();
    let Some(wildcard) = pattern.find(['*', '?']) else { return pattern };
    pattern[..wildcard].rfind('/').map_or("", |end| &pattern[..end])
}

/// The slot of a key. The hash must be equal in every build, because the helper that writes the file and the hook that
/// reads it may be different versions.
fn slot_of(key: &str, slots: u64) -> u64 {
    let hash = ContentHash::of(key.as_bytes());
    let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash has 32 bytes");
    u64::from_le_bytes(*first) % slots
}

impl IndexHeader {
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEAD];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8; HEAD]) -> Option<Self> {
        let [format, version, read_at, now, slots, lost] = numbers(bytes);
        let version = CopyVersion(version);
        let head = Self { version, read_at: read_at as Millis, now: now as Millis, slots, lost };
        (format == FORMAT && slots > 0).then_some(head)
    }

    fn find(&self, file: &File, key: &str) -> io::Result<Option<Record>> {
        let mut range = [0; 16];
        file.read_exact_at(&mut range, HEAD as u64 + 8 * slot_of(key, self.slots))?;
        let [start, end] = numbers(&range);
        let Some(length @ 1..=MOST_IN_SLOT) = end.checked_sub(start) else { return Ok(None) };
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, start)?;
        // A record has two lines. Neither JSON nor an escaped key contains a line break.
        let mut lines = bytes.split(|byte| *byte == b'\n');
        while let (Some(found), Some(record)) = (lines.next(), lines.next()) {
            if found == line_of(key).as_bytes() {
                return Ok(serde_json::from_slice(record).ok());
            }
        }
        Ok(None)
    }
}

/// Escapes a key so that it fits on one line.
fn line_of(key: &str) -> String {
    key.replace('\\', "\\\\").replace('\n', "\\n")
}

pub(super) fn numbers<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let number = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * (at + 1)].try_into().expect("eight bytes"));
    std::array::from_fn(number)
}

impl Record {
    fn add_to(self, copy: &mut LocalCopy) {
        for (checkout, change) in self.changes {
            copy.board.changes.entry(checkout).or_default().insert(change.path.clone(), change);
        }
        copy.board.claims.extend(self.claims.into_iter().map(|claim| (claim.id.clone(), claim)));
        copy.board.checkouts.extend(self.checkouts.into_iter().map(|checkout| (checkout.id(), checkout)));
        copy.board.agents.extend(self.agents.into_iter().map(|presence| (presence.agent.id.clone(), presence)));
        copy.lost.extend(self.lost);
        copy.names.extend(self.names);
    }
}

/// The records of a copy, by the text of their keys.
fn records(copy: &LocalCopy) -> BTreeMap<String, Record> {
    let (board, names) = (&copy.board, names_of(&copy.board));
    let name = |agent: &AgentId| (agent.clone(), names.short(&SessionId(agent.0.clone())));
    let mut agents_in: BTreeMap<&CheckoutId, Vec<&Presence>> = BTreeMap::new();
    for presence in board.agents.values() {
        agents_in.entry(&presence.agent.checkout).or_default().push(presence);
    }
    let mut records: BTreeMap<String, Record> = BTreeMap::new();
    for (checkout, files) in &board.changes {
        for (path, change) in files {
            let record = records.entry(Key::File(path).text()).or_default();
            record.changes.push((checkout.clone(), change.clone()));
            record.checkouts.extend(board.checkouts.get(checkout).cloned());
            // The agent that made the change, or else the first one in the checkout.
            let candidates = agents_in.get(checkout).into_iter().flatten();
            let by = candidates.into_iter().find(|presence| change.by.as_ref().is_none_or(|by| *by == presence.agent.id));
            record.agents.extend(by.map(|presence| (*presence).clone()));
            record.names.extend(change.by.as_ref().map(name));
        }
    }
    for claim in board.claims.values() {
        let record = records.entry(Key::ClaimsIn(literal_part(&claim.pattern)).text()).or_default();
        record.names.extend([name(&claim.by)]);
        record.claims.push(claim.clone());
    }
    for lost in &copy.lost {
        let record = records.entry(Key::LostBy(&lost.agent).text()).or_default();
        record.names.extend(lost.taken_by.as_ref().map(name));
        record.lost.push(lost.clone());
    }
    records
}

/// The content of the index file.
pub(super) fn index_of(copy: &LocalCopy) -> io::Result<Vec<u8>> {
    let records = records(copy);
    let slots = (records.len() as u64).next_power_of_two();
    let mut by_slot: BTreeMap<u64, Vec<(&String, &Record)>> = BTreeMap::new();
    for (key, record) in &records {
        by_slot.entry(slot_of(key, slots)).or_default().push((key, record));
    }
    let start = HEAD + 8 * (slots as usize + 1);
    let (mut table, mut body) = (Vec::with_capacity(slots as usize + 1), Vec::new());
    for slot in 0..=slots {
        table.push((start + body.len()) as u64);
        for (key, record) in by_slot.get(&slot).into_iter().flatten() {
            body.extend_from_slice(line_of(key).as_bytes());
            body.push(b'\n');
            serde_json::to_writer(&mut body, record)?;
            body.push(b'\n');
        }
    }
    let times = [copy.read_at.unwrap_or_default() as u64, copy.board.now as u64];
    let head = [FORMAT, copy.version.0].into_iter().chain(times).chain([slots, copy.lost.len() as u64]);
    let numbers = head.chain(table).flat_map(u64::to_le_bytes);
    Ok(numbers.chain(body).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_kept_where_their_wildcards_begin() {
        let check = |pattern: &str, path: &str| {
            let pattern = PathPattern::new(pattern).unwrap();
            let path = RelPath::new(path).unwrap();
            assert!(pattern.matches(&path) && parents(&path).any(|parent| parent == literal_part(&pattern)), "{pattern} {path}");
        };
        check("src/login/**", "src/login/a.rs");
        check("src/lo*/a.rs", "src/login/a.rs");
        check("src/a.rs", "src/a.rs");
        check("*", "a");
        check("**/a?", "b/c/ab");
    }
}
