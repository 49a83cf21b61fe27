"""The calls of a session: read, edit, refuse, judge, adopt, undo."""

from __future__ import annotations

from pathlib import Path

import pytest

import surehand
from surehand import Edit, LineRange, Refusal, Session, Workspace

from conftest import TEXT


def test_a_stale_edit_is_refused_and_repaired(root: Path, session: Session) -> None:
    session.read(Path("a.txt"))
    (root / "a.txt").write_text("zero\n" + TEXT)
    edit = Edit.replace("a.txt", "two", "2")
    with pytest.raises(surehand.Stale) as raised:
        session.edit(edit)
    refusal = raised.value
    assert isinstance(refusal, Refusal) and isinstance(refusal, surehand.SurehandError)
    assert (refusal.code, refusal.path, refusal.repeat) == ("stale", "a.txt", 1)
    assert refusal.affected_ranges == [LineRange(1, 1)]
    assert "1|zero" in refusal.text and str(refusal) == refusal.text
    assert "read_file" in refusal.remedy and refusal.details["code"] == "stale"
    assert (root / "a.txt").read_text() == "zero\n" + TEXT

    reply = session.edit(edit)
    assert (reply.refusal, reply.result["path"], str(reply)) == (None, "a.txt", reply.text)
    assert (root / "a.txt").read_text() == "zero\none\n2\nthree\n"


def test_each_refusal_has_its_class(root: Path, session: Session) -> None:
    def refused(kind: type[Refusal], edit: Edit) -> None:
        with pytest.raises(kind):
            session.edit(edit)

    (root / "binary").write_bytes(b"\0\1\2")
    refused(surehand.Unread, Edit.replace("a.txt", "one", "1"))
    session.read("a.txt", limit=1)
    refused(surehand.Partial, Edit.write("a.txt", "new\n"))
    session.read("a.txt")
    refused(surehand.NotFound, Edit.replace("a.txt", "four", "4"))
    refused(surehand.NotFound, Edit.delete("none.txt"))
    refused(surehand.Ambiguous, Edit.replace("a.txt", "e", "E"))
    refused(surehand.NoChange, Edit.replace("a.txt", "one", "one"))
    refused(surehand.Exists, Edit.move("a.txt", "binary"))
    refused(surehand.BadPatch, Edit.patch("*** Begin Patch\nnonsense"))
    refused(surehand.OutsideWorkspace, Edit.write("../out.txt", ""))
    refused(surehand.Protected, Edit.write("surehand.toml", ""))
    refused(surehand.AnchorMismatch, Edit.lines("a.txt", [{"op": "delete", "at": "1#zz"}]))
    refused(surehand.BadArguments, Edit("edit_lines", {"path": "a.txt", "edits": [{"op": "fly"}]}))
    with pytest.raises(surehand.Binary):
        session.read("binary")
    (root / "a.txt").unlink()
    refused(surehand.Deleted, Edit.replace("a.txt", "one", "1"))


def test_every_kind_of_edit(root: Path, session: Session) -> None:
    shown = session.read("a.txt", anchors=True).text
    anchor = next(line.split("|")[0] for line in shown.splitlines() if line.endswith("|two"))
    session.edit(Edit.lines("a.txt", [{"op": "replace", "at": anchor, "text": "2"}]))
    session.edit(Edit.replace_many([("a.txt", "one", "1"), (Path("a.txt"), "three", "3")]))
    assert (root / "a.txt").read_text() == "1\n2\n3\n"
    session.edit(Edit.patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+two\n*** End Patch\n"))
    session.edit(Edit.move("a.txt", "b.txt"))
    session.edit(Edit.replace("b.txt", "1", "one", all=True))
    assert (root / "b.txt").read_text() == "one\ntwo\n3\n"
    session.edit(Edit.write(root / "sub" / "ü.txt", "ä 🦀\n"))
    assert (root / "sub" / "ü.txt").read_text() == "ä 🦀\n"
    session.edit(Edit.delete("b.txt"))
    assert not (root / "b.txt").exists()
    assert Edit.write("x", "y") == Edit("write_file", {"path": "x", "content": "y"}) != Edit.delete("x")
    assert "write_file" in repr(Edit.write("x", "y")) and len({Edit.delete("x"), Edit.delete("x")}) == 1


def test_reading_a_part(root: Path, session: Session) -> None:
    assert session.read("a.txt", offset=2, limit=1).result["shown"] == [{"start": 2, "end": 2}]
    assert session.read("a.txt", offset=-1).result["shown"] == [{"start": 3, "end": 3}]
    reply = session.read("a.txt", ranges=[(1, 1), LineRange(3, 3)])
    assert reply.result["shown"] == [{"start": 1, "end": 1}, {"start": 3, "end": 3}]
    with pytest.raises(surehand.BadRange):
        session.read("a.txt", offset=0)


def test_ones_own_write_is_judged_and_adopted(root: Path, session: Session) -> None:
    file = root / "a.txt"
    edit = Edit.write(file, "new\n")
    with pytest.raises(surehand.Unread):
        session.judge(edit)
    # The refusal has shown the file.
    with session.judge(edit) as permit:
        file.write_text("new\n")
    assert permit.note == ""
    assert not session.changed_since_read(file)
    session.edit(Edit.replace("a.txt", "new", "newer"))
    session.undo(all=True)
    assert file.read_text() == TEXT


def test_what_the_model_should_know_is_in_the_note(root: Path, session: Session) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "AGENTS.md").write_text("Use tabs.\n")
    with session.judge(Edit.write("sub/b.txt", "b\n")) as permit:
        (root / "sub" / "b.txt").write_text("b\n// formatted\n")
    assert "// formatted" in permit.note and "Use tabs." in permit.note
    assert session.instructions_if_new("sub") is None


