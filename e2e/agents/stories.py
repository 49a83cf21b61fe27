"""Real agents with Surehand under them: stories.py BINARY CLIENTS fast|all [AGENT...]. Each plays the same stories with its own tools. At
the end comes a table of what was seen."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from checks import check  # noqa: E402

import flow  # noqa: E402
from agents import AFTER_A_TOOL, AGENTS, FRESH, WITH_A_REFUSAL, put  # noqa: E402
from model import Model, Turn  # noqa: E402

FILES = {
    "a.txt": "alpha\nbeta\ngamma\n",
    "unread.txt": "one\ntwo\nthree\n",
    "whole.txt": "first\nsecond\nthird\n",
    "sub/AGENTS.md": "Always whisper in this directory.\n",
    "sub/c.txt": "quiet\n",
}


class Stage:
    """An agent in a project of its own, which is put away when the story ends unless SUREHAND_E2E_KEEP is set."""

    def __init__(self, agent, binary, clients, *words, files=FILES, plugin=False):
        self.root = Path(tempfile.mkdtemp(prefix=f"e2e-{agent.name}-"))
        self.model = Model([])
        self.agent = agent(self.root, binary, clients, self.model)
        if plugin:
            self.agent.prepare(files)
            self.agent.install_plugin(packed_plugins(binary, self.root))
        else:
            self.agent.lay_out(files, *words)

    def content(self, path):
        return (self.agent.project / path).read_text()

    def outside(self, path, content):
        return lambda: (self.agent.project / path).write_text(content)

    def play(self, *turns):
        """Plays turns; returns the new text for the model after each of them, without the first prompt."""
        self.model.turns = list(turns)
        self.model.prompts = []
        self.out = self.agent.run()
        if "SUREHAND_E2E_KEEP" in os.environ:
            (self.root / "prompts.txt").write_text("\n\n=====\n\n".join(self.model.prompts))
        prompts = self.model.prompts
        return [news(before, after) for before, after in zip(prompts, prompts[1:])]

    def close(self):
        self.model.stop()
        if "SUREHAND_E2E_KEEP" not in os.environ:
            shutil.rmtree(self.root, ignore_errors=True)


def packed_plugins(binary, directory):
    """Our plugins as they are released, unpacked."""
    packages, plugins = directory / "packages", directory / "plugins"
    release = Path(__file__).parents[2] / "packaging/release"
    subprocess.run([release, "--binary", binary, "--out", packages, "--only", "plugins"], check=True, capture_output=True)
    plugins.mkdir()
    for archive in [*packages.glob("*.tar.gz"), *packages.glob("surehand-opencode-*.tgz")]:
        with tarfile.open(archive) as tar:
            tar.extractall(plugins, filter="data")
    for unpacked in plugins.glob("surehand-*"):
        unpacked.rename(plugins / unpacked.name.rpartition("-")[0])
    return plugins


def news(before, after):
    """The part of a prompt that was not in the previous one."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    return after[same:]


