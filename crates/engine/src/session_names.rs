//! Short names for sessions (`claude 3f2a`), and the resolution of whatever a person types as an id: a short name, an
//! id or the start of an id, of a session, a change, a checkpoint or a run.

use std::{collections::HashMap, fmt};

use surehand_store::{ChangeId, CheckpointId, EventFilter, SessionId, StoreError};

use crate::workspace::Workspace;

/// The kind of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// A session.
    Session,
    /// A change.
    Change,
    /// A checkpoint.
    Checkpoint,
    /// An entry of the log.
    LogEntry,
    /// A rescued file.
    Rescue,
    /// A run of the agent.
    Run,
}

impl fmt::Display for IdKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdKind::Session => "session",
            IdKind::Change => "change",
            IdKind::Checkpoint => "checkpoint",
            IdKind::LogEntry => "change or checkpoint",
            IdKind::Rescue => "rescued file",
            IdKind::Run => "run",
        })
    }
}

/// Why an id could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Nothing has this id, or an id that starts with it.
    #[error("there is no {kind} {typed}")]
    Unknown {
        /// The kind of id.
        kind: IdKind,
        /// The input.
        typed: String,
    },
    /// Several ids start with it.
    #[error("{typed} is ambiguous: it may be {}", one_of(.candidates))]
    Ambiguous {
        /// The kind of id.
        kind: IdKind,
        /// The input.
        typed: String,
        /// The matching names, sorted.
        candidates: Vec<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// `a, b or c`, with a count of the others if there are many.
fn one_of(names: &[String]) -> String {
    const MOST: usize = 5;
    match names {
        [rest @ .., last] if rest.len() < MOST => [&rest.join(", "), last.as_str()].join(" or "),
        names => format!("{} or one of {} more", names[..MOST].join(", "), names.len() - MOST),
    }
}

/// Finds the id that was typed, or the only one that starts with it.
pub fn find_id<T>(kind: IdKind, typed: &str, known: impl IntoIterator<Item = (String, T)>) -> Result<T, IdError> {
    let typed = typed.trim();
    let mut found: Vec<(String, T)> = Vec::new();
    for (id, value) in known {
        if id == typed {
            return Ok(value);
        }
        if !typed.is_empty() && id.starts_with(typed) && !found.iter().any(|(known, _)| *known == id) {
            found.push((id, value));
        }
    }
    if found.len() > 1 {
        let mut candidates: Vec<String> = found.into_iter().map(|(id, _)| id).collect();
        candidates.sort();
        return Err(IdError::Ambiguous { kind, typed: typed.to_owned(), candidates });
    }
    found.pop().map(|(_, value)| value).ok_or_else(|| IdError::Unknown { kind, typed: typed.to_owned() })
}

/// The id of a change or a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogId {
    /// A change.
    Change(ChangeId),
    /// A checkpoint.
    Checkpoint(CheckpointId),
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogId::Change(id) => id.fmt(f),
            LogId::Checkpoint(id) => id.fmt(f),
        }
    }
}

/// The maximum number of events that are searched for an id.
const MOST_EVENTS: usize = 100_000;

impl Workspace {
    /// The sessions that the store knows of, with their short names.
    pub fn session_names(&self) -> Result<SessionNames, StoreError> {
        self.flush();
        self.store.import_outboxes();
        Ok(SessionNames::of(self.ask(|store| store.known_sessions())?.into_iter().map(|session| session.id)))
    }

    /// The session that a person means.
    pub fn find_session(&self, typed: &str) -> Result<SessionId, IdError> {
        self.session_names()?.find(typed)
    }

    /// The change that a person means.
    pub fn find_change(&self, typed: &str) -> Result<ChangeId, IdError> {
        find_id(IdKind::Change, typed, self.change_ids()?)
    }

    /// The change or checkpoint that a person means. The name of a checkpoint takes precedence.
    pub fn find_logged(&self, typed: &str) -> Result<LogId, IdError> {
        let changes = self.change_ids()?;
        let checkpoints = self.ask(|store| store.checkpoints(usize::MAX))?;
        if let Some(named) = checkpoints.iter().find(|checkpoint| checkpoint.name.as_deref() == Some(typed.trim())) {
            return Ok(LogId::Checkpoint(named.id.clone()));
        }
        let changes = changes.into_iter().map(|(id, change)| (id, LogId::Change(change)));
        let checkpoints = checkpoints.into_iter().map(|known| (known.id.0.clone(), LogId::Checkpoint(known.id)));
        find_id(IdKind::LogEntry, typed, checkpoints.chain(changes))
    }

