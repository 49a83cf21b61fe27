//! Which instructions each client gives its model by itself. Every rule here was seen with the real program: files with these names were put at
//! the root and below it, the client was made to read and edit a file, and what its model was sent was searched for them. Cursor's is from
//! its documentation.

use surehand_engine::ClientInstructions;

/// A client that gives none of ours.
pub(crate) const NOTHING: ClientInstructions = at_the_top(&[]);

/// Where there is a `CLAUDE.md` at the root, no `AGENTS.md` counts, wherever it is. It also looks where files are read.
pub(crate) const CLAUDE: ClientInstructions = ClientInstructions {
    names: &["AGENTS.md", "CLAUDE.md"],
    instead: &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"],
    where_files_are_read: true,
};

pub(crate) const CODEX: ClientInstructions =
    ClientInstructions { instead: &["AGENTS.override.md"], ..at_the_top(&["AGENTS.md", "AGENTS.override.md"]) };

pub(crate) const GEMINI: ClientInstructions = ClientInstructions { where_files_are_read: true, ..at_the_top(&["GEMINI.md"]) };

pub(crate) const CURSOR: ClientInstructions = at_the_top(&["AGENTS.md"]);

/// What it gives where files are read, it says.
pub(crate) const OPENCODE: ClientInstructions = at_the_top(&["AGENTS.md"]);

pub(crate) const QWEN: ClientInstructions = at_the_top(&["AGENTS.md", "QWEN.md"]);

/// It takes them all, also in lower case.
pub(crate) const COPILOT: ClientInstructions =
    ClientInstructions { where_files_are_read: true, ..at_the_top(&["AGENTS.md", "agents.md", "CLAUDE.md", "GEMINI.md"]) };

pub(crate) const GOOSE: ClientInstructions = ClientInstructions { where_files_are_read: true, ..at_the_top(&["AGENTS.md"]) };

pub(crate) const CLINE: ClientInstructions = at_the_top(&["AGENTS.md"]);

pub(crate) const REASONIX: ClientInstructions = at_the_top(&["AGENTS.md", "CLAUDE.md"]);

/// Those of the directory that a client works in, and above, by these names.
const fn at_the_top(names: &'static [&'static str]) -> ClientInstructions {
    ClientInstructions { names, instead: &[], where_files_are_read: false }
}

/// What a client gives that says over MCP that this is its name.
pub(crate) fn of_mcp_client(name: &str) -> &'static ClientInstructions {
    const CLIENTS: &[(&str, &ClientInstructions)] = &[
        ("claude-code", &CLAUDE),
        ("codex", &CODEX),
        ("gemini-cli", &GEMINI),
        ("cursor", &CURSOR),
        ("opencode", &OPENCODE),
        ("qwen", &QWEN),
        ("copilot", &COPILOT),
        ("goose", &GOOSE),
        ("@cline", &CLINE),
        ("reasonix", &REASONIX),
        ("continue", &CLINE),
    ];
    CLIENTS.iter().find(|(start, _)| name.to_lowercase().starts_with(start)).map_or(&NOTHING, |(_, gives)| gives)
}
