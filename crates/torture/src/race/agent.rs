//! An agent that works through Surehand, follows its answers, and records them. Its server is sometimes killed in the
//! middle of a call.

use std::{
    collections::BTreeSet,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use surehand_testkit::rng::Rng;

use super::{
    FILES, Race, SLOTS,
    ledger::{Fate, Target, token, tokens},
};
use crate::{
    client::{Client, Reply},
    kill::Durations,
    report::Tally,
    test_workspace::Settings,
    tree,
};

/// The number of attempts for a refused call. The refusal shows what changed.
const ATTEMPTS: usize = 3;

pub(super) struct Agent<'a> {
    race: &'a Race<'a>,
    who: usize,
    number: usize,
    rng: Rng,
    durations: Durations,
    settings: Settings,
    client: Option<Client<'a>>,
    tally: Tally,
}

impl<'a> Agent<'a> {
    pub(super) fn new(race: &'a Race<'a>, who: usize, mut rng: Rng) -> Self {
        let settings = Settings::any(&mut rng);
        Self { race, who, number: 0, rng, durations: Durations::default(), settings, client: None, tally: Tally::default() }
    }

    /// Works until the race is over.
    pub(super) fn live(mut self) {
        while !self.race.is_over() {
            if !self.client.as_ref().is_some_and(Client::is_alive) && !self.start() {
                break;
            }
            self.act();
            sleep(Duration::from_micros(*self.rng.pick(&[0, 0, 500, 2_000])));
        }
        if let Some(client) = self.client.take() {
            client.end();
        }
        self.race.add(&self.tally);
    }

    fn start(&mut self) -> bool {
        self.settings = Settings::any(&mut self.rng);
        match self.race.workspace.server(self.settings) {
            Ok(client) => self.client = Some(client),
            Err(error) => self.race.workspace.violation(format!("a server does not start: {error:#}")),
        }
        self.client.is_some()
    }

    fn act(&mut self) {
        match self.rng.within(0..22) {
            0..5 => self.count_up(1),
            5..8 => self.count_up(2),
            8..11 => self.fill_slot("open"),
            11..14 => self.fill_slot("renamed"),
            14 => self.move_file(),
            15 => self.delete_or_rewrite(),
            16 => self.create(),
            17..19 => self.act_together(),
            _ => self.edit_wild(),
        }
    }

    fn new_token(&mut self) -> String {
        self.number += 1;
        token(self.who, self.number)
    }

    /// Calls a tool that changes something, and sometimes kills the server during the call.
    fn change(&mut self, tool: &'static str, arguments: &Value) -> Reply {
        let is_last = self.rng.percent(4);
        let instant = self.durations.instant(tool, self.settings.durability, &mut self.rng);
        let Some(client) = &mut self.client else { return Reply::Unknown };
        let reply = if is_last {
            self.tally.kills += 1;
            client.call_and_kill(tool, arguments, || sleep(instant))
        } else {
            let reply = client.call(tool, arguments);
            self.durations.note(tool, self.settings.durability, client.took);
            reply
        };
        self.count(&reply);
        reply
    }

    /// Sends calls without waiting for answers, which then share syncs. Sometimes kills the server meanwhile.
    fn change_together(&mut self, calls: &[(&str, Value)]) -> Vec<Reply> {
        let is_last = self.rng.percent(15);
        let instant = self.durations.instant("together", self.settings.durability, &mut self.rng);
        let Some(client) = &mut self.client else { return vec![Reply::Unknown; calls.len()] };
        let began = Instant::now();
        let replies = client.call_together(calls, is_last.then_some(|| sleep(instant)));
        if is_last {
            self.tally.kills += 1;
        } else {
            self.durations.note("together", self.settings.durability, began.elapsed());
        }
        replies.iter().for_each(|reply| self.count(reply));
        replies
    }

    fn count(&mut self, reply: &Reply) {
        match reply {
            Reply::Done(answer) => {
                self.tally.acknowledged += 1;
                self.tally.rebased += u64::from(answer.result.to_string().contains("\"rebased\""));
            }
            Reply::Refused(_) => self.tally.refused += 1,
            Reply::Unknown => self.tally.unanswered += 1,
        }
    }

    /// The shown text of a file, without line numbers.
    fn read(&mut self, path: &str) -> Option<String> {
        let Reply::Done(answer) = self.client.as_mut()?.call("read_file", &json!({ "path": path })) else { return None };
        let numbered = answer.text.lines().filter_map(|line| line.split_once('|'));
        let lines = numbered.filter(|(number, _)| number.parse::<usize>().is_ok()).map(|(_, text)| format!("{text}\n"));
        Some(lines.collect())
    }

    /// A random shared file of a directory.
    fn any_file(&mut self, directory: &str) -> Option<String> {
        let files = tree::files(&self.race.workspace.root(), directory);
        let is_shared = |(path, bytes): &(&String, &Vec<u8>)| path.ends_with(".txt") && bytes.starts_with(b"above");
        let paths: Vec<&String> = files.iter().filter(is_shared).map(|(path, _)| path).collect();
        (!paths.is_empty()).then(|| (*self.rng.pick(&paths)).clone())
    }

    /// Sends a call until it succeeds, as often as an agent would.
    fn insist(&mut self, tool: &'static str, arguments: &Value) -> Reply {
        let mut reply = self.change(tool, arguments);
        for _ in 1..ATTEMPTS {
            if matches!(reply, Reply::Refused(_)) {
                reply = self.change(tool, arguments);
            }
        }
        reply
    }

    /// Undoes the change that an answer names. A call that changed nothing names none.
    fn take_back(&mut self, reply: &Reply) {
        if let Reply::Done(answer) = reply
            && let Some(change) = answer.result["change"].as_str()
        {
            self.change("undo", &json!({ "change": change }));
        }
    }

