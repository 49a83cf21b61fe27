//! Programs that do not use Surehand: they append, write in place, hold files open, replace files as editors do,
//! format, and check out branches. The ledger knows which tokens they destroy themselves.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use surehand_testkit::rng::Rng;

use super::{
    FILES, Race, git,
    ledger::{Fate, Target, token, tokens},
    wild,
};
use crate::report::Tally;

pub(super) struct Foreign<'a> {
    race: &'a Race<'a>,
    directory: &'static str,
    place: usize,
    who: usize,
    number: usize,
    rng: Rng,
    /// A file that it opened for writing earlier.
    held: Option<(File, String)>,
    tally: Tally,
}

impl<'a> Foreign<'a> {
    /// A program that works in this directory.
    pub(super) fn new(race: &'a Race<'a>, directory: &'static str, place: usize, who: usize, rng: Rng) -> Self {
        Self { race, directory, place, who, number: 0, rng, held: None, tally: Tally::default() }
    }

    /// Works until the race is over.
    pub(super) fn live(mut self) {
        let may_work = match self.directory {
            "open" => self.race.capable.leases,
            "renamed" => self.race.capable.leases && self.race.capable.exchange,
            _ => true,
        };
        while may_work && !self.race.is_over() {
            {
                let _manners = self.race.manners[self.place].lock().expect("no holder of the lock panics");
                // A missing file is another program's work. The next act finds another file.
                if self.act().is_ok() {
                    self.tally.foreign += 1;
                }
            }
            sleep(Duration::from_micros(*self.rng.pick(&[0, 200, 1_000, 3_000, 10_000, 30_000])));
        }
        self.race.add(&self.tally);
    }

    fn act(&mut self) -> std::io::Result<()> {
        let path = self.any_file()?;
        match (self.directory, self.rng.within(0..8)) {
            ("open", 0..3) => self.append(&path),
            ("open", 3 | 4) => self.write_own_line(&path),
            ("open", 5) => self.create(),
            ("open", _) => self.append_to_held(&path),
            ("renamed", 0 | 1) => self.append(&path),
            ("renamed", 2..5) => self.replace(&path, |text, token| format!("{text}{token}\n")),
            ("renamed", 5) => self.replace(&path, format_text),
            ("renamed", _) => self.save_as_editors_do(&path),
            (_, 0 | 1) => self.truncate_and_write(),
            (_, 2 | 3) => self.rename_over(),
            (_, 4 | 5) => self.remove_and_create(),
            (_, _) => self.check_out(),
        }
    }

    /// A random shared file of the directory, wherever Surehand has moved it.
    fn any_file(&mut self) -> std::io::Result<PathBuf> {
        let directory = self.race.workspace.root().join(self.directory);
        let entries = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
        let is_shared =
            |path: &PathBuf| path.extension().is_some_and(|ending| ending == "txt") && !path.to_string_lossy().contains("new-");
        let mut files: Vec<PathBuf> = entries.filter(is_shared).collect();
        files.sort();
        if files.is_empty() { Err(std::io::ErrorKind::NotFound.into()) } else { Ok(self.rng.pick(&files).clone()) }
    }

    fn new_token(&mut self) -> String {
        self.number += 1;
        token(self.who, self.number)
    }

    fn wrote(&self, token: &str, path: &Path) {
        let target = Target { paths: vec![path.display().to_string()], is_quiet: false };
        self.race.ledger.note(token, Fate::Written, target);
    }

    fn append(&mut self, path: &Path) -> std::io::Result<()> {
        let token = self.new_token();
        let mut file = File::options().append(true).open(path)?;
        file.write_all(format!("{token}\n").as_bytes())?;
        self.wrote(&token, path);
        Ok(())
    }

