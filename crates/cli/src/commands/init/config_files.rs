//! The configuration files of each client and scope, and what each file must contain.

use std::path::{Path, PathBuf};

use super::{
    clients::{HookForm, InitClient, ToolGuard},
    config_dirs::{ConfigDirs, ConfigScope},
    json_config::{ConfigEntry, Presence},
    json_edit::JsonNode,
    program::{self, NAME, ServerLaunch},
    toml_config::TomlServer,
};

#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    pub path: PathBuf,
    pub needs: RequiredContent,
}

#[derive(Debug, Clone)]
pub(crate) enum RequiredContent {
    Json(Vec<ConfigEntry>),
    Toml(TomlServer),
    Whole(OwnedFile),
}

#[derive(Debug, Clone)]
pub(crate) struct OwnedFile {
    pub text: String,
    /// The file belongs to `init` if it contains this text.
    pub mark: &'static str,
    pub kind: OwnedFileKind,
    pub presence: Presence,
}

#[derive(Debug, Clone)]
pub(crate) enum OwnedFileKind {
    Script(&'static str),
    Plugin,
    Manifest,
    Server(Vec<String>),
}

#[derive(Debug, Clone)]
pub(crate) struct InitRequest {
    pub program: String,
    pub with_server: bool,
}

/// The timeout of a hook in seconds. A hook takes milliseconds, unless the disk or a lock keeps it waiting.
const PATIENCE: u64 = 30;

/// The files that configure a client in a scope.
pub(crate) fn files(client: InitClient, scope: ConfigScope, dirs: &ConfigDirs, request: &InitRequest) -> Vec<ConfigFile> {
    let setting = ClientSetup { client, scope, dirs, request };
    let mut files = setting.hook_files();
    if let Some(file) = setting.server_file() {
        match (files.iter_mut().find(|other| other.path == file.path).map(|other| &mut other.needs), file.needs) {
            // Some clients keep hooks and servers in one file.
            (Some(RequiredContent::Json(wanted)), RequiredContent::Json(server)) => wanted.splice(0..0, server).for_each(drop),
            (_, needs) => files.push(ConfigFile { needs, ..file }),
        }
    }
    files
}

/// Why a requested server is not written, and what to do instead.
pub(crate) fn server_by_hand(client: InitClient, scope: ConfigScope) -> Option<&'static str> {
    match client {
        InitClient::Goose => {
            Some("goose keeps servers in ~/.config/goose/config.yaml; add this one with `goose configure`: surehand mcp")
        }
        InitClient::Reasonix => {
            Some("Reasonix keeps servers in ~/.reasonix/config.toml; add [[plugins]] with name, command and args")
        }
        InitClient::Copilot if scope != ConfigScope::Everywhere => Some(
            "Copilot CLI keeps servers for you everywhere only: --scope everywhere --mcp, or `copilot mcp add surehand -- surehand mcp`",
        ),
        InitClient::Cline if scope != ConfigScope::Everywhere => Some(
            "Cline keeps servers for you everywhere only: --scope everywhere --mcp, or `cline mcp add surehand -- surehand mcp`",
        ),
        _ => None,
    }
}

/// Whether the scopes `me` and `project` share this file.
pub(crate) fn is_shared(client: InitClient, file: &ConfigFile, dirs: &ConfigDirs, request: &InitRequest) -> bool {
    let paths = |scope| files(client, scope, dirs, request).into_iter().any(|other| other.path == file.path);
    paths(ConfigScope::Me) && paths(ConfigScope::Project)
}

struct ClientSetup<'a> {
    client: InitClient,
    scope: ConfigScope,
    dirs: &'a ConfigDirs,
    request: &'a InitRequest,
}

