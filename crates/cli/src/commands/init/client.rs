//! The clients: how they are found, which files configure them, and what those files need. The formats are theirs.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::{json::Wanted, jsonc::Node, program};

/// A client that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// opencode.
    Opencode,
}

/// For whom something is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// For whoever works in this project.
    Project,
    /// For this user, everywhere.
    User,
}

/// Where clients look for their configuration.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The root of the project.
    pub root: PathBuf,
    /// The user's home.
    pub home: PathBuf,
    claude: Option<PathBuf>,
    codex: Option<PathBuf>,
    config: Option<PathBuf>,
}

/// A file that configures a client.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it needs.
    pub needs: Needs,
}

/// What a file needs.
#[derive(Debug, Clone)]
pub(crate) enum Needs {
    /// These in its JSON.
    Json(Vec<Wanted>),
    /// Our server in its TOML; this program starts it.
    Toml(String),
    /// This text: it is ours as a whole.
    Whole(String),
}

/// What tells our plugin from somebody else's file of the same name.
pub(crate) const PLUGIN_MARK: &str = "surehand hook opencode";

/// Seconds that a hook may take. It takes some milliseconds; more only where the disk or another process keeps it waiting.
const PATIENCE: u64 = 30;

impl Places {
    /// As the environment says.
    pub(crate) fn here(root: PathBuf) -> anyhow::Result<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let Some(home) = variable("HOME") else {
            anyhow::bail!("HOME is not set, so the clients' configuration cannot be found")
        };
        let (claude, codex) = (variable("CLAUDE_CONFIG_DIR"), variable("CODEX_HOME"));
        Ok(Self { root, home, claude, codex, config: variable("XDG_CONFIG_HOME") })
    }

    /// Without anything special in the environment.
    #[cfg(test)]
    pub(crate) fn at(root: PathBuf, home: PathBuf) -> Self {
        Self { root, home, claude: None, codex: None, config: None }
    }

    fn claude(&self) -> PathBuf {
        self.claude.clone().unwrap_or_else(|| self.home.join(".claude"))
    }

    /// Codex's own directory.
    pub(crate) fn codex(&self) -> PathBuf {
        self.codex.clone().unwrap_or_else(|| self.home.join(".codex"))
    }

    fn opencode(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.home.join(".config")).join("opencode")
    }

    /// A path as people know it: from the root or from home.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match (path.strip_prefix(&self.root), path.strip_prefix(&self.home)) {
            (Ok(path), _) => path.display().to_string(),
            (_, Ok(path)) => format!("~/{}", path.display()),
            _ => path.display().to_string(),
        }
    }
}

impl Client {
    /// All of them.
    pub(crate) const ALL: [Client; 5] = [Client::Claude, Client::Codex, Client::Gemini, Client::Cursor, Client::Opencode];

