//! Our program as others start it: by which name, and how a command that starts it is known again.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// The name of the program.
pub(crate) const NAME: &str = "surehand";

/// How this program is called in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The name, if that is enough, or else the whole path.
    pub word: String,
    /// Why it is not the name.
    pub note: Option<String>,
}

impl Program {
    /// As it is found from here.
    pub(crate) fn here() -> anyhow::Result<Self> {
        let this = std::env::current_exe().context("the path of this program")?;
        let found = on_path(NAME);
        if found.as_deref().is_some_and(|found| is_same(found, &this)) {
            return Ok(Self { word: NAME.to_owned(), note: None });
        }
        let word = this.to_str().with_context(|| format!("{}: the path of this program is not UTF-8", this.display()))?;
        let why = match found {
            Some(other) => format!("the surehand on PATH is another one ({}), so the whole path is written", other.display()),
            None => "surehand is not on PATH, so the whole path is written".to_owned(),
        };
        Ok(Self { word: word.to_owned(), note: Some(why) })
    }
}

/// Whether two paths lead to the same file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Where a program is that somebody calls by a name or a path.
pub(crate) fn resolve(word: &str) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(PathBuf::from(word)).filter(|path| is_program(path));
    }
    on_path(word)
}

/// The first program of this name on the PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The command of a hook, for a shell.
pub(crate) fn hook_command(program: &str, client: &str) -> String {
    format!("{} hook {client}", in_shell(program))
}

fn is_of_a_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

fn in_shell(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+:@%".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether a command starts our program, perhaps with variables before it.
pub(crate) fn is_ours(words: &[String]) -> bool {
    program_of(words).is_some_and(|word| Path::new(word).file_stem().is_some_and(|name| name == NAME))
}

/// Whether a command is our hook for a client.
pub(crate) fn is_our_hook(words: &[String], client: &str) -> bool {
    is_ours(words) && words.windows(2).any(|pair| pair == ["hook", client])
}

/// The program that a command starts.
pub(crate) fn program_of(words: &[String]) -> Option<&String> {
    words.iter().find(|word| !word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_of_a_name)))
}

/// The words of a plain command line. Quotes are taken off; nothing is expanded.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(words(line), expected);
    }

    #[test]
    fn a_command_line_is_words() {
        check("surehand hook claude", &["surehand", "hook", "claude"]);
        check("  '/a b/surehand'  hook\tcodex ", &["/a b/surehand", "hook", "codex"]);
        check(r#""/a \"b\"/x" '' c\ d"#, &["/a \"b\"/x", "", "c d"]);
        check("", &[]);
    }

    #[test]
    fn a_command_survives_its_quotes() {
        for program in ["surehand", "/usr/bin/surehand", "/a b/it's/surehand", "/ü/surehand", "/a$b/surehand", "/a\\b/surehand"]
        {
            assert_eq!(words(&hook_command(program, "claude")), [program, "hook", "claude"]);
        }
    }

    #[test]
    fn our_commands_are_known_again() {
        let ours = |line: &str| is_our_hook(&words(line), "claude");
        assert!(ours("surehand hook claude"));
        assert!(ours("RUST_BACKTRACE=1 '/opt/a b/surehand' hook claude"));
        assert!(!ours("surehand hook codex"));
        assert!(!ours("surehand-like hook claude"));
        assert!(!ours("echo surehand hook claude"));
        assert!(!ours(""));
    }
}
