"""An agent of the OpenAI Agents SDK whose file tools are guarded.

    pip install surehand-sdk openai-agents
    OPENAI_API_KEY=... python guarded_agent.py "Rename the function hello to greet" --model gpt-5

`file_tools` gives the model the tools of Surehand. `sort_imports` shows the other way: a tool of one's own, which writes
the file itself and is judged before and recorded after. A refusal is an answer like any other: its text goes to the
model, which repairs the call with the lines that it shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import surehand
from agents import Agent, FunctionTool, Runner, Tool, function_tool
from agents.tool_context import ToolContext

READ_AND_EDIT = ["read_file", "list_files", "search_files", "edit_file", "write_file", "undo"]


def file_tools(session: surehand.Session) -> list[Tool]:
    """The tools of Surehand, as this framework takes them."""

    def tool(spec: surehand.ToolSpec) -> FunctionTool:
        async def invoke(_: ToolContext[Any], arguments: str) -> str:
            reply = await asyncio.to_thread(session.call, spec.name, json.loads(arguments))
            return reply.text

        return FunctionTool(spec.name, spec.description, spec.input_schema, invoke, strict_json_schema=False)

    return [tool(spec) for spec in session.tools()]


def sort_imports(workspace: surehand.Workspace, session: surehand.Session) -> Tool:
    """A tool of one's own."""

    def sort(path: str) -> str:
        file = workspace.path / path
        lines = file.read_text().splitlines(keepends=True)
        imports = sorted(line for line in lines if line.startswith("import "))
        text = "".join(imports + [line for line in lines if not line.startswith("import ")])
        try:
            with session.judge(surehand.Edit.write(path, text)) as permit:
                file.write_text(text)
        except surehand.Refusal as refusal:
            return refusal.text
        return f"Sorted.\n{permit.note}"

    @function_tool(name_override="sort_imports")
    async def tool(path: str) -> str:
        """Sort the imports of a Python file to its top. The whole file must have been read."""
        return await asyncio.to_thread(sort, path)

    return tool


def guarded_agent(workspace: surehand.Workspace, session: surehand.Session, model: Any) -> Agent[None]:
    instructions = [
        "You work on the files of a repository with the given tools.",
        session.instructions_if_new("."),
        session.repo_state().format_for_prompt(),
    ]
    return Agent(
        name="editor",
        instructions="\n\n".join(part for part in instructions if part),
        tools=[*file_tools(session), sort_imports(workspace, session)],
        model=model,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--root", type=Path, default=Path("."))
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    with surehand.Workspace(arguments.root) as workspace, workspace.session(tools=READ_AND_EDIT) as session:
        agent = guarded_agent(workspace, session, arguments.model)
        print(Runner.run_sync(agent, arguments.task).final_output)


if __name__ == "__main__":
    main()
