//! `surehand init` and `surehand doctor`: what they write, say and leave alone, with a home and a project of their own.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use insta::assert_snapshot;
use serde_json::Value;
use tempfile::TempDir;

/// A machine: a home, a project, and a directory with the programs that are installed.
struct Machine(TempDir);

impl Machine {
    /// With Surehand on the PATH, and no client.
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
        command.current_dir(self.path("project")).args(words).env_clear();
        command.env("HOME", self.path("home")).env("PATH", self.path("bin")).env("COLUMNS", "100");
        command
    }

    /// What is typed, what comes out, and the exit code.
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

    /// Every file of the home and the project.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
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

/// It takes as long as it takes.
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

const OPENCODE_SETTINGS: &str = r#"{
  "$schema": "https://example.invalid/config.json",
  // Everything is allowed here.
  "permission": { "*": "allow" },
  "mcp": {
    "search": { "type": "remote", "url": "https://example.invalid" }, // slow
  },
}
"#;

/// A machine with every client, and with what people have in their files.
fn lived_in() -> Machine {
    let machine = Machine::new();
    machine.install("claude").install("codex").install("gemini").install("cursor-agent").install("opencode");
    for place in ["project", "home"] {
        machine.write(&format!("{place}/.claude/settings.json"), CLAUDE_SETTINGS);
        machine.write(&format!("{place}/.codex/config.toml"), CODEX_SETTINGS);
        machine.write(&format!("{place}/.gemini/settings.json"), "{}");
        machine.write(&format!("{place}/.cursor/hooks.json"), CURSOR_HOOKS);
    }
    machine.write("project/.mcp.json", CLAUDE_SERVERS).write("home/.claude.json", CLAUDE_SERVERS);
    machine.write("project/opencode.jsonc", OPENCODE_SETTINGS).write("home/.config/opencode/opencode.json", OPENCODE_SETTINGS);
    machine
}

#[track_caller]
fn check_round(client: &str, scope: &str) {
    let machine = lived_in();
    let before = machine.files();
    let done = machine.run(&["init", client, scope, "--yes"]);
    assert!(done.ends_with("[exit 0]"), "{done}");
    let after = machine.files();
    assert!(before.iter().all(|(path, _)| after.contains_key(path)), "nothing is gone");
    let again = machine.run(&["init", client, scope, "--yes"]);
    assert!(again.ends_with(": nothing to do\n[exit 0]"), "{again}");
    assert_eq!(machine.files(), after, "a second time changes nothing");
    let removed = machine.run(&["init", client, scope, "--remove", "--yes"]);
    assert!(removed.ends_with("[exit 0]"), "{removed}");
    assert_eq!(machine.files(), before, "everything is as it was");
    assert!(!machine.path("project/.opencode").exists(), "no directory is left");
}

#[test]
fn what_is_set_up_is_taken_out_again_for_every_client() {
    for client in ["claude", "codex", "gemini", "cursor", "opencode"] {
        check_round(client, "--project");
        check_round(client, "--user");
    }
}

