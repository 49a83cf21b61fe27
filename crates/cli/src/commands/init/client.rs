//! The clients: how each is found, what it tells its hooks, what is left for a person to do, and what cannot be guarded. Which files
//! configure it is in `files`. Names, events and patterns are theirs.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{
    places::{Places, Scope},
    program,
};

/// A client that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    Claude,
    Codex,
    Gemini,
    Cursor,
    Opencode,
    Qwen,
    Copilot,
    Goose,
    Cline,
    Reasonix,
    Continue,
    Vscode,
}

/// An event for which a hook is registered, with the tools that it is for; without any it is for all.
pub(crate) type HookEvent = (&'static str, Option<&'static str>);

/// What is known of a client.
pub(crate) struct Profile {
    /// As it is called on the command line, and by `surehand hook`.
    pub name: &'static str,
    /// As it calls itself.
    pub title: &'static str,
    /// Its programs.
    programs: &'static [&'static str],
    /// How its own tools are guarded.
    pub guard: Guard,
    /// What of it is guarded, in words.
    pub guarded: &'static str,
    /// What cannot be guarded, or not as well as elsewhere.
    pub limits: &'static [&'static str],
}

/// How a client's own tools are guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// By commands that it runs at these events.
    Hooks {
        /// The events.
        events: &'static [HookEvent],
        /// How a hook is written.
        form: HookForm,
        /// Whether the input says which event it is. If not, the command does.
        names_event: bool,
    },
    /// By a file that it loads.
    Plugin,
    /// Not at all: it has only the server.
    Nothing,
}

/// How a client wants its hooks written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookForm {
    /// In groups with a `matcher`, as Claude Code has it; the time limit in seconds.
    Groups,
    /// The same with a name and the time limit in milliseconds.
    NamedGroups,
    /// One by one, as Cursor has it.
    Cursor,
    /// One by one, as Copilot CLI has it.
    Copilot,
    /// One by one, as Reasonix has it.
    Reasonix,
    /// As executable files with the name of the event.
    Scripts,
}

const fn hooks(form: HookForm, events: &'static [HookEvent]) -> Guard {
    Guard::Hooks { events, form, names_event: true }
}

const fn hooks_with_event(form: HookForm, events: &'static [HookEvent]) -> Guard {
    Guard::Hooks { events, form, names_event: false }
}

const CLAUDE: Profile = {
    const TOOLS: Option<&str> = Some("Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash");
    Profile {
        name: "claude",
        title: "Claude Code",
        programs: &["claude"],
        guard: hooks(
            HookForm::Groups,
            &[
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("PreToolUse", TOOLS),
                ("PostToolUse", TOOLS),
                ("PostToolUseFailure", TOOLS),
                ("PostCompact", None),
            ],
        ),
        guarded: "reads, edits, writes, notebooks and commands",
        limits: &[],
    }
};

const CODEX: Profile = {
    const TOOLS: Option<&str> = Some("Bash|apply_patch");
    Profile {
        name: "codex",
        title: "Codex CLI",
        programs: &["codex"],
        guard: hooks(
            HookForm::Groups,
            &[
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("PreToolUse", TOOLS),
                ("PostToolUse", TOOLS),
                ("PostCompact", None),
            ],
        ),
        guarded: "patches and commands",
        limits: &[],
    }
};

const GEMINI: Profile = {
    const TOOLS: Option<&str> =
        Some("read_file|read_many_files|grep_search|search_file_content|write_file|replace|run_shell_command");
    Profile {
        name: "gemini",
        title: "Gemini CLI",
        programs: &["gemini"],
        // Its PreCompress comes before every call of the model, compressing or not, and says nothing.
        guard: hooks(
            HookForm::NamedGroups,
            &[("SessionStart", None), ("BeforeAgent", None), ("BeforeTool", TOOLS), ("AfterTool", TOOLS)],
        ),
        guarded: "reads, edits, writes and commands",
        limits: &[],
    }
};

const CURSOR: Profile = {
    const TOOLS: Option<&str> = Some("Read|Write|Delete|Shell|Grep");
    Profile {
        name: "cursor",
        title: "Cursor",
        programs: &["cursor", "cursor-agent"],
        guard: hooks(
            HookForm::Cursor,
            &[("sessionStart", None), ("preToolUse", TOOLS), ("postToolUse", TOOLS), ("preCompact", None)],
        ),
        guarded: "reads, writes, deletions and commands",
        limits: &["this follows Cursor's documentation and was not tried with Cursor itself"],
    }
};

