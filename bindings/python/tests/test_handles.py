"""Workspaces and sessions as handles: closing, threads, processes, forks, bad input, memory."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import surehand
from surehand import Edit, Session, Workspace


def test_a_closed_workspace_says_so(root: Path) -> None:
    with Workspace(root) as workspace:
        session = workspace.session()
        with workspace.session() as closed:
            assert not closed.closed
        with pytest.raises(surehand.ClosedError, match="the session is closed"):
            closed.read("a.txt")
        session.read("a.txt")
        permit = session.judge(Edit.write("a.txt", ""))
    workspace.close()
    assert workspace.closed and session.closed and workspace.path == root
    for call in (lambda: session.read("a.txt"), permit.adopt, workspace.session, workspace.repo_state):
        with pytest.raises(surehand.ClosedError) as raised:
            call()
        assert raised.value.code == "closed"
    assert repr(root.name)[1:-1] in repr(workspace)


def test_a_session_goes_on_in_another_workspace(root: Path) -> None:
    with Workspace(root) as workspace:
        workspace.session("story 7").read("a.txt")
    with Workspace(root) as workspace:
        assert workspace.session("story 7").edit(Edit.replace("a.txt", "one", "1")).result["path"] == "a.txt"


def test_threads_share_a_session(root: Path, session: Session) -> None:
    def work(number: int) -> None:
        for turn in range(5):
            session.edit(Edit.write(f"{number}-{turn}.txt", "x\n"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(list(root.glob("*-*.txt"))) == 40
    assert len(session.repo_state().to_dict()["files"]) == 40


def test_other_threads_run_during_a_call(root: Path, session: Session) -> None:
    """The GIL is released: another thread takes many turns during one search."""
    # Long enough that the thread gets a processor, though the search uses them all.
    for number in range(20):
        (root / f"{number}.txt").write_text("line of text\n" * 100_000)
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    def turns_during_a_search() -> int:
        before = counted
        session.call("search_files", {"pattern": "t(e|x)+t never", "glob": "*.txt"})
        return counted - before

    counter = threading.Thread(target=count)
    counter.start()
    is_free = any(turns_during_a_search() > 20 for _ in range(20))
    done.set()
    counter.join()
    assert is_free


def test_a_close_waits_for_the_call_that_is_running(root: Path) -> None:
    workspace = Workspace(root)
    session = workspace.session()
    results: list[object] = []

    def write_until_closed() -> None:
        try:
            for number in range(10_000):
                results.append(session.edit(Edit.write("b.txt", f"{number}\n")).result["version"])
        except surehand.ClosedError as error:
            results.append(error)

    writer = threading.Thread(target=write_until_closed)
    writer.start()
    while len(results) < 3:
        time.sleep(0)
    workspace.close()
    writer.join()
    assert isinstance(results[-1], surehand.ClosedError) and len(results) > 3


def in_another_process(root: Path, code: str) -> str:
    program = f"import surehand\nfrom surehand import Edit\nroot = {str(root)!r}\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_have_one_state(root: Path, workspace: Workspace, session: Session) -> None:
    session.read("a.txt")
    shared = workspace.session("shared", shared=True)
    code = """
with surehand.Workspace(root) as workspace:
    other = workspace.session("theirs")
    other.read("a.txt")
    other.edit(Edit.replace("a.txt", "two", "2"))
    workspace.session("shared", shared=True).read("a.txt")
"""
    in_another_process(root, code)
    with pytest.raises(surehand.Stale) as raised:
        session.edit(Edit.replace("a.txt", "two", "zwei"))
    assert "2|2" in raised.value.text
    shared.edit(Edit.replace("a.txt", "2", "two"))
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_program_that_closes_nothing_loses_nothing(root: Path) -> None:
    code = """
