//! Which files configure a client in a scope, and what each of them needs.

use std::path::{Path, PathBuf};

use super::{
    client::{Client, Guard, HookEvent, HookForm},
    json::{Presence, Wanted},
    jsonc::Node,
    places::{Places, Scope},
    program::{self, Launch, NAME},
    toml::TomlServer,
};

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
    /// Our server in its TOML.
    Toml(TomlServer),
    /// This text: it is ours as a whole.
    Whole(WholeFile),
}

/// A file that is ours as a whole.
#[derive(Debug, Clone)]
pub(crate) struct WholeFile {
    /// What it holds.
    pub text: String,
    /// What tells it from somebody else's file of the same name.
    pub mark: &'static str,
    /// What it is.
    pub kind: WholeKind,
    /// Whether it is put in.
    pub presence: Presence,
}

/// What a file is that is ours as a whole.
#[derive(Debug, Clone)]
pub(crate) enum WholeKind {
    /// A script that is run at this event.
    Script(&'static str),
    /// A plugin.
    Plugin,
    /// What describes a plugin.
    Manifest,
    /// A server that is started by these words.
    Server(Vec<String>),
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Our program, as it is called from here.
    pub program: String,
    /// Whether the MCP server is asked for.
    pub with_server: bool,
}

/// Seconds that a hook may take. It takes some milliseconds; more only where the disk or another process keeps it waiting.
const PATIENCE: u64 = 30;

/// The files that configure a client in a scope, with what they need.
pub(crate) fn files(client: Client, scope: Scope, places: &Places, request: &Request) -> Vec<ConfigFile> {
    let setting = Setting { client, scope, places, request };
    let mut files = setting.hook_files();
    if let Some(file) = setting.server_file() {
        match (files.iter_mut().find(|other| other.path == file.path).map(|other| &mut other.needs), file.needs) {
            // Some clients have both in one file.
            (Some(Needs::Json(wanted)), Needs::Json(server)) => wanted.splice(0..0, server).for_each(drop),
            (_, needs) => files.push(ConfigFile { needs, ..file }),
        }
    }
    files
}

/// Why a server that is asked for is not written, with what to do instead.
pub(crate) fn server_by_hand(client: Client, scope: Scope) -> Option<&'static str> {
    match client {
        Client::Goose => {
            Some("goose keeps servers in ~/.config/goose/config.yaml; add this one with `goose configure`: surehand mcp")
        }
        Client::Reasonix => {
            Some("Reasonix keeps servers in ~/.reasonix/config.toml; add [[plugins]] with name, command and args")
        }
        Client::Copilot if scope != Scope::Everywhere => Some(
            "Copilot CLI keeps servers for you everywhere only: --scope everywhere --mcp, or `copilot mcp add surehand -- surehand mcp`",
        ),
        Client::Cline if scope != Scope::Everywhere => Some(
            "Cline keeps servers for you everywhere only: --scope everywhere --mcp, or `cline mcp add surehand -- surehand mcp`",
        ),
        _ => None,
    }
}

/// Whether the file of this scope is the project's as well: then only git tells whose it is.
pub(crate) fn is_shared(client: Client, file: &ConfigFile, places: &Places, request: &Request) -> bool {
    let paths = |scope| files(client, scope, places, request).into_iter().any(|other| other.path == file.path);
    paths(Scope::Me) && paths(Scope::Project)
}

struct Setting<'a> {
    client: Client,
    scope: Scope,
    places: &'a Places,
    request: &'a Request,
}

