//! `surehand init` and `surehand doctor`: what they write, print and leave alone, in a temporary home and project.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use insta::assert_snapshot;
use serde_json::Value;
use tempfile::TempDir;

/// A machine: a home, a project, and a directory with the installed programs.
struct Machine(TempDir);

impl Machine {
    /// Surehand is on the PATH, and no client is installed.
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for directory in ["home", "project", "bin"] {
            fs::create_dir_all(machine.path(directory)).unwrap();
        }
        surehand_testkit::make_repository(&machine.path("project"));
        symlink(env!("CARGO_BIN_EXE_surehand"), machine.path("bin/surehand")).unwrap();
        symlink("/bin/sh", machine.path("bin/sh")).unwrap();
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, content: &str) -> &Self {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), content).unwrap();
        self
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn install(&self, program: &str) -> &Self {
        self.write(&format!("bin/{program}"), "#!/bin/sh\n");
        fs::set_permissions(self.path(&format!("bin/{program}")), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_surehand"));
        command.current_dir(self.path("project")).args(words).env_clear().env("SUREHAND_BOARD_ENABLED", "false");
        command.env("HOME", self.path("home")).env("PATH", self.path("bin")).env("COLUMNS", "100");
        command
    }

    /// Runs the program. Returns the arguments, the output, and the exit code.
    fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let mut transcript = format!("$ surehand {}\n{}", words.join(" "), String::from_utf8_lossy(&output.stdout));
        if !output.stderr.is_empty() {
            transcript.push_str(&format!("[standard error]\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        transcript.push_str(&format!("[exit {}]", output.status.code().unwrap()));
        let program = Path::new(env!("CARGO_BIN_EXE_surehand")).canonicalize().unwrap();
        let shown = transcript.replace(&program.display().to_string(), "{program}");
        without_times(&shown.replace(&self.path("").display().to_string(), "{machine}/"))
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_slice(&self.command(words).output().unwrap().stdout).unwrap()
    }

    /// Every file of the home and the project, and git's exclude file.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let exclude = self.path("project/.git/info/exclude");
        let mut files: BTreeMap<PathBuf, String> =
            fs::read_to_string(&exclude).into_iter().map(|text| (exclude.clone(), text)).collect();
        let mut directories = vec![self.path("home"), self.path("project")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with(".git") {
                    continue;
                }
                if path.is_dir() && !path.is_symlink() {
                    directories.push(path);
                } else {
                    files.insert(path.clone(), fs::read_to_string(&path).unwrap());
                }
            }
        }
        files
    }
}

fn without_times(transcript: &str) -> String {
    let mut out = String::new();
    for piece in transcript.split_inclusive('(') {
        let digits = piece.chars().take_while(char::is_ascii_digit).count();
        let is_time = digits > 0 && piece[digits..].starts_with(" ms)");
        out.push_str(&if is_time { format!("{{time}}{}", &piece[digits..]) } else { piece.to_owned() });
    }
    out
}

const CLAUDE_SERVERS: &str = r#"{
    "mcpServers": {
        "github": {"type": "http", "url": "https://example.invalid/mcp"},
        "files": {"command": "npx", "args": ["-y", "server-files", "."], "env": {"TOKEN": "t"}}
    }
}"#;

const CLAUDE_SETTINGS: &str = r#"{
	"permissions": {
		"allow": ["Bash(cargo test:*)"]
	},
	"hooks": {
		"PostToolUse": [
			{
				"matcher": "Edit|Write",
				"hooks": [
					{ "type": "command", "command": "cargo fmt" }
				]
			}
		],
		"Stop": []
	}
}
"#;

const CODEX_SETTINGS: &str = r#"# Mine.
model = "gpt-5.5"   # the good one

[mcp_servers.docs]
command = "docs-server"
args = ["--fast"]

[projects."/somewhere"]
trust_level = "trusted"
"#;

const CURSOR_HOOKS: &str = r#"{"version": 1, "hooks": {"afterFileEdit": [{"command": "./format.sh"}]}}
"#;

const REASONIX_SETTINGS: &str = r#"{"hooks": {"PostToolUse": [{"match": "write_file", "command": "./format.sh"}], "Stop": []}}
"#;

const OPENCODE_SETTINGS: &str = r#"{
  "$schema": "https://example.invalid/config.json",
  // Everything is allowed here.
  "permission": { "*": "allow" },
  "mcp": {
    "search": { "type": "remote", "url": "https://example.invalid" }, // slow
  },
}
"#;

const CLIENTS: [&str; 12] =
    ["claude", "codex", "gemini", "cursor", "opencode", "qwen", "copilot", "goose", "cline", "reasonix", "continue", "vscode"];

const PROGRAMS: [&str; 12] =
    ["claude", "codex", "gemini", "cursor-agent", "opencode", "qwen", "copilot", "goose", "cline", "reasonix", "cn", "code"];

const SCOPES: [&str; 3] = ["me", "everywhere", "project"];

/// A machine with every client, each with the user's own settings.
fn lived_in() -> Machine {
    let machine = Machine::new();
    for program in PROGRAMS {
        machine.install(program);
    }
    for place in ["project", "home"] {
        machine.write(&format!("{place}/.claude/settings.json"), CLAUDE_SETTINGS);
        machine.write(&format!("{place}/.codex/config.toml"), CODEX_SETTINGS);
        machine.write(&format!("{place}/.gemini/settings.json"), "{}");
        machine.write(&format!("{place}/.cursor/hooks.json"), CURSOR_HOOKS);
        machine.write(&format!("{place}/.qwen/settings.json"), CLAUDE_SETTINGS);
        machine.write(&format!("{place}/.reasonix/settings.json"), REASONIX_SETTINGS);
    }
    machine.write("project/.claude/settings.local.json", "{\"permissions\": {\"allow\": []}}\n");
    machine.write("project/.clinerules/style.md", "Short.\n").write("project/.github/hooks/theirs.json", "{\"version\": 1}\n");
    machine.write("project/.vscode/mcp.json", "{ \"servers\": {} }").write("home/.config/Code/User/mcp.json", "{}");
    machine.write("home/.copilot/mcp-config.json", CLAUDE_SERVERS);
    machine.write("home/.cline/data/settings/cline_mcp_settings.json", CLAUDE_SERVERS);
    machine.write("project/.git/info/exclude", "# mine\n*.tmp\n");
    machine.write("project/.mcp.json", CLAUDE_SERVERS).write("home/.claude.json", CLAUDE_SERVERS);
    machine.write("project/opencode.jsonc", OPENCODE_SETTINGS).write("home/.config/opencode/opencode.json", OPENCODE_SETTINGS);
    machine
}

