//! Short names for sessions (`claude 3f2a`), and the resolution of the id that a person types: a short name, an id or
//! the start of an id, of a session, a change, a checkpoint or a run.

use std::fmt;

use surehand_store::{ChangeId, CheckpointId, EventFilter, SessionId, StoreError};

use crate::workspace::Workspace;

/// The kind of thing that an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// One context window of a model.
    Session,
    /// One call that changed files, as `surehand log` lists it.
    Change,
    /// A checkpoint; it may also have a name.
    Checkpoint,
    /// An entry of the log.
    LogEntry,
    /// A rescued file, kept or dropped.
    Rescue,
    /// One `surehand run`.
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
        /// The kind that the caller asked for.
        kind: IdKind,
        /// The input, without surrounding white space.
        typed: String,
    },
    /// Several ids start with it.
    #[error("{typed} is ambiguous: it may be {}", one_of(.candidates))]
    Ambiguous {
        /// The kind that the caller asked for.
        kind: IdKind,
        /// The input, without surrounding white space.
        typed: String,
        /// The matching names, sorted.
        candidates: Vec<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// `a, b or c`; if there are many, the first ones and the number of the rest.
fn one_of(names: &[String]) -> String {
    const MOST: usize = 5;
    match names {
        [rest @ .., last] if rest.len() < MOST => [&rest.join(", "), last.as_str()].join(" or "),
        names => format!("{} or one of {} more", names[..MOST].join(", "), names.len() - MOST),
    }
}

/// The value whose id was typed, or the only one whose id starts with the input.
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

/// The id of an entry in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogId {
    /// A call that changed files.
    Change(ChangeId),
    /// A checkpoint, by its id even if it was found by its name.
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
    /// The sessions in the store, with their short names.
    pub fn session_names(&self) -> Result<SessionNames, StoreError> {
        self.flush();
        self.store.import_outboxes();
        Ok(SessionNames::of(self.ask(|store| store.known_sessions())?.into_iter().map(|session| session.id)))
    }

    /// Resolves a session that a person named; see [`SessionNames::find`].
    pub fn find_session(&self, typed: &str) -> Result<SessionId, IdError> {
        self.session_names()?.find(typed)
    }

    /// Resolves the id of a change, or the start of one.
    pub fn find_change(&self, typed: &str) -> Result<ChangeId, IdError> {
        find_id(IdKind::Change, typed, self.change_ids()?)
    }

    /// Resolves the id of a change or checkpoint, or the name of a checkpoint, which takes precedence.
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
    short: String,
}

impl SessionNames {
    /// Computes the short names of these sessions. Duplicates are allowed.
    pub fn of(ids: impl IntoIterator<Item = SessionId>) -> Self {
        let mut ids: Vec<SessionId> = ids.into_iter().collect();
        ids.sort();
        ids.dedup();
        let parts: Vec<IdParts<'_>> = ids.iter().map(|id| IdParts::of(&id.0)).collect();
        let lengths = unique_lengths(&parts);
        let short: Vec<String> = parts.iter().zip(lengths).map(|(parts, lengths)| parts.shortened(lengths)).collect();
        Self(ids.into_iter().zip(short).map(|(id, short)| SessionName { id, short }).collect())
    }

    /// The short name of a session, also of one that is not in the list.
    pub fn short(&self, id: &SessionId) -> String {
        match self.0.binary_search_by(|known| known.id.cmp(id)) {
            Ok(at) => self.0[at].short.clone(),
            Err(_) => IdParts::of(&id.0).shortened([0, 0]),
        }
    }

    /// The name that people see: the short name, or `command line` for the session of the CLI.
    pub fn name(&self, id: &SessionId) -> String {
        match id.0.as_str() {
            "cli" => "command line".to_owned(),
            _ => self.short(id),
        }
    }

    /// The client that an id starts with, such as `claude`.
    pub fn client(id: &SessionId) -> Option<&str> {
        split_client(&id.0).0
    }

    /// Resolves a session by its id, its short name, or the start of either. If all matches but one are subagents of
    /// that one, it is returned.
    pub fn find(&self, typed: &str) -> Result<SessionId, IdError> {
        let typed = typed.trim();
        let is_exact = |known: &&SessionName| known.id.0 == typed || known.short == typed;
        if let Some(exact) = self.0.iter().find(is_exact) {
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
        let IdParts { client, rest, key, agent, .. } = IdParts::of(&self.id.0);
        // `3f2a/07b1` names a subagent of `3f2a`.
        let is_agent = |(typed_key, typed_agent): (&str, &str)| {
            let is_known = agent.is_some_and(|agent| agent.starts_with(typed_agent));
            !typed_key.is_empty() && key.starts_with(typed_key) && is_known
        };
        let begins =
            |typed: &str| rest.starts_with(typed) || key.starts_with(typed) || typed.split_once('/').is_some_and(is_agent);
        let client = client.unwrap_or(NO_CLIENT);
        let after_client = || typed.strip_prefix(client)?.strip_prefix([' ', '-']);
        self.id.0.starts_with(typed) || begins(typed) || after_client().is_some_and(begins) || typed == client
    }
}

/// Takes the place of the client in a short name, if the id has none.
const NO_CLIENT: &str = "session";

/// The minimum number of characters of a generated id in a short name.
const LEAST: usize = 4;

/// An id up to this length is not abbreviated.
const SHORT: usize = 12;

struct IdParts<'a> {
    client: Option<&'a str>,
    rest: &'a str,
    /// The distinguishing part: if the id starts with a time, the part after the time.
    key: &'a str,
    agent: Option<&'a str>,
    is_random: bool,
}