def test_an_edit_that_failed_is_not_recorded(root: Path, session: Session) -> None:
    session.read("a.txt")
    with pytest.raises(ZeroDivisionError), session.judge(Edit.write("a.txt", "new\n")):
        raise ZeroDivisionError
    with pytest.raises(surehand.NoChange):
        session.undo()
    session.edit(Edit.replace("a.txt", "one", "1"))


def test_edits_that_others_make_first_are_rebased(root: Path) -> None:
    with Workspace(root, settings={"policy.on_change": "rebase"}) as workspace:
        session = workspace.session()
        session.read("a.txt")
        (root / "a.txt").write_text("zero\n" + TEXT)
        permit = session.judge(Edit.replace("a.txt", "two", "2"))
        assert "zero" in permit.note
        (root / "a.txt").write_text("zero\none\n2\nthree\n")
        assert session.adopt(permit) == ""
        with pytest.raises(surehand.InvalidArgumentError):
            workspace.session().adopt(permit)


def test_lines_that_were_shown_count_until_they_are_forgotten(root: Path, session: Session) -> None:
    assert session.shown("a.txt", "two\nnever", start=2) == 1
    assert session.shown(root / "a.txt", TEXT) == 3
    session.forget([Path("a.txt")])
    with pytest.raises(surehand.Unread):
        session.edit(Edit.replace("a.txt", "two", "2"))
    session.read("a.txt")
    session.forget()
    with pytest.raises(surehand.Unread):
        session.judge(Edit.write("a.txt", ""))


def test_undo_takes_back_what_was_asked_for(root: Path, session: Session) -> None:
    session.read("a.txt")
    first = session.edit(Edit.replace("a.txt", "one", "1")).result["change"]
    session.edit(Edit.write("b.txt", "b\n"))
    session.undo("a.txt")
    assert (root / "a.txt").read_text() == TEXT and (root / "b.txt").exists()
    session.undo(redo=True)
    session.undo(change=first)
    assert (root / "a.txt").read_text() == TEXT
    (root / "b.txt").write_text("theirs\n")
    with pytest.raises(surehand.Stale):
        session.undo("b.txt")
    session.undo("b.txt", force=True)
    assert not (root / "b.txt").exists()


def test_a_models_call_is_always_answered(workspace: Workspace) -> None:
    session = workspace.session(tools={"read_file": "view", "edit_file": "edit"})
    assert [tool.name for tool in session.tools()] == ["view", "edit"]
    schema = session.tools()[1].input_schema
    assert set(schema["properties"]) == {"path", "old_string", "new_string", "replace_all"}
    edit = {"path": "a.txt", "old_string": "two", "new_string": "2"}
    refused = session.call("edit", edit)
    assert isinstance(refused.refusal, surehand.Unread) and "view first" in refused.text
    session.call("view", {"path": "a.txt"})
    assert session.call("edit", edit).refusal is None
    assert isinstance(session.call("fly", {}).refusal, surehand.BadArguments)
    assert [tool.name for tool in workspace.session(tools=["read_file"]).tools()] == ["read_file"]
    assert len(workspace.session().tools()) > 10


def test_the_state_is_for_a_prompt_and_for_programs(workspace: Workspace, session: Session) -> None:
    session.call("update_tasks", {"add": [{"description": "Write it"}]})
    session.edit(Edit.write("b.txt", "b\n"))
    state = session.repo_state()
    assert "Write it" in state.format_for_prompt() and str(state) == state.format_for_prompt()
    data = state.to_dict()
    assert [file["path"] for file in data["files"]] == ["b.txt"]
    assert data["open_tasks"][0]["description"] == "Write it"
    assert "b.txt" in workspace.repo_state().to_json()
