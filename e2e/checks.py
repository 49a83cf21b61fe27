"""A check is a `with` block: it prints PASS when it comes to its end, FAIL with the reason when it does not."""

import os
import subprocess
from contextlib import contextmanager

ENVIRONMENT = {"SUREHAND_POLICY_DURABILITY": "fast"}


@contextmanager
def check(fact):
    try:
        yield
    except Exception as why:
        while getattr(why, "exceptions", None):
            why = why.exceptions[0]
        why = f"{type(why).__name__}: {why}".replace("\n", "\\n")
        print(f"FAIL {fact} -- {why[:600]}")
    else:
        print(f"PASS {fact}")


@contextmanager
def http_server(binary, root):
    """A server over HTTP; returns its address. It must end successfully, and print only its address."""
    command = [binary, "mcp", "--http", "127.0.0.1:0", "--root", root]
    server = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, stderr=subprocess.PIPE, text=True)
    try:
        yield server.stderr.readline().split(" at ")[1].strip()
    finally:
        server.terminate()
        said = server.stderr.read().splitlines()
        server.wait(timeout=10)
    assert server.returncode == 0 and len(said) == 2, f"exit code {server.returncode}: {said}"


def text(result):
    return "".join(block["text"] for block in result["content"])


# The `_meta` of a call that requests the result as an object.
ASKED = {"surehand/result": True}


def outcome(result):
    return result["_meta"]["surehand/result"]


def assert_done(result):
    assert not result.get("isError") and outcome(result)["success"] is True, result


def assert_refused(result, code, *words):
    assert result["isError"] is True and text(result).startswith("Error:"), result
    assert outcome(result)["success"] is False and outcome(result)["refusal"]["code"] == code, result
    assert all(word in text(result) for word in words), f"{words} not in {text(result)!r}"
