//! The instruction files that each client loads itself. Every rule was observed with the real program: files with these
//! names were put at the root and below it, the client read and edited a file, and the request to its model was
//! searched for their content. The rule of Cursor comes from its documentation.

use surehand_engine::ClientInstructions;

/// A client that loads none of the files that Surehand gives.
pub(crate) const NOTHING: ClientInstructions = at_the_top(&[]);

/// With a `CLAUDE.md` at the root it ignores every `AGENTS.md`. It also loads files from the directories of files that
/// it reads.
pub(crate) const CLAUDE: ClientInstructions = ClientInstructions {
    names: &["AGENTS.md", "CLAUDE.md"],
    instead: &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"],
    where_files_are_read: true,
};

pub(crate) const CODEX: ClientInstructions =
    ClientInstructions { instead: &["AGENTS.override.md"], ..at_the_top(&["AGENTS.md", "AGENTS.override.md"]) };

pub(crate) const GEMINI: ClientInstructions = ClientInstructions { where_files_are_read: true, ..at_the_top(&["GEMINI.md"]) };

pub(crate) const CURSOR: ClientInstructions = at_the_top(&["AGENTS.md"]);

/// It also loads files from the directories of files that it reads, but reports those to the plugin.
pub(crate) const OPENCODE: ClientInstructions = at_the_top(&["AGENTS.md"]);

pub(crate) const QWEN: ClientInstructions = at_the_top(&["AGENTS.md", "QWEN.md"]);

/// It loads all of them, also in lower case.
pub(crate) const COPILOT: ClientInstructions =
    ClientInstructions { where_files_are_read: true, ..at_the_top(&["AGENTS.md", "agents.md", "CLAUDE.md", "GEMINI.md"]) };

pub(crate) const GOOSE: ClientInstructions = ClientInstructions { where_files_are_read: true, ..at_the_top(&["AGENTS.md"]) };

pub(crate) const CLINE: ClientInstructions = at_the_top(&["AGENTS.md"]);

pub(crate) const CONTINUE: ClientInstructions = at_the_top(&["AGENTS.md"]);

pub(crate) const REASONIX: ClientInstructions = at_the_top(&["AGENTS.md", "CLAUDE.md"]);

/// The files with these names in the working directory of the client and above.
const fn at_the_top(names: &'static [&'static str]) -> ClientInstructions {
    ClientInstructions { names, instead: &[], where_files_are_read: false }
}
