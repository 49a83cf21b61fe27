"""The example with the OpenAI Agents SDK: a scripted model whose edit becomes stale, is refused, and is repaired."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest

import surehand

pytest.importorskip("agents", reason="openai-agents is not installed")

from agents import OpenAIChatCompletionsModel, RunConfig, Runner  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402

# A step of the model: the results of its tools so far become the next call, or its last words.
Step = Callable[[list[str]], tuple[str, dict[str, str]] | str]


def example() -> ModuleType:
    path = Path(os.environ.get("SUREHAND_EXAMPLES", Path(__file__).parents[1] / "examples")) / "guarded_agent.py"
    spec = importlib.util.spec_from_file_location("guarded_agent", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its annotations are looked up by this name.
    sys.modules["guarded_agent"] = module
    spec.loader.exec_module(module)
    return module


def serve(steps: list[Step]) -> ThreadingHTTPServer:
    """A server that speaks chat completions and plays the steps."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
            said = steps[len(results)](results)
            message: dict[str, Any] = {"role": "assistant", "content": said}
            if not isinstance(said, str):
                name, arguments = said
                function = {"name": name, "arguments": json.dumps(arguments)}
                calls = [{"id": f"call_{len(results)}", "type": "function", "function": function}]
                message = {"role": "assistant", "content": None, "tool_calls": calls}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
            body = json.dumps(answer | {"usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def play(root: Path, steps: list[Step]) -> str:
    server = serve(steps)
    client = AsyncOpenAI(api_key="none", base_url=f"http://127.0.0.1:{server.server_address[1]}/v1")
    module = example()
    try:
        with surehand.Workspace(root) as workspace, workspace.session(tools=module.READ_AND_EDIT) as session:
            agent = module.guarded_agent(workspace, session, OpenAIChatCompletionsModel("m", client))
            done = Runner.run_sync(agent, "Do it.", run_config=RunConfig(tracing_disabled=True))
            return str(done.final_output)
    finally:
        server.shutdown()


def test_a_stale_edit_is_refused_and_repaired_by_the_agent(root: Path) -> None:
    file = root / "a.py"
    file.write_text("def hello():\n    return 'hello'\n")
    edit = ("edit_file", {"path": "a.py", "old_string": "return 'hello'", "new_string": "return 'hi'"})

    def another_program_saves(results: list[str]) -> tuple[str, dict[str, str]]:
        assert "1|def hello():" in results[0]
        file.write_text("def hello():\n    return 'hello, world'\n")
        return edit

    def repairs(results: list[str]) -> tuple[str, dict[str, str]]:
        assert "was modified since last read; nothing was written" in results[1]
        assert "2|    return 'hello, world'" in results[1]
        assert file.read_text().endswith("'hello, world'\n")
        return "edit_file", {"path": "a.py", "old_string": "'hello, world'", "new_string": "'hi, world'"}

    said = play(
        root, [lambda _: ("read_file", {"path": "a.py"}), another_program_saves, repairs, lambda results: f"Done: {results[2]}"]
    )
    assert said.startswith("Done: ")
    assert file.read_text() == "def hello():\n    return 'hi, world'\n"


def test_a_tool_of_ones_own_is_guarded(root: Path) -> None:
    file = root / "b.py"
    file.write_text("import sys\nimport os\nprint(os, sys)\n")

    def sees_the_refusal(results: list[str]) -> tuple[str, dict[str, str]]:
        assert "was not read this session" in results[0] and "3|print(os, sys)" in results[0]
        return "sort_imports", {"path": "b.py"}

    said = play(
        root, [lambda _: ("sort_imports", {"path": "b.py"}), sees_the_refusal, lambda results: results[1], lambda _: "?"]
    )
    assert said == "Sorted.\n"
    assert file.read_text() == "import os\nimport sys\nprint(os, sys)\n"
