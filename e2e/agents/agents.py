"""How each agent is set up and started, and what its own tools are called. Nothing of the caller's home or keys is seen by them."""

import json
import os
import signal
import subprocess
from pathlib import Path


def put(path, content):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


class Agent:
    """A stage for one agent: a project, a home, a model, and `surehand init` done in it."""

    full = 195_000  # a prompt of so many tokens is about as much as its context holds; None where nothing makes it compact

    def __init__(self, stage, binary, clients, model):
        self.stage, self.binary, self.model = Path(stage), binary, model
        self.project, self.home = self.stage / "project", self.stage / "home"
        self.home.mkdir(parents=True)
        self.program = clients / self.name / "node_modules" / ".bin" / self.name
        path = [str(Path(binary).parent), str(clients / "node_modules" / ".bin"), str(self.program.parent), "/usr/local/bin", "/usr/bin", "/bin"]
        self.environment = {
            "PATH": ":".join(path), "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color", "SHELL": "/bin/bash", "TZ": "UTC", "CI": "1",
            "NO_COLOR": "1", "DO_NOT_TRACK": "1", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
            "HTTP_PROXY": model.url, "HTTPS_PROXY": model.url, "http_proxy": model.url, "https_proxy": model.url,
            "SUREHAND_POLICY_DURABILITY": "fast",
        }

    def lay_out(self, files, *words):
        """Makes the project, and sets Surehand up in it: `surehand init AGENT WORDS`."""
        for name, content in files.items():
            put(self.project / name, content)
        git = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        commit = "git init -q -b main . && git add -A && git -c user.name=a -c user.email=a@localhost commit -qm start"
        subprocess.run(commit, shell=True, cwd=self.project, env=git, check=True)
        self.configure()
        init = [self.binary, "init", self.name, "--yes", *words]
        subprocess.run(init, cwd=self.project, env=self.environment, check=True, capture_output=True)

    def lose_surehand(self):
        """From here on the program is not to be found, as on the machine of a colleague who does not have it."""
        directory = str(Path(self.binary).parent)
        self.environment["PATH"] = ":".join(part for part in self.environment["PATH"].split(":") if part != directory)

    def run(self, prompt="Do it.", seconds=120):
        """Runs the agent to its end; gives what it printed."""
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
        out.seek(0)
        return out.read()


class Claude(Agent):
    name = "claude"
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

    def command(self, prompt):
        return [self.program, "-p", prompt, "--model", "claude-sonnet-4-5", "--max-turns", "20", "--output-format", "stream-json", "--verbose", "--autocompact", "100k"]

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
    full = None  # it compresses from one prompt of the person to the next only, and here there is one
    install = "@google/gemini-cli@0.61.0"

    def configure(self):
        put(
            self.home / ".gemini/settings.json",
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
                "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True}, "model": {"name": "gemini-2.5-flash"},
            },
        )
        self.environment.update(GEMINI_API_KEY="none", GOOGLE_GEMINI_BASE_URL=self.model.url, GEMINI_TELEMETRY_ENABLED="false", GEMINI_CLI_TRUST_WORKSPACE="true", GEMINI_CLI_NO_RELAUNCH="1")

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


AGENTS = {agent.name: agent for agent in (Claude, Codex, Gemini, Opencode)}
