//! The lines of one session among those of others: `diff --session` and `commit --session`.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::Output,
};

use insta::assert_snapshot;
use serde_json::json;

use crate::{
    attribution::{call, edit},
    going_back::{PROGRAM, Stage},
    people::transcript,
};

/// A person's repository with a file of twenty lines.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.shell("git config user.name p && git config user.email p@q");
    let lines: String = (1..=20).map(|line| format!("line {line}.\n")).collect();
    stage.write("a.txt", lines, 0o644);
    stage.commit();
    stage
}

fn replace(stage: &Stage, path: &str, old: &str, new: &str) {
    let text = fs::read_to_string(stage.at(path)).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{old}");
    fs::write(stage.at(path), text.replace(old, new)).unwrap();
}

#[track_caller]
fn git(stage: &Stage, arguments: &[&str]) -> String {
    let output = stage.command("git").args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines that a diff adds and removes.
fn changed(diff: &str) -> Vec<String> {
    let lines = diff.lines().filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"));
    lines.map(str::to_owned).collect()
}

#[track_caller]
fn commit(stage: &Stage, session: &str) -> Output {
    let output = stage.surehand(&["commit", "--session", session, "-m", "work"]);
    assert!(output.status.success(), "{output:?}");
    output
}

fn hook(stage: &Stage, name: &str, script: &str) {
    stage.write(&format!(".git/hooks/{name}"), format!("#!/bin/sh\n{script}\n"), 0o755);
}

#[test]
fn a_diff_shows_the_lines_of_a_session_and_a_commit_contains_them() {
    let stage = stage();
    edit(&stage, "alice", "a.txt", "line 3.", "line three.");
    edit(&stage, "bob", "a.txt", "line 10.", "line ten.\nand a half");
    replace(&stage, "a.txt", "line 18.", "a person");
    call(&stage, "alice", "write_file", &json!({ "path": "new.txt", "content": "hello\nworld" }));
    assert_snapshot!(transcript(&stage, &["diff", "--session", "alice"]), @r"
    $ surehand diff --session alice
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,6 +1,6 @@
     line 1.
     line 2.
    -line 3.
    +line three.
     line 4.
     line 5.
     line 6.
    diff --git a/new.txt b/new.txt
    new file mode 100644
    --- /dev/null
    +++ b/new.txt
    @@ -0,0 +1,2 @@
    +hello
    +world
    \ No newline at end of file
    [exit 0]
    ");
    commit(&stage, "alice");
    let expected = ["-line 3.", "+line three.", "+hello", "+world"];
    assert_eq!(changed(&git(&stage, &["show", "--format="])), expected);
    assert_eq!(git(&stage, &["status", "--porcelain"]), " M a.txt\n");
    assert_eq!(changed(&git(&stage, &["diff"])), ["-line 10.", "+line ten.", "+and a half", "-line 18.", "+a person"]);
    assert_snapshot!(transcript(&stage, &["commit", "--session", "alice", "-m", "again"]), @"
    $ surehand commit --session alice -m again
    [standard error]
    error: there is nothing to commit
    [exit 1]
    ");
    assert_snapshot!(transcript(&stage, &["diff", "--session", "alice"]), @"
    $ surehand diff --session alice
    [standard error]
    note: alice has nothing left to commit; --committed also shows what is committed
    [exit 0]
    ");
    let all = stage.surehand(&["diff", "--session", "alice", "--committed"]).stdout;
    assert_eq!(changed(&String::from_utf8(all).unwrap()), expected);
}

#[test]
fn what_cannot_be_told_apart_is_left_out_and_named() {
    let stage = stage();
    replace(&stage, "a.txt", "line 2.", "a person");
    edit(&stage, "alice", "a.txt", "a person", "alice");
    edit(&stage, "alice", "a.txt", "line 5.", "five\nfive and a half");
    edit(&stage, "bob", "a.txt", "five and a half", "bob's half");
    edit(&stage, "alice", "a.txt", "line 10.", "ten");
    edit(&stage, "bob", "a.txt", "line 15.", "bob\nbob again");
    edit(&stage, "alice", "a.txt", "bob\n", "bob\nalice between\n");
    stage.write("person.txt", "one\ntwo\n", 0o644);
    edit(&stage, "alice", "person.txt", "two", "2");
    stage.write(".git/info/exclude", "*.log\n", 0o644);
    call(&stage, "alice", "write_file", &json!({ "path": "x.log", "content": "x\n" }));
    assert_snapshot!(transcript(&stage, &["commit", "--session", "alice", "--dry-run"]), @r"
    $ surehand commit --session alice --dry-run
    diff --git a/a.txt b/a.txt
    index 2ba14fedc0738b618d7fa97ad302e77fe59cebc8..647158a582bd10ef03ca35401f5ac10abb75e258 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -7,7 +7,7 @@ line 6.
     line 7.
     line 8.
     line 9.
    -line 10.
    +ten
     line 11.
     line 12.
     line 13.
    [standard error]
    note: a.txt, line 2: left out, because this replaced lines of a person or another program that are not committed
    note: a.txt, line 5 and the removal of 1 line: left out, because bob changed this since
    note: a.txt, line 17: left out, because this is among lines of bob that are not committed
    note: person.txt: left out, because others made the file and it is not committed; commit it first
    note: x.log: left out, because git ignores it
    [exit 0]
    ");
    let left = stage.json(&["commit", "--session", "alice", "-m", "x"])["left"].clone();
    let why = |file: usize, nth: usize| left[file]["left"][nth]["why"].as_str().unwrap().to_owned();
    assert_eq!([why(0, 0), why(0, 1), why(0, 2)], ["replaces_others", "replaced_by_others", "among_others"]);
    assert_eq!([why(1, 0), why(2, 0)], ["not_committed", "ignored"]);
    assert_eq!(left[0]["left"][1]["others"][0]["session"], "bob");
    assert_eq!(changed(&git(&stage, &["show", "--format="])), ["-line 10.", "+ten"]);
    // Lines that others have committed are no obstacle any more.
    stage.shell("git add person.txt && git commit -qm person");
    edit(&stage, "alice", "person.txt", "one", "1");
    commit(&stage, "alice");
    assert_eq!(changed(&git(&stage, &["show", "--format="])), ["-one", "+1"]);
}

#[test]
fn a_partly_staged_index_stays_as_it_is() {
    let stage = stage();
    replace(&stage, "a.txt", "line 18.", "staged");
    stage.write("ready.txt", "ready\n", 0o644);
    stage.shell("git add a.txt ready.txt");
    replace(&stage, "a.txt", "line 20.", "not staged");
    stage.write("intended.txt", "intended\n", 0o644);
    stage.shell("git add --intent-to-add intended.txt");
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    edit(&stage, "bob", "a.txt", "line 10.", "ten");
    let staged = changed(&git(&stage, &["diff", "--cached"]));
    let work = fs::read(stage.at("a.txt")).unwrap();
    commit(&stage, "alice");
    assert_eq!(changed(&git(&stage, &["show", "--format="])), ["-line 3.", "+three"]);
    assert_eq!(changed(&git(&stage, &["diff", "--cached"])), staged);
    assert_eq!(fs::read(stage.at("a.txt")).unwrap(), work);
    assert_eq!(git(&stage, &["status", "--porcelain"]), "MM a.txt\n A intended.txt\nA  ready.txt\n");
    // Directly beside the lines of the session.
    edit(&stage, "alice", "a.txt", "line 6.", "line 6.\nalice");
    replace(&stage, "a.txt", "alice\n", "alice\na person\n");
    stage.shell("git add a.txt");
    edit(&stage, "alice", "a.txt", "line 8.", "eight");
    commit(&stage, "alice");
    assert_eq!(changed(&git(&stage, &["show", "--format="])), ["+alice", "-line 8.", "+eight"]);
    let index = git(&stage, &["show", ":a.txt"]);
    assert!(index.contains("line 6.\nalice\na person\nline 7.\neight\n"), "{index}");
}

#[test]
fn without_a_commit_the_index_is_as_it_was_byte_for_byte() {
    let stage = stage();
    stage.write("intended.txt", "intended\n", 0o644);
    stage.shell("git add --intent-to-add intended.txt");
    replace(&stage, "a.txt", "line 18.", "staged");
    stage.shell("git add a.txt");
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    hook(&stage, "pre-commit", "git diff --cached --stat >&2; exit 1");
    let index = fs::read(stage.at(".git/index")).unwrap();
    assert_snapshot!(transcript(&stage, &["commit", "--session", "alice", "-m", "x"]), @"
    $ surehand commit --session alice -m x
    [standard error]
     a.txt | 2 +-
     1 file changed, 1 insertion(+), 1 deletion(-)
    error: git made no commit; the index is as it was
    [exit 1]
    ");
    fs::remove_file(stage.at(".git/hooks/pre-commit")).unwrap();
    stage.shell("git config --unset user.email && git config user.useConfigOnly true");
    let output = stage.surehand(&["commit", "--session", "alice", "-m", "x"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("user.email"), "{output:?}");
    assert_eq!(fs::read(stage.at(".git/index")).unwrap(), index);
    assert!(!stage.at(".git/index.lock").exists());
    assert_eq!(git(&stage, &["rev-list", "--count", "HEAD"]), "1\n");
}

#[test]
fn hooks_change_files_and_messages_as_they_do_for_git() {
    let stage = stage();
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    hook(&stage, "pre-commit", "sed -i s/three/THREE/ a.txt && git add a.txt && echo made > made && git add made");
    hook(&stage, "commit-msg", "echo 'Reviewed-by: a hook' >> $1");
    assert_snapshot!(transcript(&stage, &["commit", "--session", "alice", "-m", "one", "-m", "two"]), @"
    $ surehand commit --session alice -m one -m two
    committed {id}: 1 file, +1 -1; a hook added 1 file
    [exit 0]
    ");
    assert_eq!(git(&stage, &["log", "-1", "--format=%B"]), "one\n\ntwo\nReviewed-by: a hook\n\n");
    assert_eq!(changed(&git(&stage, &["show", "--format="])), ["-line 3.", "+THREE", "+made"]);
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
}

#[test]
fn a_commit_of_another_in_between_is_not_taken_back() {
    let stage = stage();
    stage.write("b.txt", "b\n", 0o644);
    stage.commit();
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    let other = "[ -e .git/once ] && exit 0\ntouch .git/once\nunset GIT_INDEX_FILE\n\
                 echo other > b.txt && git commit -q --no-verify -m other b.txt";
    hook(&stage, "pre-commit", other);
    commit(&stage, "alice");
    assert_eq!(git(&stage, &["log", "--format=%s"]), "work\nother\nx\nx\n");
    assert_eq!(git(&stage, &["show", "HEAD:b.txt"]), "other\n");
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
}

#[test]
fn a_merge_in_progress_is_not_ended() {
    let stage = stage();
    stage.shell("git checkout -qb side && sed -i s/20/twenty/ a.txt && git commit -qam side && git checkout -q trunk");
    stage.shell("sed -i 's/line 1\\./one/' a.txt && git commit -qam main && git merge -q --no-commit side");
    edit(&stage, "alice", "a.txt", "line 9.", "nine");
    assert_snapshot!(transcript(&stage, &["commit", "--session", "alice", "-m", "x"]), @"
    $ surehand commit --session alice -m x
    [standard error]
    error: a merge is in progress; finish or abort it first
    [exit 1]
    ");
    assert!(stage.at(".git/MERGE_HEAD").exists());
}

/// All kinds of changes by a session.
fn make_changes(stage: &Stage) {
    stage.write("moved.txt", (1..30).map(|line| format!("m{line}\n")).collect::<String>(), 0o644);
    stage.write("gone.txt", "gone\n", 0o644);
    stage.write("crlf.txt", "x\r\ny\r\nz\r\n", 0o644);
    stage.write("end.txt", "no newline", 0o644);
    stage.write("run.sh", "#!/bin/sh\necho\n", 0o755);
    stage.write("dír ü/ö \"q\".txt", "ä\n", 0o644);
    stage.write("utf16.txt", b"\xff\xfea\0\n\0b\0\n\0", 0o644);
    stage.write("bin", b"\0\x01\x02", 0o644);
    stage.write("old-bin", b"\0\x03", 0o644);
    stage.write("dir", "a file that becomes a directory\n", 0o644);
    symlink("a.txt", stage.at("link")).unwrap();
    stage.commit();
    let moved = |from: &str, to: &str| call(stage, "alice", "move_file", &json!({ "from": from, "to": to }));
    let deleted = |path: &str| {
        call(stage, "alice", "read_file", &json!({ "path": path }));
        call(stage, "alice", "delete_file", &json!({ "path": path }));
    };
    edit(stage, "alice", "moved.txt", "m3\n", "three\n");
    moved("moved.txt", "sub/new.txt");
    deleted("gone.txt");
    deleted("dir");
    call(stage, "alice", "write_file", &json!({ "path": "dir/x.txt", "content": "x\n" }));
    call(stage, "alice", "write_file", &json!({ "path": "nl\nname", "content": "x\n" }));
    call(stage, "alice", "write_file", &json!({ "path": "new.sh", "content": "#!/bin/sh\n" }));
    fs::set_permissions(stage.at("new.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    for (path, old, new) in [
        ("crlf.txt", "y", "Y"),
        ("end.txt", "no newline", "no newline\nstill none"),
        ("run.sh", "echo", "echo hi"),
        ("dír ü/ö \"q\".txt", "ä", "Ä"),
        ("utf16.txt", "b", "B"),
    ] {
        edit(stage, "alice", path, old, new);
    }
    moved("bin", "bin2");
    call(stage, "alice", "delete_file", &json!({ "path": "old-bin" }));
}

#[test]
fn a_patch_applies_and_a_commit_has_every_kind_of_change() {
    let stage = stage();
    make_changes(&stage);
    edit(&stage, "bob", "sub/new.txt", "m20\n", "bob\n");
    let expected = git(&stage, &["rev-parse", "HEAD"]);
    let patch = stage.surehand(&["diff", "--session", "alice", "--patch"]).stdout;
    let dry_run = stage.surehand(&["commit", "--session", "alice", "--dry-run"]).stdout;
    assert_eq!(patch, dry_run);
    fs::write(stage.at(".git/patch"), &patch).unwrap();
    stage.shell("git worktree add -q --detach ../other HEAD && git -C ../other apply --index \"$PWD/.git/patch\"");
    let applied = git(&stage, &["-C", "../other", "write-tree"]);
    assert_eq!(git(&stage, &["rev-parse", "HEAD"]), expected);
    commit(&stage, "alice");
    assert_eq!(git(&stage, &["rev-parse", "HEAD^{tree}"]), applied);
    assert_eq!(git(&stage, &["status", "--porcelain"]), " M sub/new.txt\n");
    let expected = "R100\tbin\tbin2\nM\tcrlf.txt\nD\tdir\nA\tdir/x.txt\nM\t\"d\\303\\255r \\303\\274/\\303\\266 \\\"q\\\".txt\"\nM\tend.txt\n\
                    D\tgone.txt\nA\tnew.sh\nA\t\"nl\\nname\"\nD\told-bin\nM\trun.sh\nR094\tmoved.txt\tsub/new.txt\nM\tutf16.txt\n";
    assert_eq!(git(&stage, &["show", "--format=", "--name-status", "-M"]), expected);
    assert_eq!(git(&stage, &["ls-tree", "HEAD", "new.sh", "run.sh"]).matches("100755").count(), 2);
}

#[test]
fn what_git_converts_is_stored_as_git_stores_it() {
    let stage = stage();
    stage.shell("git config core.autocrlf true");
    stage.shell("git config filter.up.clean 'tr a-z A-Z' && git config filter.up.smudge 'tr A-Z a-z'");
    stage.shell("git config filter.drop.clean \"grep -v '^#'\" && git config filter.drop.smudge cat");
    stage.write(".gitattributes", "*.up filter=up -text\n*.drop filter=drop -text\n", 0o644);
    stage.write("ends.txt", "a\r\nb\r\nc\r\nd\r\ne\r\n", 0o644);
    stage.write("x.up", "one\ntwo\nthree\nfour\n", 0o644);
    stage.write("x.drop", "#dropped\nx1\nx2\nx3\nx4\n", 0o644);
    stage.commit();
    for (path, old, new) in [("ends.txt", "b", "B"), ("x.up", "two", "zwei"), ("x.drop", "x2", "y2")] {
        edit(&stage, "alice", path, old, new);
    }
    replace(&stage, "ends.txt", "e\r\n", "E\r\n");
    replace(&stage, "x.up", "four", "vier");
    replace(&stage, "x.drop", "x4", "z4");
    call(&stage, "alice", "write_file", &json!({ "path": "new.up", "content": "neu\n" }));
    commit(&stage, "alice");
    let lines = changed(&git(&stage, &["show", "--format="]));
    assert_eq!(lines, ["-b", "+B", "+NEU", "-x2", "+y2", "-TWO", "+ZWEI"]);
    assert_eq!(git(&stage, &["status", "--porcelain"]), " M ends.txt\n M x.drop\n M x.up\n");
}

#[test]
fn the_first_commit_and_a_detached_one() {
    let stage = Stage::new();
    stage.shell("git config user.name p && git config user.email p@q");
    call(&stage, "alice", "write_file", &json!({ "path": "a.txt", "content": "one\ntwo\n" }));
    replace(&stage, "a.txt", "two\n", "two\nmine\n");
    stage.write("mine.txt", "mine\n", 0o644);
    stage.shell("git add mine.txt");
    commit(&stage, "alice");
    assert_eq!(git(&stage, &["show", "HEAD:a.txt"]), "one\ntwo\n");
    assert_eq!(git(&stage, &["status", "--porcelain"]), " M a.txt\nA  mine.txt\n");
    stage.shell("git checkout -q --detach");
    edit(&stage, "alice", "a.txt", "one", "1");
    commit(&stage, "alice");
    assert_eq!(git(&stage, &["rev-list", "--count", "HEAD"]), "2\n");
    assert_eq!(git(&stage, &["rev-list", "--count", "trunk"]), "1\n");
}

#[test]
fn submodules_sparse_checkouts_and_worktrees() {
    let stage = stage();
    stage.write("d/d.txt", "d\n", 0o644);
    stage.commit();
    stage.shell("git init -q ../sub && git -C ../sub -c user.name=p -c user.email=p@q commit -q --allow-empty -m s");
    stage.shell("git -c protocol.file.allow=always submodule --quiet add \"$PWD/../sub\" sub && git commit -qm sub");
    call(&stage, "alice", "write_file", &json!({ "path": "sub/s.txt", "content": "s\n" }));
    stage.shell("git sparse-checkout set --cone nothing");
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    let output = commit(&stage, "alice");
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("sub/s.txt: left out, because it belongs to a submodule or another repository")
    );
    assert_eq!(git(&stage, &["show", "--format=", "--name-only"]), "a.txt\n");
    assert!(git(&stage, &["ls-tree", "-r", "--name-only", "HEAD"]).contains("d/d.txt"));
    stage.shell("git worktree add -q ../second -b second");
    let second = stage.at("../second");
    let surehand = |words: &[&str]| stage.command(PROGRAM).current_dir(&second).args(words).output().unwrap();
    surehand(&["call", "read_file", r#"{"path":"a.txt"}"#, "--session", "zed"]);
    surehand(&["call", "edit_file", r#"{"path":"a.txt","old_string":"line 9.","new_string":"nine"}"#, "--session", "zed"]);
    assert!(surehand(&["commit", "--session", "zed", "-m", "second"]).status.success());
    assert_eq!(git(&stage, &["log", "-1", "--format=%s", "second"]), "second\n");
    assert_eq!(git(&stage, &["log", "-1", "--format=%s"]), "work\n");
}

#[test]
fn only_the_paths_that_are_named() {
    let stage = stage();
    stage.write("s/b.txt", "b\n", 0o644);
    stage.write("s/t/c.txt", "c\n", 0o644);
    stage.commit();
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    edit(&stage, "alice", "s/b.txt", "b", "B");
    edit(&stage, "alice", "s/t/c.txt", "c", "C");
    let in_s = |words: &[&str]| stage.command(PROGRAM).current_dir(stage.at("s")).args(words).output().unwrap();
    assert!(in_s(&["commit", "--session", "alice", "-m", "x", "t"]).status.success());
    assert_eq!(git(&stage, &["show", "--format=", "--name-only"]), "s/t/c.txt\n");
    assert!(in_s(&["commit", "--session", "alice", "-m", "x", "--", "../a.txt"]).status.success());
    assert_eq!(git(&stage, &["show", "--format=", "--name-only"]), "a.txt\n");
    assert_eq!(git(&stage, &["status", "--porcelain"]), " M s/b.txt\n");
}

#[test]
fn an_undo_is_not_the_work_of_another() {
    let stage = stage();
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    edit(&stage, "alice", "a.txt", "line 9.", "nine");
    let last = stage.json(&["log", "-n", "1"])[0]["change"].as_str().unwrap().to_owned();
    edit(&stage, "bob", "a.txt", "line 12.", "twelve");
    let lines = || changed(&String::from_utf8(stage.surehand(&["diff", "--session", "alice"]).stdout).unwrap());
    stage.json(&["undo", &last]);
    assert_eq!(lines(), ["-line 3.", "+three"]);
    stage.json(&["redo"]);
    assert_eq!(lines(), ["-line 3.", "+three", "-line 9.", "+nine"]);
    stage.json(&["undo", "--session", "alice"]);
    assert_eq!(lines(), [""; 0]);
}

#[test]
fn what_a_restore_brings_back_is_the_work_of_those_who_wrote_it() {
    for loss in ["rm a.txt", "git checkout -q a.txt", "echo of a script > a.txt"] {
        let stage = stage();
        edit(&stage, "alice", "a.txt", "line 3.", "three");
        // Only the checkpoint contains this change.
        replace(&stage, "a.txt", "line 9.", "a person");
        let before = fs::read(stage.at("a.txt")).unwrap();
        stage.json(&["checkpoint", "kept"]);
        stage.shell(loss);
        let restored = stage.surehand(&["restore", "--to", "kept", "--yes"]);
        assert!(restored.status.success(), "{restored:?}");
        assert_eq!(fs::read(stage.at("a.txt")).unwrap(), before);
        let blame = String::from_utf8(stage.surehand(&["blame", "a.txt"]).stdout).unwrap();
        let by = |line: &str| blame.lines().find(|shown| shown.ends_with(line)).unwrap().to_owned();
        assert!(by("three").contains(" alice ") && by("a person").contains(" outside "), "{loss}: {blame}");
        commit(&stage, "alice");
        assert_eq!(changed(&git(&stage, &["show", "HEAD"])), ["-line 3.", "+three"], "{loss}");
        assert_eq!(changed(&git(&stage, &["diff", "HEAD"])), ["-line 9.", "+a person"], "{loss}");
    }
}

#[test]
fn without_git_there_is_a_diff_and_no_commit() {
    let stage = stage();
    fs::remove_dir_all(stage.at(".git")).unwrap();
    edit(&stage, "alice", "a.txt", "line 3.", "three");
    edit(&stage, "bob", "a.txt", "line 9.", "nine");
    let patch = String::from_utf8(stage.surehand(&["diff", "--session", "alice", "--patch"]).stdout).unwrap();
    assert_eq!(changed(&patch), ["-line 3.", "+three"]);
    assert_snapshot!(transcript(&stage, &["commit", "--session", "alice", "-m", "x"]), @"
    $ surehand commit --session alice -m x
    [standard error]
    error: this is not a git work tree
    [exit 2]
    ");
}

#[test]
fn permissions_that_a_session_set_are_its_work() {
    let stage = stage();
    for (path, content) in
        [("run.sh", &b"go\n"[..]), ("tool.bin", &b"\0\x01\xff"[..]), ("of_person.sh", b"no\n"), ("both.sh", b"b\n")]
    {
        stage.write(path, content, 0o644);
    }
    stage.commit();
    stage.agent_runs("chmod 755 run.sh tool.bin && sed -i s/b/B/ both.sh && chmod +x both.sh");
    fs::set_permissions(stage.at("of_person.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    stage.agent_runs("echo more >> of_person.sh");
    replace(&stage, "run.sh", "go", "go on");
    assert_snapshot!(transcript(&stage, &["diff", "--session", "s1"]), @"
    $ surehand diff --session s1
    diff --git a/both.sh b/both.sh
    old mode 100644
    new mode 100755
    --- a/both.sh
    +++ b/both.sh
    @@ -1,1 +1,1 @@
    -b
    +B
    diff --git a/of_person.sh b/of_person.sh
    --- a/of_person.sh
    +++ b/of_person.sh
    @@ -1,1 +1,2 @@
     no
    +more
    diff --git a/run.sh b/run.sh
    old mode 100644
    new mode 100755
    diff --git a/tool.bin b/tool.bin
    old mode 100644
    new mode 100755
    [exit 0]
    ");
    let patch = stage.surehand(&["diff", "--session", "s1", "--patch"]).stdout;
    fs::write(stage.at(".git/s1.patch"), patch).unwrap();
    git(&stage, &["apply", "--check", "-R", "--include=tool.bin", ".git/s1.patch"]);
    commit(&stage, "s1");
    let committed = git(&stage, &["show", "--format=", "--summary"]);
    assert_eq!(
        committed,
        " mode change 100644 => 100755 both.sh\n mode change 100644 => 100755 run.sh\n mode change 100644 => 100755 tool.bin\n"
    );
    // The change of the person is left.
    assert_eq!(git(&stage, &["diff", "--summary"]), " mode change 100644 => 100755 of_person.sh\n");
    assert_eq!(changed(&git(&stage, &["diff"])), ["-go", "+go on"]);
}

#[test]
fn permissions_that_a_command_set_come_back_by_undo() {
    let stage = stage();
    stage.write("run.sh", "go\n", 0o644);
    stage.write("old.sh", "old\n", 0o640);
    stage.commit();
    let mode = |path: &str| fs::symlink_metadata(stage.at(path)).unwrap().permissions().mode() & 0o7777;
    stage.agent_runs("chmod 700 run.sh");
    let undo = |words: &[&str]| assert!(stage.surehand(&[&["undo"], words].concat()).status.success(), "{words:?}");
    undo(&[]);
    assert_eq!(mode("run.sh"), 0o644);
    assert!(stage.surehand(&["redo"]).status.success());
    assert_eq!(mode("run.sh"), 0o700);
    // Together with other work of the session: edits, a new file, and a removed one.
    stage.agent_runs("echo more >> run.sh");
    stage.agent_runs("echo new > new.sh");
    stage.agent_runs("chmod 755 new.sh old.sh");
    stage.agent_runs("rm old.sh");
    undo(&["--session", "s1"]);
    assert_eq!((mode("run.sh"), mode("old.sh")), (0o644, 0o640));
    assert_eq!(fs::read_to_string(stage.at("run.sh")).unwrap(), "go\n");
    assert!(!stage.at("new.sh").exists());
}
