//! Commands that run without a question, with real processes that try to do harm. Where the kernel cannot confine a
//! command, these tests print that and check nothing.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use surehand_agent::{
    CancelToken, Secrets,
    command::{
        Approval, Approver, CommandLimits, CommandOutcome, CommandRequest, CommandWatch, ConfinementSupport, NotRun,
        confinement_support, run_command,
    },
};
use surehand_engine::{CommandConfig, Config, Durability, Session, StateHome, ToolNames, Workspace};
use tempfile::TempDir;

/// Approves every command, confined.
struct Confined;

impl Approver for Confined {
    fn approve(&mut self, _: &CommandRequest<'_>) -> Approval {
        Approval::Confined
    }
}

/// A workspace in a repository that git made, and another directory of the same user.
struct Place {
    outer: TempDir,
    session: Session,
}

/// `None` where commands cannot be confined.
fn place() -> Option<Place> {
    place_with(CommandConfig::default())
}

fn place_with(commands: CommandConfig) -> Option<Place> {
    if let ConfinementSupport::Missing { why } = confinement_support() {
        eprintln!("not tested: {why}");
        return None;
    }
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    for directory in ["root/src", "root/target", "home/.config/surehand", "home/.state", "home/cache"] {
        fs::create_dir_all(outer.path().join(directory)).unwrap();
    }
    git(&root, &["init", "-q"]);
    git(&root, &["config", "user.email", "a@example.org"]);
    git(&root, &["config", "user.name", "A"]);
    for (path, content) in
        [("root/a.txt", "one\n"), ("root/src/b.txt", "two\n"), ("root/surehand.toml", ""), ("home/c.txt", "three\n")]
    {
        fs::write(outer.path().join(path), content).unwrap();
    }
    git(&root, &["add", "a.txt"]);
    git(&root, &["commit", "-q", "-m", "begin"]);
    Some(Place { session: open(&outer, commands), outer })
}