impl ClientSetup<'_> {
    /// A shared project uses the name of the program, because a path is right on one machine only.
    fn program(&self) -> &str {
        if self.scope == ConfigScope::Project { NAME } else { &self.request.program }
    }

    /// A committed entry is guarded, because some clients do not start if the program is missing.
    fn launch(&self) -> ServerLaunch {
        ServerLaunch { program: self.program().to_owned(), is_guarded: self.scope == ConfigScope::Project }
    }

    /// A client without hooks always gets the server, except in a shared project, where it must be requested.
    fn presence(&self) -> Presence {
        let is_all_there_is = !self.client.has_hooks() && self.scope != ConfigScope::Project;
        if self.request.with_server || is_all_there_is { Presence::Required } else { Presence::IfThere }
    }

    fn directory(&self) -> PathBuf {
        let in_project = self.client.profile().project_dir;
        match (self.scope, self.client) {
            (ConfigScope::Me | ConfigScope::Project, _) => self.dirs.root.join(in_project),
            (ConfigScope::Everywhere, InitClient::Goose) => self.dirs.home.join(in_project),
            (ConfigScope::Everywhere, client) => client.user_directory(self.dirs),
        }
    }

    fn hook_files(&self) -> Vec<ConfigFile> {
        let directory = self.directory();
        match self.client {
            InitClient::Claude if self.scope == ConfigScope::Me => vec![self.hooks_in(directory.join("settings.local.json"))],
            InitClient::Claude | InitClient::Gemini | InitClient::Qwen | InitClient::Reasonix => {
                vec![self.hooks_in(directory.join("settings.json"))]
            }
            InitClient::Codex | InitClient::Cursor => vec![self.hooks_in(directory.join("hooks.json"))],
            InitClient::Copilot => vec![self.hooks_in(directory.join("hooks/surehand.json"))],
            InitClient::Goose => {
                let manifest = "{\n  \"name\": \"surehand\",\n  \"version\": \"1.0.0\",\n  \"description\": \"Guards goose's file tools with Surehand.\"\n}\n";
                let (path, mark) = (directory.join("plugin.json"), "\"name\": \"surehand\"");
                vec![
                    owned(path, mark, OwnedFileKind::Manifest, manifest.to_owned()),
                    self.hooks_in(directory.join("hooks/hooks.json")),
                ]
            }
            InitClient::Cline => {
                let events = self.client.events().iter();
                events.map(|event| self.hook_script(directory.join("hooks").join(event), event)).collect()
            }
            InitClient::Opencode => {
                let text = surehand_adapters::hooks::opencode_plugin(self.program());
                vec![owned(directory.join("plugins/surehand.js"), "surehand hook opencode", OwnedFileKind::Plugin, text)]
            }
            InitClient::Continue | InitClient::Vscode => Vec::new(),
        }
    }

    fn hooks_in(&self, path: PathBuf) -> ConfigFile {
        let version = matches!(self.client, InitClient::Cursor | InitClient::Copilot).then_some(ConfigEntry::Version(1));
        let hooks = self.client.events().iter().map(|event| self.hook(event));
        ConfigFile { path, needs: RequiredContent::Json(version.into_iter().chain(hooks).collect()) }
    }

    fn hook_script(&self, path: PathBuf, event: &'static str) -> ConfigFile {
        let text = program::hook_script(self.program(), self.client.name(), self.client.title(), event);
        owned(path, "Surehand guards the file tools of ", OwnedFileKind::Script(event), text)
    }

    fn hook(&self, event: &'static str) -> ConfigEntry {
        let ToolGuard::Hooks { form, tools, names_event, .. } = self.client.profile().guard else {
            unreachable!("only clients with hooks have events")
        };
        // Only events about tool calls have a pattern.
        let tools = tools.filter(|_| event.contains("Tool"));
        let argument = (!names_event).then_some(event);
        let command = program::hook_command(self.program(), self.client.name(), argument);
        let value = hook_entry(form, &command, tools);
        ConfigEntry::Hook { client: self.client.name(), event, command, tools, value }
    }

    fn server_file(&self) -> Option<ConfigFile> {
        let directory = self.directory();
        let in_json = |path: PathBuf, table: &[&str]| {
            let table = table.iter().map(|name| (*name).to_owned()).collect();
            let (presence, launch) = (self.presence(), self.launch());
            ConfigFile {
                path,
                needs: RequiredContent::Json(vec![ConfigEntry::Server { table, presence, value: self.server(&launch), launch }]),
            }
        };
        let everywhere = self.scope == ConfigScope::Everywhere;
        let root = self.dirs.root.to_string_lossy();
        Some(match self.client {
            InitClient::Claude => {
                let of_user =
                    self.dirs.variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| self.dirs.home.clone()).join(".claude.json");
                match self.scope {
                    ConfigScope::Project => in_json(self.dirs.root.join(".mcp.json"), &["mcpServers"]),
                    ConfigScope::Everywhere => in_json(of_user, &["mcpServers"]),
                    ConfigScope::Me => in_json(of_user, &["projects", &root, "mcpServers"]),
                }
            }
            InitClient::Codex => {
                let server = TomlServer { presence: self.presence(), launch: self.launch() };
                ConfigFile { path: directory.join("config.toml"), needs: RequiredContent::Toml(server) }
            }
            InitClient::Gemini | InitClient::Qwen => in_json(directory.join("settings.json"), &["mcpServers"]),
            InitClient::Cursor => in_json(directory.join("mcp.json"), &["mcpServers"]),
            InitClient::Opencode => {
                let at_top = if everywhere { &directory } else { &self.dirs.root };
                in_json(opencode_settings(at_top, &directory), &["mcp"])
            }
            InitClient::Copilot if everywhere => in_json(directory.join("mcp-config.json"), &["mcpServers"]),
            InitClient::Cline if everywhere => in_json(directory.join("data/settings/cline_mcp_settings.json"), &["mcpServers"]),
            InitClient::Continue => self.continue_block(directory.join("mcpServers/surehand.yaml")),
            InitClient::Vscode => in_json(directory.join("mcp.json"), &["servers"]),
            InitClient::Copilot | InitClient::Cline | InitClient::Goose | InitClient::Reasonix => return None,
        })
    }

    fn server(&self, launch: &ServerLaunch) -> JsonNode {
        let arguments: &[&str] = match self.client {
            // VS Code may start the server outside the project.
            InitClient::Vscode => &["mcp", "--root", "${workspaceFolder}"],
            _ => &["mcp"],
        };
        let words = launch.words(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let command = [("command", JsonNode::text(&words[0])), ("args", JsonNode::texts(&words[1..]))];
        match self.client {
            InitClient::Opencode => JsonNode::object([
                ("type", JsonNode::text("local")),
                ("command", JsonNode::texts(&words)),
                ("enabled", JsonNode::Yes),
            ]),
            InitClient::Copilot => {
                let tools = ("tools", JsonNode::List(vec![JsonNode::text("*")]));
                JsonNode::object([("type", JsonNode::text("local"))].into_iter().chain(command).chain([tools]))
            }
            InitClient::Vscode => JsonNode::object([("type", JsonNode::text("stdio"))].into_iter().chain(command)),
            _ => JsonNode::object(command),
        }
    }

    fn continue_block(&self, path: PathBuf) -> ConfigFile {
        let words = self.launch().words(&["mcp".to_owned()]);
        // JSON strings are valid YAML strings.
        let quoted: Vec<String> = words.iter().map(|word| serde_json::Value::from(word.as_str()).to_string()).collect();
        let text = format!(
            "# Written by `surehand init`.\nname: surehand\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: surehand\n    command: {}\n    args: [{}]\n",
            quoted[0],
            quoted[1..].join(", ")
        );
        let mark = "# Written by `surehand init`.";
        let file = OwnedFile { text, mark, kind: OwnedFileKind::Server(words), presence: self.presence() };
        ConfigFile { path, needs: RequiredContent::Whole(file) }
    }
}

