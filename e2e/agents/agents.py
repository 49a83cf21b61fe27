"""How each agent is set up and started, and the names of its own tools. The agents see nothing of the caller's home or keys."""

import json
import os
import signal
import subprocess
from pathlib import Path


def put(path, content):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


# What the agent itself requires before an edit: a read of the file, or of its current content, by its own tool.
ONCE, FRESH = "once", "fresh"

# The events at which a hook can add text for the model.
AFTER_A_TOOL, WITH_A_REFUSAL, AT_THE_START = "after a tool", "with a refusal", "at the start, and with a refusal"


class Agent:
    """A stage for one agent: a project, a home, a model, and `surehand init` done in it."""

    full = 195_000  # a prompt of so many tokens is about as much as its context holds; None where nothing was seen to make it compact
    executable = None  # if it is not called as the agent is
    own_check = None  # what it wants before an edit, whatever we say: ONCE or FRESH
    refuses = r"(?!)"  # what its own tools say when that is missing
    hears = AFTER_A_TOOL  # when a hook can tell its model something
    replaces = True  # whether its tool for whole files replaces one that is there
    has_hooks = True  # if not, it edits with our tools
    format_after_edits = None
    install_plugin = None  # installs our plugin from this directory, with the agent's own installer

    def __init__(self, stage, binary, clients, model):
        self.stage, self.binary, self.model = Path(stage), binary, model
        self.project, self.home = self.stage / "project", self.stage / "home"
        self.home.mkdir(parents=True)
        self.program = clients / self.name / "node_modules" / ".bin" / (self.executable or self.name)
        path = [str(Path(binary).parent), str(clients / "node_modules" / ".bin"), str(self.program.parent), "/usr/local/bin", "/usr/bin", "/bin"]
        self.environment = {
            "PATH": ":".join(path), "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color", "SHELL": "/bin/bash", "TZ": "UTC", "CI": "1",
            "NO_COLOR": "1", "DO_NOT_TRACK": "1", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
            "HTTP_PROXY": model.url, "HTTPS_PROXY": model.url, "http_proxy": model.url, "https_proxy": model.url,
            "SUREHAND_POLICY_DURABILITY": "fast",
        }

    @classmethod
    def version(cls):
        return cls.install.rpartition("@")[2]

    def repository(self, directory, files):
        """Makes a repository with these files in it."""
        for name, content in files.items():
            put(directory / name, content)
        start = "git init -q -b main . && git config user.name a && git config user.email a@localhost && git add -A && git commit -qm start"
        self.git(directory, start)

    def git(self, directory, command):
        """Runs a command as another program beside the agent would."""
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        subprocess.run(command, shell=True, cwd=directory, env=environment, check=True)

    def lay_out(self, files, *words):
        """Makes the project, and sets Surehand up in it: `surehand init AGENT WORDS`."""
        self.prepare(files)
        init = [self.binary, "init", self.name, "--yes", *words]
        subprocess.run(init, cwd=self.project, env=self.environment, check=True, capture_output=True)

    def prepare(self, files):
        """Makes the project and the agent's settings, without Surehand."""
        self.repository(self.project, files)
        self.configure()

    def own(self, *words, input=""):
        """Calls a command of the agent other than the one that works."""
        done = subprocess.run([self.program, *words], cwd=self.project, env=self.environment, input=input, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"[:800]

    def surehand(self, *words):
        """The output of the program when a person calls it in the project."""
        return subprocess.run([self.binary, *words], cwd=self.project, env=self.environment, check=True, capture_output=True, text=True).stdout

    def lose_surehand(self):
        """From here on the program is not to be found, as on the machine of a colleague who does not have it."""
        directory = str(Path(self.binary).parent)
        self.environment["PATH"] = ":".join(part for part in self.environment["PATH"].split(":") if part != directory)

    def run(self, prompt="Do it.", seconds=120):
        """Runs the agent to its end; returns its output."""
        out = open(self.stage / "out.txt", "w+")
        process = subprocess.Popen(
            self.command(prompt), cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            process.wait(seconds)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.end_daemons()
        out.seek(0)
        return out.read()

    def end_daemons(self):
        """Ends processes that the agent left running in their own process group, as Cline does. They are recognized by the home of this stage."""
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"HOME={self.home}".encode() in environment.read_bytes().split(b"\0"):
                    os.kill(int(environment.parent.name), signal.SIGKILL)
            except OSError:
                pass


class Claude(Agent):
    name = "claude"
    title = "Claude Code"
    tools = "Read, Grep, Edit, MultiEdit, Write, NotebookEdit, Bash"
    own_check = ONCE
    refuses = r"has not been read yet|has been modified since read"
    install = "@anthropic-ai/claude-code@2.1.325"

    def configure(self):
        trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        put(self.home / ".claude.json", {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(self.project): trust}})
        allow = ["Read", "Edit", "Write", "Bash", "mcp__surehand"]
        put(self.project / ".claude/settings.json", {"permissions": {"allow": allow}, "enableAllProjectMcpServers": True})
        self.environment.update(
            ANTHROPIC_BASE_URL=self.model.url, ANTHROPIC_API_KEY="none", DISABLE_TELEMETRY="1", DISABLE_AUTOUPDATER="1", DISABLE_ERROR_REPORTING="1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", ENABLE_TOOL_SEARCH="false", DISABLE_COST_WARNINGS="1",
        )

    def format_after_edits(self, seconds):
        """A hook of the project itself, as many projects have: it formats the edited file, this many seconds later."""
        format = f"path=$(sed -n 's/.*\"file_path\":\"\\([^\"]*\\)\".*/\\1/p'); sleep {seconds}; sed -i 's/ *$//' \"$path\""
        settings = self.project / ".claude/settings.json"
        hooks = {"PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": format}]}]}
        put(settings, {**json.loads(settings.read_text()), "hooks": hooks})

    def install_plugin(self, plugins):
        self.own("plugin", "marketplace", "add", plugins / "surehand-plugins")
        self.own("plugin", "install", "surehand@surehand")

    def command(self, prompt):
        return [self.program, "-p", prompt, "--model", "claude-sonnet-4-5", "--max-turns", "100", "--output-format", "stream-json", "--verbose", "--autocompact", "100k"]

    def read(self, path):
        return "Read", {"file_path": str(self.project / path)}

    def edit(self, path, old, new):
        return "Edit", {"file_path": str(self.project / path), "old_string": old, "new_string": new}

    def write(self, path, content):
        return "Write", {"file_path": str(self.project / path), "content": content}

    def shell(self, command):
        return "Bash", {"command": command, "description": "run"}