    fn change_ids(&self) -> Result<Vec<(String, ChangeId)>, StoreError> {
        self.flush();
        self.store.import_outboxes();
        let events = self.ask(|store| store.events(&EventFilter::default(), MOST_EVENTS))?;
        let mut ids: Vec<(String, ChangeId)> = events.into_iter().map(|event| (event.change.0.clone(), event.change)).collect();
        ids.dedup();
        Ok(ids)
    }
}

/// The sessions of a workspace with their short names. A short name consists of the client, if the id starts with it,
/// and as many characters of the rest as are needed to distinguish the sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionNames(Vec<SessionName>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionName {
    id: SessionId,
    parts: IdParts,
    short: String,
}

impl SessionNames {
    /// The short names of these sessions.
    pub fn of(ids: impl IntoIterator<Item = SessionId>) -> Self {
        let mut ids: Vec<SessionId> = ids.into_iter().collect();
        ids.sort();
        ids.dedup();
        let mut named: Vec<(SessionId, IdParts)> = ids.into_iter().map(|id| (id.clone(), IdParts::of(&id.0))).collect();
        let lengths: Vec<[usize; 2]> = named.iter().map(|(_, parts)| lengths(parts, &named)).collect();
        let named = named.drain(..).zip(lengths);
        Self(named.map(|((id, parts), lengths)| SessionName { id, short: parts.shortened(lengths), parts }).collect())
    }

    /// The short name of a session.
    pub fn short(&self, id: &SessionId) -> String {
        let known = self.0.iter().find(|known| known.id == *id).map(|known| known.short.clone());
        known.unwrap_or_else(|| {
            let parts = IdParts::of(&id.0);
            let lengths = lengths(&parts, &[]);
            parts.shortened(lengths)
        })
    }

    /// A session as people know it.
    pub fn name(&self, id: &SessionId) -> String {
        match id.0.as_str() {
            "cli" => "command line".to_owned(),
            _ => self.short(id),
        }
    }

    /// The client in the id of a session.
    pub fn client(id: &SessionId) -> Option<&str> {
        split_client(&id.0).0
    }

    /// The session that a person means by its id, its short name, or the start of either. If all matches but one are
    /// subagents of that one, it is the one meant.
    pub fn find(&self, typed: &str) -> Result<SessionId, IdError> {
        let typed = typed.trim();
        let is_it = |known: &&SessionName| known.id.0 == typed || known.short == typed;
        if let Some(exact) = self.0.iter().find(is_it) {
            return Ok(exact.id.clone());
        }
        let fitting: Vec<&SessionName> = self.0.iter().filter(|known| known.is_meant_by(typed)).collect();
        let is_main = |main: &&&SessionName| {
            fitting.iter().all(|other| other.id == main.id || other.id.0.starts_with(&format!("{}-", main.id)))
        };
        match fitting.iter().find(is_main) {
            Some(main) => Ok(main.id.clone()),
            None if fitting.is_empty() => Err(IdError::Unknown { kind: IdKind::Session, typed: typed.to_owned() }),
            None => {
                let mut candidates: Vec<String> = fitting.iter().map(|known| known.short.clone()).collect();
                candidates.sort();
                Err(IdError::Ambiguous { kind: IdKind::Session, typed: typed.to_owned(), candidates })
            }
        }
    }
}

impl SessionName {
    fn is_meant_by(&self, typed: &str) -> bool {
        if typed.is_empty() {
            return false;
        }
        let IdParts { client, rest, key, .. } = &self.parts;
        let begins = |typed: &str| [rest, key].iter().any(|name| name.starts_with(typed)) || self.begins_with_agent(typed);
        let after_client = |client: &str| typed.strip_prefix(client)?.strip_prefix([' ', '-']);
        let client = client.as_deref().unwrap_or(NO_CLIENT);
        self.id.0.starts_with(typed) || begins(typed) || after_client(client).is_some_and(begins) || typed == client
    }

    /// `3f2a/07b1`: a subagent of that session.
    fn begins_with_agent(&self, typed: &str) -> bool {
        let Some((key, agent)) = typed.split_once('/').filter(|(key, _)| !key.is_empty()) else { return false };
        self.parts.key.starts_with(key) && self.parts.agent.as_ref().is_some_and(|known| known.starts_with(agent))
    }
}