#[test]
fn the_first_time_in_an_empty_project() {
    let machine = Machine::new();
    assert_snapshot!(machine.run(&["init"]), @"
    $ surehand init
    no client was found; name one to set it up all the same: surehand init claude|codex|gemini|cursor|opencode
    [exit 1]
    ");
    machine.install("codex");
    assert_snapshot!(machine.run(&["init", "--dry-run"]), @r#"
    $ surehand init --dry-run
    Codex CLI
      .codex/config.toml (new)
        @@ -0,0 +1,3 @@
        +[mcp_servers.surehand]
        +command = "surehand"
        +args = ["mcp"]
      .codex/hooks.json (new)
        @@ -0,0 +1,31 @@
        +{
        +  "hooks": {
        +    "SessionStart": [
        +      {
        +        "hooks": [{ "type": "command", "command": "surehand hook codex", "timeout": 30 }]
        +      }
        +    ],
        +    "UserPromptSubmit": [
        +      {
        +        "hooks": [{ "type": "command", "command": "surehand hook codex", "timeout": 30 }]
        +      }
        +    ],
        +    "PreToolUse": [
        +      {
        +        "matcher": "Bash|apply_patch",
        +        "hooks": [{ "type": "command", "command": "surehand hook codex", "timeout": 30 }]
        +      }
        +    ],
        +    "PostToolUse": [
        +      {
        +        "matcher": "Bash|apply_patch",
        +        "hooks": [{ "type": "command", "command": "surehand hook codex", "timeout": 30 }]
        +      }
        +    ],
        +    "PostCompact": [
        +      {
        +        "hooks": [{ "type": "command", "command": "surehand hook codex", "timeout": 30 }]
        +      }
        +    ]
        +  }
        +}
      not written: a dry run
    [exit 0]
    "#);
    let told = machine.run(&["init"]);
    assert!(told.ends_with("  not written: nobody is there to be asked; --yes writes without asking\n[exit 1]"), "{told}");
    assert_eq!(machine.files(), BTreeMap::new());
    assert!(machine.run(&["init", "--yes"]).ends_with("[exit 0]"));
    let told = machine.run(&["init", "--remove", "--yes"]);
    assert!(told.contains("  .codex/hooks.json (removed: nothing else is in it)\n    @@ -1"), "{told}");
    assert!(told.ends_with("  removed .codex/config.toml\n  removed .codex/hooks.json\n[exit 0]"), "{told}");
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
    assert_snapshot!(machine.run(&["init", "claude", "--yes"]), @r#"
    $ surehand init claude --yes
    Claude Code
      .mcp.json
        @@ -1,6 +1,7 @@
         {
             "mcpServers": {
                 "github": {"type": "http", "url": "https://example.invalid/mcp"},
        -        "files": {"command": "npx", "args": ["-y", "server-files", "."], "env": {"TOKEN": "t"}}
        +        "files": {"command": "npx", "args": ["-y", "server-files", "."], "env": {"TOKEN": "t"}},
        +        "surehand": { "command": "surehand", "args": ["mcp"] }
             }
         }
        \ No newline at end of file
      .claude/settings.json
        @@ -9,8 +9,39 @@
         				"hooks": [
         					{ "type": "command", "command": "cargo fmt" }
         				]
        +			},
        +			{
        +				"matcher": "Read|Edit|MultiEdit|Write|Bash",
        +				"hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
         			}
         		],
        -		"Stop": []
        +		"Stop": [],
        +		"SessionStart": [
        +			{
        +				"hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
        +			}
        +		],
        +		"UserPromptSubmit": [
        +			{
        +				"hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
        +			}
        +		],
        +		"PreToolUse": [
        +			{
        +				"matcher": "Read|Edit|MultiEdit|Write|Bash",
        +				"hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
        +			}
        +		],
        +		"PostToolUseFailure": [
        +			{
        +				"matcher": "Read|Edit|MultiEdit|Write|Bash",
        +				"hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
        +			}
        +		],
        +		"PostCompact": [
        +			{
        +				"hooks": [{ "type": "command", "command": "surehand hook claude", "timeout": 30 }]
        +			}
        +		]
         	}
         }
      wrote .mcp.json (as it was: .mcp.json.surehand-backup)
      wrote .claude/settings.json (as it was: .claude/settings.json.surehand-backup)
      next: Claude Code asks once whether it may use the server of .mcp.json
    [exit 0]
    "#);
    assert!(machine.run(&["init", "opencode", "--yes"]).ends_with("[exit 0]"));
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

#[test]
fn a_copy_of_something_else_is_not_overwritten() {
    let machine = Machine::new();
    machine.write("project/.mcp.json", "{}").write("project/.mcp.json.surehand-backup", "precious");
    machine.run(&["init", "claude", "--yes"]);
    assert_eq!(machine.read("project/.mcp.json.surehand-backup"), "precious");
    assert_eq!(machine.read("project/.mcp.json.surehand-backup-2"), "{}");
    machine.run(&["init", "--remove", "--yes"]);
    assert_eq!(machine.read("project/.mcp.json"), "{}");
    assert!(!machine.path("project/.mcp.json.surehand-backup-2").exists());
}

#[test]
fn what_came_since_stays_when_ours_goes() {
    let machine = lived_in();
    machine.run(&["init", "claude", "--yes"]);
    let with = machine.read("project/.mcp.json");
    machine.write("project/.mcp.json", &with.replace("\"github\"", "\"gitlab\""));
    machine.run(&["init", "--remove", "--yes"]);
    assert_eq!(machine.read("project/.mcp.json"), CLAUDE_SERVERS.replace("\"github\"", "\"gitlab\""));
}