def tell(agent, binary, clients):
    """An edit of an unread file is refused; an edit of a file that others changed is refused with the changed lines; and one call repairs it."""
    name = agent.name
    stage = Stage(agent, binary, clients)
    act = stage.agent
    its_own_read = [Turn(act.read("a.txt"))] if agent.own_check == FRESH else []
    told = stage.play(
        Turn(act.read("a.txt")),
        Turn(act.edit("a.txt", "beta", "BETA"), before=stage.outside("a.txt", "alpha\nbeta by hand\ngamma\n")),
        *its_own_read,
        Turn(act.edit("a.txt", "beta by hand", "BETA by hand")),
        Turn(act.read("whole.txt")),
        Turn(act.write("whole.txt", "mine\n"), before=stage.outside("whole.txt", "first\nsecond\ntheirs\n")),
        Turn(act.read("sub/c.txt")),
        Turn(act.edit("unread.txt", "two", "TWO")),
        Turn(act.write("new.txt", "new\n")),
        Turn(text="done"),
    )
    after = dict(zip(["read", "edit", *["its own read" for _ in its_own_read], "edit again", "read whole", "write", "read sub", "unread", "new"], told))
    cells = {}
    with check(f"{name}: an edit of what somebody else changed is refused with the lines"):
        refused = after["edit"]
        assert flow.REFUSED.search(refused) and "beta by hand" in refused, refused[:600]
        cells["refused"] = "yes"
    with check(f"{name}: the corrected edit passes then"):
        assert stage.content("a.txt") == "alpha\nBETA by hand\ngamma\n", stage.content("a.txt")
        if "refused" in cells:
            cells["repaired"] = "after a read that the agent requires" if its_own_read else "by the next call"
    with check(f"{name}: what somebody else wrote is not overwritten"):
        assert stage.content("whole.txt") == "first\nsecond\ntheirs\n", stage.content("whole.txt")
    with check(f"{name}: an edit of what was never read changes nothing"):
        assert stage.content("unread.txt") == FILES["unread.txt"], stage.content("unread.txt")
        assert "read" in after["unread"].lower(), after["unread"][:400]
    with check(f"{name}: instructions of a directory are told {'with its first file' if agent.hears == AFTER_A_TOOL else 'with the next refusal'}"):
        heard = after["read sub"] if agent.hears == AFTER_A_TOOL else after["read sub"] + after["unread"]
        assert "Always whisper" in heard, heard[:600]
        cells["heard"] = agent.hears
    with check(f"{name}: a new file needs nothing"):
        assert stage.content("new.txt") == "new\n"
    stage.close()
    return cells


def tell_of_flow(agent, binary, clients):
    """Work without a conflict is not disturbed."""
    name = agent.name
    if not agent.has_hooks:
        return {"flow": "not played: the server does not learn of commands"}
    stage = Stage(agent, binary, clients, files=flow.FILES)
    act = stage.agent
    act.repository(act.project / "nested", flow.NESTED)
    act.git(act.project, "git checkout -q -b other && sed -i 's/branch 2/branch two/' branch.txt && git commit -qam other && git checkout -q main")
    played = flow.build(act)
    stage.play(*played.turns)
    told = stage.model.prompts[-1] if stage.model.prompts else ""
    cells = {}
    ours, own = len(flow.REFUSED.findall(told)), len(re.findall(agent.refuses, told))
    with check(f"{name}: a session without a conflict comes to its end"):
        assert not stage.model.turns, f"{len(stage.model.turns)} turns left: {stage.out[-1500:]}"
    with check(f"{name}: nothing in it is refused by us"):
        assert ours == 0, excerpts(flow.REFUSED, told)
    with check(f"{name}: nothing in it is refused by the agent itself, which gets the reads that it wants"):
        assert own == 0, excerpts(agent.refuses, told)
    with check(f"{name}: nobody else is named for what the model did itself"):
        assert not flow.blamed(told), flow.blamed(told)
    with check(f"{name}: every edit of it has landed"):
        missing = [f"{path}: {line}" for path, lines in played.wanted.items() for line in lines if line not in stage.content(path).splitlines()]
        assert not missing, missing
        cells["flow"] = f"{ours} in {len(played.turns)} turns"
    stage.close()
    return cells


def excerpts(pattern, text):
    return " | ".join(text[max(0, found.start() - 200) : found.end() + 300] for found in re.finditer(pattern, text))


def tell_of_formatter(agent, binary, clients):
    """A formatter that the agent runs after each edit, beside our hook, is not in the way."""
    name = agent.name
    if agent.format_after_edits is None:
        return
    for seconds in (0, 0.1, 0.3):
        stage = Stage(agent, binary, clients, files=flow.FILES)
        act = stage.agent
        act.format_after_edits(seconds)
        edits = [Turn(act.edit("five.txt", f"five {line}", f"five {line} edited  ")) for line in (5, 6, 7, 8, 9)]
        again = Turn(act.edit("five.txt", "five 7 edited", "five 7 edited again  "))
        stage.play(Turn(act.read("five.txt")), *edits, again, Turn(text="done"))
        told = stage.model.prompts[-1]
        with check(f"{name}: with a formatter that takes {seconds} s after each edit nothing is refused"):
            assert not flow.REFUSED.search(told), excerpts(flow.REFUSED, told)
            assert not re.search(agent.refuses, told), excerpts(agent.refuses, told)
            wanted = [f"five {line} edited{' again' if line == 7 else ''}" for line in (5, 6, 7, 8, 9)]
            assert stage.content("five.txt").splitlines()[4:9] == wanted, stage.content("five.txt")
        stage.close()


