//! The clients: how each is found, what it tells its hooks, what is left for a person to do, and what cannot be guarded. Which files
//! configure it is in `files`. Names, events and patterns are theirs.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{
    config_dirs::{ConfigDirs, ConfigScope},
    program,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitClient {
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
pub(crate) type EventMatcher = (&'static str, Option<&'static str>);

pub(crate) struct ClientProfile {
    /// As it is called on the command line, and by `surehand hook`.
    pub name: &'static str,
    pub title: &'static str,
    programs: &'static [&'static str],
    pub guard: ToolGuard,
    pub guarded: &'static str,
    /// What cannot be guarded, or not as well as elsewhere.
    pub limits: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolGuard {
    Hooks {
        events: &'static [EventMatcher],
        form: HookForm,
        /// Whether the input says which event it is. If not, the command does.
        names_event: bool,
    },
    Plugin,
    /// Not at all: it has only the server.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookForm {
    /// In groups with a `matcher`, as Claude Code has it; the time limit in seconds.
    Groups,
    /// The same with a name and the time limit in milliseconds.
    NamedGroups,
    Cursor,
    Copilot,
    Reasonix,
    /// As executable files with the name of the event.
    Scripts,
}

const fn hooks(form: HookForm, events: &'static [EventMatcher]) -> ToolGuard {
    ToolGuard::Hooks { events, form, names_event: true }
}

const fn hooks_with_event(form: HookForm, events: &'static [EventMatcher]) -> ToolGuard {
    ToolGuard::Hooks { events, form, names_event: false }
}

const CLAUDE: ClientProfile = {
    const TOOLS: Option<&str> = Some("Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash");
    ClientProfile {
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

const CODEX: ClientProfile = {
    const TOOLS: Option<&str> = Some("Bash|apply_patch");
    ClientProfile {
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

const GEMINI: ClientProfile = {
    const TOOLS: Option<&str> =
        Some("read_file|read_many_files|grep_search|search_file_content|write_file|replace|run_shell_command");
    ClientProfile {
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

const CURSOR: ClientProfile = {
    const TOOLS: Option<&str> = Some("Read|Write|Delete|Shell|Grep");
    ClientProfile {
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

const OPENCODE: ClientProfile = ClientProfile {
    name: "opencode",
    title: "opencode",
    programs: &["opencode"],
    guard: ToolGuard::Plugin,
    guarded: "reads, edits, writes, patches and commands",
    limits: &[],
};

const QWEN: ClientProfile = {
    const TOOLS: Option<&str> = Some("read_file|read_many_files|grep_search|edit|write_file|notebook_edit|run_shell_command");
    ClientProfile {
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

const COPILOT: ClientProfile = ClientProfile {
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

const GOOSE: ClientProfile = ClientProfile {
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

const CLINE: ClientProfile = ClientProfile {
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

const REASONIX: ClientProfile = {
    const TOOLS: Option<&str> =
        Some("read_file|grep|edit_file|multi_edit|write_file|move_file|delete_range|delete_symbol|notebook_edit|bash");
    ClientProfile {
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

const CONTINUE: ClientProfile = ClientProfile {
    name: "continue",
    title: "Continue",
    programs: &["cn"],
    guard: ToolGuard::Nothing,
    guarded: "what goes through the MCP server",
    limits: &[
        "it runs no hooks, so its own tools are not guarded: a write of theirs can overwrite a change that it has not seen",
    ],
};

const VSCODE: ClientProfile = ClientProfile {
    name: "vscode",
    title: "VS Code",
    programs: &["code", "codium"],
    guard: ToolGuard::Nothing,
    guarded: "what goes through the MCP server",
    limits: &[
        "its own tools are not guarded: a write of theirs can overwrite a change that it has not seen",
        "this follows its documentation and was not tried with VS Code itself",
    ],
};

impl InitClient {
    pub(crate) const ALL: [InitClient; 12] = [
        InitClient::Claude,
        InitClient::Codex,
        InitClient::Gemini,
        InitClient::Cursor,
        InitClient::Opencode,
        InitClient::Qwen,
        InitClient::Copilot,
        InitClient::Goose,
        InitClient::Cline,
        InitClient::Reasonix,
        InitClient::Continue,
        InitClient::Vscode,
    ];

    pub(crate) fn profile(self) -> &'static ClientProfile {
        match self {
            InitClient::Claude => &CLAUDE,
            InitClient::Codex => &CODEX,
            InitClient::Gemini => &GEMINI,
            InitClient::Cursor => &CURSOR,
            InitClient::Opencode => &OPENCODE,
            InitClient::Qwen => &QWEN,
            InitClient::Copilot => &COPILOT,
            InitClient::Goose => &GOOSE,
            InitClient::Cline => &CLINE,
            InitClient::Reasonix => &REASONIX,
            InitClient::Continue => &CONTINUE,
            InitClient::Vscode => &VSCODE,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.profile().name
    }

    pub(crate) fn title(self) -> &'static str {
        self.profile().title
    }

    pub(crate) fn has_hooks(self) -> bool {
        self.profile().guard != ToolGuard::Nothing
    }

    pub(crate) fn events(self) -> &'static [EventMatcher] {
        match self.profile().guard {
            ToolGuard::Hooks { events, .. } => events,
            ToolGuard::Plugin | ToolGuard::Nothing => &[],
        }
    }

    /// Whether it is there: its program, or a directory of the user's with its configuration.
    pub(crate) fn is_installed(self, places: &ConfigDirs) -> bool {
        self.profile().programs.iter().any(|name| program::on_path(name).is_some()) || self.user_directory(places).is_dir()
    }

    pub(super) fn user_directory(self, places: &ConfigDirs) -> PathBuf {
        match self {
            InitClient::Claude => places.in_home("CLAUDE_CONFIG_DIR", ".claude"),
            InitClient::Codex => places.in_home("CODEX_HOME", ".codex"),
            InitClient::Gemini => places.home.join(".gemini"),
            InitClient::Cursor => places.home.join(".cursor"),
            InitClient::Opencode => places.in_config("opencode"),
            InitClient::Qwen => places.in_home("QWEN_HOME", ".qwen"),
            InitClient::Copilot => places.in_home("COPILOT_HOME", ".copilot"),
            InitClient::Goose => places.in_config("goose"),
            InitClient::Cline => places.in_home("CLINE_DIR", ".cline"),
            InitClient::Reasonix => places.in_home("REASONIX_HOME", ".reasonix"),
            InitClient::Continue => places.in_home("CONTINUE_GLOBAL_DIR", ".continue"),
            InitClient::Vscode => places.in_config("Code/User"),
        }
    }

    pub(crate) fn next_steps(self, scope: ConfigScope, has_server: bool) -> Vec<&'static str> {
        let in_project = scope != ConfigScope::Everywhere;
        let mut steps = Vec::new();
        match self {
            InitClient::Claude if has_server && scope == ConfigScope::Project => {
                steps.push("Claude Code asks once whether it may use the server of .mcp.json");
            }
            InitClient::Codex => {
                if in_project {
                    steps.push("Codex reads .codex/ only in a project that you trust; it asks at its start");
                }
                steps.push("Codex runs hooks only when you trust them: type /hooks in it, and again when they change");
            }
            InitClient::Gemini if in_project => steps.push("Gemini CLI reads .gemini/ only in a folder that you trust"),
            InitClient::Qwen if in_project => {
                steps.push("Qwen Code reads .qwen/ only in a folder that you trust, and may ask about hooks")
            }
            InitClient::Cursor => steps.push("Cursor shows them under Settings, Hooks"),
            InitClient::Copilot if in_project => steps.push("Copilot CLI reads .github/hooks/ only in a folder that you trust"),
            InitClient::Reasonix if in_project => {
                steps.push("Reasonix may want the hooks of a project to be trusted: type /hooks trust in it");
            }
            InitClient::Continue => steps.push(
                "this is for Continue in an editor, from its documentation and not tried; its program cn reads ~/.continue/config.yaml alone: add there, under mcpServers, - { name: surehand, command: surehand, args: [mcp] }",
            ),
            _ => {}
        }
        steps
    }
}