impl<'a> IdParts<'a> {
    fn of(id: &'a str) -> Self {
        let (client, rest) = split_client(id);
        let found = split_uuid(rest).or_else(|| Some((split_fresh_id(rest)?, None)));
        let found = found.or_else(|| Some((rest.strip_prefix("ses_").filter(|rest| !rest.is_empty())?, None)));
        let is_random = found.is_some() || rest.chars().count() > SHORT;
        let (key, agent) = found.unwrap_or((rest, None));
        Self { client, rest, key, agent, is_random }
    }

    /// The short name with at least this many characters of the key and of the subagent.
    fn shortened(&self, [key, agent]: [usize; 2]) -> String {
        let first = |text: &str, least: usize| text.chars().take(least.max(LEAST)).collect::<String>();
        let key = if self.is_random { first(self.key, key) } else { self.key.to_owned() };
        let name = match self.client.or(self.is_random.then_some(NO_CLIENT)) {
            Some(client) => format!("{client} {key}"),
            None => key,
        };
        self.agent.map_or_else(|| name.clone(), |known| format!("{name}/{}", first(known, agent)))
    }
}

/// How many characters of the key and of the subagent are needed to distinguish each id from all others of its client.
/// Keys are compared among different keys, and subagents among those with the same key.
fn unique_lengths(parts: &[IdParts<'_>]) -> Vec<[usize; 2]> {
    let mut sorted: Vec<(usize, &IdParts<'_>)> = parts.iter().enumerate().collect();
    sorted.sort_by_key(|(_, parts)| (parts.client, parts.key, parts.agent));
    let mut lengths = vec![[0, 0]; parts.len()];
    for of_client in sorted.chunk_by(|(_, one), (_, other)| one.client == other.client) {
        let same_keys: Vec<_> = of_client.chunk_by(|(_, one), (_, other)| one.key == other.key).collect();
        let keys: Vec<&str> = same_keys.iter().map(|same| same[0].1.key).collect();
        for (same, key) in same_keys.into_iter().zip(unique_prefixes(&keys)) {
            let (places, agents): (Vec<usize>, Vec<&str>) =
                same.iter().filter_map(|(at, parts)| Some((*at, parts.agent?))).unzip();
            same.iter().for_each(|(at, _)| lengths[*at][0] = key);
            places.into_iter().zip(unique_prefixes(&agents)).for_each(|(at, agent)| lengths[at][1] = agent);
        }
    }
    lengths
}

/// The number of characters that distinguish each text from all others. In sorted order, the text with the longest
/// common prefix is a neighbour.
fn unique_prefixes(sorted: &[&str]) -> Vec<usize> {
    let common = |one: &str, other: &str| one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let mut lengths = vec![0; sorted.len()];
    for (at, pair) in sorted.windows(2).enumerate() {
        let needed = common(pair[0], pair[1]) + 1;
        lengths[at] = needed.max(lengths[at]);
        lengths[at + 1] = needed;
    }
    lengths
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
    use proptest::prelude::*;

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
    fn a_short_name_is_the_client_and_a_distinguishing_prefix() {
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

    /// The simple definition: each id is compared with all others.
    fn short_by_definition(id: &str, others: &[&String]) -> String {
        let parts = IdParts::of(id);
        let common = |one: &str, other: &str| one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let mut lengths = [0, 0];
        for other in others.iter().map(|other| IdParts::of(other)).filter(|other| other.client == parts.client) {
            match (other.key == parts.key, &parts.agent, &other.agent) {
                (true, Some(agent), Some(other)) => lengths[1] = lengths[1].max(common(agent, other) + 1),
                (true, ..) => {}
                (false, ..) => lengths[0] = lengths[0].max(common(parts.key, other.key) + 1),
            }
        }
        parts.shortened(lengths)
    }

    proptest! {
        #[test]
        fn short_names_are_those_of_a_comparison_with_all(
            // Few digits, so that many ids have much in common; the third kind has its key after the time.
            ids in proptest::collection::hash_set(
                "((a|b)-)?([01]{4}2222-0000-4000-8000-000000000000(-[xyü]{1,6})?|[01]{3}-[01]{2}|\
                 [01]{8}-0000-7000-8000-00000000000[01](-[xy]{1,6})?|[ab01ü]{1,14}|(ses_[01]{1,6}))", 0..40),
        ) {
            let names = SessionNames::of(ids.iter().map(|id| SessionId(id.clone())));
            for id in &ids {
                let others: Vec<&String> = ids.iter().filter(|other| *other != id).collect();
                prop_assert_eq!(names.short(&SessionId(id.clone())), short_by_definition(id, &others));
            }
        }
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
    fn an_ambiguous_name_lists_the_candidates() {
        let names = names(&[CLAUDE, NEAR, AGENT]);
        let message = |typed: &str| names.find(typed).unwrap_err().to_string();
        assert_eq!(message("claude"), "claude is ambiguous: it may be claude 3f2a, claude 3f2a/a07b or claude 3f2b");
        assert_eq!(message("nobody"), "there is no session nobody");
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
        let message = find_id(IdKind::Run, "a", many).unwrap_err().to_string();
        assert_eq!(message, "a is ambiguous: it may be a10, a11, a12, a13, a14 or one of 15 more");
    }
}
