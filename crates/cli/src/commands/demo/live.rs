//! `surehand demo --ui`: a story in a temporary workspace, shown on the page while it happens. Two agents and an editor
//! work on the service that the other demo writes. One agent edits files that it has not read or that have changed
//! since; the edits are refused, and the agent repairs them. The editor saves a file while an edit replaces it, and its
//! text is rescued.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};
use surehand_agent::{CancelToken, RunEvent, RunSettings};
use surehand_engine::{Call, Edit, NewTask, Outcome, ReadCall, Session, SessionId, TasksCall, Workspace, core::ContextMode};

use super::{
    other_programs::{open_to_write, save},
    play::{open_workspace, run_agent},
};
use crate::{args::DemoArgs, commands::ui, output};

const CLAUDE: &str = "claude-3f2a61d0-9c1e-4b57-8a44-0f6c2b1d9e77";
const CODEX: &str = "codex-0199a3b2-4cf1-7d10-9d3b-71c0aa55e210";

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("linkshort-").tempdir().context("a temporary directory")?;
    let state = tempfile::tempdir().context("a temporary directory")?;
    let workspace = open_workspace(dir.path(), state.path())?;
    let server = ui::announce(&workspace, &args.page, args.json)?;
    let stopper = server.stopper();
    let pace = if io::stdout().is_terminal() { Duration::from_millis(700) } else { Duration::ZERO };
    let cancel = CancelToken::default();
    let stage = Stage { workspace: workspace.clone(), pace, cancel: cancel.clone() };
    let json = args.json;
    let playing = thread::spawn(move || {
        let played = stage.play();
        match &played {
            Ok(()) if !json => drop(output::print("The story is over. The page stays until Ctrl-C.\n")),
            Ok(()) => {}
            Err(_) => stopper.stop(),
        }
        played
    });
    surehand_ui::serve(workspace, server, None)?;
    // An unfinished story ends at once, before its directory is removed.
    cancel.cancel();
    playing.join().expect("the story does not panic")
}

struct Stage {
    workspace: Arc<Workspace>,
    /// The time between two acts, long enough for a person to follow.
    pace: Duration,
    /// Set when the page is closed before the end.
    cancel: CancelToken,
}

impl Stage {
    fn play(&self) -> anyhow::Result<()> {
        self.run_of_the_agent()?;
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        let (mut claude, mut codex) = (self.session(CLAUDE), self.session(CODEX));
        self.tasks(&mut claude)?;
        for path in ["main.go", "config.go", "store.go", "links.go", "README.md"] {
            self.read(&mut claude, path)?;
        }
        for path in ["main.go", "links.go", "store_test.go"] {
            self.read(&mut codex, path)?;
        }
        self.stale_edit(&mut claude)?;
        self.unread_edit(&mut codex)?;
        self.rescue(&mut codex)?;
        self.stale_for_the_other(&mut codex)?;
        self.workspace.flush();
        Ok(())
    }

    /// Lets a run of the agent write the service, so that there is something to work on.
    fn run_of_the_agent(&self) -> anyhow::Result<()> {
        let for_workspace = RunSettings::for_workspace(&self.workspace);
        let settings = RunSettings { mode: ContextMode::Snapshot, record_prompts: true, ..for_workspace };
        let mut listener = |event: &RunEvent| {
            if matches!(event, RunEvent::Result { .. }) {
                thread::sleep(self.pace / 5);
            }
        };
        run_agent(self.workspace.clone(), settings, &mut listener, self.cancel.clone()).map(drop)
    }

    fn session(&self, id: &str) -> Session {
        Session::continued(self.workspace.clone(), SessionId(id.to_owned()))
    }

    fn pause(&self) {
        if !self.cancel.is_cancelled() {
            thread::sleep(self.pace);
        }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.workspace.path().join(path)
    }

    fn tasks(&self, session: &mut Session) -> anyhow::Result<()> {
        let task = |description: &str| NewTask { description: description.to_owned(), priority: None };
        let add =
            vec![task("config.go: a port of its own"), task("store.go: forget old links"), task("README.md: how to run it")];
        done(&session.run(&Call::Tasks(TasksCall { add, ..TasksCall::default() })))
    }

    fn read(&self, session: &mut Session, path: &str) -> anyhow::Result<()> {
        self.pause();
        done(&session.run(&Call::Read(ReadCall::whole(path))))
    }

    /// A person saves a file that the session has read. Its edit is refused, and the corrected one passes.
    fn stale_edit(&self, session: &mut Session) -> anyhow::Result<()> {
        self.pause();
        self.replace("config.go", "ADDR", "LISTEN")?;
        self.pause();
        let outdated = Edit::replace("config.go", "os.Getenv(\"ADDR\")", "os.Getenv(\"PORT\")");
        refused(&session.edit(&outdated))?;
        self.pause();
        done(&session.edit(&Edit::replace("config.go", "os.Getenv(\"LISTEN\")", "os.Getenv(\"PORT\")")))
    }

    /// An edit of a file that the session never read is refused; it reads the file, and the same edit passes.
    fn unread_edit(&self, session: &mut Session) -> anyhow::Result<()> {
        let edit = Edit::replace("README.md", "# linkshort", "# Linkshort");
        self.pause();
        refused(&session.edit(&edit))?;
        self.read(session, "README.md")?;
        self.pause();
        done(&session.edit(&edit))
    }

    /// An editor has a file open, and saves to it after an edit has replaced it. Without the rescue, that text would be
    /// lost.
    fn rescue(&self, session: &mut Session) -> anyhow::Result<()> {
        self.read(session, "log.go")?;
        let mut editor = open_to_write(&self.path("log.go")).context("log.go")?;
        let typed = read(&self.path("log.go"))?.replace("package main\n", "package main\n\n// TODO: log the status as well.\n");
        self.pause();
        done(&session.edit(&Edit::replace("log.go", "package main", "// Every request is logged.\npackage main")))?;
        editor.write_all(typed.as_bytes()).context("log.go")?;
        drop(editor);
        Ok(())
    }

    /// One session edits a file, which makes the other's view of it stale.
    fn stale_for_the_other(&self, session: &mut Session) -> anyhow::Result<()> {
        self.pause();
        done(&session.edit(&Edit::replace("main.go", "package main", "// Linkshort serves short links.\npackage main")))
    }

    fn replace(&self, path: &str, from: &str, to: &str) -> anyhow::Result<()> {
        let path = self.path(path);
        let text = read(&path)?;
        ensure!(text.contains(from), "{}: {from} is missing", path.display());
        save(&path, &text.replace(from, to)).with_context(|| path.display().to_string())
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn done(outcome: &Outcome) -> anyhow::Result<()> {
    ensure!(!outcome.is_refused(), "the story went another way: {outcome:?}");
    Ok(())
}

fn refused(outcome: &Outcome) -> anyhow::Result<()> {
    ensure!(outcome.is_refused(), "the story went another way: an edit was not refused");
    Ok(())
}
