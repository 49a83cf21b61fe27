"""A long session without conflicts. No call may be refused, and no change may be attributed to another author."""

import re

from agents import FRESH, ONCE
from model import Turn

LINES = 12

# The words of our refusals, and of our notes about changes that the model did not make.
REFUSED = re.compile(r"was not read this session|(?:was|were) not read this session, and|modified since last read; nothing|modified since last read \(it was|was deleted since last read")
NAMED = re.compile(r"changed since you read (?:it|them): ([^\n\\]+)|note: (\S+ was modified since last read[^;]*);|note: (\S+ was rewritten right after)")


def blamed(text):
    """The files that our notes name as changed by others than the model's own commands."""
    notes = [next(filter(None, found.groups())) for found in NAMED.finditer(text)]
    return [file for note in notes for file in note.split(", ") if "by your command" not in file]


def numbered(name, ending="", until=LINES):
    """Lines of which those from 5 on stand in the file once, also as a part of another; the first ones have an ending."""
    return "".join(f"{name} {number}{ending if number <= until else ''}\n" for number in range(1, LINES + 1))


NAMES = ["five", "append", "sed", "moved", "branch", "stash", "one", "several-a", "several-b", "several-c", "nl", "grep", "cat-a", "cat-b", "loop", "whole", "main", "heads"]
FILES = {f"{name}.txt": numbered(name) for name in NAMES}
FILES["format.txt"] = numbered("format", "  ", until=3)
FILES["blanks.txt"] = numbered("blanks", "  ")
FILES["format.sh"] = "sed -i -e 's/ *$//' -e 's/^\t/    /' \"$@\"\n"
NESTED = {"inner.txt": numbered("inner")}


class Flow:
    """Builds the turns for an agent. Where its own check wants a read, there is one more turn with it."""

    def __init__(self, agent):
        self.agent = agent
        self.turns = []
        self.wanted = {}
        self.known = set()

    def calls(self, *calls):
        self.turns.append(Turn(*calls))

    def read(self, *paths):
        """Reads each with the agent's own tool, all in one answer."""
        self.known.update(paths)
        self.calls(*[self.agent.read(path) for path in paths])

    def shell(self, command, changes=()):
        """Runs a command that changes these files."""
        if self.agent.own_check == FRESH:
            self.known.difference_update(changes)
        self.calls(self.agent.shell(command))

    def edit(self, *places):
        """Edits lines of files (path, word, line), all in one answer."""
        self.satisfy({path for path, *_ in places})
        calls = []
        for path, word, line in places:
            self.wanted.setdefault(path, []).append(f"{word} {line} edited")
            calls.append(self.agent.edit(path, f"{word} {line}", f"{word} {line} edited"))
        self.calls(*calls)

    def satisfy(self, paths):
        """Meets the requirements of the agent's own check before an edit of these files."""
        unknown = sorted(paths - self.known)
        if self.agent.own_check in (ONCE, FRESH) and unknown:
            self.read(*unknown)


def build(agent):
    """The turns of the session, and the expected content of each file at its end."""
    flow = Flow(agent)
    flow.read("five.txt")
    for line in (5, 6, 7, 8, 9):
        flow.edit(("five.txt", "five", line))

    flow.read("format.txt")
    flow.shell("sh format.sh format.txt", ["format.txt"])
    flow.edit(("format.txt", "format", 6))
    flow.read("blanks.txt")
    flow.shell("sh format.sh blanks.txt", ["blanks.txt"])
    flow.edit(("blanks.txt", "blanks", 6))

    flow.shell("cat > here.txt <<'EOF'\n" + numbered("here") + "EOF", ["here.txt"])
    flow.edit(("here.txt", "here", 7))

    flow.read("append.txt")
    flow.shell("echo 'one more' >> append.txt", ["append.txt"])
    flow.edit(("append.txt", "append", 5))

    flow.read("sed.txt")
    flow.shell("sed -i 's/^sed 9$/sed nine/' sed.txt", ["sed.txt"])
    flow.edit(("sed.txt", "sed", 5))

    flow.read("moved.txt")
    flow.shell("git mv moved.txt renamed.txt", ["renamed.txt"])
    flow.edit(("renamed.txt", "moved", 5))

    flow.read("branch.txt")
    flow.shell("git checkout -q other", ["branch.txt"])
    flow.shell("git checkout -q main", ["branch.txt"])
    flow.edit(("branch.txt", "branch", 5))

    flow.read("stash.txt")
    flow.edit(("stash.txt", "stash", 5))
    edited = sorted(flow.wanted)
    flow.shell("git stash -q", edited)
    flow.shell("git stash pop -q", edited)
    flow.edit(("stash.txt", "stash", 9))

    flow.read("one.txt")
    flow.edit(*[("one.txt", "one", line) for line in (5, 7, 9)])
    several = ["several-a", "several-b", "several-c"]
    flow.read(*[f"{name}.txt" for name in several])
    flow.edit(*[(f"{name}.txt", name, 5) for name in several])
    flow.edit(*[(f"{name}.txt", name, line) for line in (7, 9) for name in several])

    flow.shell("nl -ba nl.txt | sed -n '3,9p'")
    flow.edit(("nl.txt", "nl", 6))
    flow.shell("grep -n 'grep [5-7]' *.txt")
    flow.edit(("grep.txt", "grep", 6))
    flow.shell("cat cat-a.txt; cat cat-b.txt")
    flow.edit(("cat-a.txt", "cat-a", 6), ("cat-b.txt", "cat-b", 6))
    flow.shell("for file in loop.txt heads.txt; do echo \"== $file\"; head -8 $file; done; wc -l loop.txt")
    flow.edit(("loop.txt", "loop", 6))
    flow.edit(("heads.txt", "heads", 6))

    flow.read("whole.txt")
    flow.satisfy({"whole.txt"})
    if agent.replaces:
        flow.wanted["whole.txt"] = ["whole, written anew"]
        flow.calls(agent.write("whole.txt", "whole, written anew\n" + numbered("whole")))
        flow.edit(("whole.txt", "whole", 6))
    flow.calls(agent.write("new.txt", numbered("new")))
    flow.known.add("new.txt")
    flow.edit(("new.txt", "new", 6))

    flow.shell("cd nested && cat inner.txt")
    flow.edit(("nested/inner.txt", "inner", 6))
    flow.read("main.txt")
    flow.edit(("main.txt", "main", 6))
    flow.shell("git status --short; git diff --stat")
    flow.edit(("five.txt", "five", 12))
    flow.turns.append(Turn(text="done"))
    return flow