impl Setting<'_> {
    /// In a project that others share, the program is looked up by its name: a path would be right on one machine only.
    fn program(&self) -> &str {
        if self.scope == Scope::Project { NAME } else { &self.request.program }
    }

    /// What a missing program does to a committed entry is another's trouble: some clients do not start then.
    fn launch(&self) -> Launch {
        Launch { program: self.program().to_owned(), is_guarded: self.scope == Scope::Project }
    }

    /// A client without hooks has nothing else; in a project that others share, it must be asked for all the same.
    fn presence(&self) -> Presence {
        let is_all_there_is = !self.client.has_hooks() && self.scope != Scope::Project;
        if self.request.with_server || is_all_there_is { Presence::Required } else { Presence::IfThere }
    }

    /// The directory with the client's configuration.
    fn directory(&self) -> PathBuf {
        let in_project = match self.client {
            Client::Claude => ".claude",
            Client::Codex => ".codex",
            Client::Gemini => ".gemini",
            Client::Cursor => ".cursor",
            Client::Opencode => ".opencode",
            Client::Qwen => ".qwen",
            Client::Copilot => ".github",
            Client::Goose => ".agents/plugins/surehand",
            Client::Cline => ".clinerules",
            Client::Reasonix => ".reasonix",
            Client::Continue => ".continue",
            Client::Vscode => ".vscode",
        };
        match (self.scope, self.client) {
            (Scope::Me | Scope::Project, _) => self.places.root.join(in_project),
            (Scope::Everywhere, Client::Goose) => self.places.home.join(in_project),
            (Scope::Everywhere, client) => client.user_directory(self.places),
        }
    }

    fn hook_files(&self) -> Vec<ConfigFile> {
        let directory = self.directory();
        match self.client {
            Client::Claude if self.scope == Scope::Me => vec![self.hooks_in(directory.join("settings.local.json"))],
            Client::Claude | Client::Gemini | Client::Qwen | Client::Reasonix => {
                vec![self.hooks_in(directory.join("settings.json"))]
            }
            Client::Codex | Client::Cursor => vec![self.hooks_in(directory.join("hooks.json"))],
            Client::Copilot => vec![self.hooks_in(directory.join("hooks/surehand.json"))],
            Client::Goose => {
                let manifest = "{\n  \"name\": \"surehand\",\n  \"version\": \"1.0.0\",\n  \"description\": \"Guards goose's file tools with Surehand.\"\n}\n";
                let manifest = WholeFile {
                    text: manifest.to_owned(),
                    mark: "\"name\": \"surehand\"",
                    kind: WholeKind::Manifest,
                    presence: Presence::Required,
                };
                let manifest = ConfigFile { path: directory.join("plugin.json"), needs: Needs::Whole(manifest) };
                vec![manifest, self.hooks_in(directory.join("hooks/hooks.json"))]
            }
            Client::Cline => {
                let events = self.client.events().iter();
                events.map(|(event, _)| self.hook_script(directory.join("hooks").join(event), event)).collect()
            }
            Client::Opencode => {
                let plugin = WholeFile {
                    text: surehand_adapters::hooks::opencode_plugin(self.program()),
                    mark: "surehand hook opencode",
                    kind: WholeKind::Plugin,
                    presence: Presence::Required,
                };
                vec![ConfigFile { path: directory.join("plugins/surehand.js"), needs: Needs::Whole(plugin) }]
            }
            Client::Continue | Client::Vscode => Vec::new(),
        }
    }

    fn hooks_in(&self, path: PathBuf) -> ConfigFile {
        let version = matches!(self.client, Client::Cursor | Client::Copilot).then_some(Wanted::Version(1));
        let hooks = self.client.events().iter().map(|event| self.hook(event));
        ConfigFile { path, needs: Needs::Json(version.into_iter().chain(hooks).collect()) }
    }

    fn hook_script(&self, path: PathBuf, event: &'static str) -> ConfigFile {
        let text = program::hook_script(self.program(), self.client.name(), self.client.title(), event);
        let mark = "Surehand guards the file tools of ";
        let presence = Presence::Required;
        ConfigFile { path, needs: Needs::Whole(WholeFile { text, mark, kind: WholeKind::Script(event), presence }) }
    }

    fn hook(&self, (event, tools): &HookEvent) -> Wanted {
        let Guard::Hooks { form, names_event, .. } = self.client.profile().guard else {
            unreachable!("only clients with hooks have events")
        };
        let told = (!names_event).then_some(*event);
        let command = program::hook_command(self.program(), self.client.name(), told);
        let value = written(form, &command, *tools);
        Wanted::Hook { client: self.client.name(), event, command, tools: *tools, value }
    }

    fn server_file(&self) -> Option<ConfigFile> {
        let directory = self.directory();
        let in_json = |path: PathBuf, table: &[&str]| {
            let table = table.iter().map(|name| (*name).to_owned()).collect();
            let (presence, launch) = (self.presence(), self.launch());
            ConfigFile { path, needs: Needs::Json(vec![Wanted::Server { table, presence, value: self.server(&launch), launch }]) }
        };
        let everywhere = self.scope == Scope::Everywhere;
        let root = self.places.root.to_string_lossy();
        Some(match self.client {
            Client::Claude => {
                let of_user = self.places.variable("CLAUDE_CONFIG_DIR").unwrap_or(&self.places.home).join(".claude.json");
                match self.scope {
                    Scope::Project => in_json(self.places.root.join(".mcp.json"), &["mcpServers"]),
                    Scope::Everywhere => in_json(of_user, &["mcpServers"]),
                    Scope::Me => in_json(of_user, &["projects", &root, "mcpServers"]),
                }
            }
            Client::Codex => {
                let server = TomlServer { presence: self.presence(), launch: self.launch() };
                ConfigFile { path: directory.join("config.toml"), needs: Needs::Toml(server) }
            }
            Client::Gemini | Client::Qwen => in_json(directory.join("settings.json"), &["mcpServers"]),
            Client::Cursor => in_json(directory.join("mcp.json"), &["mcpServers"]),
            Client::Opencode => {
                let at_top = if everywhere { &directory } else { &self.places.root };
                in_json(opencode_settings(at_top, &directory), &["mcp"])
            }
            Client::Copilot if everywhere => in_json(directory.join("mcp-config.json"), &["mcpServers"]),
            Client::Cline if everywhere => in_json(directory.join("data/settings/cline_mcp_settings.json"), &["mcpServers"]),
            Client::Continue => self.continue_block(directory.join("mcpServers/surehand.yaml")),
            Client::Vscode => in_json(directory.join("mcp.json"), &["servers"]),
            Client::Copilot | Client::Cline | Client::Goose | Client::Reasonix => return None,
        })
    }

    fn server(&self, launch: &Launch) -> Node {
        let arguments: &[&str] = match self.client {
            // It may start a server elsewhere than in the project.
            Client::Vscode => &["mcp", "--root", "${workspaceFolder}"],
            _ => &["mcp"],
        };
        let words = launch.words(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let command = [("command", Node::text(&words[0])), ("args", Node::texts(&words[1..]))];
        match self.client {
            Client::Opencode => {
                Node::object([("type", Node::text("local")), ("command", Node::texts(&words)), ("enabled", Node::Yes)])
            }
            Client::Copilot => {
                let tools = ("tools", Node::List(vec![Node::text("*")]));
                Node::object([("type", Node::text("local"))].into_iter().chain(command).chain([tools]))
            }
            Client::Vscode => Node::object([("type", Node::text("stdio"))].into_iter().chain(command)),
            _ => Node::object(command),
        }
    }

    fn continue_block(&self, path: PathBuf) -> ConfigFile {
        let words = self.launch().words(&["mcp".to_owned()]);
        // A text of JSON is one of YAML.
        let quoted: Vec<String> = words.iter().map(|word| serde_json::Value::from(word.as_str()).to_string()).collect();
        let text = format!(
            "# Written by `surehand init`.\nname: surehand\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: surehand\n    command: {}\n    args: [{}]\n",
            quoted[0],
            quoted[1..].join(", ")
        );
        let mark = "# Written by `surehand init`.";
        let whole = WholeFile { text, mark, kind: WholeKind::Server(words), presence: self.presence() };
        ConfigFile { path, needs: Needs::Whole(whole) }
    }
}