def spoil_state(act):
    """The state of the checkout is not a directory."""
    put(act.project / ".git/surehand/checkouts/main", "nothing\n")
    for directory in (".git/surehand/checkouts", ".git/surehand"):
        (act.project / directory).chmod(0o700)


WARNING = "`surehand doctor` tells more"


def tell_of_trouble(agent, binary, clients):
    """Unreadable settings and unusable state do not stop an agent, and are reported once."""
    if not agent.has_hooks:
        return
    for what, break_it, cause, is_guarded in [
        ("settings that cannot be read", lambda act: put(act.home / ".config/surehand/surehand.toml", "[policy]\non_change = 3\n"), "on_change", True),
        ("state that cannot be used", spoil_state, "cannot use the state directory", False),
    ]:
        stage = Stage(agent, binary, clients)
        act = stage.agent
        break_it(act)
        stage.play(
            Turn(act.read("a.txt")),
            Turn(act.edit("a.txt", "beta", "BETA")),
            Turn(act.read("whole.txt")),
            Turn(act.write("whole.txt", "mine\n"), before=stage.outside("whole.txt", "first\nsecond\ntheirs\n")),
            Turn(text="done"),
        )
        told = stage.model.prompts[-1]
        with check(f"{agent.name}: {what}: the agent goes on"):
            assert stage.content("a.txt") == "alpha\nBETA\ngamma\n", stage.content("a.txt")
        # Without a gate, no refusal can carry the note.
        can_hear = is_guarded or agent.hears != WITH_A_REFUSAL
        with check(f"{agent.name}: {what}: the model is told {'once' if can_hear else 'nothing, for it hears refusals only'}"):
            assert told.count(WARNING) == (1 if can_hear else 0), f"{told.count(WARNING)} times: {excerpts(WARNING, told)}"
        if is_guarded:
            with check(f"{agent.name}: {what}: the files are guarded all the same"):
                assert stage.content("whole.txt") == "first\nsecond\ntheirs\n", stage.content("whole.txt")
        with check(f"{agent.name}: {what}: the doctor names it"):
            doctor = subprocess.run([binary, "doctor"], cwd=act.project, env=act.environment, capture_output=True, text=True)
            assert doctor.returncode == 1 and cause in doctor.stdout, f"exit code {doctor.returncode}: {doctor.stdout}"
        stage.close()


def tell_of_compaction(agent, binary, clients):
    name = agent.name
    if agent.full is None:
        return {"compaction": "not played"}
    stage, cells = Stage(agent, binary, clients), {}
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
        cells["compaction"] = "reads forgotten, state shown"
    stage.close()
    return cells


def tell_without_the_program(agent, binary, clients):
    """Committed files do no harm to people who do not have Surehand."""
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
                text = text.replace("  - surehand\n", "").lower()
                at = text.find("surehand")
                assert at < 0, text[max(0, at - 300) : at + 300]
        stage.close()


# Uncommitted work of a person: text, bytes, a mode, a link, an empty directory, ignored files.
UNCOMMITTED = r"""
printf 'alpha\nbeta, by hand\ngamma\n' > a.txt
rm whole.txt
mkdir -p notes/later empty && printf 'not committed\n' > notes/later/idea.md
head -c 3000 /dev/urandom > picture.bin
printf '#!/bin/sh\n' > run.sh && chmod 750 run.sh
ln -s notes/later/idea.md idea
printf '.env\n' > .gitignore && printf 'SECRET=1\n' > .env
git add run.sh
chmod 700 empty && printf 'crlf\r\nand lf\n' > mixed.txt && chmod 600 mixed.txt
git init -q lib && printf 'int main;\n' > lib/main.c && mkdir lib/src && printf 'x\n' > lib/src/x.c
"""
# The second f takes repositories within as well.
WIPE = "git checkout . && git clean -ffdxq"


