//! The table of clients: how to detect each, its hook events, and what cannot be guarded. Names, events and patterns
//! are the client's own.

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

pub(crate) struct ClientProfile {
    /// The name on the command line and for `surehand hook`.
    pub name: &'static str,
    pub title: &'static str,
    programs: &'static [&'static str],
    user_dir: UserDir,
    /// Relative to the root of the project.
    pub project_dir: &'static str,
    pub guard: ToolGuard,
    pub guarded: &'static str,
    /// What cannot be guarded, or only partly.
    pub limits: &'static [&'static str],
}

enum UserDir {
    /// An environment variable with the path of the directory, and the directory in the user's home if it is not set.
    Home(&'static str, &'static str),
    /// Relative to `~/.config`.
    Config(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolGuard {
    Hooks {
        events: &'static [&'static str],
        /// The pattern of the tools whose calls are guarded; `None` means all tools.
        tools: Option<&'static str>,
        form: HookForm,
        /// Whether the input names the event. Otherwise the command does.
        names_event: bool,
    },
    Plugin,
    /// The client has no hooks, only the MCP server.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookForm {
    /// Groups with a `matcher`, as in Claude Code, with the timeout in seconds.
    Groups,
    /// Like `Groups`, but with a name, and with the timeout in milliseconds.
    NamedGroups,
    Cursor,
    Copilot,
    Reasonix,
    /// Executable files named after the event.
    Scripts,
}

const fn hooks(form: HookForm, events: &'static [&'static str], tools: &'static str) -> ToolGuard {
    ToolGuard::Hooks { events, tools: Some(tools), form, names_event: true }
}

const fn hooks_with_event(form: HookForm, events: &'static [&'static str], tools: Option<&'static str>) -> ToolGuard {
    ToolGuard::Hooks { events, tools, form, names_event: false }
}

/// The events of Claude Code, which other clients have adopted.
const CLAUDE_EVENTS: &[&str] =
    &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostCompact"];
const EVENTS_WITHOUT_FAILURE: &[&str] = &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostCompact"];

const CLAUDE_TOOLS: &str = "Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash";
const CODEX_TOOLS: &str = "Bash|apply_patch";
const GEMINI_TOOLS: &str = "read_file|read_many_files|grep_search|search_file_content|write_file|replace|run_shell_command";
const CURSOR_TOOLS: &str = "Read|Write|Delete|Shell|Grep";
const QWEN_TOOLS: &str = "read_file|read_many_files|grep_search|edit|write_file|notebook_edit|run_shell_command";
const REASONIX_TOOLS: &str =
    "read_file|grep|edit_file|multi_edit|write_file|move_file|delete_range|delete_symbol|notebook_edit|bash";

static CLAUDE: ClientProfile = ClientProfile {
    name: "claude",
    title: "Claude Code",
    programs: &["claude"],
    user_dir: UserDir::Home("CLAUDE_CONFIG_DIR", ".claude"),
    project_dir: ".claude",
    guard: hooks(HookForm::Groups, CLAUDE_EVENTS, CLAUDE_TOOLS),
    guarded: "reads, edits, writes, notebooks and commands",
    limits: &[],
};

static CODEX: ClientProfile = ClientProfile {
    name: "codex",
    title: "Codex CLI",
    programs: &["codex"],
    user_dir: UserDir::Home("CODEX_HOME", ".codex"),
    project_dir: ".codex",
    guard: hooks(HookForm::Groups, EVENTS_WITHOUT_FAILURE, CODEX_TOOLS),
    guarded: "patches and commands",
    limits: &[],
};

static GEMINI: ClientProfile = ClientProfile {
    name: "gemini",
    title: "Gemini CLI",
    programs: &["gemini"],
    user_dir: UserDir::Home("", ".gemini"),
    project_dir: ".gemini",
    // `PreCompress` is sent before every model call, so it is not used.
    guard: hooks(HookForm::NamedGroups, &["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool"], GEMINI_TOOLS),
    guarded: "reads, edits, writes and commands",
    limits: &[],
};

static CURSOR: ClientProfile = ClientProfile {
    name: "cursor",
    title: "Cursor",
    programs: &["cursor", "cursor-agent"],
    user_dir: UserDir::Home("", ".cursor"),
    project_dir: ".cursor",
    guard: hooks(HookForm::Cursor, &["sessionStart", "preToolUse", "postToolUse", "preCompact"], CURSOR_TOOLS),
    guarded: "reads, writes, deletions and commands",
    limits: &["this follows Cursor's documentation and was not tried with Cursor itself"],
};

static OPENCODE: ClientProfile = ClientProfile {
    name: "opencode",
    title: "opencode",
    programs: &["opencode"],
    user_dir: UserDir::Config("opencode"),
    project_dir: ".opencode",
    guard: ToolGuard::Plugin,
    guarded: "reads, edits, writes, patches and commands",
    limits: &[],
};