#[track_caller]
fn check_round(machine: &Machine, client: &str, scope: &str, more: &[&str]) {
    let words = |words: &[&'static str]| -> Vec<String> {
        let all = ["init", client, "--scope", scope, "--yes"].into_iter().chain(words.iter().copied());
        all.map(str::to_owned).collect()
    };
    let run = |words: Vec<String>| machine.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let add = || {
        let mut words = words(&[]);
        words.extend(more.iter().map(|word| (*word).to_owned()));
        run(words)
    };
    let before = machine.files();
    let done = add();
    assert!(done.ends_with("[exit 0]"), "{done}");
    let after = machine.files();
    assert!(before.iter().all(|(path, _)| after.contains_key(path)), "nothing is gone");
    let again = add();
    assert!(again.contains(": nothing to do\n") && again.ends_with("[exit 0]"), "{again}");
    assert_eq!(machine.files(), after, "a second time changes nothing: {client} {scope}");
    let removed = run(words(&["--remove"]));
    assert!(removed.ends_with("[exit 0]"), "{removed}");
    assert_eq!(machine.files(), before, "everything is as it was: {client} {scope}\n{removed}");
    assert!(!machine.path("project/.opencode").exists(), "no directory is left");
}

#[test]
fn what_is_set_up_is_taken_out_again_for_every_client_and_scope() {
    let (lived_in, empty) = (lived_in(), Machine::new());
    for client in CLIENTS {
        for scope in SCOPES {
            for more in [&[][..], &["--mcp"]] {
                check_round(&lived_in, client, scope, more);
                check_round(&empty, client, scope, more);
            }
        }
    }
    assert!(fs::read_dir(empty.path("home")).unwrap().next().is_none(), "no directory is left");
}

#[test]
fn every_client_is_tried_here() {
    let machine = Machine::new();
    let output = machine.command(&["init", "nosuch"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&format!("[possible values: {}]", CLIENTS.join(", "))), "{error}");
}

