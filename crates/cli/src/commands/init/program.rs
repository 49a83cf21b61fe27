//! The commands that start Surehand in a client's configuration: writes and recognizes them.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::installation::{has_same_bytes, installer_of, keep_copy, kept_copy};

pub(crate) const NAME: &str = "surehand";

/// A script for `sh -c`, followed by the program and its arguments. Runs the program if it exists. Otherwise it prints
/// nothing and reads the input, because Codex reports a hook that leaves its input unread as failed.
const HOOK_GUARD: &str = r#"command -v "$0" >/dev/null 2>&1 && exec "$0" "$@"; cat >/dev/null 2>&1; exit 0"#;

/// The guard of a server. Without the program it ends at once, so that no client waits.
const SERVER_GUARD: &str = r#"command -v "$0" >/dev/null 2>&1 && exec "$0" "$@"; exit 0"#;

/// All versions of the guards contain this.
const GUARD_MARK: &str = r#"exec "$0" "$@""#;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The program's name, if the PATH leads to this program, else its path.
    pub word: String,
    /// The reason that the name alone is not enough.
    pub note: Option<String>,
    /// The program to copy to the path in `word` before any client is configured.
    pub copied_from: Option<PathBuf>,
}

impl Program {
    pub(crate) fn here() -> anyhow::Result<Self> {
        let this = std::env::current_exe().context("the path of this program")?;
        let installer = installer_of(&this);
        if installer.is_temporary() {
            let copy = kept_copy().context("HOME is not set, so there is no place for a copy of this program")?;
            let note = format!("{} keeps surehand in a cache, so it is copied to {}", installer.name(), copy.display());
            return Ok(Self { word: as_word(&copy)?, note: Some(note), copied_from: Some(this) });
        }
        let found = on_path(NAME);
        if found.as_deref().is_some_and(|found| is_same(found, &this)) {
            return Ok(Self { word: NAME.to_owned(), note: None, copied_from: None });
        }
        let word = as_word(&this)?;
        let why = match found {
            Some(other) => format!("the surehand on PATH is another one ({})", other.display()),
            None => "surehand is not on PATH".to_owned(),
        };
        Ok(Self { word, note: Some(why), copied_from: None })
    }

    /// Makes the copy that the clients will start, if one is needed.
    pub(crate) fn copy(&self) -> anyhow::Result<()> {
        let copy = Path::new(&self.word);
        match &self.copied_from {
            Some(program) if !has_same_bytes(program, copy) => keep_copy(program, copy),
            _ => Ok(()),
        }
    }
}

fn as_word(path: &Path) -> anyhow::Result<String> {
    let word = path.to_str().with_context(|| format!("{}: the path of this program is not UTF-8", path.display()))?;
    Ok(word.to_owned())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerLaunch {
    pub program: String,
    /// Whether a missing program is skipped instead of failing.
    pub is_guarded: bool,
}

impl ServerLaunch {
    pub(crate) fn words(&self, arguments: &[String]) -> Vec<String> {
        let guard: &[&str] = if self.is_guarded { &["sh", "-c", SERVER_GUARD] } else { &[] };
        let words = guard.iter().copied().chain([self.program.as_str()]);
        words.chain(arguments.iter().map(String::as_str)).map(str::to_owned).collect()
    }

    /// The corrected command of an existing server, which keeps its arguments.
    pub(crate) fn corrected(&self, words: &[String]) -> Vec<String> {
        self.words(started(words).get(1..).unwrap_or_default())
    }
}

pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Finds a program by its name or path.
pub(crate) fn resolve(word: &str) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(PathBuf::from(word)).filter(|path| is_program(path));
    }
    on_path(word)
}

/// Finds the first program with this name on the PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The command of a hook, quoted for a shell. `event` is for clients that do not name it in the input.
pub(crate) fn hook_command(program: &str, client: &str, event: Option<&str>) -> String {
    let event = event.map(|event| format!(" {event}")).unwrap_or_default();
    format!("sh -c {} {} hook {client}{event}", in_shell(HOOK_GUARD), in_shell(program))
}