static QWEN: ClientProfile = ClientProfile {
    name: "qwen",
    title: "Qwen Code",
    programs: &["qwen"],
    user_dir: UserDir::Home("QWEN_HOME", ".qwen"),
    project_dir: ".qwen",
    guard: hooks(HookForm::NamedGroups, CLAUDE_EVENTS, QWEN_TOOLS),
    guarded: "reads, edits, writes, notebooks and commands",
    limits: &[],
};

static COPILOT: ClientProfile = ClientProfile {
    name: "copilot",
    title: "Copilot CLI",
    programs: &["copilot"],
    user_dir: UserDir::Home("COPILOT_HOME", ".copilot"),
    project_dir: ".github",
    guard: hooks_with_event(
        HookForm::Copilot,
        &["sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "postToolUseFailure", "preCompact"],
        None,
    ),
    guarded: "reads, edits, new files and commands",
    limits: &[],
};

static GOOSE: ClientProfile = ClientProfile {
    name: "goose",
    title: "goose",
    programs: &["goose"],
    user_dir: UserDir::Config("goose"),
    project_dir: ".agents/plugins/surehand",
    guard: hooks_with_event(HookForm::Groups, CLAUDE_EVENTS, None),
    guarded: "edits, writes and commands",
    limits: &[
        "hooks cannot add to what the model reads, so notes and directory instructions do not reach it",
        "no compaction was seen to reach a hook, so what left the context may still count as read",
    ],
};

static CLINE: ClientProfile = ClientProfile {
    name: "cline",
    title: "Cline",
    programs: &["cline"],
    user_dir: UserDir::Home("CLINE_DIR", ".cline"),
    project_dir: ".clinerules",
    guard: hooks_with_event(HookForm::Scripts, &["TaskStart", "TaskResume", "PreToolUse", "PostToolUse", "PreCompact"], None),
    guarded: "reads, edits, writes and commands",
    limits: &[
        "a hook that denies a call ends the whole task, so a call is stopped by taking its arguments away; a version that does not allow that goes on with it",
    ],
};

static REASONIX: ClientProfile = ClientProfile {
    name: "reasonix",
    title: "Reasonix",
    programs: &["reasonix"],
    user_dir: UserDir::Home("REASONIX_HOME", ".reasonix"),
    project_dir: ".reasonix",
    guard: hooks_with_event(HookForm::Reasonix, EVENTS_WITHOUT_FAILURE, Some(REASONIX_TOOLS)),
    guarded: "reads, edits, writes, moves and commands",
    limits: &[
        "hooks can add to what the model reads only at the start of a session",
        "no compaction was seen to reach a hook, so what left the context may still count as read",
    ],
};

static CONTINUE: ClientProfile = ClientProfile {
    name: "continue",
    title: "Continue",
    programs: &["cn"],
    user_dir: UserDir::Home("CONTINUE_GLOBAL_DIR", ".continue"),
    project_dir: ".continue",
    guard: ToolGuard::Nothing,
    guarded: "what goes through the MCP server",
    limits: &[
        "it runs no hooks, so its own tools are not guarded: a write of theirs can overwrite a change that it has not seen",
    ],
};

static VSCODE: ClientProfile = ClientProfile {
    name: "vscode",
    title: "VS Code",
    programs: &["code", "codium"],
    user_dir: UserDir::Config("Code/User"),
    project_dir: ".vscode",
    guard: ToolGuard::Nothing,
    guarded: "what goes through the MCP server",
    limits: &[
        "its own tools are not guarded: a write of theirs can overwrite a change that it has not seen",
        "this follows its documentation and was not tried with VS Code itself",
    ],
};

impl InitClient {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

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

    pub(crate) fn events(self) -> &'static [&'static str] {
        match self.profile().guard {
            ToolGuard::Hooks { events, .. } => events,
            ToolGuard::Plugin | ToolGuard::Nothing => &[],
        }
    }

    /// Whether the client's program or the user's configuration directory exists.
    pub(crate) fn is_installed(self, dirs: &ConfigDirs) -> bool {
        self.profile().programs.iter().any(|name| program::on_path(name).is_some()) || self.user_directory(dirs).is_dir()
    }

    pub(super) fn user_directory(self, dirs: &ConfigDirs) -> PathBuf {
        match self.profile().user_dir {
            UserDir::Home(variable, directory) => dirs.in_home(variable, directory),
            UserDir::Config(directory) => dirs.in_config(directory),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_profile() {
        for client in InitClient::all() {
            assert_eq!(client.to_possible_value().unwrap().get_name(), client.name());
        }
    }
}
