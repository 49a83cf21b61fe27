"""Clients of other authors list and call the tools: the Python SDK and the MCP Inspector, old and new protocol.

mcp_clients.py BINARY, with `mcp` installed and `mcp-inspector` in the PATH.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from checks import ASKED, ENVIRONMENT, assert_done, assert_refused, check, http_server, outcome, text

BINARY = sys.argv[1]
TOOLS = Path(__file__).resolve().parent.parent / "docs/reference/tools.md"
NAMES = re.findall(r"^## ([a-z_]+)$", TOOLS.read_text(), re.MULTILINE)
READ_ONLY = {"read_file", "list_files", "search_files", "repo_state", "forget"}
TEXT = "one\ntwo\nthree\nfour\nfive\n"


def check_tools(who, tools):
    with check(f"{who}: tools/list gives exactly the tools that there are"):
        assert [tool["name"] for tool in tools] == NAMES, [tool["name"] for tool in tools]
    with check(f"{who}: every tool has a description and the schema of an object"):
        for tool in tools:
            assert tool["description"].strip() and tool["inputSchema"]["type"] == "object", tool
            assert tool["inputSchema"]["properties"], tool
    with check(f"{who}: every tool says whether it only reads"):
        for tool in tools:
            assert tool["annotations"]["readOnlyHint"] is (tool["name"] in READ_ONLY), tool
    with check(f"{who}: every tool is marked alwaysLoad"):
        for tool in tools:
            assert tool["_meta"]["anthropic/alwaysLoad"] is True, tool
    with check(f"{who}: no tool has an outputSchema"):
        for tool in tools:
            assert "outputSchema" not in tool, tool


async def python_sdk(mode, protocol):
    who = f"python {mode}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root, tempfile.TemporaryFile("w+") as stderr:
        with check(f"{who}: the connection holds until the client hangs up, and the server says nothing on stderr"):
            server = StdioServerParameters(command=BINARY, args=["mcp", "--root", root], env=ENVIRONMENT)
            async with Client(stdio_client(server, errlog=stderr), mode=mode, read_timeout_seconds=5) as client:
                with check(f"{who}: the protocol is {protocol}"):
                    assert client.protocol_version == protocol, client.protocol_version
                with check(f"{who}: the instructions say to read before editing"):
                    assert "read before you edit" in (client.instructions or "").lower(), client.instructions
                check_tools(who, [as_json(tool) for tool in (await client.list_tools()).tools])
                await python_calls(who, client, Path(root))
            stderr.seek(0)
            said = stderr.read()
            assert not said, said


async def python_sdk_over_http(mode, protocol):
    who = f"python http {mode}"
    with check(f"{who}: the connection holds until the client hangs up, and the server ends well"):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root, http_server(BINARY, root) as url:
            async with Client(url, mode=mode, read_timeout_seconds=5) as client:
                with check(f"{who}: the protocol is {protocol}"):
                    assert client.protocol_version == protocol, client.protocol_version
                check_tools(who, [as_json(tool) for tool in (await client.list_tools()).tools])
                await python_calls(who, client, Path(root))
                await python_prompts(who, client)


async def python_prompts(who, client):
    with check(f"{who}: prompts and the journal can be read"):
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert names == ["start", "continue"], names
        prompt = as_json(await client.get_prompt("start", {"story": "paint the shed"}))
        assert "paint the shed" in prompt["messages"][0]["content"]["text"], prompt
        journal = as_json(await client.read_resource("surehand://journal"))
        assert "edit_file" in journal["contents"][0]["text"], journal


async def python_calls(who, client, root):
    answers = []

    async def call(tool, **arguments):
        answers.append(as_json(await client.call_tool(tool, arguments, meta=ASKED)))
        return answers[-1]

    file = root / "a.txt"
    file.write_text(TEXT)
    edit = {"path": "a.txt", "old_string": "two", "new_string": "TWO"}
    with check(f"{who}: an edit of an unread file is refused"):
        assert_refused(await call("edit_file", **edit), "unread", "was not read this session — read_file first")
        assert file.read_text() == TEXT
    with check(f"{who}: after read_file the same edit is made"):
        read = await call("read_file", path="a.txt")
        assert_done(read)
        assert "2|two\n" in text(read), read
        assert_done(await call("edit_file", **edit))
        assert file.read_text() == TEXT.replace("two", "TWO"), file.read_text()

    edit = {"path": "a.txt", "old_string": "one", "new_string": "ONE"}
    with check(f"{who}: an edit after somebody else's change is refused and told the changed lines"):
        file.write_text(file.read_text().replace("four", "FOUR"))
        stale = await call("edit_file", **edit)
        assert_refused(stale, "stale", "FOUR")
        ranges = outcome(stale)["refusal"]["affected_ranges"]
        assert any(lines["start"] <= 4 <= lines["end"] for lines in ranges), ranges
    with check(f"{who}: the same edit sent again is made, and both changes are in the file"):
        assert_done(await call("edit_file", **edit))
        assert file.read_text() == "ONE\nTWO\nthree\nFOUR\nfive\n", file.read_text()

    with check(f"{who}: write_file of what is there already changes nothing"):
        before = file.stat()
        same = await call("write_file", path="a.txt", content=file.read_text())
        assert_done(same)
        assert outcome(same)["noop"] is True, same
        assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    with check(f"{who}: multi_edit changes two files"):
        assert_done(await call("write_file", path="sub/b.txt", content="b\n"))
        edits = [{"path": "a.txt", "old_string": "five", "new_string": "FIVE"}, {"path": "sub/b.txt", "old_string": "b", "new_string": "B"}]
        assert_done(await call("multi_edit", edits=edits))
        assert file.read_text().endswith("FIVE\n") and (root / "sub/b.txt").read_text() == "B\n"
    with check(f"{who}: edit_lines takes the anchors that read_file shows"):
        shown = text(await call("read_file", path="a.txt", anchors=True))
        anchor = re.search(r"^(3#\w+)\|three$", shown, re.MULTILINE)[1]
        assert_done(await call("edit_lines", path="a.txt", edits=[{"op": "replace", "at": anchor, "text": "THREE"}]))
        assert file.read_text() == TEXT.upper(), file.read_text()
    with check(f"{who}: a patch edits, adds and deletes, and undo takes all of it back"):
        patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-THREE\n+3\n*** Add File: new.txt\n+new\n*** Delete File: sub/b.txt\n*** End Patch\n"
        assert_done(await call("apply_patch", patch=patch))
        assert "3\n" in file.read_text() and (root / "new.txt").exists() and not (root / "sub/b.txt").exists()
        assert_done(await call("undo"))
        assert file.read_text() == TEXT.upper() and not (root / "new.txt").exists() and (root / "sub/b.txt").read_text() == "B\n"
    with check(f"{who}: search_files shows lines that may be edited, and list_files the files"):
        (root / "c.txt").write_text("gamma\ndelta\n")
        assert "2|delta" in text(await call("search_files", pattern="^del"))
        assert_done(await call("edit_file", path="c.txt", old_string="delta", new_string="DELTA"))
        assert "c.txt" in text(await call("list_files"))
    with check(f"{who}: a file that somebody else changes is named in the next reply, once"):
        (root / "c.txt").write_text("epsilon\n")
        assert "changed since you read it: c.txt" in text(await call("list_files"))
        assert "changed since" not in text(await call("list_files"))
    with check(f"{who}: after forget an edit is refused as unread"):
        assert_done(await call("forget"))
        assert_refused(await call("edit_file", path="a.txt", old_string="ONE", new_string="1"), "unread")

    for what, tool, arguments, field in [
        ("an unknown field", "read_file", {"path": "a.txt", "colour": "red"}, "colour"),
        ("a field of the wrong type", "read_file", {"path": "a.txt", "offset": "two"}, "offset"),
        ("a missing field", "edit_file", {"path": "a.txt", "old_string": "ONE"}, "new_string"),
    ]:
        with check(f"{who}: {what} is refused by its name, and the server goes on"):
            refused = await call(tool, **arguments)
            assert_done(await call("read_file", path="a.txt"))
            assert_refused(refused, "bad_arguments", field)
    with check(f"{who}: no answer has structuredContent"):
        assert len(answers) > 15, len(answers)
        for answer in answers:
            assert "structuredContent" not in answer, answer


def as_json(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def inspector(era):
    """One process, and so one session, for each call."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        options = [f"-e{name}={value}" for name, value in ENVIRONMENT.items()]
        inspect(f"inspector {era}", era, root, [*options, BINARY, "mcp", "--root", root])