const OPENCODE: Profile = Profile {
    name: "opencode",
    title: "opencode",
    programs: &["opencode"],
    guard: Guard::Plugin,
    guarded: "reads, edits, writes, patches and commands",
    limits: &[],
};

const QWEN: Profile = {
    const TOOLS: Option<&str> = Some("read_file|read_many_files|grep_search|edit|write_file|notebook_edit|run_shell_command");
    Profile {
        name: "qwen",
        title: "Qwen Code",
        programs: &["qwen"],
        guard: hooks(
            HookForm::NamedGroups,
            &[
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("PreToolUse", TOOLS),
                ("PostToolUse", TOOLS),
                ("PostToolUseFailure", TOOLS),
                ("PostCompact", None),
            ],
        ),
        guarded: "reads, edits, writes, notebooks and commands",
        limits: &[],
    }
};

const COPILOT: Profile = Profile {
    name: "copilot",
    title: "Copilot CLI",
    programs: &["copilot"],
    guard: hooks_with_event(
        HookForm::Copilot,
        &[
            ("sessionStart", None),
            ("userPromptSubmitted", None),
            ("preToolUse", None),
            ("postToolUse", None),
            ("postToolUseFailure", None),
            ("preCompact", None),
        ],
    ),
    guarded: "reads, edits, new files and commands",
    limits: &[],
};

const GOOSE: Profile = Profile {
    name: "goose",
    title: "goose",
    programs: &["goose"],
    guard: hooks_with_event(
        HookForm::Groups,
        &[
            ("SessionStart", None),
            ("UserPromptSubmit", None),
            ("PreToolUse", None),
            ("PostToolUse", None),
            ("PostToolUseFailure", None),
            ("PostCompact", None),
        ],
    ),
    guarded: "edits, writes and commands",
    limits: &[
        "hooks cannot add to what the model reads, so notes and directory instructions do not reach it",
        "no compaction was seen to reach a hook, so what left the context may still count as read",
    ],
};

const CLINE: Profile = Profile {
    name: "cline",
    title: "Cline",
    programs: &["cline"],
    guard: hooks_with_event(
        HookForm::Scripts,
        &[("TaskStart", None), ("TaskResume", None), ("PreToolUse", None), ("PostToolUse", None), ("PreCompact", None)],
    ),
    guarded: "reads, edits, writes and commands",
    limits: &[
        "a hook that denies a call ends the whole task, so a call is stopped by taking its arguments away; a version that does not allow that goes on with it",
    ],
};

const REASONIX: Profile = {
    const TOOLS: Option<&str> =
        Some("read_file|grep|edit_file|multi_edit|write_file|move_file|delete_range|delete_symbol|notebook_edit|bash");
    Profile {
        name: "reasonix",
        title: "Reasonix",
        programs: &["reasonix"],
        guard: hooks_with_event(
            HookForm::Reasonix,
            &[
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("PreToolUse", TOOLS),
                ("PostToolUse", TOOLS),
                ("PostCompact", None),
            ],
        ),
        guarded: "reads, edits, writes, moves and commands",
        limits: &[
            "hooks can add to what the model reads only at the start of a session",
            "no compaction was seen to reach a hook, so what left the context may still count as read",
        ],
    }
};

const CONTINUE: Profile = Profile {
    name: "continue",
    title: "Continue",
    programs: &["cn"],
    guard: Guard::Nothing,
    guarded: "what goes through the MCP server",
    limits: &[
        "it runs no hooks, so its own tools are not guarded: a write of theirs can overwrite a change that it has not seen",
    ],
};

const VSCODE: Profile = Profile {
    name: "vscode",
    title: "VS Code",
    programs: &["code", "codium"],
    guard: Guard::Nothing,
    guarded: "what goes through the MCP server",
    limits: &[
        "its own tools are not guarded: a write of theirs can overwrite a change that it has not seen",
        "this follows its documentation and was not tried with VS Code itself",
    ],
};

