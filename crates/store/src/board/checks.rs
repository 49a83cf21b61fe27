//! Limits on the values of a board. Every backend checks values before it stores them, so all refuse the same ones.

use std::{collections::BTreeSet, time::Duration};

use surehand_core::TaskStatus;

use super::{
    Agent, BoardError, Checkout, ContentChange, FileChange, Headline, Heartbeat, NewTask, PathClaimRequest, RepositoryId,
    TaskChoice, TaskClaimRequest, TaskEdit,
};

/// The limits: bytes of a name or a story, because a database must be able to index two of them together; characters of
/// a short text, and of a description; bytes of the lines of one file.
const MOST_OF_NAME: usize = 1000;
const MOST_OF_WORDS: usize = 1000;
const MOST_OF_DESCRIPTION: usize = 10_000;
const MOST_OF_LINES: usize = 1 << 20;
/// The longest lease or life: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A time span in milliseconds, at most a year.
pub fn millis(span: Duration) -> i64 {
    span.min(LONGEST).as_millis() as i64
}

fn check_text(what: &str, text: &str, most: usize) -> Result<(), BoardError> {
    if text.contains('\0') {
        return Err(BoardError::BadValue(format!("{what} has a NUL character")));
    }
    match text.chars().count() {
        length if length > most => Err(BoardError::BadValue(format!("{what} has {length} characters; at most {most} are kept"))),
        _ => Ok(()),
    }
}

fn check_name(what: &str, name: &str) -> Result<(), BoardError> {
    if name.is_empty() {
        return Err(BoardError::BadValue(format!("{what} is empty")));
    }
    check_key(what, name)
}

/// Checks a text by which a backend finds rows.
fn check_key(what: &str, key: &str) -> Result<(), BoardError> {
    match key.len() {
        bytes if bytes > MOST_OF_NAME => {
            Err(BoardError::BadValue(format!("{what} has {bytes} bytes; at most {MOST_OF_NAME} are kept")))
        }
        _ => check_text(what, key, MOST_OF_WORDS),
    }
}

/// A value with limits that apply to every backend.
pub trait Checked {
    /// Returns an error that names the value that is out of bounds.
    fn check(&self) -> Result<(), BoardError>;
}

impl Checked for Checkout {
    fn check(&self) -> Result<(), BoardError> {
        check_name("the host of the checkout", &self.host)?;
        check_text("the path of the checkout", &self.path, MOST_OF_DESCRIPTION)
    }
}

impl Checked for Heartbeat {
    fn check(&self) -> Result<(), BoardError> {
        let Agent { id, session, client, host, checkout, branch, story } = &self.agent;
        check_name("the name of the agent", &id.0)?;
        check_name("the checkout of the agent", &checkout.0)?;
        for text in [&session.0, client, host].into_iter().chain(branch).chain(story) {
            check_text("what is said of the agent", text, MOST_OF_WORDS)?;
        }
        Ok(())
    }
}

impl Checked for NewTask {
    fn check(&self) -> Result<(), BoardError> {
        check_name("the key of a task", &self.key)?;
        check_description(&self.description)
    }
}

fn check_description(description: &str) -> Result<(), BoardError> {
    if description.trim().is_empty() {
        return Err(BoardError::BadValue("a task needs a description".to_owned()));
    }
    check_text("the description of a task", description, MOST_OF_DESCRIPTION)
}

impl Checked for TaskEdit {
    fn check(&self) -> Result<(), BoardError> {
        if self.status == Some(TaskStatus::InProgress) {
            return Err(BoardError::BadValue(format!("task {} is in progress once an agent claims it", self.task)));
        }
        self.description.as_deref().map_or(Ok(()), check_description)
    }
}

impl Checked for TaskClaimRequest {
    fn check(&self) -> Result<(), BoardError> {
        check_name("the name of the claim", &self.id.0)?;
        check_name("the name of the agent", &self.by.0)?;
        match &self.choice {
            TaskChoice::NextOf(story) => check_key("the story", story),
            TaskChoice::This(_) => Ok(()),
        }
    }
}

impl Checked for PathClaimRequest {
    fn check(&self) -> Result<(), BoardError> {
        check_name("the name of the claim", &self.id.0)?;
        check_name("the name of the agent", &self.by.0)
    }
}

impl Checked for FileChange {
    fn check(&self) -> Result<(), BoardError> {
        check_name("the fork point", &self.fork_point)?;
        for text in self.base.iter().chain(self.by.iter().map(|by| &by.0)) {
            check_text("what is said of the file", text, MOST_OF_WORDS)?;
        }
        let ContentChange::Lines(hunks) = &self.change else { return Ok(()) };
        let texts = hunks.iter().filter_map(|hunk| hunk.text.as_deref());
        match texts.map(str::len).sum::<usize>() {
            bytes if bytes > MOST_OF_LINES => {
                Err(BoardError::BadValue(format!("{}: {bytes} bytes of changed lines; send the line numbers alone", self.path)))
            }
            _ => Ok(()),
        }
    }
}

impl Checked for Headline {
    fn check(&self) -> Result<(), BoardError> {
        check_name("the id of a headline", &self.id)?;
        check_name("the checkout of a headline", &self.checkout.0)?;
        let agent = self.agent.iter().map(|agent| &agent.0);
        agent.chain([&self.kind, &self.summary]).try_for_each(|text| check_text("a headline", text, MOST_OF_WORDS))
    }
}

/// Checks all values, and that their keys are unique.
pub fn check_all<'a, T: Checked>(values: &'a [T], key: impl Fn(&'a T) -> &'a str) -> Result<(), BoardError> {
    let mut known = BTreeSet::new();
    for value in values {
        value.check()?;
        if !known.insert(key(value)) {
            return Err(BoardError::BadValue(format!("{:?} is there twice", key(value))));
        }
    }
    Ok(())
}

/// Checks the id of a repository.
pub fn check_repository(repository: &RepositoryId) -> Result<(), BoardError> {
    check_name("the id of the repository", &repository.0)
}

/// Checks the name of a story.
pub fn check_story(story: &str) -> Result<(), BoardError> {
    check_key("the story", story)
}
