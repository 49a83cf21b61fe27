"""Malformed messages over bare pipes: each line gets an error as its answer, and the server continues.

raw.py BINARY
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checks import ASKED, ENVIRONMENT, assert_done, check

BINARY = sys.argv[1]
PATIENCE = 2.0
LONGEST_ANSWER = 4096


class Server:
    def __init__(self, root, prefix=()):
        command = [*prefix, BINARY, "mcp", "--root", root]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self.unread = b""
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        self.send(request("initialize", hello))
        assert "result" in self.answer()
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def send(self, line):
        left = memoryview((line if isinstance(line, bytes) else line.encode()) + b"\n")
        while left:
            left = left[self.process.stdin.write(left) :]

    def answer(self):
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no answer within {PATIENCE} s"
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            assert read, f"the server has ended: {self.end()}"
            self.unread += read
        line, self.unread = self.unread.split(b"\n", 1)
        assert len(line) <= LONGEST_ANSWER, f"an answer of {len(line)} bytes: {line[:200]}"
        return json.loads(line)

    def end(self):
        """Closes the connection. Returns the unread lines, the exit code and standard error."""
        lines, said = self.process.communicate(timeout=5)
        return (self.unread + lines).splitlines(), self.process.returncode, said.decode()

    def kill(self):
        self.process.kill()
        self.process.wait()


def request(method, params, id=5):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def call(tool, arguments, id=5):
    return request("tools/call", {"name": tool, "arguments": arguments, "_meta": ASKED}, id)


def read(path, **more):
    return call("read_file", {"path": path, **more})


def code_of(answer):
    """The code of an error of the protocol or of a refused call."""
    if "error" in answer:
        return answer["error"]["code"]
    assert answer["result"].get("isError") is True, f"not an error: {answer}"
    return answer["result"]["_meta"]["surehand/result"]["refusal"]["code"]


def check_resources(root):
    """Lists and reads the resources, and hears of changes after subscribing."""
    server = Server(root)
    with check("raw: the snapshot, the tasks and the journal are resources, and a subscriber hears of changes"):
        server.send(request("resources/list", {}))
        listed = [resource["uri"] for resource in server.answer()["result"]["resources"]]
        assert listed == ["surehand://snapshot", "surehand://tasks", "surehand://journal"], listed
        for uri in listed:
            server.send(request("resources/subscribe", {"uri": uri}))
            assert server.answer()["result"] == {}
        server.send(call("write_file", {"path": "new.txt", "content": "new\n"}))
        assert [updated(server.answer()), updated(server.answer())] == ["surehand://snapshot", "surehand://journal"]
        assert_done(server.answer()["result"])
        server.send(call("update_tasks", {"add": [{"description": "test it"}]}))
        assert [updated(server.answer()), updated(server.answer())] == ["surehand://snapshot", "surehand://tasks"]
        assert_done(server.answer()["result"])
        for uri, said in zip(listed, ["new.txt", "test it", "new.txt created"]):
            server.send(request("resources/read", {"uri": uri}))
            assert said in server.answer()["result"]["contents"][0]["text"]
        server.send(request("resources/unsubscribe", {"uri": "surehand://snapshot"}))
        assert server.answer()["result"] == {}
        server.send(call("write_file", {"path": "new.txt", "content": "newer\n"}))
        assert [updated(server.answer())] == ["surehand://journal"]
        assert_done(server.answer()["result"])
        server.send(request("resources/read", {"uri": "surehand://nothing"}))
        assert "error" in server.answer()
    server.kill()


def updated(message):
    assert message.get("method") == "notifications/resources/updated", message
    return message["params"]["uri"]


def check_error(server, what, line, codes, id=5):
    """Says whether the server is still good for the next one."""
    sound = False
    with check(f"raw: {what} is answered with an error, and the server goes on"):
        server.send(line)
        answer = server.answer()
        server.send(call("read_file", {"path": "a.txt"}, id="after"))
        after = server.answer()
        assert after.get("id") == "after", f"asked for a file, got {after}"
        assert_done(after["result"])
        sound = True
        assert code_of(answer) in codes, f"not one of {codes}: {answer}"
        assert id is None or answer.get("id") == id, f"the answer is not to id {id}: {answer}"
    return sound


def number_id(id):
    return read("a.txt").replace('"id": 5', f'"id": {id}')


# The message, the permitted error codes, and the id of the answer; None if the id cannot be known.
PARSE, INVALID, PARAMS = -32700, -32600, -32602
LINES = [
    ("a line cut short", read("a.txt")[:40], {PARSE}, None),
    ("JSON that is no message", '{"hello": 1}', {INVALID}, None),
    ("JSON that is a number", "42", {INVALID}, None),
    ("tools/call with an array for arguments", call("read_file", ["a.txt"]), {PARAMS, "bad_arguments"}, 5),
    ("invalid UTF-8 in a string", read("a?.txt").encode().replace(b"?", b"\xff"), {PARSE, PARAMS}, 5),
    # JavaScript writes half a character like this, and waits for the answer by its id.
    ("half a surrogate pair in a string", read("a\ud83d.txt"), {PARSE, PARAMS, "bad_arguments"}, 5),
    ("nesting of depth 10,000", read("?").replace('"?"', "[" * 10_000 + "]" * 10_000), {PARSE, INVALID, PARAMS}, None),
    ("an id that is a fraction", number_id("1.5"), {INVALID, PARAMS}, None),
    ("an id of twenty digits", number_id("9" * 20), {INVALID, PARAMS}, None),
    ("a path of 100,000 characters", read("a" * 100_000), {"bad_arguments", "io"}, 5),
    ("an offset of twenty digits", read("a.txt", offset=int("9" * 20)), {"bad_arguments", "bad_range"}, 5),
    ("a FIFO", read("fifo"), {"io"}, 5),
    ("a directory", read("directory"), {"io"}, 5),
    ("a sparse file of 1 GB", read("sparse"), {"too_large"}, 5),
    ("a path through ..", read("../outside.txt"), {"outside_workspace"}, 5),
    ("an absolute path outside", read("/etc/passwd"), {"outside_workspace"}, 5),
    ("a link to a file outside", read("link"), {"outside_workspace"}, 5),
    ("a path through a link to a directory outside", read("up/outside.txt"), {"outside_workspace"}, 5),
]


def lay_out(root):
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "directory").mkdir()
    os.mkfifo(root / "fifo")
    with open(root / "sparse", "wb") as sparse:
        sparse.truncate(1 << 30)
    (root / "../outside.txt").write_text("secret\n")
    (root / "link").symlink_to("../outside.txt")
    (root / "up").symlink_to("..")
    (root / "locked").write_text("locked\n")
    (root / "locked").chmod(0)


def can_read(prefix, path):
    try:
        return subprocess.run([*prefix, "cat", path], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


with tempfile.TemporaryDirectory() as above:
    root = Path(above) / "root"
    lay_out(root)
    server = Server(root)
    for what, line, codes, id in LINES:
        if not check_error(server, what, line, codes, id):
            server.kill()
            server = Server(root)

    with check("raw: a client that hangs up is given the answers under way, and the server ends well"):
        for id in range(3):
            server.send(call("read_file", {"path": "a.txt"}, id))
        lines, code, said = server.end()
        assert [json.loads(line)["id"] for line in lines] == [0, 1, 2], f"{len(lines)} of 3 answers, exit code {code}: {said}"
        assert code == 0 and not said, f"exit code {code}: {said}"

    with tempfile.TemporaryDirectory() as empty:
        check_resources(empty)

    # The superuser reads every file unless that right is taken away.
    prefix = () if os.geteuid() else ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    if can_read(prefix, root / "a.txt") and not can_read(prefix, root / "locked"):
        server = Server(root, prefix)
        check_error(server, "a file without the right to read it", read("locked"), {"io"})
        server.kill()
    else:
        print("SKIP raw: a file without the right to read it (this user can read every file)")