/// A file that belongs to `init` as a whole.
fn owned(path: PathBuf, mark: &'static str, kind: OwnedFileKind, text: String) -> ConfigFile {
    let presence = Presence::Required;
    ConfigFile { path, needs: RequiredContent::Whole(OwnedFile { text, mark, kind, presence }) }
}

fn hook_entry(form: HookForm, command: &str, tools: Option<&str>) -> JsonNode {
    let pattern = |name| tools.map(|tools| (name, JsonNode::text(tools)));
    let kind = ("type", JsonNode::text("command"));
    let run = ("command", JsonNode::text(command));
    let seconds = ("timeout", JsonNode::Number(PATIENCE));
    let milliseconds = ("timeout", JsonNode::Number(1000 * PATIENCE));
    let group =
        |handler: JsonNode| JsonNode::object(pattern("matcher").into_iter().chain([("hooks", JsonNode::List(vec![handler]))]));
    match form {
        HookForm::Groups => group(JsonNode::object([kind, run, seconds])),
        HookForm::NamedGroups => group(JsonNode::object([("name", JsonNode::text(NAME)), kind, run, milliseconds])),
        HookForm::Cursor => JsonNode::object([run].into_iter().chain(pattern("matcher")).chain([seconds])),
        HookForm::Copilot => {
            JsonNode::object([kind, ("bash", JsonNode::text(command)), ("timeoutSec", JsonNode::Number(PATIENCE))])
        }
        HookForm::Reasonix => JsonNode::object(pattern("match").into_iter().chain([run, milliseconds])),
        HookForm::Scripts => unreachable!("scripts are files of their own"),
    }
}

/// opencode accepts several file names. An existing file is used.
fn opencode_settings(at_top: &Path, directory: &Path) -> PathBuf {
    let names = ["opencode.jsonc", "opencode.json"];
    let known = [at_top, directory].into_iter().flat_map(|place| names.iter().map(|name| place.join(name)));
    known.into_iter().find(|path| path.exists()).unwrap_or_else(|| at_top.join("opencode.json"))
}