class Codex(Agent):
    name = "codex"
    title = "Codex CLI"
    tools = "apply_patch, shell"
    install = "@openai/codex@0.166.0"

    def configure(self):
        put(
            self.home / ".codex/config.toml",
            f"""model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
model_context_window = 200000
model_auto_compact_token_limit = 150000

[features]
apps = false
plugins = false
remote_models = false

[projects."{self.project}"]
trust_level = "trusted"

[model_providers.scripted]
name = "scripted"
base_url = "{self.model.url}/v1"
env_key = "NO_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
supports_websockets = false
""",
        )
        self.environment.update(NO_KEY="none", CODEX_HOME=str(self.home / ".codex"))

    def install_plugin(self, plugins):
        settings = self.home / ".codex/config.toml"
        put(settings, settings.read_text().replace("plugins = false", "plugins = true"))
        self.own("plugin", "marketplace", "add", plugins / "surehand-plugins")
        self.own("plugin", "add", "surehand@surehand")

    def command(self, prompt):
        return [self.program, "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-C", self.project, prompt]

    def read(self, path):
        return self.shell(f"cat {path}")

    def edit(self, path, old, new):
        return "apply_patch", {"input": f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"}

    def write(self, path, content):
        lines = "".join(f"+{line}\n" for line in content.splitlines())
        return "apply_patch", {"input": f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch"}

    def shell(self, command):
        return "exec_command", {"cmd": command}


class Gemini(Agent):
    name = "gemini"
    title = "Gemini CLI"
    tools = "read_file, read_many_files, grep_search, replace, write_file, run_shell_command"
    full = None  # it compresses from one prompt of the person to the next only, and here there is one
    install = "@google/gemini-cli@0.61.0"

    def configure(self):
        put(
            self.home / ".gemini/settings.json",
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
                "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True}, "model": {"name": "gemini-2.5-flash", "disableLoopDetection": True},
            },
        )
        self.environment.update(GEMINI_API_KEY="none", GOOGLE_GEMINI_BASE_URL=self.model.url, GEMINI_TELEMETRY_ENABLED="false", GEMINI_CLI_TRUST_WORKSPACE="true", GEMINI_CLI_NO_RELAUNCH="1")

    def install_plugin(self, plugins):
        self.own("extensions", "install", "--consent", plugins / "surehand-gemini-extension", input="y\n")

    def command(self, prompt):
        return [self.program, "-p", prompt, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-flash", "--output-format", "stream-json"]

    def read(self, path):
        return "read_file", {"file_path": str(self.project / path)}

    def edit(self, path, old, new):
        return "replace", {"file_path": str(self.project / path), "old_string": old, "new_string": new, "instruction": "replace it", "allow_multiple": False}

    def write(self, path, content):
        return "write_file", {"file_path": str(self.project / path), "content": content}

    def shell(self, command):
        return "run_shell_command", {"command": command, "description": "run"}


class Opencode(Agent):
    name = "opencode"
    title = "opencode"
    tools = "read, grep, edit, multiedit, write, apply_patch, bash"
    install = "opencode-ai@1.18.33"

    def configure(self):
        model = {"name": "scripted", "limit": {"context": 200000, "output": 8192}, "tool_call": True}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "none"}, "models": {"scripted": model}}
        put(
            self.project / "opencode.json",
            {"autoupdate": False, "share": "disabled", "model": "local/scripted", "small_model": "local/scripted", "provider": {"local": provider}, "permission": {"*": "allow"}},
        )
        self.environment.update(
            OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1", OPENCODE_DISABLE_DEFAULT_PLUGINS="1", OPENCODE_DISABLE_SHARE="1",
            npm_config_fetch_retries="0",
        )

    def install_plugin(self, plugins):
        settings = json.loads((self.project / "opencode.json").read_text())
        put(self.project / "opencode.json", {**settings, "plugin": [f"file://{plugins}/package/surehand.js"]})

    def command(self, prompt):
        return [self.program, "run", "--format", "json", "--auto", "-m", "local/scripted", "--print-logs", prompt]

    def read(self, path):
        return "read", {"filePath": str(self.project / path)}

    def edit(self, path, old, new):
        return "edit", {"filePath": str(self.project / path), "oldString": old, "newString": new}

    def write(self, path, content):
        return "write", {"filePath": str(self.project / path), "content": content}

    def shell(self, command):
        return "bash", {"command": command, "description": "run"}