/// The content of a script file that runs a hook.
pub(crate) fn hook_script(program: &str, client: &str, title: &str, event: &str) -> String {
    let program = in_shell(program);
    format!(
        "#!/bin/sh\n\
         # Surehand guards the file tools of {title}. Written by `surehand init`; without the program this does nothing.\n\
         command -v {program} >/dev/null 2>&1 && exec {program} hook {client} {event}\n\
         cat >/dev/null 2>&1\n\
         exit 0\n"
    )
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

/// The program and arguments that a command starts, without variables and guard.
pub(crate) fn started(words: &[String]) -> &[String] {
    let is_variable = |word: &&String| word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_of_a_name));
    let words = &words[words.iter().take_while(is_variable).count()..];
    match words {
        [sh, c, script, rest @ ..] if sh == "sh" && c == "-c" && script.contains(GUARD_MARK) => rest,
        _ => words,
    }
}

/// Whether the command does nothing if the program is missing.
pub(crate) fn is_guarded(words: &[String]) -> bool {
    words.iter().any(|word| word.contains(GUARD_MARK))
}

pub(crate) fn is_ours(words: &[String]) -> bool {
    started(words).first().is_some_and(|word| Path::new(word).file_stem().is_some_and(|name| name == NAME))
}

pub(crate) fn is_our_hook(words: &[String], client: &str) -> bool {
    is_ours(words) && started(words).windows(2).any(|pair| pair == ["hook", client])
}

/// Whether a command is exactly one that some version of `init` writes for a hook.
pub(crate) fn is_plain_hook(words: &[String], client: &str) -> bool {
    let has_variables = words.first().is_some_and(|word| word.contains('='));
    let is_plain = matches!(started(words), [_, hook, name] | [_, hook, name, _] if hook == "hook" && name == client);
    is_ours(words) && is_plain && !has_variables
}

/// Splits a plain command line into words. Removes quotes, and expands nothing.
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
            let words = words(&hook_command(program, "claude", Some("Stop")));
            assert_eq!(words, ["sh", "-c", HOOK_GUARD, program, "hook", "claude", "Stop"]);
            assert_eq!(started(&words), [program, "hook", "claude", "Stop"]);
        }
    }

    #[test]
    fn our_commands_are_known_again() {
        let ours = |line: &str| is_our_hook(&words(line), "claude");
        assert!(ours("surehand hook claude"));
        assert!(ours(&hook_command("/opt/a b/surehand", "claude", None)));
        assert!(ours("RUST_BACKTRACE=1 '/opt/a b/surehand' hook claude"));
        assert!(!ours("surehand hook codex"));
        assert!(!ours("surehand-like hook claude"));
        assert!(!ours("echo surehand hook claude"));
        assert!(!ours(""));
    }

    #[test]
    fn only_what_we_wrote_is_corrected() {
        let plain = |line: &str| is_plain_hook(&words(line), "goose");
        assert!(plain("surehand hook goose"));
        assert!(plain("'/old place/surehand' hook goose Stop"));
        assert!(plain(&hook_command("surehand", "goose", Some("Stop"))));
        assert!(!plain("A=1 surehand hook goose"));
        assert!(!plain(&format!("A=1 {}", hook_command("surehand", "goose", None))));
        assert!(!plain("surehand hook goose && mine"));
        assert!(!plain("surehand --root /x hook goose"));
    }

    #[test]
    fn a_server_keeps_its_arguments() {
        let launch = |program: &str, is_guarded| ServerLaunch { program: program.to_owned(), is_guarded };
        let plain = words("/old/surehand mcp --root /x");
        assert_eq!(launch("surehand", false).corrected(&plain), words("surehand mcp --root /x"));
        let guarded = launch("surehand", true).corrected(&plain);
        assert_eq!(guarded, ["sh", "-c", SERVER_GUARD, "surehand", "mcp", "--root", "/x"]);
        assert_eq!(launch("/old/surehand", false).corrected(&guarded), plain);
    }
}