/// A hook as a client wants it.
fn written(form: HookForm, command: &str, tools: Option<&str>) -> Node {
    let pattern = |name| tools.map(|tools| (name, Node::text(tools)));
    let kind = ("type", Node::text("command"));
    let run = ("command", Node::text(command));
    let seconds = ("timeout", Node::Number(PATIENCE));
    let milliseconds = ("timeout", Node::Number(1000 * PATIENCE));
    let group = |handler: Node| Node::object(pattern("matcher").into_iter().chain([("hooks", Node::List(vec![handler]))]));
    match form {
        HookForm::Groups => group(Node::object([kind, run, seconds])),
        HookForm::NamedGroups => group(Node::object([("name", Node::text(NAME)), kind, run, milliseconds])),
        HookForm::Cursor => Node::object([run].into_iter().chain(pattern("matcher")).chain([seconds])),
        HookForm::Copilot => Node::object([kind, ("bash", Node::text(command)), ("timeoutSec", Node::Number(PATIENCE))]),
        HookForm::Reasonix => Node::object(pattern("match").into_iter().chain([run, milliseconds])),
        HookForm::Scripts => unreachable!("scripts are files of their own"),
    }
}

/// opencode takes several names; one that is there is used.
fn opencode_settings(at_top: &Path, directory: &Path) -> PathBuf {
    let names = ["opencode.jsonc", "opencode.json"];
    let known = [at_top, directory].into_iter().flat_map(|place| names.iter().map(|name| place.join(name)));
    known.into_iter().find(|path| path.exists()).unwrap_or_else(|| at_top.join("opencode.json"))
}