    /// Overwrites its last token in its own line.
    fn write_own_line(&mut self, path: &Path) -> std::io::Result<()> {
        let mut file = File::options().read(true).write(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let start = format!("own {} ", self.who);
        let Some(line) = text.find(&start) else { return Err(std::io::ErrorKind::NotFound.into()) };
        let place = line + start.len();
        let token = self.new_token();
        self.race.ledger.release(&tokens(&text[place..place + token.len()]));
        file.write_all_at(token.as_bytes(), place as u64)?;
        self.wrote(&token, path);
        Ok(())
    }

    /// Appends to a file that it has kept open.
    fn append_to_held(&mut self, path: &Path) -> std::io::Result<()> {
        let token = self.new_token();
        if self.held.is_none() {
            self.held = Some((File::options().append(true).open(path)?, path.display().to_string()));
        }
        let (file, name) = self.held.as_mut().expect("opened above");
        file.write_all(format!("{token}\n").as_bytes())?;
        let name = name.clone();
        self.wrote(&token, Path::new(&name));
        if self.rng.percent(30) {
            self.held = None;
        }
        Ok(())
    }

    /// Creates a file where Surehand creates some too.
    fn create(&mut self) -> std::io::Result<()> {
        let path = self.race.workspace.root().join(format!("open/new-{}.txt", self.rng.within(0..100)));
        let token = self.new_token();
        let mut file = File::options().write(true).create_new(true).open(&path)?;
        file.write_all(format!("{token}\n").as_bytes())?;
        self.wrote(&token, &path);
        Ok(())
    }

    /// Reads a file, writes a changed copy, and exchanges the two. If the old file is not the one it read, it keeps
    /// both.
    fn replace(&mut self, path: &Path, change: impl Fn(&str, &str) -> String) -> std::io::Result<()> {
        let read = fs::read(path)?;
        let token = self.new_token();
        let staged = path.with_extension(format!("{}-{}", self.who, self.number));
        fs::write(&staged, change(&String::from_utf8_lossy(&read), &token))?;
        if let Err(errno) = renameat_with(CWD, &staged, CWD, path, RenameFlags::EXCHANGE) {
            fs::remove_file(&staged)?;
            return Err(errno.into());
        }
        self.wrote(&token, path);
        self.drop_if(&staged, &read)
    }

    /// Renames the file to a backup, writes a new one under its name, and removes the backup.
    fn save_as_editors_do(&mut self, path: &Path) -> std::io::Result<()> {
        let token = self.new_token();
        let backup = path.with_extension(format!("txt~{}-{}", self.who, self.number));
        fs::rename(path, &backup)?;
        let read = fs::read(&backup)?;
        let staged = path.with_extension(format!("{}-{}", self.who, self.number));
        fs::write(&staged, [&read[..], token.as_bytes(), b"\n"].concat())?;
        // A hard link does not replace a file that another program created meanwhile. Then ours keeps its staging name.
        let linked = fs::hard_link(&staged, path);
        self.wrote(&token, path);
        linked?;
        fs::remove_file(&staged)?;
        self.drop_if(&backup, &read)
    }

    /// Removes its own file if the content is as expected.
    fn drop_if(&self, path: &Path, expected: &[u8]) -> std::io::Result<()> {
        if fs::read(path)? == expected { fs::remove_file(path) } else { Ok(()) }
    }

    fn wild_file(&mut self) -> (PathBuf, String) {
        self.number += 1;
        let path = self.race.workspace.root().join(format!("wild/{}.txt", self.rng.within(0..FILES)));
        (path, wild(&format!("{}-{}", self.who, self.number)))
    }

    fn truncate_and_write(&mut self) -> std::io::Result<()> {
        let (path, text) = self.wild_file();
        let mut file = File::options().write(true).truncate(true).open(path)?;
        file.write_all(text.as_bytes())
    }

    fn rename_over(&mut self) -> std::io::Result<()> {
        let (path, text) = self.wild_file();
        let staged = path.with_extension(format!("{}", self.who));
        fs::write(&staged, text)?;
        fs::rename(staged, path)
    }

    fn remove_and_create(&mut self) -> std::io::Result<()> {
        let (path, text) = self.wild_file();
        // Either may fail because Surehand was there first.
        let _ = fs::remove_file(&path);
        let mut file = File::options().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    }

    fn check_out(&mut self) -> std::io::Result<()> {
        let branch = *self.rng.pick(&["one", "two"]);
        let _ = git(&self.race.workspace.root(), &["checkout", "-q", "-f", branch]);
        Ok(())
    }
}

/// Changes white space as a formatter does, and adds the token.
fn format_text(text: &str, token: &str) -> String {
    let lines =
        text.lines().map(|line| if line.starts_with("above") { format!("{} \n", line.trim_end()) } else { format!("{line}\n") });
    lines.chain([format!("{token}\n")]).collect()
}