class Qwen(Agent):
    name = "qwen"
    title = "Qwen Code"
    full = 175_000  # with more it stops
    tools = "read_file, grep_search, edit, write_file, notebook_edit, run_shell_command"
    own_check = FRESH
    refuses = r"before editing or overwriting it|file changed since last read"
    install = "@qwen-code/qwen-code@0.24.4"

    def configure(self):
        put(
            self.home / ".qwen/settings.json",
            {
                "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}}, "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False}, "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
            },
        )
        self.environment.update(OPENAI_API_KEY="none", OPENAI_BASE_URL=f"{self.model.url}/v1", OPENAI_MODEL="scripted", QWEN_TELEMETRY_ENABLED="false", QWEN_CODE_NO_RELAUNCH="1")

    def command(self, prompt):
        return [self.program, prompt, "--approval-mode", "yolo", "--auth-type", "openai", "--output-format", "stream-json", "-m", "scripted"]

    def read(self, path):
        return "read_file", {"file_path": str(self.project / path)}

    def edit(self, path, old, new):
        return "edit", {"file_path": str(self.project / path), "old_string": old, "new_string": new}

    def write(self, path, content):
        return "write_file", {"file_path": str(self.project / path), "content": content}

    def shell(self, command):
        return "run_shell_command", {"command": command, "description": "run", "is_background": False}