    /// Increments one counter, or several in one call. Only Surehand writes there.
    fn count_up(&mut self, files: usize) {
        let first = self.rng.within(0..FILES);
        let paths: Vec<String> = (0..files).map(|file| format!("counter/{}.txt", (first + file) % FILES)).collect();
        let token = self.new_token();
        let Some(edits) = paths.iter().map(|path| self.next_count(path, &token)).collect::<Option<Vec<Value>>>() else { return };
        let reply = match edits.len() {
            1 => self.change("edit_file", &edits[0]),
            _ => self.change("multi_edit", &json!({ "edits": edits })),
        };
        self.race.ledger.note(&token, fate(&reply), Target { paths, is_quiet: true });
    }

    /// The edit that increments a counter and adds a token to it.
    fn next_count(&mut self, path: &str, token: &str) -> Option<Value> {
        let text = self.read(path)?;
        let first = text.lines().next().unwrap_or_default();
        let Some(count) = first.strip_prefix("count ").and_then(|number| number.parse::<u64>().ok()) else {
            self.race.workspace.violation(format!("{path} is no counter: {text}"));
            return None;
        };
        let new = format!("count {}\n{token}\n", count + 1);
        Some(json!({ "path": path, "old_string": format!("count {count}\n"), "new_string": new }))
    }

    /// Increments every counter and creates files, with all calls in flight at once.
    fn act_together(&mut self) {
        let counters = (0..FILES).map(|file| (format!("counter/{file}.txt"), true));
        let created = (0..self.rng.within(0..6)).map(|_| (format!("open/new-{}.txt", self.rng.within(0..100)), false));
        let targets: Vec<(String, bool)> = counters.chain(created).collect();
        let (mut calls, mut tokens) = (Vec::new(), Vec::new());
        for (path, is_counter) in &targets {
            let token = self.new_token();
            let edit = match is_counter {
                true => self.next_count(path, &token),
                false => Some(json!({ "path": path, "old_string": "", "new_string": format!("{token}\n") })),
            };
            let Some(edit) = edit else { return };
            calls.push(("edit_file", edit));
            tokens.push(token);
        }
        let replies = self.change_together(&calls);
        for ((token, (path, is_quiet)), reply) in tokens.iter().zip(targets).zip(&replies) {
            self.race.ledger.note(token, fate(reply), Target { paths: vec![path], is_quiet });
        }
    }

    /// Adds a token to a line of one or two shared files, and sometimes undoes that.
    fn fill_slot(&mut self, directory: &'static str) {
        let files = self.rng.within(1..3);
        let token = self.new_token();
        let (mut edits, mut paths) = (Vec::new(), Vec::new());
        for _ in 0..files {
            let Some(path) = self.any_file(directory) else { return };
            let Some(text) = self.read(&path) else { return };
            let start = format!("slot {}", self.rng.within(0..SLOTS));
            let Some(line) = text.lines().find(|line| line.starts_with(&start)) else { return };
            edits.push(json!({ "path": path, "old_string": format!("{line}\n"), "new_string": format!("{line} {token}\n") }));
            paths.push(path);
        }
        let reply = match edits.len() {
            1 => self.insist("edit_file", &edits[0]),
            _ => self.insist("multi_edit", &json!({ "edits": edits })),
        };
        self.race.ledger.note(&token, fate(&reply), Target { paths, is_quiet: false });
        if self.rng.percent(20) {
            self.race.ledger.release(&BTreeSet::from([token]));
            self.take_back(&reply);
        }
    }

    fn move_file(&mut self) {
        let Some(from) = self.any_file("open") else { return };
        if self.read(&from).is_none() {
            return;
        }
        let to = format!("open/moved-{}.txt", self.rng.within(0..5));
        let reply = self.change("move_file", &json!({ "from": from, "to": to }));
        if self.rng.percent(30) {
            self.take_back(&reply);
        }
    }

    /// Deletes or overwrites a file. Only the tokens it has just seen may be gone afterwards.
    fn delete_or_rewrite(&mut self) {
        let Some(path) = self.any_file("open") else { return };
        let Some(text) = self.read(&path) else { return };
        let seen = tokens(&text);
        let reply = if self.rng.percent(50) {
            self.change("delete_file", &json!({ "path": path }))
        } else {
            self.change("write_file", &json!({ "path": path, "content": super::shared() }))
        };
        if matches!(reply, Reply::Refused(_)) {
            return;
        }
        self.race.ledger.release(&seen);
        if self.rng.percent(50) {
            self.take_back(&reply);
        }
    }

    /// Creates a file where other programs create some too.
    fn create(&mut self) {
        let token = self.new_token();
        let path = format!("open/new-{}.txt", self.rng.within(0..100));
        let arguments = json!({ "path": path, "old_string": "", "new_string": format!("{token}\n") });
        let reply = self.change("edit_file", &arguments);
        self.race.ledger.note(&token, fate(&reply), Target { paths: vec![path], is_quiet: false });
    }

    fn edit_wild(&mut self) {
        let path = format!("wild/{}.txt", self.rng.within(0..FILES));
        let Some(text) = self.read(&path) else { return };
        let Some(line) = text.lines().find(|line| line.starts_with("middle")) else { return };
        self.number += 1;
        let new = format!("middle {} {}\n", self.who, self.number);
        let edit = json!({ "path": path, "old_string": format!("{line}\n"), "new_string": new });
        self.insist("edit_file", &edit);
    }
}

/// The fate of the token in a call, according to the answer.
fn fate(reply: &Reply) -> Fate {
    match reply {
        Reply::Done(_) => Fate::Written,
        Reply::Refused(_) => Fate::Refused,
        Reply::Unknown => Fate::Unknown,
    }
}