    /// As it is called on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::Cursor => "cursor",
            Client::Opencode => "opencode",
        }
    }

    /// As it calls itself.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Client::Claude => "Claude Code",
            Client::Codex => "Codex CLI",
            Client::Gemini => "Gemini CLI",
            Client::Cursor => "Cursor",
            Client::Opencode => "opencode",
        }
    }

    /// Whether it is there: its program, or a directory with its configuration.
    pub(crate) fn is_installed(self, places: &Places) -> bool {
        let programs: &[&str] = match self {
            Client::Cursor => &["cursor", "cursor-agent"],
            _ => &[self.name()],
        };
        programs.iter().any(|name| program::on_path(name).is_some())
            || self.directories(places).iter().any(|directory| directory.is_dir())
    }

    fn directories(self, places: &Places) -> [PathBuf; 2] {
        let in_project = places.root.join(format!(".{}", self.name()));
        let of_user = match self {
            Client::Claude => places.claude(),
            Client::Codex => places.codex(),
            Client::Gemini | Client::Cursor => places.home.join(format!(".{}", self.name())),
            Client::Opencode => places.opencode(),
        };
        [in_project, of_user]
    }

    /// The files that configure it, with what they need.
    pub(crate) fn files(self, scope: Scope, places: &Places, program: &str) -> Vec<ConfigFile> {
        let [in_project, of_user] = self.directories(places);
        let directory = if scope == Scope::Project { in_project } else { of_user };
        let json = |path: PathBuf, wanted: Vec<Wanted>| ConfigFile { path, needs: Needs::Json(wanted) };
        let server = || vec![self.server(program)];
        let hooks = || self.hooks(program);
        match self {
            Client::Claude => {
                let servers = match (scope, &places.claude) {
                    (Scope::Project, _) => places.root.join(".mcp.json"),
                    (Scope::User, Some(claude)) => claude.join(".claude.json"),
                    (Scope::User, None) => places.home.join(".claude.json"),
                };
                vec![json(servers, server()), json(directory.join("settings.json"), hooks())]
            }
            Client::Codex => {
                let servers = ConfigFile { path: directory.join("config.toml"), needs: Needs::Toml(program.to_owned()) };
                vec![servers, json(directory.join("hooks.json"), hooks())]
            }
            Client::Gemini => vec![json(directory.join("settings.json"), [server(), hooks()].concat())],
            Client::Cursor => {
                let hooks = [vec![Wanted::Version(1)], hooks()].concat();
                vec![json(directory.join("mcp.json"), server()), json(directory.join("hooks.json"), hooks)]
            }
            Client::Opencode => {
                let at_top = if scope == Scope::Project { &places.root } else { &directory };
                let plugin = Needs::Whole(surehand_adapters::hooks::opencode_plugin(program));
                vec![
                    json(opencode_settings(at_top, &directory), server()),
                    ConfigFile { path: directory.join("plugins/surehand.js"), needs: plugin },
                ]
            }
        }
    }

    fn server(self, program: &str) -> Wanted {
        let text = |text: &str| Node::Text(text.to_owned());
        let (table, value) = match self {
            Client::Opencode => {
                let command = Node::List(vec![text(program), text("mcp")]);
                ("mcp", vec![("type", text("local")), ("command", command), ("enabled", Node::Yes)])
            }
            _ => ("mcpServers", vec![("command", text(program)), ("args", Node::List(vec![text("mcp")]))]),
        };
        Wanted::Server { table, program: program.to_owned(), value: Node::Object(value) }
    }

    /// The events that matter, each with the tools that matter.
    pub(crate) fn events(self) -> &'static [(&'static str, Option<&'static str>)] {
        match self {
            Client::Claude => {
                const TOOLS: Option<&str> = Some("Read|Edit|MultiEdit|Write|Bash");
                &[
                    ("SessionStart", None),
                    ("UserPromptSubmit", None),
                    ("PreToolUse", TOOLS),
                    ("PostToolUse", TOOLS),
                    ("PostToolUseFailure", TOOLS),
                    ("PostCompact", None),
                ]
            }
            Client::Codex => {
                const TOOLS: Option<&str> = Some("Bash|apply_patch");
                &[
                    ("SessionStart", None),
                    ("UserPromptSubmit", None),
                    ("PreToolUse", TOOLS),
                    ("PostToolUse", TOOLS),
                    ("PostCompact", None),
                ]
            }
            // Its PreCompress comes before every call of the model, compressing or not, and says nothing.
            Client::Gemini => {
                const TOOLS: Option<&str> = Some("read_file|read_many_files|write_file|replace|run_shell_command");
                &[("SessionStart", None), ("BeforeAgent", None), ("BeforeTool", TOOLS), ("AfterTool", TOOLS)]
            }
            Client::Cursor => {
                const TOOLS: Option<&str> = Some("Read|Write|Delete|Shell");
                &[("sessionStart", None), ("preToolUse", TOOLS), ("postToolUse", TOOLS), ("preCompact", None)]
            }
            // What it tells, it tells its plugin.
            Client::Opencode => &[],
        }
    }

    fn hooks(self, program: &str) -> Vec<Wanted> {
        let hook = |(event, tools): &(&'static str, Option<&'static str>)| {
            let value = self.hook(&program::hook_command(program, self.name()), *tools);
            Wanted::Hook { client: self.name(), event, program: program.to_owned(), value }
        };
        self.events().iter().map(hook).collect()
    }

    fn hook(self, command: &str, tools: Option<&str>) -> Node {
        let text = |text: &str| Node::Text(text.to_owned());
        let matcher = tools.map(|tools| ("matcher", text(tools)));
        let command = ("command", text(command));
        let members: Vec<_> = match self {
            Client::Cursor => [command].into_iter().chain(matcher).chain([("timeout", Node::Number(PATIENCE))]).collect(),
            _ => {
                let kind = ("type", text("command"));
                let named = (self == Client::Gemini).then(|| ("name", text(program::NAME)));
                let patience = if self == Client::Gemini { 1000 * PATIENCE } else { PATIENCE };
                let members = named.into_iter().chain([kind, command, ("timeout", Node::Number(patience))]).collect();
                let handlers = ("hooks", Node::List(vec![Node::Object(members)]));
                matcher.into_iter().chain([handlers]).collect()
            }
        };
        Node::Object(members)
    }

    /// What is left for a person to do.
    pub(crate) fn notes(self, scope: Scope) -> Vec<&'static str> {
        let in_project = scope == Scope::Project;
        let mut notes = Vec::new();
        match self {
            Client::Claude if in_project => notes.push("Claude Code asks once whether it may use the server of .mcp.json"),
            Client::Codex => {
                if in_project {
                    notes.push("Codex reads .codex/ only in a project that you trust; it asks at its start");
                }
                notes.push("Codex runs hooks only when you trust them: type /hooks in it, and again when they change");
            }
            Client::Gemini if in_project => notes.push("Gemini CLI reads .gemini/ only in a folder that you trust"),
            Client::Cursor => {
                notes.push("Cursor shows both under Settings: Tools & MCP, and Hooks; this was not tried with Cursor itself")
            }
            _ => {}
        }
        notes
    }
}

/// opencode takes several names; one that is there is used.
fn opencode_settings(at_top: &Path, directory: &Path) -> PathBuf {
    let names = ["opencode.jsonc", "opencode.json"];
    let known = [at_top, directory].into_iter().flat_map(|place| names.iter().map(|name| place.join(name)));
    known.into_iter().find(|path| path.exists()).unwrap_or_else(|| at_top.join("opencode.json"))
}