class Copilot(Agent):
    name = "copilot"
    title = "Copilot CLI"
    tools = "view, grep, edit, create, apply_patch, bash"
    replaces = False
    install = "@github/copilot@1.0.102"

    def configure(self):
        put(self.home / ".copilot/config.json", {"trusted_folders": [str(self.project)], "banner": "never"})
        self.environment.update(
            COPILOT_PROVIDER_BASE_URL=f"{self.model.url}/v1", COPILOT_PROVIDER_TYPE="openai", COPILOT_PROVIDER_API_KEY="none", COPILOT_MODEL="scripted", COPILOT_OFFLINE="true",
            COPILOT_PROVIDER_MAX_PROMPT_TOKENS="200000", COPILOT_PROVIDER_WIRE_API="completions",
        )

    def command(self, prompt):
        return [self.program, "-p", prompt, "--allow-all-tools", "--allow-all-paths", "--no-color", "--no-auto-update"]

    def read(self, path):
        return "view", {"path": str(self.project / path)}

    def edit(self, path, old, new):
        return "edit", {"path": str(self.project / path), "old_str": old, "new_str": new}

    def write(self, path, content):
        return "create", {"path": str(self.project / path), "file_text": content}

    def shell(self, command):
        return "bash", {"command": command, "description": "run"}


class Goose(Agent):
    name = "goose"
    title = "goose"
    full = None
    executable = "goose-binary-linux-x64"
    tools = "edit, write, shell"
    hears = WITH_A_REFUSAL
    install = "@aaif/goose-binary-linux-x64@1.52.0"

    def configure(self):
        developer = {"enabled": True, "type": "builtin", "name": "developer", "timeout": 60, "bundled": True}
        put(self.home / ".config/goose/config.yaml", {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "scripted", "GOOSE_MODE": "auto", "extensions": {"developer": developer}, "GOOSE_TELEMETRY_ENABLED": False})
        self.environment.update(
            OPENAI_HOST=self.model.url, OPENAI_BASE_URL=f"{self.model.url}/v1", OPENAI_API_KEY="none", GOOSE_PROVIDER="openai", GOOSE_MODEL="scripted", GOOSE_MODE="auto",
            GOOSE_DISABLE_KEYRING="1", GOOSE_TELEMETRY_OFF="1", GOOSE_CONTEXT_LIMIT="200000", GOOSE_AUTO_COMPACT_THRESHOLD="0.8",
        )

    def command(self, prompt):
        return [self.program, "run", "--max-turns", "100", "-t", prompt]

    def read(self, path):
        return self.shell(f"cat {path}")

    def edit(self, path, old, new):
        return "edit", {"path": str(self.project / path), "before": old, "after": new}

    def write(self, path, content):
        return "write", {"path": str(self.project / path), "content": content}

    def shell(self, command):
        return "shell", {"command": command}