/// The word for the client in the short name of a session whose id has none.
const NO_CLIENT: &str = "session";

/// The minimum number of characters of a generated id in a short name.
const LEAST: usize = 4;

/// A shorter id is not abbreviated.
const SHORT: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq)]
struct IdParts {
    client: Option<String>,
    rest: String,
    /// The distinguishing part: if the id starts with a time, the part after it.
    key: String,
    agent: Option<String>,
    is_random: bool,
}

impl IdParts {
    fn of(id: &str) -> Self {
        let (client, rest) = split_client(id);
        let found = split_uuid(rest).or_else(|| Some((split_fresh_id(rest)?, None)));
        let found = found.or_else(|| Some((rest.strip_prefix("ses_").filter(|rest| !rest.is_empty())?, None)));
        let is_random = found.is_some() || rest.chars().count() > SHORT;
        let (key, agent) = found.unwrap_or((rest, None));
        let owned = |text: &str| text.to_owned();
        Self { client: client.map(owned), rest: owned(rest), key: owned(key), agent: agent.map(owned), is_random }
    }

    /// The short name with this many characters of the key and of the subagent.
    fn shortened(&self, [key, agent]: [usize; 2]) -> String {
        let first = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        let key = first(&self.key, key);
        let name = match &self.client {
            Some(client) => format!("{client} {key}"),
            None if self.is_random => format!("{NO_CLIENT} {key}"),
            None => key,
        };
        self.agent.as_ref().map_or_else(|| name.clone(), |known| format!("{name}/{}", first(known, agent)))
    }
}

/// How many characters of the key and of the subagent are needed to distinguish an id from all others.
fn lengths(parts: &IdParts, others: &[(SessionId, IdParts)]) -> [usize; 2] {
    let common = |one: &str, other: &str| one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let of_client = others.iter().map(|(_, other)| other).filter(|other| other.client == parts.client);
    let mut longest: HashMap<bool, usize> = HashMap::new();
    for other in of_client.filter(|other| *other != parts) {
        let is_same_key = other.key == parts.key;
        let shared = match (is_same_key, &parts.agent, &other.agent) {
            (true, Some(agent), Some(other)) => common(agent, other) + 1,
            (true, ..) => 0,
            (false, ..) => common(&parts.key, &other.key) + 1,
        };
        let entry = longest.entry(is_same_key).or_default();
        *entry = shared.max(*entry);
    }
    let least = |is_agent: bool| longest.get(&is_agent).copied().unwrap_or_default().max(LEAST);
    [if parts.is_random { least(false) } else { usize::MAX }, least(true)]
}

/// The client at the start of an id.
fn split_client(id: &str) -> (Option<&str>, &str) {
    match id.split_once('-') {
        Some((client, rest))
            if !rest.is_empty() && !client.is_empty() && client.bytes().all(|byte| byte.is_ascii_lowercase()) =>
        {
            (Some(client), rest)
        }
        _ => (None, id),
    }
}

/// The part of a UUID that distinguishes it from others of the same day, and the text after the UUID.
fn split_uuid(rest: &str) -> Option<(&str, Option<&str>)> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let (uuid, agent) = match rest.split_at_checked(36)? {
        (uuid, "") => (uuid, None),
        (uuid, agent) => (uuid, Some(agent.strip_prefix('-').filter(|agent| !agent.is_empty())?)),
    };
    let is_group = |(group, length): (&str, usize)| group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    if uuid.split('-').count() != GROUPS.len() || !uuid.split('-').zip(GROUPS).all(is_group) {
        return None;
    }
    // These versions start with the time.
    let is_timed = matches!(uuid.as_bytes()[14], b'1' | b'6' | b'7');
    Some((if is_timed { &uuid[24..] } else { uuid }, agent))
}