def inspector_over_http(era):
    with check(f"inspector http {era}: the server ends well"):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root, http_server(BINARY, root) as url:
            inspect(f"inspector http {era}", era, root, [url, "--transport", "http"])


def inspect(who, era, root, server):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:

        def ask(*options, code=0):
            command = ["mcp-inspector", "--cli", "--format", "json", "--connect-timeout", "5000", "--protocol-era", era, *options]
            command += server
            environment = {**os.environ, "HOME": home}
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
            assert done.returncode == code, f"exit code {done.returncode}: {done.stdout} {done.stderr}"
            answer = json.loads(done.stdout)
            return answer.get("result", answer)

        def call(tool, code=0, **arguments):
            # It takes all the words that follow for pairs, up to the next option.
            asked = ["--tool-metadata", *(f"{name}=true" for name in ASKED)]
            answer = ask(*asked, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments), code=code)
            assert "structuredContent" not in answer, answer
            return answer

        with check(f"{who}: tools/list --strict finds no error in the schemas"):
            check_tools(who, ask("--method", "tools/list", "--strict")["tools"])
        with check(f"{who}: write_file makes a file"):
            assert_done(call("write_file", path="a.txt", content=TEXT))
            assert (Path(root) / "a.txt").read_text() == TEXT
        with check(f"{who}: read_file shows it"):
            read = call("read_file", path="a.txt")
            assert_done(read)
            assert "1|one\n2|two\n" in text(read), read
        with check(f"{who}: write_file over the file, unread in this session, is refused"):
            assert_refused(call("write_file", code=5, path="a.txt", content="x\n"), "unread")
            assert (Path(root) / "a.txt").read_text() == TEXT


asyncio.run(python_sdk("auto", "2026-07-28"))
asyncio.run(python_sdk("legacy", "2025-11-25"))
asyncio.run(python_sdk_over_http("auto", "2026-07-28"))
asyncio.run(python_sdk_over_http("legacy", "2025-11-25"))
for era in ["legacy", "auto", "modern"]:
    inspector(era)
    inspector_over_http(era)