/// The files of each client in each scope; files that only the server needs are in brackets.
#[test]
fn each_scope_has_its_files() {
    let machine = Machine::new();
    let mut table = String::new();
    for client in CLIENTS {
        for scope in SCOPES {
            let paths = |more: &[&str]| -> Vec<String> {
                let words = [&["init", client, "--scope", scope, "--dry-run", "--json"], more].concat();
                let planned = machine.json(&words);
                let files = planned["clients"][0]["files"].as_array().unwrap().iter();
                let files = files.filter(|file| file["act"] != "none").map(|file| file["path"].as_str().unwrap().to_owned());
                files.map(|path| path.replace(&machine.path("").display().to_string(), "")).collect()
            };
            let alone = paths(&[]);
            let with_server =
                paths(&["--mcp"]).into_iter().map(|path| if alone.contains(&path) { path } else { format!("[{path}]") });
            let files: Vec<String> = with_server.filter(|path| !path.ends_with("/exclude")).collect();
            table.push_str(&format!("{client} {scope}: {}\n", files.join(" ")));
        }
    }
    assert_snapshot!(table, @"
    claude me: project/.claude/settings.local.json [home/.claude.json]
    claude everywhere: home/.claude/settings.json [home/.claude.json]
    claude project: project/.claude/settings.json [project/.mcp.json]
    codex me: project/.codex/hooks.json [project/.codex/config.toml]
    codex everywhere: home/.codex/hooks.json [home/.codex/config.toml]
    codex project: project/.codex/hooks.json [project/.codex/config.toml]
    gemini me: project/.gemini/settings.json
    gemini everywhere: home/.gemini/settings.json
    gemini project: project/.gemini/settings.json
    cursor me: project/.cursor/hooks.json [project/.cursor/mcp.json]
    cursor everywhere: home/.cursor/hooks.json [home/.cursor/mcp.json]
    cursor project: project/.cursor/hooks.json [project/.cursor/mcp.json]
    opencode me: project/.opencode/plugins/surehand.js [project/opencode.json]
    opencode everywhere: home/.config/opencode/plugins/surehand.js [home/.config/opencode/opencode.json]
    opencode project: project/.opencode/plugins/surehand.js [project/opencode.json]
    qwen me: project/.qwen/settings.json
    qwen everywhere: home/.qwen/settings.json
    qwen project: project/.qwen/settings.json
    copilot me: project/.github/hooks/surehand.json
    copilot everywhere: home/.copilot/hooks/surehand.json [home/.copilot/mcp-config.json]
    copilot project: project/.github/hooks/surehand.json
    goose me: project/.agents/plugins/surehand/plugin.json project/.agents/plugins/surehand/hooks/hooks.json
    goose everywhere: home/.agents/plugins/surehand/plugin.json home/.agents/plugins/surehand/hooks/hooks.json
    goose project: project/.agents/plugins/surehand/plugin.json project/.agents/plugins/surehand/hooks/hooks.json
    cline me: project/.clinerules/hooks/TaskStart project/.clinerules/hooks/TaskResume project/.clinerules/hooks/PreToolUse project/.clinerules/hooks/PostToolUse project/.clinerules/hooks/PreCompact
    cline everywhere: home/.cline/hooks/TaskStart home/.cline/hooks/TaskResume home/.cline/hooks/PreToolUse home/.cline/hooks/PostToolUse home/.cline/hooks/PreCompact [home/.cline/data/settings/cline_mcp_settings.json]
    cline project: project/.clinerules/hooks/TaskStart project/.clinerules/hooks/TaskResume project/.clinerules/hooks/PreToolUse project/.clinerules/hooks/PostToolUse project/.clinerules/hooks/PreCompact
    reasonix me: project/.reasonix/settings.json
    reasonix everywhere: home/.reasonix/settings.json
    reasonix project: project/.reasonix/settings.json
    continue me: project/.continue/mcpServers/surehand.yaml
    continue everywhere: home/.continue/mcpServers/surehand.yaml
    continue project: [project/.continue/mcpServers/surehand.yaml]
    vscode me: project/.vscode/mcp.json
    vscode everywhere: home/.config/Code/User/mcp.json
    vscode project: [project/.vscode/mcp.json]
    ");
}

#[test]
fn the_first_time_in_an_empty_project() {
    let machine = Machine::new();
    assert_snapshot!(machine.run(&["init"]), @"
    $ surehand init
    no client was found; name one to set it up all the same: surehand init claude|codex|gemini|cursor|opencode|qwen|copilot|goose|cline|reasonix|continue|vscode
    [exit 1]
    ");
    machine.install("codex");
    assert_snapshot!(machine.run(&["init", "--dry-run"]), @"
    $ surehand init --dry-run
    Codex CLI for you in this project
      create .git/info/exclude: git ignores what only you have
      create .codex/hooks.json: 5 hooks
      guarded: patches and commands
      not written: a dry run
    [exit 0]
    ");
    assert_snapshot!(machine.run(&["init", "--dry-run", "--diff"]), @r#"
    $ surehand init --dry-run --diff
    Codex CLI for you in this project
      create .git/info/exclude: git ignores what only you have
        @@ -0,0 +1,1 @@
        +/.codex/hooks.json
      create .codex/hooks.json: 5 hooks
        @@ -0,0 +1,61 @@
        +{
        +  "hooks": {
        +    "SessionStart": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "UserPromptSubmit": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PreToolUse": [
        +      {
        +        "matcher": "Bash|apply_patch",
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PostToolUse": [
        +      {
        +        "matcher": "Bash|apply_patch",
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PostCompact": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ]
        +  }
        +}
      guarded: patches and commands
      not written: a dry run
    [exit 0]
    "#);
    let output = machine.run(&["init"]);
    assert!(output.ends_with("  not written: no terminal to ask on; --yes writes without asking\n[exit 1]"), "{output}");
    assert_eq!(machine.files(), BTreeMap::new());
    assert!(machine.run(&["init", "--yes"]).ends_with("[exit 0]"));
    assert_snapshot!(machine.run(&["init", "--remove", "--yes"]), @"
    $ surehand init --remove --yes
    Codex CLI for you in this project
      remove .git/info/exclude: git ignores it no longer
      remove .codex/hooks.json: 5 hooks
      done
    [exit 0]
    ");
    assert_eq!(machine.files(), BTreeMap::new());
    assert!(!machine.path("project/.codex").exists());
    assert_snapshot!(machine.run(&["init", "--remove", "--yes"]), @"
    $ surehand init --remove --yes
    nothing to do
    [exit 0]
    ");
}

#[test]
fn what_is_there_is_merged_with_and_kept_beside() {
    let machine = lived_in();
    assert_snapshot!(machine.run(&["init", "claude", "--scope", "project", "--mcp", "--diff", "--yes"]), @r#"
    $ surehand init claude --scope project --mcp --diff --yes
    Claude Code for everyone in this project
      change .claude/settings.json: 6 hooks
        @@ -9,8 +9,75 @@
         				"hooks": [
         					{ "type": "command", "command": "cargo fmt" }
         				]
        +			},
        +			{
        +				"matcher": "Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash",
        +				"hooks": [
        +					{
        +						"type": "command",
        +						"command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +						"timeout": 30
        +					}
        +				]
         			}
         		],
        -		"Stop": []
        +		"Stop": [],
        +		"SessionStart": [
        +			{
        +				"hooks": [
        +					{
        +						"type": "command",
        +						"command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +						"timeout": 30
        +					}
        +				]
        +			}
        +		],
        +		"UserPromptSubmit": [
        +			{
        +				"hooks": [
        +					{
        +						"type": "command",
        +						"command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +						"timeout": 30
        +					}
        +				]
        +			}
        +		],
        +		"PreToolUse": [
        +			{
        +				"matcher": "Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash",
        +				"hooks": [
        +					{
        +						"type": "command",
        +						"command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +						"timeout": 30
        +					}
        +				]
        +			}
        +		],
        +		"PostToolUseFailure": [
        +			{
        +				"matcher": "Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash",
        +				"hooks": [
        +					{
        +						"type": "command",
        +						"command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +						"timeout": 30
        +					}
        +				]
        +			}
        +		],
        +		"PostCompact": [
        +			{
        +				"hooks": [
        +					{
        +						"type": "command",
        +						"command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +						"timeout": 30
        +					}
        +				]
        +			}
        +		]
         	}
         }
      change .mcp.json: MCP server
        @@ -1,6 +1,15 @@
         {
             "mcpServers": {
                 "github": {"type": "http", "url": "https://example.invalid/mcp"},
        -        "files": {"command": "npx", "args": ["-y", "server-files", "."], "env": {"TOKEN": "t"}}
        +        "files": {"command": "npx", "args": ["-y", "server-files", "."], "env": {"TOKEN": "t"}},
        +        "surehand": {
        +            "command": "sh",
        +            "args": [
        +                "-c",
        +                "command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; exit 0",
        +                "surehand",
        +                "mcp"
        +            ]
        +        }
             }
         }
        \ No newline at end of file
      guarded: reads, edits, writes, notebooks and commands
      done
      as it was: .claude/settings.json.surehand-backup
      as it was: .mcp.json.surehand-backup
      next: Claude Code asks once whether it may use the server of .mcp.json
    [exit 0]
    "#);
    assert!(machine.run(&["init", "opencode", "--mcp", "--yes"]).ends_with("[exit 0]"));
    assert_eq!(machine.read("project/.mcp.json.surehand-backup"), CLAUDE_SERVERS);
    assert_snapshot!(machine.read("project/opencode.jsonc"), @r#"
    {
      "$schema": "https://example.invalid/config.json",
      // Everything is allowed here.
      "permission": { "*": "allow" },
      "mcp": {
        "search": { "type": "remote", "url": "https://example.invalid" }, // slow
        "surehand": { "type": "local", "command": ["surehand", "mcp"], "enabled": true },
      },
    }
    "#);
}

/// Runs real git without the caller's settings.
fn git(machine: &Machine, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(machine.path("project")).args(["-c", "user.name=a", "-c", "user.email=a@localhost"]).args(words);
    git.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", machine.path("home"));
    let output = git.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_only_i_have_git_does_not_see() {
    let machine = Machine::new();
    git(&machine, &["init", "-q"]);
    machine.write("project/.claude/settings.local.json", "{}\n").write("project/.gitignore", "settings.local.json\n");
    git(&machine, &["add", "."]);
    git(&machine, &["commit", "-qm", "start"]);
    for client in CLIENTS {
        let done = machine.run(&["init", client, "--mcp", "--yes"]);
        assert!(done.ends_with("[exit 0]"), "{done}");
    }
    assert_eq!(git(&machine, &["status", "--short"]), "", "also not the copy of what was there");
    assert_eq!(machine.read("project/.gitignore"), "settings.local.json\n");
    // The same files, but for everyone: git sees them.
    assert!(machine.run(&["init", "gemini", "--scope", "project", "--yes"]).ends_with("[exit 0]"));
    assert_eq!(git(&machine, &["status", "--short", "-uall"]), "?? .gemini/settings.json\n");
    assert!(machine.run(&["init", "--remove", "--yes"]).ends_with("[exit 0]"));
    assert_eq!(git(&machine, &["status", "--short", "--ignored"]), "!! .claude/\n");
}

#[test]
fn what_is_committed_is_not_mine_alone() {
    let machine = Machine::new();
    git(&machine, &["init", "-q"]);
    machine.write("project/.gemini/settings.json", "{ \"theme\": \"dark\" }\n");
    git(&machine, &["add", "."]);
    let before = machine.files();
    assert_snapshot!(machine.run(&["init", "gemini", "--yes"]), @"
    $ surehand init gemini --yes
    Gemini CLI: failed: .gemini/settings.json is committed in this project, so it is not yours alone; choose --scope everywhere or --scope project
    [exit 2]
    ");
    assert_eq!(machine.files(), before);
    assert!(machine.run(&["init", "gemini", "--scope", "project", "--yes"]).ends_with("[exit 0]"));
    // It is already set up, and stays where it is.
    let again = machine.run(&["init", "gemini", "--yes"]);
    assert!(again.contains("Gemini CLI for everyone in this project: nothing to do\n"), "{again}");
}

#[test]
fn a_client_that_is_set_up_is_set_up_where_it_is() {
    let machine = Machine::new();
    machine.run(&["init", "cursor", "--scope", "everywhere", "--yes"]);
    let output = machine.run(&["init", "cursor", "--yes"]);
    assert!(output.contains("Cursor for you in every project: nothing to do\n"), "{output}");
    assert_snapshot!(machine.run(&["init", "--remove", "--yes"]), @"
    $ surehand init --remove --yes
    nothing to do; --scope everywhere removes what is set up for you in every project
    [exit 0]
    ");
    assert!(machine.run(&["init", "--remove", "--yes", "--scope", "everywhere"]).ends_with("[exit 0]"));
    assert_eq!(machine.files(), BTreeMap::new());
}

/// The hooks that release 0.1 wrote for a project.
const OLD_CLAUDE_HOOKS: &str = r#"{
  "permissions": {},
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Read|Edit|MultiEdit|Write|Bash",
        "hooks": [{ "type": "command", "command": "'/opt/my tools/surehand' hook claude", "timeout": 30 }]
      }
    ],
    "SessionStart": [
      {
        "hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
      }
    ]
  }
}
"#;

#[test]
fn what_an_older_version_wrote_is_found_corrected_and_taken_out() {
    let machine = Machine::new();
    machine.write("project/.claude/settings.json", OLD_CLAUDE_HOOKS);
    machine.write(
        "project/.mcp.json",
        "{ \"mcpServers\": { \"surehand\": { \"command\": \"/old/surehand\", \"args\": [\"mcp\"] } } }\n",
    );
    machine.write("project/.codex/config.toml", "[mcp_servers.surehand]\ncommand = \"surehand\"\nargs = [\"mcp\"]\n");
    let output = machine.run(&["doctor"]);
    assert!(
        output.contains(
            "warn  claude: has hooks in an older format for everyone in this project, which fail if surehand is missing\n"
        ),
        "{output}"
    );
    assert_snapshot!(machine.run(&["init", "claude", "codex", "--yes", "--diff"]), @r#"
    $ surehand init claude codex --yes --diff
    Claude Code for everyone in this project
      change .claude/settings.json: 6 hooks
        @@ -3,13 +3,59 @@
           "hooks": {
             "PreToolUse": [
               {
        -        "matcher": "Read|Edit|MultiEdit|Write|Bash",
        -        "hooks": [{ "type": "command", "command": "'/opt/my tools/surehand' hook claude", "timeout": 30 }]
        +        "matcher": "Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash",
        +        "hooks": [{ "type": "command", "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude", "timeout": 30 }]
               }
             ],
             "SessionStart": [
               {
        -        "hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
        +        "hooks": [{ "type": "command", "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude", "timeout": 30 }]
        +      }
        +    ],
        +    "UserPromptSubmit": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PostToolUse": [
        +      {
        +        "matcher": "Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash",
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PostToolUseFailure": [
        +      {
        +        "matcher": "Read|Edit|MultiEdit|Write|NotebookEdit|Grep|Bash",
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PostCompact": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook claude",
        +            "timeout": 30
        +          }
        +        ]
               }
             ]
           }
      change .mcp.json: MCP server
        @@ -1,1 +1,1 @@
        -{ "mcpServers": { "surehand": { "command": "/old/surehand", "args": ["mcp"] } } }
        +{ "mcpServers": { "surehand": { "command": "sh", "args": ["-c", "command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; exit 0", "surehand", "mcp"] } } }
      guarded: reads, edits, writes, notebooks and commands
      done
    Codex CLI for everyone in this project
      create .codex/hooks.json: 5 hooks
        @@ -0,0 +1,61 @@
        +{
        +  "hooks": {
        +    "SessionStart": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "UserPromptSubmit": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PreToolUse": [
        +      {
        +        "matcher": "Bash|apply_patch",
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PostToolUse": [
        +      {
        +        "matcher": "Bash|apply_patch",
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ],
        +    "PostCompact": [
        +      {
        +        "hooks": [
        +          {
        +            "type": "command",
        +            "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook codex",
        +            "timeout": 30
        +          }
        +        ]
        +      }
        +    ]
        +  }
        +}
      change .codex/config.toml: MCP server
        @@ -1,3 +1,3 @@
         [mcp_servers.surehand]
        -command = "surehand"
        -args = ["mcp"]
        +command = "sh"
        +args = ["-c", "command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; exit 0", "surehand", "mcp"]
      guarded: patches and commands
      done
      next: Codex reads .codex/ only in a project that you trust; it asks at its start
      next: Codex runs hooks only when you trust them: type /hooks in it, and again when they change
    [exit 0]
    "#);
    let after = machine.files();
    machine.run(&["init", "claude", "codex", "--yes"]);
    assert_eq!(machine.files(), after);
    assert!(machine.run(&["init", "--remove", "--yes"]).ends_with("[exit 0]"));
    let left: Vec<(PathBuf, String)> =
        machine.files().into_iter().filter(|(path, _)| !path.to_string_lossy().contains("backup")).collect();
    assert_eq!(left, [(machine.path("project/.claude/settings.json"), "{\n  \"permissions\": {}\n}\n".to_owned())]);
}

#[test]
fn a_copy_of_something_else_is_not_overwritten() {
    let machine = Machine::new();
    machine.write("project/.mcp.json", "{}").write("project/.mcp.json.surehand-backup", "precious");
    machine.run(&["init", "claude", "--scope", "project", "--mcp", "--yes"]);
    assert_eq!(machine.read("project/.mcp.json.surehand-backup"), "precious");
    assert_eq!(machine.read("project/.mcp.json.surehand-backup-2"), "{}");
    machine.run(&["init", "--remove", "--yes"]);
    assert_eq!(machine.read("project/.mcp.json"), "{}");
    assert!(!machine.path("project/.mcp.json.surehand-backup-2").exists());
}

#[test]
fn what_came_since_stays_when_ours_goes() {
    let machine = lived_in();
    machine.run(&["init", "claude", "--scope", "project", "--mcp", "--yes"]);
    let with = machine.read("project/.mcp.json");
    machine.write("project/.mcp.json", &with.replace("\"github\"", "\"gitlab\""));
    machine.run(&["init", "--remove", "--yes"]);
    assert_eq!(machine.read("project/.mcp.json"), CLAUDE_SERVERS.replace("\"github\"", "\"gitlab\""));
}

#[test]
fn a_file_of_somebody_elses_is_left_alone() {
    let machine = Machine::new();
    machine.write("project/.clinerules/hooks/PreToolUse", "#!/bin/sh\nexec mine\n");
    let output = machine.run(&["init", "cline", "--yes"]);
    assert!(output.contains("  .clinerules/hooks/PreToolUse was not written by surehand init and was left alone\n"), "{output}");
    assert!(machine.run(&["doctor"]).contains("warn  cline: has no hook for PreToolUse\n"));
    machine.run(&["init", "--remove", "--yes"]);
    assert_eq!(machine.files().into_values().collect::<Vec<_>>(), ["#!/bin/sh\nexec mine\n"]);
}

#[test]
fn a_broken_file_stops_its_client_only() {
    let machine = Machine::new();
    machine.write("project/.mcp.json", "{\n  \"mcpServers\": {\n    \"a\": {]\n  }\n}\n");
    machine.write("home/.codex/config.toml", "a = 1\nb = \n");
    let before = machine.files();
    assert_snapshot!(machine.run(&["init", "claude", "--scope", "project", "--mcp", "--yes"]), @"
    $ surehand init claude --scope project --mcp --yes
    Claude Code: failed: .mcp.json: line 3: unexpected token in object; nothing was written
    [exit 2]
    ");
    assert_snapshot!(machine.run(&["init", "codex", "--scope", "everywhere", "--mcp", "--yes"]), @"
    $ surehand init codex --scope everywhere --mcp --yes
    Codex CLI: failed: ~/.codex/config.toml: line 2: string values must be quoted, expected literal string; nothing was written
    [exit 2]
    ");
    assert_eq!(machine.files(), before);
    let done = machine.run(&["init", "claude", "gemini", "--scope", "project", "--mcp", "--yes"]);
    assert!(done.contains("  create .gemini/settings.json: 4 hooks, MCP server\n") && done.ends_with("[exit 2]"), "{done}");
    // Without the server nothing is added to it, so it does not matter.
    assert_snapshot!(machine.run(&["init", "claude", "--scope", "project", "--yes"]), @"
    $ surehand init claude --scope project --yes
    Claude Code for everyone in this project
      create .claude/settings.json: 6 hooks
      guarded: reads, edits, writes, notebooks and commands
      done
      .mcp.json cannot be read and was left alone; surehand doctor says why
    [exit 0]
    ");
    fs::remove_file(machine.path("project/.mcp.json")).unwrap();
    fs::create_dir(machine.path("project/.mcp.json")).unwrap();
    assert_snapshot!(machine.run(&["init", "claude", "--scope", "project", "--mcp", "--yes"]), @"
    $ surehand init claude --scope project --mcp --yes
    Claude Code: failed: {machine}/project/.mcp.json: cannot be read: Is a directory (os error 21)
    [exit 2]
    ");
}

#[test]
fn a_link_stays_a_link_and_a_mode_a_mode() {
    let machine = Machine::new();
    machine.write("home/dotfiles/settings.json", "{}\n");
    fs::create_dir_all(machine.path("home/.gemini")).unwrap();
    symlink("../dotfiles/settings.json", machine.path("home/.gemini/settings.json")).unwrap();
    fs::set_permissions(machine.path("home/dotfiles/settings.json"), fs::Permissions::from_mode(0o640)).unwrap();
    machine.run(&["init", "gemini", "--user", "--yes"]);
    assert!(machine.path("home/.gemini/settings.json").is_symlink());
    assert!(machine.read("home/dotfiles/settings.json").contains("surehand hook gemini"));
    let mode = |path: &str| fs::metadata(machine.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("home/dotfiles/settings.json"), 0o640);
    assert_eq!(mode("home/.gemini/settings.json.surehand-backup"), 0o640);
    machine.run(&["init", "gemini", "--user", "--remove", "--yes"]);
    assert_eq!(machine.read("home/dotfiles/settings.json"), "{}\n");
    symlink("nowhere", machine.path("project/.mcp.json")).unwrap();
    let output = machine.run(&["init", "claude", "--project", "--mcp", "--yes"]);
    assert!(output.contains("a broken link"), "{output}");
}

#[test]
fn a_program_that_is_not_on_the_path_is_written_whole_for_me_and_by_name_for_others() {
    let machine = Machine::new();
    fs::remove_file(machine.path("bin/surehand")).unwrap();
    let output = machine.run(&["init", "claude", "--mcp", "--yes"]);
    assert!(output.contains("note: surehand is not on PATH, so the whole path is written: {program}"), "{output}");
    assert!(machine.read("home/.claude.json").contains(env!("CARGO_BIN_EXE_surehand")));
    assert!(machine.read("project/.claude/settings.local.json").contains(env!("CARGO_BIN_EXE_surehand")));
    let output = machine.run(&["init", "claude", "--scope", "project", "--mcp", "--yes"]);
    assert!(output.contains("note: surehand is not on PATH; what is written for the project looks for it there"), "{output}");
    for file in ["project/.mcp.json", "project/.claude/settings.json"] {
        assert!(!machine.read(file).contains(env!("CARGO_BIN_EXE_surehand")), "{}", machine.read(file));
    }
    symlink(env!("CARGO_BIN_EXE_surehand"), machine.path("bin/surehand")).unwrap();
    machine.run(&["init", "claude", "--scope", "me", "--yes"]);
    for file in ["home/.claude.json", "project/.claude/settings.local.json"] {
        assert!(!machine.read(file).contains(env!("CARGO_BIN_EXE_surehand")), "a program that has moved is corrected");
    }
    assert!(machine.run(&["init", "--remove", "--yes"]).contains("remove .mcp.json"));
    assert_eq!(machine.files(), BTreeMap::new());
}

/// Collects all shell commands in a JSON text, and all servers, as words.
fn commands(value: &Value, found: &mut Vec<Vec<String>>) {
    let words = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
    };
    match value {
        Value::Object(object) => {
            for name in ["command", "bash"] {
                match (&object.get(name), object.get("args")) {
                    (Some(Value::String(program)), Some(args)) => found.push([vec![program.clone()], words(args)].concat()),
                    (Some(Value::String(line)), None) => found.push(vec!["sh".to_owned(), "-c".to_owned(), line.clone()]),
                    (Some(list @ Value::Array(_)), _) => found.push(words(list)),
                    _ => {}
                }
            }
            object.values().for_each(|value| commands(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| commands(value, found)),
        _ => {}
    }
}

/// Runs a command like a client does, with more input than fits into a pipe.
#[track_caller]
fn run_as_client(machine: &Machine, words: &[String], path: &str) -> String {
    let mut command = Command::new(if words[0] == "sh" { "/bin/sh" } else { words[0].as_str() });
    command.args(&words[1..]).current_dir(machine.path("project")).env_clear().env("SUREHAND_BOARD_ENABLED", "false");
    command.env("HOME", machine.path("home")).env("PATH", path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let is_server = words.iter().any(|word| word == "mcp");
    let input = vec![b' '; 300_000];
    // A client that cannot deliver the event takes that for a failure. A server may end at once.
    let written = child.stdin.take().unwrap().write_all(&input);
    assert!(is_server || written.is_ok(), "{words:?}: {written:?}");
    let output = child.wait_with_output().unwrap();
    format!(
        "{}{}{}",
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs everything that is configured for the clients while the program is missing.
#[track_caller]
fn check_harmless(machine: &Machine, path: &str) -> usize {
    let mut all = Vec::new();
    for (file, text) in machine.files() {
        if text.starts_with("#!") {
            all.push(vec![file.display().to_string()]);
        } else if let Ok(value) = serde_json::from_str(&text) {
            commands(&value, &mut all);
        }
    }
    all.sort();
    all.dedup();
    for words in &all {
        assert_eq!(run_as_client(machine, words, path), "0", "{words:?}");
    }
    all.len()
}

#[test]
fn what_is_written_does_no_harm_without_the_program() {
    let machine = Machine::new();
    for client in CLIENTS {
        assert!(machine.run(&["init", client, "--scope", "project", "--mcp", "--yes"]).ends_with("[exit 0]"));
    }
    fs::remove_file(machine.path("bin/surehand")).unwrap();
    symlink("/bin/cat", machine.path("bin/cat")).unwrap();
    let path = machine.path("bin").display().to_string();
    assert!(check_harmless(&machine, &path) > 25);
    let usual = "/usr/local/bin:/usr/bin:/bin";
    assert!(check_harmless(&machine, usual) > 25);
}

#[test]
fn a_program_that_is_gone_from_its_place_does_no_harm() {
    for scope in ["me", "everywhere"] {
        let machine = Machine::new();
        let place = machine.path("it's my \"place\"/surehand");
        fs::create_dir(place.parent().unwrap()).unwrap();
        if fs::hard_link(env!("CARGO_BIN_EXE_surehand"), &place).is_err() {
            fs::copy(env!("CARGO_BIN_EXE_surehand"), &place).unwrap();
        }
        for client in CLIENTS.into_iter().filter(|client| !["continue", "vscode"].contains(client)) {
            let mut init = Command::new(&place);
            init.current_dir(machine.path("project")).env_clear().env("HOME", machine.path("home")).env("PATH", "/usr/bin:/bin");
            init.args(["init", client, "--scope", scope, "--yes"]);
            // A process that another test has just started may still hold the copy open for writing.
            let busy =
                |output: &io::Result<Output>| matches!(output, Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy);
            let mut output = init.output();
            while busy(&output) {
                std::thread::sleep(std::time::Duration::from_millis(20));
                output = init.output();
            }
            assert!(output.unwrap().status.success());
        }
        let hook = machine.files().into_values().find(|text| text.contains("hook claude")).unwrap();
        assert!(hook.contains("my \\\"place\\\"/surehand"), "{hook}");
        let mut found = Vec::new();
        commands(&serde_json::from_str(&hook).unwrap(), &mut found);
        assert_eq!(
            run_as_client(&machine, &found[0], "/usr/bin:/bin"),
            "0",
            "what is there is run, and lets pass what is no JSON"
        );
        assert!(machine.read("home/.local/state/surehand/hooks.log").contains("the input is not JSON"));
        fs::remove_file(&place).unwrap();
        assert!(check_harmless(&machine, "/usr/bin:/bin") > 20);
    }
}

#[test]
fn programs_get_an_object() {
    let machine = lived_in();
    let planned = machine.json(&["init", "gemini", "--json"]);
    assert_eq!(
        (&planned["clients"][0]["state"], &planned["clients"][0]["files"][1]["act"]),
        (&"not_asked".into(), &"change".into())
    );
    let done = machine.json(&["init", "gemini", "claude", "--json", "--yes"]);
    assert_eq!(done["clients"].as_array().unwrap().len(), 2);
    assert_eq!(done["clients"][1]["state"], "done");
    assert_eq!((&done["clients"][0]["scope"], &done["clients"][0]["limits"]), (&"me".into(), &serde_json::json!([])));
    let backups = done["clients"][1]["files"].as_array().unwrap().iter().filter_map(|file| file["backup"].as_str());
    assert!(backups.into_iter().all(|backup| backup.ends_with(".gemini/settings.json.surehand-backup")));
    let failed =
        machine.write("project/.mcp.json", "{").json(&["init", "claude", "--scope", "project", "--mcp", "--json", "--yes"]);
    assert!(failed["clients"][0]["error"].as_str().unwrap().contains("line 1"));
    assert_eq!(
        machine.json(&["init", "--json", "--root", "nowhere"]),
        serde_json::json!({ "error": "nowhere: not a directory" })
    );
}

#[test]
fn the_doctor_finds_a_healthy_machine_healthy() {
    let machine = Machine::new();
    machine.install("claude").install("gemini");
    machine.run(&["init", "claude", "--mcp", "--yes"]);
    machine.run(&["tasks"]);
    assert!(!machine.path("project/.git/surehand").exists(), "looking makes nothing");
    machine.run(&["tasks", "add", "more"]);
    assert_snapshot!(machine.run(&["doctor"]), @"
    $ surehand doctor
    ok    program: surehand 0.1.0 at {program}
    ok    PATH: surehand is this program
    ok    workspace: {machine}/project
    ok    settings: the defaults; there is no surehand.toml
    ok    state: {machine}/project/.git/surehand opens, for its owner only (0.1 MB)
    ok    exchange: the file system can exchange two files in one step
    ok    leftovers: none
    ok    room: enough on the disk
    ok    watching: the system reports file changes
    note  board: switched off: board.enabled is false
    ok    claude: has hooks for you in this project (.claude/settings.local.json)
    ok    claude: the MCP server answers ({time} ms)
    ok    claude: the hooks answer ({time} ms)
    note  gemini: is installed and not guarded
          do: surehand init gemini
    ok    hooks: no failure in the last 7 days
    ok    protection: on for Claude Code
    all is well
    [exit 0]
    ");
    assert!(!machine.path("home/.local").exists(), "a dry run leaves nothing");
    let object = machine.json(&["doctor", "--json"]);
    assert_eq!((&object["ok"], &object["protected"]), (&true.into(), &true.into()));
    let expected = serde_json::json!([
        { "client": "claude", "installed": true, "guarded": true, "scopes": ["me"], "limits": [] },
        { "client": "gemini", "installed": true, "guarded": false, "scopes": [], "limits": [] },
    ]);
    assert_eq!(object["clients"], expected);
    assert!(object["checks"].as_array().unwrap().iter().all(|check| check["state"].is_string() && check["what"].is_string()));
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let machine = Machine::new();
    machine.run(&["init", "claude", "--scope", "me", "--yes"]);
    machine.run(&["init", "claude", "--scope", "everywhere", "--mcp", "--yes"]);
    let settings = machine
        .read("project/.claude/settings.local.json")
        .replace("PreToolUse", "Stop")
        .replace("surehand hook", "/gone/surehand hook");
    machine.write("project/.claude/settings.local.json", &settings).write("project/surehand.toml", "polcy = 1\n");
    machine.write("home/.gemini/settings.json", "{");
    let now = now();
    machine.write("home/.local/state/surehand/hooks.log", &format!("{now} claude: it panicked\n"));
    assert_snapshot!(machine.run(&["doctor"]).replace(&now, "{moment}"), @"
    $ surehand doctor
    ok    program: surehand 0.1.0 at {program}
    ok    PATH: surehand is this program
    ok    workspace: {machine}/project
    warn  settings: polcy in surehand.toml of the workspace is ignored: unknown key; did you mean policy.require_read? (line 1)
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    ok    state: none yet; created when first needed
    ok    room: enough on the disk
    ok    watching: the system reports file changes
    note  board: switched off: board.enabled is false
    ok    claude: has hooks for you in this project (.claude/settings.local.json), and for you in every project (~/.claude/settings.json)
    ok    claude: the MCP server answers ({time} ms)
    warn  claude: has the hooks twice, for you in this project and for you in every project
          do: surehand init claude --remove --scope me
    fail  claude: starts /gone/surehand, which is not there
          do: surehand init claude --scope me
    ok    claude: the hooks answer ({time} ms)
    fail  gemini: {machine}/home/.gemini/settings.json: line 1: unterminated object
          do: correct the file
    note  gemini: is installed and not guarded
          do: surehand init gemini
    warn  hooks: failed lately:
            {moment} claude: it panicked
          do: fix what they name; all failures are in {machine}/home/.local/state/surehand/hooks.log
    fail  protection: off: the setup does not work, see claude above
    3 failed, 3 could be better
    [exit 1]
    ");
}

#[test]
fn the_doctor_lists_what_a_repository_sets_in_vain() {
    let machine = Machine::new();
    let settings = || -> String {
        let output = machine.run(&["doctor"]);
        let lines = output.lines().skip_while(|line| !line.contains("settings: "));
        lines.take_while(|line| line.contains("settings: ") || line.starts_with(' ')).flat_map(|line| [line, "\n"]).collect()
    };
    machine.write("project/surehand.toml", "[policy]\nrequire_read = false\n[versions]\nbytes = 1\n[model]\nname = \"m\"\n");
    assert_snapshot!(settings(), @"
    warn  settings: model.name in surehand.toml of the workspace is ignored: only you can set it, in your own settings or in the environment (line 6)
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    warn  settings: policy.require_read in surehand.toml of the workspace is ignored: a repository may only set `true`: false (line 2)
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    warn  settings: versions.bytes in surehand.toml of the workspace is ignored: a repository may only set a number from yours to 4 times that: 1 (line 4)
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    ");
    fs::remove_file(machine.path("project/surehand.toml")).unwrap();
    symlink("/dev/zero", machine.path("project/surehand.toml")).unwrap();
    assert_snapshot!(settings(), @"
    warn  settings: surehand.toml of the workspace is ignored: it is a link, not a regular file
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    ");
    machine.write("home/.config/surehand/surehand.toml", "polcy = 1\n");
    assert_snapshot!(settings(), @"
    fail  settings: {machine}/home/.config/surehand/surehand.toml:1: unknown key polcy; did you mean policy.require_read?
          do: correct it; until then hooks use the defaults, and the MCP server does not start
    ");
}

#[test]
fn the_doctor_knows_that_codex_wants_to_be_told_whom_to_trust() {
    let machine = Machine::new();
    machine.run(&["init", "codex", "--yes"]);
    let output = machine.run(&["doctor"]);
    assert!(
        output.contains("fail  codex: hooks are not trusted yet, so they do not run\n      do: type /hooks in Codex"),
        "{output}"
    );
    let hooks = machine.path("project/.codex/hooks.json").display().to_string();
    let output_with = |tell: &dyn Fn(&str) -> &'static str| {
        let events = ["session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "post_compact"];
        let state = |event: &&str| format!("[hooks.state.'{hooks}:{event}:0:0']\n{}", tell(event));
        machine.write("home/.codex/config.toml", &events.iter().map(state).collect::<String>());
        machine.run(&["doctor"])
    };
    let output = output_with(&|_| "trusted_hash = 'sha256:x'\n");
    assert!(output.contains("ok    codex: hooks are trusted\n"), "{output}");
    let output = output_with(&|event| match event {
        "pre_tool_use" | "post_tool_use" => "enabled = false\ntrusted_hash = 'sha256:x'\n",
        "post_compact" => "",
        _ => "trusted_hash = 'sha256:x'\n",
    });
    assert!(!output.contains("hooks are trusted"), "{output}");
    assert!(output.contains("fail  codex: the hooks for PostCompact are not trusted, so they do not run\n"), "{output}");
    let off = "fail  codex: the hooks for PreToolUse, PostToolUse are switched off\n      do: type /hooks in Codex and switch them on\n";
    assert!(output.contains(off), "{output}");
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[test]
fn the_doctor_names_what_cannot_be_guarded() {
    let machine = Machine::new();
    machine.install("cn").install("goose").install("cline").install("reasonix");
    let about = |client: &str| -> String {
        let output = machine.run(&["doctor"]);
        let lines = output.lines().skip_while(|line| !line.contains(&format!("  {client}: ")));
        lines
            .take_while(|line| line.contains(&format!("  {client}: ")) || line.starts_with(' '))
            .flat_map(|line| [line, "\n"])
            .collect()
    };
    assert_snapshot!(about("continue"), @"
    note  continue: is installed and cannot be guarded: it runs no hooks, so its own tools are not guarded: a write of theirs can overwrite a change that it has not seen
          do: surehand init continue gives it the MCP server, whose tools are
    ");
    assert_snapshot!(about("goose"), @"
    note  goose: is installed and not guarded
          do: surehand init goose
    ");
    let output = machine.run(&["doctor"]);
    assert!(output.contains("warn  protection: off: no client is guarded\n      do: surehand init\n"), "{output}");
    machine.run(&["init", "--yes"]);
    assert_snapshot!(about("continue"), @"
    ok    continue: the MCP server answers ({time} ms)
    note  continue: limit: it runs no hooks, so its own tools are not guarded: a write of theirs can overwrite a change that it has not seen
    ");
    for (client, limit) in [
        ("goose", "hooks cannot add to what the model reads, so notes and directory instructions do not reach it"),
        (
            "cline",
            "a hook that denies a call ends the whole task, so a call is stopped by taking its arguments away; a version that does not allow that goes on with it",
        ),
        ("reasonix", "hooks can add to what the model reads only at the start of a session"),
    ] {
        assert!(about(client).contains(&format!("note  {client}: limit: {limit}\n")), "{}", about(client));
    }
}

#[test]
fn the_doctor_says_why_protection_is_off() {
    let machine = Machine::new();
    machine.install("claude").run(&["init", "--yes"]);
    let check = |cause: &str, above: &str| {
        let output = machine.run(&["doctor"]);
        assert!(output.contains(cause) && output.ends_with("[exit 1]"), "{output}");
        assert!(
            output.contains(&format!("fail  protection: off in this workspace, whatever is set up: see {above} above\n")),
            "{output}"
        );
        assert_eq!(machine.json(&["doctor", "--json"])["protected"], false);
    };
    // The state has no other place to go.
    machine.write("project/.git/surehand", "in the way").write("home/.local", "in the way");
    check("/home/.local/state/surehand: cannot use the state directory: ", "state");
    fs::remove_file(machine.path("home/.local")).unwrap();
    fs::remove_file(machine.path("project/.git/surehand")).unwrap();
    machine.write("project/.surehand", "in the way");
    machine.run(&["tasks", "add", "more"]);
    let output = machine.run(&["doctor"]);
    assert!(output.contains("warn  export: .surehand "), "{output}");
    assert!(output.contains("ok    protection: on for Claude Code\n"), "{output}");
}

/// If the settings cannot be read, hooks continue with the defaults, and the server does not start.
#[test]
fn broken_settings_leave_the_hooks_on() {
    let machine = Machine::new();
    machine.install("claude").run(&["init", "--mcp", "--yes"]);
    let check = |settings: &str, cause: &str| {
        machine.write("home/.config/surehand/surehand.toml", settings);
        let output = machine.run(&["doctor"]);
        for line in [
            cause,
            "      do: correct it; until then hooks use the defaults, and the MCP server does not start\n",
            "fail  claude: the MCP server does not answer: ",
            "ok    claude: the hooks answer ",
            "warn  protection: on for Claude Code, by the default settings: see settings above\n",
        ] {
            assert!(output.contains(line), "{line}: {output}");
        }
        assert!(output.ends_with("[exit 1]"), "{output}");
        let object = machine.json(&["doctor", "--json"]);
        assert_eq!((&object["protected"], &object["clients"][0]["guarded"]), (&true.into(), &true.into()));
    };
    check(
        "[policy]\n\nrequire_raed = true\n",
        "/surehand.toml:3: unknown key policy.require_raed; did you mean policy.require_read?\n",
    );
    check("[policy\n", "/surehand.toml: not valid TOML: line 1: ");
}

#[test]
fn the_doctor_finds_what_was_left_behind() {
    let machine = Machine::new();
    machine.run(&["tasks", "add", "more"]);
    machine.write("project/.git/surehand/checkouts/main/rescued/a.txt", "theirs");
    machine.write("project/.surehand/journal/1-aaaa", "{}").write("project/.surehand/staged/1-aaaa-1", "#!/bin/sh");
    assert_snapshot!(machine.run(&["doctor"]), @"
    $ surehand doctor
    ok    program: surehand 0.1.0 at {program}
    ok    PATH: surehand is this program
    ok    workspace: {machine}/project
    ok    settings: the defaults; there is no surehand.toml
    ok    state: {machine}/project/.git/surehand opens, for its owner only (0.1 MB)
    ok    exchange: the file system can exchange two files in one step
    warn  leftovers: 1 rescued file with text that other programs wrote while a file was replaced
          do: look at {machine}/project/.git/surehand/checkouts/main/rescued, take what you need, and delete the rest
    warn  old state: .surehand has journal, staged of release 0.1, or they came with the repository: they are not read, and nothing in them is carried out
          do: check .surehand/rescued if it exists, then remove .surehand
    ok    room: enough on the disk
    ok    watching: the system reports file changes
    note  board: switched off: board.enabled is false
    ok    hooks: no failure in the last 7 days
    warn  protection: off: no client was found
          do: surehand init CLIENT
    0 failed, 3 could be better
    [exit 1]
    ");
}

#[test]
fn a_hook_that_is_called_wrongly_does_not_say_no() {
    let machine = Machine::new();
    for words in [&["hook", "nobody"][..], &["hook"], &["hook", "claude", "--what"]] {
        let output = machine.run(words);
        assert!(output.ends_with("[exit 0]"), "{output}");
    }
    assert!(machine.run(&["hok"]).ends_with("[exit 2]"));
}

#[test]
fn shells_and_readers_get_their_files() {
    let machine = Machine::new();
    for (shell, word) in [
        ("bash", "_surehand()"),
        ("zsh", "#compdef surehand"),
        ("fish", "complete -c surehand"),
        ("elvish", "surehand"),
        ("powershell", "surehand"),
    ] {
        let script = machine.run(&["completions", shell]);
        assert!(script.contains(word) && script.contains("doctor") && script.ends_with("[exit 0]"), "{script}");
    }
    let page = machine.run(&["man"]);
    assert!(page.contains(".TH surehand 1") && page.contains("surehand\\-init"), "{page}");
    assert!(machine.run(&["man", "--dir", "pages"]).ends_with("[exit 0]"));
    for page in ["surehand.1", "surehand-init.1", "surehand-tasks-add.1"] {
        assert!(machine.read(&format!("project/pages/{page}")).contains(".SH NAME"));
    }
}

#[test]
fn with_json_an_error_is_an_object_on_standard_output() {
    let machine = Machine::new();
    assert_snapshot!(machine.run(&["log", "--json", "--root", "nowhere"]), @r#"
    $ surehand log --json --root nowhere
    {"error":"nowhere: not a directory"}
    [exit 2]
    "#);
    assert_snapshot!(machine.run(&["tasks", "complete", "9", "--json"]), @r#"
    $ surehand tasks complete 9 --json
    {"error":"there is no task 9"}
    [exit 2]
    "#);
    assert_snapshot!(machine.run(&["log", "--json", "--limit", "many"]), @r#"
    $ surehand log --json --limit many
    {"error":"invalid value 'many' for '--limit <N>': invalid digit found in string\n\nFor more information, try '--help'."}
    [exit 2]
    "#);
    assert_snapshot!(machine.run(&["diff", "nowhere", "--json"]), @r#"
    $ surehand diff nowhere --json
    {"error":"nowhere: no such file, and no change of one"}
    [exit 2]
    "#);
}

#[test]
fn nothing_is_coloured_where_nobody_sees_it() {
    let machine = lived_in();
    machine.run(&["call", "write_file", r#"{"path": "a.txt", "content": "x\n"}"#]);
    for words in [
        &["log"][..],
        &["diff"],
        &["status"],
        &["scan"],
        &["doctor"],
        &["init", "claude", "--dry-run"],
        &["--help"],
        &["nothing"],
    ] {
        let output = machine.run(words);
        assert!(!output.contains('\u{1b}'), "{output}");
    }
}

/// `npx` and `uvx` start a program from a cache that they may empty. The clients get a copy, which a newer version
/// replaces.
#[test]
fn a_program_in_a_cache_is_copied_for_the_clients() {
    let machine = Machine::new();
    let cached = machine.path("home/.npm/_npx/1d2/node_modules/surehand/bin/surehand");
    let kept = machine.path("home/.local/share/surehand/bin/surehand");
    let npx = |words: &[&str]| {
        let mut command = Command::new(&cached);
        command.current_dir(machine.path("project")).args(words).env_clear().env("SUREHAND_BOARD_ENABLED", "false");
        // Like npx, which puts its cache on the PATH of the programs that it starts.
        let path = std::env::join_paths([cached.parent().unwrap().to_owned(), machine.path("bin")]).unwrap();
        command.env("HOME", machine.path("home")).env("PATH", path);
        command.output().unwrap()
    };
    fs::create_dir_all(cached.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_surehand"), &cached).unwrap();
    let about: Value = serde_json::from_slice(&npx(&["self", "--json"]).stdout).unwrap();
    assert_eq!((&about["installed_by"], &about["version"]), (&"npx".into(), &env!("CARGO_PKG_VERSION").into()));

    assert!(npx(&["init", "claude", "--dry-run"]).status.success());
    assert!(!kept.exists(), "a dry run writes nothing");
    let output = npx(&["init", "claude", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    let settings = machine.read("project/.claude/settings.local.json");
    assert!(settings.contains(&format!("{} hook claude", kept.display())), "{settings}");
    assert!(!settings.contains("_npx"), "{settings}");
    assert!(fs::read(&kept).unwrap() == fs::read(&cached).unwrap());

    // A newer version leaves the settings as they are, and replaces the copy.
    fs::write(&kept, "an older version").unwrap();
    let output = npx(&["init", "claude", "--yes"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("nothing to do"), "{output:?}");
    assert!(fs::read(&kept).unwrap() == fs::read(&cached).unwrap());

    fs::remove_dir_all(machine.path("home/.npm")).unwrap();
    let version = Command::new(&kept).arg("self").env_clear().env("HOME", machine.path("home")).output().unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).contains("installed by surehand init"), "{version:?}");
}
