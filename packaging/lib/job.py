"""What an installed Surehand must do, from a first `init` to an undo."""

import json
import shlex
import subprocess
from pathlib import Path

from . import project
from .install import Installed


def do_the_job(surehand: Installed, home: Path) -> None:
    assert surehand.run("--version").split() == ["surehand", project.version()]
    about = json.loads(surehand.run("self", "--json"))
    assert (about["version"], about["installed_by"]) == (project.version(), surehand.installer), about
    repository = home / "project"
    repository.mkdir()
    git(repository, surehand, "init", "--quiet")
    (repository / "a.txt").write_text("one\ntwo\nthree\n")
    guard_claude(surehand, repository)
    refuse_a_stale_edit(surehand, repository)
    take_back(surehand, repository)


def guard_claude(surehand: Installed, repository: Path) -> None:
    """`init` writes hooks into the settings, and what it has written refuses an edit of a file that was never read."""
    surehand.run("init", "claude", "--yes", cwd=repository)
    settings = json.loads((repository / ".claude/settings.local.json").read_text())
    commands = [
        hook["command"]
        for group in settings["hooks"]["PreToolUse"]
        for hook in group["hooks"]
        if "surehand" in hook["command"]
    ]
    assert commands, settings
    edit = {"file_path": str(repository / "a.txt"), "old_string": "two", "new_string": "2"}
    call = {
        "session_id": "5f0c6a52-0000-4000-8000-000000000000",
        "cwd": str(repository),
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": edit["file_path"], "content": "replaced\n"},
        "tool_use_id": "toolu_1",
    }
    # The client has an environment of its own, without what a package runner adds to it.
    answer = subprocess.run(
        ["sh", "-c", commands[0]], cwd=repository, env=surehand.environment, input=json.dumps(call), capture_output=True, text=True, check=True
    ).stdout
    decision = json.loads(answer)["hookSpecificOutput"]["permissionDecision"]
    assert decision == "deny", answer


def refuse_a_stale_edit(surehand: Installed, repository: Path) -> None:
    file = repository / "a.txt"
    requests = [
        ("read_file", {"path": "a.txt"}),
        ("write_file", {"path": "b.txt", "content": "new\n"}),
    ]
    replies = serve(surehand, repository, requests)
    assert "two" in replies[0] and (repository / "b.txt").read_text() == "new\n", replies
    edit = ("edit_file", {"path": "a.txt", "old_string": "two", "new_string": "2"})
    (refusal,) = serve(surehand, repository, [edit])
    assert "read" in refusal and file.read_text() == "one\ntwo\nthree\n", refusal
    serve(surehand, repository, [("read_file", {"path": "a.txt"}), edit])
    assert file.read_text() == "one\n2\nthree\n"


def take_back(surehand: Installed, repository: Path) -> None:
    surehand.run("undo", cwd=repository)
    assert (repository / "a.txt").read_text() == "one\ntwo\nthree\n"


def serve(surehand: Installed, repository: Path, calls: list[tuple[str, dict]]) -> list[str]:
    """The replies of an MCP server to these calls, one after the other."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "packaging", "version": "1"}}
    process = subprocess.Popen(
        [*surehand.command, "mcp"], cwd=repository, env=surehand.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(number: int, method: str, params: dict) -> dict:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    ask(0, "initialize", hello)
    process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    replies = []
    for number, (tool, arguments) in enumerate(calls, start=1):
        answer = ask(number, "tools/call", {"name": tool, "arguments": arguments})
        replies.append(answer["result"]["content"][0]["text"])
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    return replies


def git(repository: Path, surehand: Installed, *arguments: str) -> None:
    subprocess.run(shlex.split("git") + list(arguments), cwd=repository, env=surehand.environment, check=True)