fn open(outer: &TempDir, commands: CommandConfig) -> Session {
    let home = outer.path().join("home");
    let state = StateHome {
        user: Some(home.join(".state/surehand")),
        settings: Some(home.join(".config/surehand")),
        home: Some(home),
        ..StateHome::default()
    };
    let config = Config { durability: Durability::Fast, commands, state, ..Config::default() };
    Session::new(Workspace::open(&outer.path().join("root"), config).unwrap())
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    let output = git.current_dir(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Place {
    fn path(&self, path: &str) -> PathBuf {
        self.outer.path().join(path)
    }

    fn outcome(&mut self, arguments: &Value) -> CommandOutcome {
        let (limits, secrets) = (CommandLimits::from(&CommandConfig::default()), Secrets::default());
        let watch = CommandWatch { cancel: &CancelToken::default(), output: None };
        run_command(&mut self.session, arguments, &mut Confined, &limits, &secrets, watch)
    }

    fn run(&mut self, line: &str) -> String {
        let outcome = self.outcome(&json!({ "command": line }));
        assert!(!matches!(outcome, CommandOutcome::NotRun { why: NotRun::Refused(_), .. }), "{line}: {}", outcome.text(&names()));
        outcome.text(&names())
    }

    /// Runs a line that must succeed.
    #[track_caller]
    fn works(&mut self, line: &str) -> String {
        let text = self.run(line);
        assert!(text.starts_with("exit code 0\n"), "{line}: {text}");
        text
    }

    /// Runs a line that must fail and change nothing outside of the workspace's directories.
    #[track_caller]
    fn fails(&mut self, line: &str) -> String {
        let before = self.guarded();
        let text = self.run(line);
        assert!(!text.starts_with("exit code 0\n"), "{line}: {text}");
        assert_eq!(self.guarded(), before, "{line}: {text}");
        text
    }

    /// Everything that must stay unchanged: paths with contents, except for the files that Surehand and git themselves
    /// write.
    fn guarded(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let is_free = |path: &Path| ["root/src", "root/target", "root/.git/surehand"].iter().any(|free| path == self.path(free));
        let mut left = vec![self.outer.path().to_owned()];
        while let Some(path) = left.pop() {
            if path == self.path("root/.surehand") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let content = match () {
                () if meta.is_dir() => String::new(),
                () if meta.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
                () => format!("{:?}", fs::read(&path).unwrap()),
            };
            if meta.is_dir() && !is_free(&path) {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            found.push((path, content));
        }
        found.sort();
        found
    }
}

fn names() -> ToolNames {
    ToolNames::default()
}

#[test]
fn a_confined_command_works_in_the_directories_of_the_workspace() {
    let Some(mut place) = place() else { return };
    let text = place.works("cat a.txt; echo 1 > a.txt; echo new > src/new; mkdir -p src/deep/er; mv src/new target/; ln -s ../a.txt src/link; rm src/b.txt; cat /etc/passwd > /dev/null; mkfifo src/pipe; ln target/new src/hard; truncate -s 1 target/new; echo e >&2; echo x > /dev/stderr");
    assert!(text.starts_with("exit code 0\none\ne\nx\n"), "{text}");
    assert_eq!(fs::read_to_string(place.path("root/a.txt")).unwrap(), "1\n");
    assert!(place.path("root/target/new").exists() && !place.path("root/src/b.txt").exists());
    place.works("sort a.txt | uniq -c && git status && git diff && git log -1");
}

#[test]
fn it_has_a_directory_for_temporary_files_that_goes_with_it() {
    let Some(mut place) = place() else { return };
    let text = place.works("cd $TMPDIR && pwd && echo a > b && f=$(mktemp) && echo c > $f && mv b $f");
    let directory = text.lines().nth(1).unwrap();
    assert!(directory.contains("surehand-command-") && !Path::new(directory).exists(), "{text}");
    place.fails("echo a > /tmp/surehand-test-$$");
}

#[test]
fn it_writes_nowhere_else() {
    let Some(mut place) = place() else { return };
    symlink(place.path("home"), place.path("root/src/link")).unwrap();
    symlink(place.path("home/c.txt"), place.path("root/file-link")).unwrap();
    symlink(place.path("home"), place.path("root/dir-link")).unwrap();
    for line in [
        "echo 1 > ../home/c.txt",
        "echo 1 > src/link/c.txt",
        "echo 1 > file-link",
        "echo 1 > dir-link/new",
        "echo 1 >> ../home/c.txt",
        "truncate -s 0 ../home/c.txt",
        "dd of=../home/c.txt if=/dev/null 2>&1",
        ": 1<> ../home/c.txt",
        "rm -f ../home/c.txt",
        "mkdir ../home/new",
        "mkfifo ../home/new",
        "ln -s a ../home/new",
        "rmdir ../home/cache",
        "mv ../home/c.txt src/",
        "mv ../home/cache src/",
        "mv src ../home/",
        "mv src/b.txt ../home/c.txt",
        "ln ../home/c.txt src/hard && echo 1 > src/hard",
        "ln src/b.txt ../home/new",
        "sed -i s/three/3/ ../home/c.txt",
        "sed 'w ../home/new' a.txt",
        "sort a.txt -o ../home/c.txt",
        "tar cf ../home/new a.txt",
        "tar cf src/x.tar a.txt && tar xf src/x.tar --to-command='cat > ../home/new'",
        "find src -exec cp a.txt ../home/c.txt ';' -quit; test one = \"$(cat ../home/c.txt)\"",
        "git diff --no-index --output=../home/new a.txt src/b.txt; test -e ../home/new",
        "cat > ../home/new <<E\na\nE",
        "echo $(echo a > ../home/new); test -e ../home/new",
        "true\necho a > ../home/new",
        "cp a.txt /etc/surehand-test",
        "mknod src/device c 1 5",
        "mknod src/disk b 254 0",
        "echo 1 > /proc/sys/kernel/ns_last_pid",
        "mount -t tmpfs none src",
        "unshare -Urm sh -c 'mount -t tmpfs none src'",
        "unshare -Ur sh -c 'echo 1 > ../home/c.txt'",
        "sudo -n sh -c 'echo 1 > ../home/c.txt'",
        "su -c 'echo 1 > ../home/c.txt'",
        "sh -c 'sh -c \"echo 1 > ../home/c.txt\"'",
        "chroot . /bin/sh -c true",
    ] {
        place.fails(line);
    }
    assert_eq!(fs::read_to_string(place.path("home/c.txt")).unwrap(), "three\n");
}

#[test]
fn what_runs_on_is_confined_too() {
    let Some(mut place) = place() else { return };
    let before = place.guarded();
    place.run("setsid -f sh -c 'echo 1 > ../home/c.txt; echo done > src/done' ; while ! test -s src/done; do :; done");
    place.run("(sh -c 'sleep 0.1; echo 1 > ../home/c.txt; echo done > src/later' &) ; while ! test -s src/later; do :; done");
    assert!(place.path("root/src/later").exists());
    assert_eq!(place.guarded(), before);
}

#[test]
fn what_belongs_to_git_and_to_surehand_cannot_be_written() {
    let Some(mut place) = place() else { return };
    fs::create_dir(place.path("root/.surehand")).unwrap_or_default();
    for line in [
        "git config core.fsmonitor 'touch src/ran'",
        "echo '[core] fsmonitor = touch src/ran' >> .git/config",
        "echo 'touch src/ran' > .git/hooks/post-commit",
        "mkdir -p .git/hooks; ln -s ../../src/hook .git/hooks/post-checkout",
        "ln src/b.txt .git/hooks/post-commit",
        "ln .git/hooks/pre-commit.sample .git/hooks/pre-commit",
        "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
        "mv src/b.txt .git/hooks/post-commit",
        "ln .git/config src/config && echo a >> src/config",
        "mv .git src/git",
        "mv .git git",
        "rm -rf .git",
        "rm -f .git/index",
        "mv .git/HEAD src/",
        ": > .git/index.lock",
        "mkdir .git/worktrees",
        "truncate -s 0 .git/index",
        "git commit -q --allow-empty -m x",
        "git checkout -q -b other",
        "git stash",
        "echo a > .git/surehand/state.db",
        "rm -r .git/surehand",
        "echo '[policy]' > surehand.toml",
        "rm -f surehand.toml",
        "mv surehand.toml src/",
        "echo a > .surehand/repostate.json",
        "rm -r .surehand",
        "echo a > .surehand.toml",
        "mkdir -p ../home/.state/surehand/roots",
        "echo '[commands]' > ../home/.config/surehand/surehand.toml",
        // The root directory itself.
        "echo a > new.txt",
        "mkdir new",
        "rm a.txt",
        "mv a.txt src/",
        "mv src/b.txt a.txt",
        "ln -s src new",
        "mv src moved",
        "rm -r target",
    ] {
        place.fails(line);
    }
    place.works("git status && git diff");
    assert!(!place.path("root/src/ran").exists());
}

/// Git reads the configuration of a submodule when it is called in the tree around it.
#[test]
fn submodules_and_linked_worktrees_keep_their_git() {
    let Some(mut place) = place() else { return };
    let (root, other) = (place.path("root"), place.path("other"));
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    git(&other, &["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "x"]);
    let other = other.display().to_string();
    git(&root, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &other, "lib/sub"]);
    fs::create_dir(root.join("lib/sub/code")).unwrap();
    fs::create_dir(root.join("lib/code")).unwrap();
    git(&root, &["worktree", "add", "-q", "trees/one"]);
    // In the index, but missing on the disk.
    git(&root, &["update-index", "--add", "--cacheinfo", "160000,0123456789012345678901234567890123456789,lib/none"]);
    fs::create_dir(root.join("lib/none")).unwrap();
    for line in [
        "echo 'gitdir: ../../src/evil' > lib/sub/.git",
        "rm lib/sub/.git",
        "mv lib/sub lib/gone",
        "mv lib src/",
        "mkdir lib/none/.git",
        "echo 'gitdir: ../../src/evil' > lib/none/.git",
        "rmdir lib/none",
        "echo 'gitdir: ../../src/evil' > trees/one/.git",
        "mv trees/one trees/gone",
        "git -C lib/sub config core.fsmonitor 'touch src/ran'",
    ] {
        place.fails(line);
    }
    place.works("echo a > lib/sub/code/x && echo b > lib/code/y && echo 1 > trees/one/a.txt");
}

#[test]
fn a_file_called_git_is_protected_like_a_directory() {
    let Some(place) = place() else { return };
    git(&place.path("root"), &["worktree", "add", "-q", "../tree"]);
    let Place { outer, session } = place;
    drop(session);
    fs::remove_dir_all(outer.path().join("root/src")).unwrap();
    fs::rename(outer.path().join("root"), outer.path().join("main")).unwrap();
    fs::rename(outer.path().join("tree"), outer.path().join("root")).unwrap();
    git(&outer.path().join("main"), &["worktree", "repair", "../root"]);
    fs::create_dir(outer.path().join("root/src")).unwrap();
    let session = open(&outer, CommandConfig::default());
    let mut place = Place { outer, session };
    for line in
        ["echo 'gitdir: src/evil' > .git", "rm .git", "mv .git src/", "git config core.fsmonitor x", "echo a > ../main/a.txt"]
    {
        let text = place.run(line);
        assert!(!text.starts_with("exit code 0\n"), "{line}: {text}");
    }
    place.works("git status && echo a > src/x");
}

#[test]
fn there_is_no_network_unless_it_is_allowed() {
    let line = "python3 -c 'import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(family, kind).close()
            print(\"made\")
        except PermissionError:
            print(\"refused\")
a, b = socket.socketpair()
a.send(b\"pair\")
print(b.recv(9).decode())'";
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("not tested: there is no python3");
        return;
    }
    let Some(mut place) = place() else { return };
    assert_eq!(place.works(line), format!("exit code 0\n{}pair\n", "refused\n".repeat(6)));
    let Some(mut place) = place_with(CommandConfig { network: true, ..CommandConfig::default() }) else { return };
    let text = place.works(line);
    assert!(text.contains("made\n") && text.ends_with("pair\n"), "{text}");
    place.fails("echo 1 > ../home/c.txt");
}

#[test]
fn other_processes_are_out_of_reach() {
    let Some(mut place) = place() else { return };
    let ConfinementSupport::InForce { not_covered } = confinement_support() else { return };
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = other.id();
    place.fails(&format!("cat /proc/{pid}/environ"));
    place.fails(&format!("test -w /proc/{pid}/mem && : 1<> /proc/{pid}/mem"));
    if not_covered.is_empty() {
        place.fails(&format!("kill {pid}"));
        place.fails("kill $PPID");
        assert_eq!(other.try_wait().unwrap(), None);
    }
    place.works("sleep 60 & kill $!");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn the_settings_can_add_what_may_be_written() {
    let cache = |outer: &TempDir| outer.path().join("home/cache").display().to_string();
    let Some(Place { outer, session }) = place() else { return };
    drop(session);
    fs::remove_dir(outer.path().join("root/target")).unwrap();
    let git_dir = outer.path().join("root/.git").display().to_string();
    let writable = vec![
        "target".to_owned(),
        "~/more".to_owned(),
        "~/.config".to_owned(),
        cache(&outer),
        git_dir,
        "/no/such/place".to_owned(),
    ];
    fs::create_dir_all(outer.path().join("home/more/a")).unwrap();
    let mut place = Place { session: open(&outer, CommandConfig { writable, ..CommandConfig::default() }), outer };
    place.works("echo a > target/a && echo b > ../home/cache/b && echo c > ../home/more/a/c");
    let before = place.guarded();
    for line in [
        "echo 1 > ../home/c.txt",
        "echo a > .git/config",
        "echo a > ../home/.config/surehand/surehand.toml",
        "rm -r ../home/.config/surehand",
    ] {
        let text = place.run(line);
        assert!(!text.starts_with("exit code 0\n"), "{line}: {text}");
    }
    assert_eq!(place.guarded(), before);
}

/// A repository may contain a link with the name of a writable directory.
#[test]
fn a_link_is_no_directory_that_may_be_written() {
    let Some(Place { outer, session }) = place() else { return };
    drop(session);
    fs::remove_dir(outer.path().join("root/target")).unwrap();
    symlink(outer.path().join("home"), outer.path().join("root/target")).unwrap();
    let commands = CommandConfig { writable: vec!["target".to_owned()], ..CommandConfig::default() };
    let mut place = Place { session: open(&outer, commands), outer };
    place.fails("echo 1 > target/c.txt");
}

#[test]
fn a_failure_that_may_come_from_it_says_so() {
    let Some(mut place) = place() else { return };
    let is_explained = |text: &str| text.contains("note: it ran confined") && text.contains("unconfined = true");
    assert!(is_explained(&place.fails("echo a > new.txt")));
    assert!(!is_explained(&place.fails("exit 3")));
    assert!(!is_explained(&place.works("cat a.txt")));
}

#[test]
fn environment_and_aliases_do_not_lead_out() {
    let Some(mut place) = place() else { return };
    fs::write(place.path("root/src/evil"), "#!/bin/sh\necho 1 > ../home/c.txt\necho 1 > ../../home/c.txt\necho ran > src/ran\n")
        .unwrap();
    fs::set_permissions(place.path("root/src/evil"), fs::Permissions::from_mode(0o755)).unwrap();
    let before = place.guarded();
    for line in [
        "GIT_EXTERNAL_DIFF=src/evil git diff --ext-diff",
        "echo 1 > a.txt; GIT_EXTERNAL_DIFF=src/evil git diff --ext-diff",
        "PAGER=src/evil GIT_PAGER=src/evil git -p log",
        "git -c alias.x='!src/evil' x",
        "git -c core.fsmonitor=src/evil status",
        "GIT_DIR=src/repository git init -q; GIT_DIR=src/repository git config core.fsmonitor \"$PWD/src/evil\"; cd src && git --git-dir=repository --work-tree=. status",
        "rg --pre src/evil x",
        "LD_PRELOAD=src/evil true",
        "echo one > a.txt",
    ] {
        place.run(line);
    }
    let after: Vec<_> = place.guarded();
    let changed: Vec<_> = after.iter().zip(&before).filter(|(now, before)| now != before).collect();
    // The command ran, and changed nothing.
    assert!(after.len() == before.len() && changed.is_empty(), "{changed:?}");
    assert!(place.path("root/src/ran").exists());
}
