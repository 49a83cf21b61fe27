"""Real agents with Surehand's hooks under them: stories.py BINARY CLIENTS [AGENT...]. Each plays the same story with its own tools."""

import contextlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from checks import check  # noqa: E402

from agents import AGENTS  # noqa: E402
from model import Model, Turn  # noqa: E402

FILES = {
    "a.txt": "alpha\nbeta\ngamma\n",
    "unread.txt": "one\ntwo\nthree\n",
    "whole.txt": "first\nsecond\nthird\n",
    "sub/AGENTS.md": "Always whisper in this directory.\n",
    "sub/c.txt": "quiet\n",
}


class Stage:
    """An agent in a project of its own; files are put away when all is well."""

    def __init__(self, agent, binary, clients, *words):
        self.root = Path(tempfile.mkdtemp(prefix=f"surehand-{agent.name}-"))
        self.model = Model([])
        self.agent = agent(self.root, binary, clients, self.model)
        self.agent.lay_out(FILES, *words)

    def content(self, path):
        return (self.agent.project / path).read_text()

    def outside(self, path, content):
        return lambda: (self.agent.project / path).write_text(content)

    def play(self, *turns):
        """Plays turns; gives what the model was told after each of them, the first prompt left out."""
        self.model.turns = list(turns)
        self.model.prompts = []
        self.out = self.agent.run()
        prompts = self.model.prompts
        return [news(before, after) for before, after in zip(prompts, prompts[1:])]

    def close(self):
        self.model.stop()
        shutil.rmtree(self.root, ignore_errors=True)


def news(before, after):
    """What is in a prompt and was not in the one before."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    return after[same:]


def tell(agent, binary, clients):
    name = agent.name
    stage = Stage(agent, binary, clients)
    act = stage.agent
    told = stage.play(
        Turn(act.edit("unread.txt", "two", "TWO")),
        Turn(act.read("a.txt")),
        Turn(act.edit("a.txt", "beta", "BETA"), before=stage.outside("a.txt", "alpha\nbeta\nOUTSIDE\n")),
        Turn(act.edit("a.txt", "beta", "BETA")),
        Turn(act.read("whole.txt")),
        Turn(act.write("whole.txt", "mine\n"), before=stage.outside("whole.txt", "first\nsecond\ntheirs\n")),
        Turn(act.read("sub/c.txt")),
        Turn(act.write("new.txt", "new\n")),
        Turn(text="done"),
    )
    with check(f"{name}: an edit of what was never read changes nothing"):
        assert stage.content("unread.txt") == FILES["unread.txt"], stage.content("unread.txt")
        assert "read" in told[0].lower(), told[0][:400]
    with check(f"{name}: an edit of what somebody else changed is refused with the lines"):
        assert "OUTSIDE" in told[2] and "modified since last read" in told[2], told[2][:600]
    with check(f"{name}: the refusal counts as read, so the edit passes then"):
        assert stage.content("a.txt") == "alpha\nBETA\nOUTSIDE\n", stage.content("a.txt")
    with check(f"{name}: what somebody else wrote is not overwritten"):
        assert stage.content("whole.txt") == "first\nsecond\ntheirs\n", stage.content("whole.txt")
    with check(f"{name}: instructions come with the first file of a directory"):
        assert "Always whisper" in "\n".join(told[6:]), told[6][:600]
    with check(f"{name}: a new file needs nothing"):
        assert stage.content("new.txt") == "new\n"
    stage.close()


def tell_of_compaction(agent, binary, clients):
    name = agent.name
    if agent.full is None:
        return
    stage = Stage(agent, binary, clients)
    act = stage.agent
    stage.play(
        Turn(act.read("a.txt")),
        Turn(act.read("whole.txt"), tokens=act.full),
        Turn(act.edit("a.txt", "beta", "BETA")),
        Turn(act.read("a.txt")),
        Turn(act.edit("a.txt", "beta", "BETA")),
        Turn(text="done"),
    )
    with check(f"{name}: after a compaction what was read no longer counts, and the state is told"):
        assert stage.model.summaries > 0, "the agent did not compact"
        told = stage.model.told()
        assert "no longer counts as read" in told and "Repository state" in told, told[-2000:]
        assert stage.content("a.txt") == "alpha\nBETA\ngamma\n", stage.content("a.txt")
    stage.close()


def tell_without_the_program(agent, binary, clients):
    """What is committed for a project does no harm to those who do not have Surehand."""
    name = agent.name
    for words in [["--scope", "project"], ["--scope", "project", "--mcp"]]:
        stage = Stage(agent, binary, clients, *words)
        act = stage.agent
        act.lose_surehand()
        told = stage.play(Turn(act.read("a.txt")), Turn(act.edit("a.txt", "beta", "BETA")), Turn(text="done"))
        with check(f"{name}: without the program it works as if nothing were set up ({' '.join(words)})"):
            assert stage.content("a.txt") == "alpha\nBETA\ngamma\n", stage.content("a.txt") + stage.out[-2000:]
        with check(f"{name}: neither the model nor the person hears of it ({' '.join(words)})"):
            heard = ["\n".join(told)] + ([] if "--mcp" in words else [stage.out])
            for text in heard:
                # Gemini CLI lists the hooks of a project when it starts.
                text = text.replace(stage.root.name, "").replace("  - surehand\n", "").lower()
                at = text.find("surehand")
                assert at < 0, text[max(0, at - 300) : at + 300]
        stage.close()


def told(story, name, binary, clients):
    """What a story prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            story(AGENTS[name], str(Path(binary).resolve()), Path(clients).resolve())
        except Exception as why:
            print(f"FAIL {name}: {story.__name__} -- {type(why).__name__}: {why}"[:800])
    return out.getvalue()


def main():
    binary, clients, *names = sys.argv[1:]
    for name in names or AGENTS:
        for story in (tell, tell_of_compaction, tell_without_the_program):
            # An agent is a large program of somebody else's, and may stumble once.
            text = told(story, name, binary, clients)
            if "FAIL " in text:
                text = told(story, name, binary, clients)
            print(text, end="", flush=True)


main()