def tell_of_lost_work(agent, binary, clients):
    """An agent destroys uncommitted work of a person, and one command restores it exactly."""
    if not agent.has_hooks:
        return {"lost": "not played: the server does not learn of commands"}
    stage, cells = Stage(agent, binary, clients), {}
    act = stage.agent
    act.git(act.project, UNCOMMITTED)
    before = everything(act.project)
    wiped = []
    stage.play(
        Turn(act.shell("git status --short")),
        Turn(act.shell(WIPE)),
        Turn(text="done", before=lambda: wiped.append(everything(act.project))),
    )
    with check(f"{agent.name}: what it threw away is gone"):
        lost = {path for path in before if wiped[0].get(path) != before[path]}
        wanted = {"a.txt", "notes/later/idea.md", "picture.bin", "idea", "empty", ".env", "mixed.txt", "lib/src/x.c"}
        assert wanted <= lost, sorted(lost)
    with check(f"{agent.name}: `surehand restore` brings back every byte, mode, link and empty directory"):
        log = json.loads(act.surehand("log", "--json"))
        last = next(entry for entry in log if "checkpoint" in entry)
        act.surehand("restore", "--to", last["checkpoint"], "--yes")
        after = everything(act.project)
        differ = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        assert not differ, f"{differ} after {last}"
        cells["lost"] = "all of it came back"
    stage.close()
    return cells


def tell_of_plugin(agent, binary, clients):
    """Our plugin, installed by the agent's own installer instead of `surehand init`, guards alike."""
    if agent.install_plugin is None:
        return {}
    stage = Stage(agent, binary, clients, plugin=True)
    act = stage.agent
    told = stage.play(
        Turn(act.read("a.txt")),
        Turn(act.edit("a.txt", "beta", "BETA"), before=stage.outside("a.txt", "alpha\nbeta by hand\ngamma\n")),
        Turn(act.write("new.txt", "new\n")),
        Turn(text="done"),
    )
    with check(f"{agent.name}: the plugin that its own installer takes refuses a stale edit"):
        assert len(told) > 1 and flow.REFUSED.search(told[1]) and "beta by hand" in told[1], stage.out[-600:]
        assert stage.content("a.txt") == "alpha\nbeta by hand\ngamma\n", stage.content("a.txt")
        assert stage.content("new.txt") == "new\n"
    stage.close()


def everything(directory):
    """Every path below a directory with its mode and content, except for files of git, Surehand or the agent."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        is_of_tools = name.parts[0].startswith(".") and (directory / name.parts[0]).is_dir()
        if is_of_tools or ".git" in name.parts or path.name == "opencode.json":
            continue
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(name)] = (oct(path.lstat().st_mode), content)
    return found


def told(story, name, binary, clients):
    """The output of a story, and its entries for the table."""
    out, cells = io.StringIO(), {}
    with contextlib.redirect_stdout(out):
        try:
            cells = story(AGENTS[name], str(Path(binary).resolve()), Path(clients).resolve()) or {}
        except Exception as why:
            print(f"FAIL {name}: {story.__name__} -- {type(why).__name__}: {why}"[:800])
    return out.getvalue(), cells


FAST = (tell, tell_of_lost_work, tell_of_flow, tell_of_formatter, tell_of_compaction, tell_without_the_program, tell_of_plugin)
ALL = (*FAST, tell_of_trouble)

COLUMNS = {
    "tools": "guarded tools",
    "flow": "refused without a conflict",
    "repaired": "a conflict is refused, and repaired",
    "heard": "when notes reach its model",
    "compaction": "after a compaction",
    "lost": "uncommitted work that it wipes",
}


def table(rows):
    """The results in Markdown. A cell that no story has filled is a failure."""
    lines = [f"| agent | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, cells in rows.items():
        agent = AGENTS[name]
        cells = {"tools": agent.tools, **cells}
        lines.append(f"| {agent.title} {agent.version()} | {' | '.join(cells.get(column, '**failed**') for column in COLUMNS)} |")
    return "\n".join(lines)


def main():
    binary, clients, which, *names = sys.argv[1:]
    rows = {}
    for name in names or AGENTS:
        rows[name] = {}
        for story in {"fast": FAST, "all": ALL}[which]:
            # An agent is a large foreign program, and may fail once.
            text, cells = told(story, name, binary, clients)
            if "FAIL " in text:
                print("".join(f"AGAIN {line[5:]}\n" for line in text.splitlines() if line.startswith("FAIL ")), end="", flush=True)
                text, cells = told(story, name, binary, clients)
            rows[name] |= cells
            print(text, end="", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