impl Client {
    /// All of them.
    pub(crate) const ALL: [Client; 12] = [
        Client::Claude,
        Client::Codex,
        Client::Gemini,
        Client::Cursor,
        Client::Opencode,
        Client::Qwen,
        Client::Copilot,
        Client::Goose,
        Client::Cline,
        Client::Reasonix,
        Client::Continue,
        Client::Vscode,
    ];

    /// What is known of it.
    pub(crate) fn profile(self) -> &'static Profile {
        match self {
            Client::Claude => &CLAUDE,
            Client::Codex => &CODEX,
            Client::Gemini => &GEMINI,
            Client::Cursor => &CURSOR,
            Client::Opencode => &OPENCODE,
            Client::Qwen => &QWEN,
            Client::Copilot => &COPILOT,
            Client::Goose => &GOOSE,
            Client::Cline => &CLINE,
            Client::Reasonix => &REASONIX,
            Client::Continue => &CONTINUE,
            Client::Vscode => &VSCODE,
        }
    }

    /// As it is called on the command line.
    pub(crate) fn name(self) -> &'static str {
        self.profile().name
    }

    /// As it calls itself.
    pub(crate) fn title(self) -> &'static str {
        self.profile().title
    }

    /// Whether it has hooks, or something like them.
    pub(crate) fn has_hooks(self) -> bool {
        self.profile().guard != Guard::Nothing
    }

    /// The events for which it gets a hook.
    pub(crate) fn events(self) -> &'static [HookEvent] {
        match self.profile().guard {
            Guard::Hooks { events, .. } => events,
            Guard::Plugin | Guard::Nothing => &[],
        }
    }

    /// Whether it is there: its program, or a directory of the user's with its configuration.
    pub(crate) fn is_installed(self, places: &Places) -> bool {
        self.profile().programs.iter().any(|name| program::on_path(name).is_some()) || self.user_directory(places).is_dir()
    }

    /// Where it keeps what belongs to the user.
    pub(super) fn user_directory(self, places: &Places) -> PathBuf {
        match self {
            Client::Claude => places.in_home("CLAUDE_CONFIG_DIR", ".claude"),
            Client::Codex => places.in_home("CODEX_HOME", ".codex"),
            Client::Gemini => places.home.join(".gemini"),
            Client::Cursor => places.home.join(".cursor"),
            Client::Opencode => places.in_config("opencode"),
            Client::Qwen => places.in_home("QWEN_HOME", ".qwen"),
            Client::Copilot => places.in_home("COPILOT_HOME", ".copilot"),
            Client::Goose => places.in_config("goose"),
            Client::Cline => places.in_home("CLINE_DIR", ".cline"),
            Client::Reasonix => places.in_home("REASONIX_HOME", ".reasonix"),
            Client::Continue => places.in_home("CONTINUE_GLOBAL_DIR", ".continue"),
            Client::Vscode => places.in_config("Code/User"),
        }
    }

    /// What is left for a person to do.
    pub(crate) fn next_steps(self, scope: Scope, has_server: bool) -> Vec<&'static str> {
        let in_project = scope != Scope::Everywhere;
        let mut steps = Vec::new();
        match self {
            Client::Claude if has_server && scope == Scope::Project => {
                steps.push("Claude Code asks once whether it may use the server of .mcp.json");
            }
            Client::Codex => {
                if in_project {
                    steps.push("Codex reads .codex/ only in a project that you trust; it asks at its start");
                }
                steps.push("Codex runs hooks only when you trust them: type /hooks in it, and again when they change");
            }
            Client::Gemini if in_project => steps.push("Gemini CLI reads .gemini/ only in a folder that you trust"),
            Client::Qwen if in_project => {
                steps.push("Qwen Code reads .qwen/ only in a folder that you trust, and may ask about hooks")
            }
            Client::Cursor => steps.push("Cursor shows them under Settings, Hooks"),
            Client::Copilot if in_project => steps.push("Copilot CLI reads .github/hooks/ only in a folder that you trust"),
            Client::Reasonix if in_project => {
                steps.push("Reasonix may want the hooks of a project to be trusted: type /hooks trust in it");
            }
            Client::Continue => steps.push(
                "this is for Continue in an editor, from its documentation and not tried; its program cn reads ~/.continue/config.yaml alone: add there, under mcpServers, - { name: surehand, command: surehand, args: [mcp] }",
            ),
            _ => {}
        }
        steps
    }
}