#[test]
fn a_broken_file_stops_its_client_only() {
    let machine = Machine::new();
    machine.write("project/.mcp.json", "{\n  \"mcpServers\": {\n    \"a\": {]\n  }\n}\n");
    machine.write("home/.codex/config.toml", "a = 1\nb = \n");
    let before = machine.files();
    assert_snapshot!(machine.run(&["init", "claude", "--yes"]), @"
    $ surehand init claude --yes
    Claude Code: failed: .mcp.json: line 3: unexpected token in object; nothing was written
    [exit 2]
    ");
    assert_snapshot!(machine.run(&["init", "codex", "--user", "--yes"]), @"
    $ surehand init codex --user --yes
    Codex CLI: failed: ~/.codex/config.toml: line 2: string values must be quoted, expected literal string; nothing was written
    [exit 2]
    ");
    assert_eq!(machine.files(), before);
    let done = machine.run(&["init", "claude", "gemini", "--yes"]);
    assert!(done.contains("wrote .gemini/settings.json") && done.ends_with("[exit 2]"), "{done}");
    fs::remove_file(machine.path("project/.mcp.json")).unwrap();
    fs::create_dir(machine.path("project/.mcp.json")).unwrap();
    assert_snapshot!(machine.run(&["init", "claude", "--yes"]), @"
    $ surehand init claude --yes
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
    let told = machine.run(&["init", "claude", "--yes"]);
    assert!(told.contains("a link that leads nowhere"), "{told}");
}

#[test]
fn a_program_that_is_not_on_the_path_is_written_whole() {
    let machine = Machine::new();
    fs::remove_file(machine.path("bin/surehand")).unwrap();
    let told = machine.run(&["init", "claude", "--yes"]);
    assert!(told.contains("note: surehand is not on PATH, so the whole path is written: {program}"), "{told}");
    assert!(machine.read("project/.mcp.json").contains(env!("CARGO_BIN_EXE_surehand")));
    symlink(env!("CARGO_BIN_EXE_surehand"), machine.path("bin/surehand")).unwrap();
    machine.run(&["init", "claude", "--yes"]);
    assert!(machine.read("project/.mcp.json").contains("\"command\": \"surehand\""), "a program that has moved is corrected");
    assert!(machine.run(&["init", "--remove", "--yes"]).contains("removed .mcp.json"));
}

#[test]
fn programs_get_an_object() {
    let machine = lived_in();
    let planned = machine.json(&["init", "gemini", "--json"]);
    assert_eq!(
        (&planned["clients"][0]["state"], &planned["clients"][0]["files"][0]["act"]),
        (&"not_asked".into(), &"change".into())
    );
    let done = machine.json(&["init", "gemini", "claude", "--json", "--yes"]);
    assert_eq!(done["clients"].as_array().unwrap().len(), 2);
    assert_eq!(done["clients"][1]["state"], "done");
    assert!(done["clients"][1]["files"][0]["backup"].as_str().unwrap().ends_with(".gemini/settings.json.surehand-backup"));
    let failed = machine.write("project/.mcp.json", "{").json(&["init", "claude", "--json", "--yes"]);
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
    machine.run(&["init", "claude", "--yes"]);
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
    ok    watching: changes of files are heard of
    ok    claude: the MCP server answers ({time} ms)
    ok    claude: the hooks answer ({time} ms)
    note  gemini: is installed and not set up
          do: surehand init gemini
    ok    hooks: no failure in the last 7 days
    all is well
    [exit 0]
    ");
    assert!(!machine.path("home/.local").exists(), "a dry run leaves nothing");
    let object = machine.json(&["doctor", "--json"]);
    assert_eq!(object["ok"], true);
    assert!(object["checks"].as_array().unwrap().iter().all(|check| check["state"].is_string() && check["what"].is_string()));
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let machine = Machine::new();
    machine.run(&["init", "claude", "--yes"]);
    machine.run(&["init", "claude", "--user", "--yes"]);
    let settings = machine
        .read("project/.claude/settings.json")
        .replace("PreToolUse", "Stop")
        .replace("surehand hook", "/gone/surehand hook");
    machine.write("project/.claude/settings.json", &settings).write("project/surehand.toml", "polcy = 1\n");
    machine.write("home/.gemini/settings.json", "{");
    let now = now();
    machine.write("home/.local/state/surehand/hooks.log", &format!("{now} claude: it panicked\n"));
    assert_snapshot!(machine.run(&["doctor"]).replace(&now, "{moment}"), @"
    $ surehand doctor
    ok    program: surehand 0.1.0 at {program}
    ok    PATH: surehand is this program
    ok    workspace: {machine}/project
    warn  settings: polcy in surehand.toml of the workspace is ignored: unknown key; did you mean policy.require_read?
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    ok    state: none yet; it is made when it is first needed
    ok    room: enough on the disk
    ok    watching: changes of files are heard of
    ok    claude: the MCP server answers ({time} ms)
    warn  claude: has the hooks twice, in this project and for you everywhere
          do: surehand init claude --remove
    fail  claude: starts /gone/surehand, which is not there
          do: surehand init claude
    ok    claude: the hooks answer ({time} ms)
    fail  gemini: {machine}/home/.gemini/settings.json: line 1: unterminated object
          do: correct the file
    note  gemini: is installed and not set up
          do: surehand init gemini
    warn  hooks: failed lately:
            {moment} claude: it panicked
          do: mend what they name; all failures are in {machine}/home/.local/state/surehand/hooks.log
    2 failed, 3 could be better
    [exit 1]
    ");
}

#[test]
fn the_doctor_lists_what_a_repository_sets_in_vain() {
    let machine = Machine::new();
    let settings = || -> String {
        let told = machine.run(&["doctor"]);
        let lines = told.lines().skip_while(|line| !line.contains("settings: "));
        lines.take_while(|line| line.contains("settings: ") || line.starts_with(' ')).flat_map(|line| [line, "\n"]).collect()
    };
    machine.write("project/surehand.toml", "[policy]\nrequire_read = false\n[versions]\nbytes = 1\n[model]\nname = \"m\"\n");
    assert_snapshot!(settings(), @"
    warn  settings: model.name in surehand.toml of the workspace is ignored: only you can set it, in your own settings or in the environment
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    warn  settings: policy.require_read in surehand.toml of the workspace is ignored: a repository may only set `true`: false
          do: correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment
    warn  settings: versions.bytes in surehand.toml of the workspace is ignored: a repository may only set a number from yours to 4 times that: 1
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
    fail  settings: {machine}/home/.config/surehand/surehand.toml: unknown key polcy; did you mean policy.require_read?
          do: correct it; nothing works until then
    ");
}

#[test]
fn the_doctor_knows_that_codex_wants_to_be_told_whom_to_trust() {
    let machine = Machine::new();
    machine.run(&["init", "codex", "--yes"]);
    let told = machine.run(&["doctor"]);
    assert!(
        told.contains("warn  codex: hooks are not trusted yet, so they do not run\n      do: type /hooks in Codex"),
        "{told}"
    );
    let hooks = machine.path("project/.codex/hooks.json").display().to_string();
    let told_with = |tell: &dyn Fn(&str) -> &'static str| {
        let events = ["session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "post_compact"];
        let state = |event: &&str| format!("[hooks.state.'{hooks}:{event}:0:0']\n{}", tell(event));
        machine.write("home/.codex/config.toml", &events.iter().map(state).collect::<String>());
        machine.run(&["doctor"])
    };
    let told = told_with(&|_| "trusted_hash = 'sha256:x'\n");
    assert!(told.contains("ok    codex: hooks are trusted\n"), "{told}");
    let told = told_with(&|event| match event {
        "pre_tool_use" | "post_tool_use" => "enabled = false\ntrusted_hash = 'sha256:x'\n",
        "post_compact" => "",
        _ => "trusted_hash = 'sha256:x'\n",
    });
    assert!(!told.contains("hooks are trusted"), "{told}");
    assert!(told.contains("warn  codex: the hooks for PostCompact are not trusted, so they do not run\n"), "{told}");
    let off = "warn  codex: the hooks for PreToolUse, PostToolUse are switched off\n      do: type /hooks in Codex and switch them on\n";
    assert!(told.contains(off), "{told}");
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
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
    warn  leftovers: 1 rescued file with what others wrote into a file while it was replaced
          do: look at {machine}/project/.git/surehand/checkouts/main/rescued, take what you need, and delete the rest
    warn  old state: .surehand has journal, staged of release 0.1, or they came with the repository: they are not read, and nothing in them is carried out
          do: look into .surehand/rescued if it is there, then remove .surehand
    ok    room: enough on the disk
    ok    watching: changes of files are heard of
    warn  clients: none was found
          do: surehand init CLIENT
    ok    hooks: no failure in the last 7 days
    0 failed, 3 could be better
    [exit 1]
    ");
}

#[test]
fn a_hook_that_is_called_wrongly_does_not_say_no() {
    let machine = Machine::new();
    for words in [&["hook", "nobody"][..], &["hook"], &["hook", "claude", "--what"]] {
        let told = machine.run(words);
        assert!(told.ends_with("[exit 1]"), "{told}");
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
    assert_snapshot!(machine.run(&["diff", "--json"]), @r#"
    $ surehand diff --json
    {"error":"there is no such change"}
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
        let told = machine.run(words);
        assert!(!told.contains('\u{1b}'), "{told}");
    }
}
