//! The targets, one file each.

mod anchors;
mod encodings;
mod hooks;
mod mcp;
mod merge;
mod patch;
mod prompt;
mod rebase;
mod replace;
mod shell;
mod state;
mod tokens;

/// A law with the material for its inputs.
pub struct Target {
    /// The name on the command line, and of the directory with its inputs.
    pub name: &'static str,
    /// Panics if these bytes break a law.
    pub run: fn(&[u8]),
    /// Words that mutations insert into inputs.
    pub words: &'static [&'static str],
    /// Longer inputs take too long.
    pub most_bytes: usize,
}

/// The table of targets.
pub const TARGETS: &[Target] = &[
    Target { name: "patch", run: patch::run, words: patch::WORDS, most_bytes: 1_000 },
    Target { name: "anchors", run: anchors::run, words: &[], most_bytes: 200 },
    Target { name: "replace", run: replace::run, words: replace::WORDS, most_bytes: 400 },
    Target { name: "encodings", run: encodings::run, words: encodings::WORDS, most_bytes: 600 },
    Target { name: "rebase", run: rebase::run, words: &[], most_bytes: 150 },
    Target { name: "merge", run: merge::run, words: merge::WORDS, most_bytes: 600 },
    Target { name: "shell", run: shell::run, words: shell::WORDS, most_bytes: 600 },
    Target { name: "prompt", run: prompt::run, words: prompt::WORDS, most_bytes: 1_000 },
    Target { name: "tokens", run: tokens::run, words: tokens::WORDS, most_bytes: 600 },
    Target { name: "hooks", run: hooks::run, words: hooks::WORDS, most_bytes: 3_000 },
    Target { name: "mcp", run: mcp::run, words: mcp::WORDS, most_bytes: 2_000 },
    Target { name: "state", run: state::run, words: state::WORDS, most_bytes: 2_000 },
];

/// The target with this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