class Cline(Agent):
    name = "cline"
    title = "Cline CLI"
    full = None
    tools = "read_files, search_codebase, editor, apply_patch, run_commands"
    replaces = False
    install = "cline@3.0.65"

    def configure(self):
        self.environment.update(CLINE_TELEMETRY_DISABLED="1", CLINE_DIR=str(self.home / ".cline"), CLINE_NO_AUTO_UPDATE="1", CLINE_GLOBAL_SETTINGS_PATH=str(self.home / ".cline/global.json"))
        put(self.home / ".cline/global.json", {"telemetryOptOut": True, "autoUpdateEnabled": False})
        login = [self.program, "auth", "openai-compatible", "-k", "none", "-m", "scripted", "-b", f"{self.model.url}/v1"]
        subprocess.run(login, cwd=self.project, env=self.environment, capture_output=True, timeout=60)

    def command(self, prompt):
        return [self.program, "--json", "-P", "openai-compatible", "-m", "scripted", "--auto-approve", "true", "-t", "120", prompt]

    def read(self, path):
        return "read_files", {"files": [{"path": str(self.project / path)}]}

    def edit(self, path, old, new):
        return "editor", {"path": str(self.project / path), "old_text": old, "new_text": new}

    def write(self, path, content):
        return "editor", {"path": str(self.project / path), "new_text": content}

    def shell(self, command):
        return "run_commands", {"commands": [command]}


class Reasonix(Agent):
    name = "reasonix"
    title = "Reasonix"
    full = None
    tools = "read_file, grep, edit_file, multi_edit, write_file, move_file, notebook_edit, bash"
    own_check = FRESH
    refuses = r"FS_STALE_VERSION|FS_NOT_READ|FS_UNREAD|changed after it was read"
    hears = AT_THE_START
    install = "reasonix@1.38.11"

    def configure(self):
        put(
            self.home / ".reasonix/config.toml",
            f"""config_version = 10
default_model = "scripted"

[desktop]
check_updates = false
telemetry = false
metrics = false

[environment]
enabled = false
offline = true

[lsp]
enabled = false

[[providers]]
name = "scripted"
kind = "openai"
base_url = "{self.model.url}/v1"
model = "scripted"
api_key_env = "NO_KEY"
context_window = 200000
web_search = false

[permissions]
mode = "allow"

[sandbox]
bash = "off"
""",
        )
        self.environment.update(NO_KEY="none", REASONIX_HOME=str(self.home / ".reasonix"), REASONIX_LANG="en")

    def command(self, prompt):
        return [self.program, "run", "--max-steps", "100", "--permission-mode", "danger-full-access", prompt]

    def read(self, path):
        return "read_file", {"path": str(self.project / path)}

    def edit(self, path, old, new):
        return "edit_file", {"path": str(self.project / path), "old_string": old, "new_string": new}

    def write(self, path, content):
        return "write_file", {"path": str(self.project / path), "content": content}

    def shell(self, command):
        return "bash", {"command": command}


class Continue(Agent):
    """It runs no hooks, so it edits with the tools of our server."""

    name = "continue"
    title = "Continue CLI"
    full = None
    executable = "cn"
    tools = "none: it has Surehand's tools beside its own"
    has_hooks = False
    install = "@continuedev/cli@1.5.47"

    def configure(self):
        model = {
            "name": "scripted", "provider": "openai", "model": "scripted", "apiBase": f"{self.model.url}/v1", "apiKey": "none", "roles": ["chat"],
            "capabilities": ["tool_use"], "useResponsesApi": False,
        }
        server = {"name": "surehand", "command": str(self.binary), "args": ["mcp"]}
        put(self.home / ".continue/config.yaml", {"name": "scripted", "version": "1.0.0", "schema": "v1", "models": [model], "mcpServers": [server]})
        self.environment.update(CONTINUE_TELEMETRY_ENABLED="0", CONTINUE_CLI_ENABLE_TELEMETRY="0", CONTINUE_GLOBAL_DIR=str(self.home / ".continue"), CONTINUE_METRICS_ENABLED="0")

    def command(self, prompt):
        return [self.program, "-p", prompt, "--config", self.home / ".continue/config.yaml", "--auto"]

    def read(self, path):
        return "read_file", {"path": path}

    def edit(self, path, old, new):
        return "edit_file", {"path": path, "old_string": old, "new_string": new}

    def write(self, path, content):
        return "write_file", {"path": path, "content": content}

    def shell(self, command):
        return "Bash", {"command": command}


AGENTS = {agent.name: agent for agent in (Claude, Codex, Gemini, Opencode, Qwen, Copilot, Goose, Cline, Reasonix, Continue)}