workspace = surehand.Workspace(root)
session = workspace.session("story")
session.read("a.txt")
session.edit(Edit.replace("a.txt", "two", "2"))
"""
    in_another_process(root, code)
    with Workspace(root) as workspace:
        workspace.session("story").undo()
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_opens_its_own(root: Path, workspace: Workspace, session: Session) -> None:
    session.read("a.txt")
    edit = Edit.replace("a.txt", "one", "1")
    permit = session.judge(edit)
    child = os.fork()
    if child == 0:
        codes: list[str] = []
        calls = (lambda: session.read("a.txt"), lambda: session.judge(edit), permit.adopt, workspace.session)
        for call in (*calls, workspace.repo_state):
            try:
                call()
            except surehand.ForkedError as error:
                codes.append(error.code)
        workspace.close()
        with Workspace(root) as own:
            own.session().read("a.txt")
        os._exit(0 if workspace.closed and session.closed and codes == ["forked"] * 5 else 1)
    assert os.waitpid(child, 0)[1] == 0
    session.read("a.txt")


def test_settings_come_from_the_program_and_the_environment(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUREHAND_LIMITS_READ_LINES", "1")
    with Workspace(root, state_dir=tmp_path / "state") as workspace:
        assert workspace.session().read("a.txt").result["shown"] == [{"start": 1, "end": 1}]
        assert (tmp_path / "state").exists()
    with Workspace(root, settings={"limits.read_lines": 2}, in_memory=True, watch=True) as workspace:
        assert workspace.session().read("a.txt").result["shown"] == [{"start": 1, "end": 2}]
    monkeypatch.setenv("SUREHAND_STATE_DIR", "relative")
    with pytest.raises(surehand.SettingsError, match="must be an absolute path"):
        Workspace(root)


def bad(expected: type[BaseException], call: Callable[[], Any]) -> None:
    with pytest.raises(expected):
        call()


def test_bad_input_is_an_error_of_its_kind(root: Path, workspace: Workspace, session: Session) -> None:
    wrong: Any = 7
    bad(surehand.OpenError, lambda: Workspace(root / "none"))
    bad(OSError, lambda: Workspace(root / "a.txt"))
    bad(surehand.SettingsError, lambda: Workspace(root, settings={"policy.onchange": "rebase"}))
    bad(ValueError, lambda: Workspace(root, settings={"policy.on_change": float("nan")}))
    bad(TypeError, lambda: Workspace(wrong))
    bad(surehand.InvalidArgumentError, lambda: workspace.session(""))
    bad(surehand.InvalidArgumentError, lambda: workspace.session(shared=True))
    bad(ValueError, lambda: workspace.session(tools=["fly"]))
    bad(TypeError, lambda: workspace.session(tools="read_file"))
    bad(TypeError, lambda: session.read(wrong))
    bad(TypeError, lambda: session.read("a.txt", offset="1"))  # type: ignore[arg-type]
    bad(OverflowError, lambda: session.read("a.txt", offset=10**30))
    bad(OverflowError, lambda: session.read("a.txt", limit=-1))
    bad(surehand.BadRange, lambda: session.read("a.txt", limit=0))
    bad(surehand.BadArguments, lambda: session.read("a.txt", offset=2**63 - 1))
    bad(surehand.BadArguments, lambda: session.read("\0"))
    bad(UnicodeEncodeError, lambda: session.read("\ud800.txt"))
    bad(UnicodeEncodeError, lambda: session.edit(Edit.write("b.txt", "lone \ud800 surrogate")))
    bad(UnicodeEncodeError, lambda: session.read(Path(os.fsdecode(b"\xff.txt"))))
    bad(TypeError, lambda: session.edit(Edit.write("b.txt", b"bytes")))  # type: ignore[arg-type]
    bad(surehand.BadArguments, lambda: session.edit(Edit.write("b.txt", wrong)))
    bad(AttributeError, lambda: session.edit({"tool": "write_file"}))  # type: ignore[arg-type]
    bad(surehand.InvalidArgumentError, lambda: session.edit(Edit("read_file", {"path": "a.txt"})))
    bad(surehand.InvalidArgumentError, lambda: session.judge(Edit("fly", {})))
    bad(ValueError, lambda: session.call("read_file", {"path": float("inf")}))
    bad(TypeError, lambda: session.call("read_file", {"path": object()}))
    bad(TypeError, lambda: session.forget("a.txt"))
    bad(surehand.NoChange, lambda: session.undo(change="none"))
    bad(surehand.BadArguments, lambda: session.undo("a.txt", all=True))
    # Not one of them has changed anything.
    assert sorted(entry.name for entry in root.iterdir() if entry.name != ".surehand") == ["a.txt"]


def test_a_refusal_can_be_pickled(session: Session) -> None:
    with pytest.raises(surehand.Unread) as raised:
        session.edit(Edit.replace("a.txt", "one", "1"))
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), copy.code, copy.path, copy.text) == (surehand.Unread, "unread", "a.txt", raised.value.text)


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="counts with /proc")


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@needs_proc
def test_ten_thousand_calls_leak_nothing(root: Path) -> None:
    with Workspace(root, in_memory=True) as workspace:
        session = workspace.session()
        session.read("a.txt")

        def calls(number: int) -> None:
            for _ in range(number):
                session.read("a.txt")
                session.judge(Edit.replace("a.txt", "two", "2"))
                session.call("read_file", {"path": "none.txt"})
                session.repo_state().format_for_prompt()
            gc.collect()

        calls(500)
        before = resident()
        calls(2_500)
        # A leak of 1 KB in each call would be 10 MB.
        assert resident() - before < 8_000_000


@needs_proc
def test_workspaces_that_are_dropped_leak_nothing(root: Path) -> None:
    def handles() -> int:
        return len(os.listdir("/proc/self/fd"))

    Workspace(root).session().read("a.txt")
    gc.collect()
    before = handles()
    for _ in range(20):
        Workspace(root).session().read("a.txt")
    gc.collect()
    assert handles() <= before