/// The random part of an id that Surehand generated.
fn split_fresh_id(rest: &str) -> Option<&str> {
    let (time, random) = rest.split_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (time.len() >= 10 && random.len() == 16 && is_hex(time) && is_hex(random)).then_some(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: &str = "claude-3f2a61d0-9c1e-4b57-8a44-0f6c2b1d9e77";
    const NEAR: &str = "claude-3f2b0000-9c1e-4b57-8a44-0f6c2b1d9e77";
    const AGENT: &str = "claude-3f2a61d0-9c1e-4b57-8a44-0f6c2b1d9e77-a07b1c2";
    const CODEX: &str = "codex-0199a3b2-4cf1-7d10-9d3b-71c0aa55e210";
    const LATER: &str = "codex-0199a3b2-5000-7aaa-8bbb-e210aa55e210";

    fn names(ids: &[&str]) -> SessionNames {
        SessionNames::of(ids.iter().map(|id| SessionId((*id).to_owned())))
    }

    #[track_caller]
    fn check_short(ids: &[&str], expected: &[&str]) {
        let names = names(ids);
        let short: Vec<String> = ids.iter().map(|id| names.short(&SessionId((*id).to_owned()))).collect();
        assert_eq!(short, expected);
        for (id, short) in ids.iter().zip(short) {
            assert_eq!(names.find(&short).unwrap().0, *id, "a short name names its session");
        }
    }

    #[test]
    fn a_short_name_is_the_client_and_what_tells_the_session_apart() {
        check_short(&[CLAUDE, CODEX], &["claude 3f2a", "codex 71c0"]);
        check_short(&[CLAUDE, NEAR, AGENT], &["claude 3f2a", "claude 3f2b", "claude 3f2a/a07b"]);
        check_short(&[CODEX, LATER], &["codex 71c0", "codex e210"]);
        check_short(
            &["claude-3f2a61d0-9c1e-4b57-8a44-0f6c2b1d9e77", "claude-3f2a6fff-9c1e-4b57-8a44-0f6c2b1d9e77"],
            &["claude 3f2a61", "claude 3f2a6f"],
        );
        check_short(&["opencode-ses_5b01f2c9affe1234567890AbCd"], &["opencode 5b01"]);
        check_short(&["goose-20261115_1", "goose-20261115_10"], &["goose 20261115_1", "goose 20261115_10"]);
        check_short(&["19a3f1b2c3d-0123456789abcdef"], &["session 0123"]);
        check_short(&["cli", "alice", "claude-s1", "ümläut"], &["cli", "alice", "claude s1", "ümläut"]);
    }

    #[track_caller]
    fn check_found(typed: &str, expected: Option<&str>) {
        let names = names(&[CLAUDE, NEAR, AGENT, CODEX, "cli"]);
        assert_eq!(names.find(typed).ok().map(|id| id.0).as_deref(), expected, "{typed}");
    }

    #[test]
    fn a_session_is_found_by_every_part_of_its_name() {
        check_found(CLAUDE, Some(CLAUDE));
        check_found("claude-3f2a", Some(CLAUDE));
        check_found(" claude 3f2a ", Some(CLAUDE));
        check_found("3f2a", Some(CLAUDE));
        check_found("3f2a/a0", Some(AGENT));
        check_found("claude 3f2a/a", Some(AGENT));
        check_found("codex", Some(CODEX));
        check_found("0199", Some(CODEX));
        check_found("71c0", Some(CODEX));
        check_found("cli", Some("cli"));
        for nothing in ["", " ", "3f2c", "gemini", "claude 71c0", "/"] {
            check_found(nothing, None);
        }
    }

    #[test]
    fn what_may_be_several_is_told_with_their_names() {
        let names = names(&[CLAUDE, NEAR, AGENT]);
        let said = |typed: &str| names.find(typed).unwrap_err().to_string();
        assert_eq!(said("claude"), "claude is ambiguous: it may be claude 3f2a, claude 3f2a/a07b or claude 3f2b");
        assert_eq!(said("nobody"), "there is no session nobody");
    }

    #[track_caller]
    fn check_id(typed: &str, expected: Result<&str, &str>) {
        let known = ["aa01", "aa02", "aa0", "b1"].map(|id| (id.to_owned(), id));
        assert_eq!(find_id(IdKind::Change, typed, known).map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_if_no_other_begins_so() {
        check_id("b", Ok("b1"));
        check_id("aa0", Ok("aa0"));
        check_id("aa01", Ok("aa01"));
        check_id("a", Err("a is ambiguous: it may be aa0, aa01 or aa02"));
        check_id("c", Err("there is no change c"));
    }

    #[test]
    fn many_candidates_are_counted() {
        let many: Vec<(String, ())> = (10..30).map(|number| (format!("a{number}"), ())).collect();
        let said = find_id(IdKind::Run, "a", many).unwrap_err().to_string();
        assert_eq!(said, "a is ambiguous: it may be a10, a11, a12, a13, a14 or one of 15 more");
    }
}
