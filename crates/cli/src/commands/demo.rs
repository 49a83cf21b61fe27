//! `surehand demo`: a story through the real tools, in a temporary directory.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use surehand_engine::{Config, Session, Workspace};

use crate::{args::DemoArgs, output, place::KILL_AFTER};

const MAIN: &str = "fn main() {\n    let name = \"world\";\n    println!(\"hello {name}\");\n}\n";
const LIB: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n";

pub fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let dir = tempfile::tempdir().context("a temporary directory")?;
    let mut story = Story { root: dir.path(), session: None, json: args.json };
    story.outside("src/main.rs", MAIN)?;
    story.outside("src/lib.rs", LIB)?;
    story.open()?;

    story.say("1. The model edits a file that it has never seen.")?;
    let greet = json!({ "path": "src/main.rs", "old_string": "\"world\"", "new_string": "\"surehand\"" });
    story.refused("edit_file", &greet)?;

    story.say("2. It reads the file. Before it can edit, somebody else saves a change.")?;
    story.done("read_file", &json!({ "path": "src/main.rs" }))?;
    let theirs = MAIN.replace("fn main() {\n", "fn main() {\n    init_logging();\n");
    story.outside("src/main.rs", &theirs)?;
    story.say("   (an editor added line 2: init_logging();)")?;

    story.say(
        "3. The edit is refused, and the refusal already holds what changed: the next call is right, without another read.",
    )?;
    story.refused("edit_file", &greet)?;
    story.done("edit_file", &greet)?;
    ensure!(story.content("src/main.rs")? == theirs.replace("world", "surehand"), "both changes must be in the file");

    story.say("4. A batch over two files, one of them never read: nothing of it is written.")?;
    let batch = json!({ "edits": [
        { "path": "src/main.rs", "old_string": "hello", "new_string": "good morning" },
        { "path": "src/lib.rs", "old_string": "a + b", "new_string": "a.wrapping_add(b)" },
    ] });
    let before = story.content("src/main.rs")?;
    story.refused("multi_edit", &batch)?;
    ensure!(story.content("src/main.rs")? == before, "a refused batch writes nothing");

    story.say("5. The same batch from a process that is killed (kill -9) when the first of the two files has been replaced.")?;
    story.crash(&batch)?;
    let halfway = story.content("src/main.rs")? != before;
    story.say(if halfway {
        "   (src/main.rs is replaced, src/lib.rs is not: a torn batch, for now)"
    } else {
        "   (no file was replaced yet)"
    })?;
    story.say("   The next start finds the journal and takes the half batch back.")?;
    story.open()?;
    story.done("read_file", &json!({ "path": "src/lib.rs" }))?;
    ensure!(story.content("src/main.rs")? == before && story.content("src/lib.rs")? == LIB, "all or nothing");

    story.say("6. Now the batch goes through.")?;
    story.done("read_file", &json!({ "path": "src/main.rs" }))?;
    story.done("multi_edit", &batch)?;

    story.say("7. Writing what is there already is not a change.")?;
    let again = story.content("src/lib.rs")?;
    story.done("write_file", &json!({ "path": "src/lib.rs", "content": again }))?;
    Ok(ExitCode::SUCCESS)
}

struct Story<'a> {
    root: &'a Path,
    session: Option<Session>,
    json: bool,
}

impl Story<'_> {
    fn open(&mut self) -> anyhow::Result<()> {
        drop(self.session.take());
        self.session = Some(Session::new(Workspace::open(self.root, Config::default())?));
        Ok(())
    }

    fn say(&self, text: &str) -> anyhow::Result<()> {
        if !self.json {
            let gap = if text.starts_with(' ') { "" } else { "\n" };
            return output::print(&format!("{gap}\x1b[1m{text}\x1b[0m\n"));
        }
        Ok(())
    }

    /// What another program does to a file.
    #[expect(clippy::disallowed_methods, reason = "this is the other program")]
    fn outside(&self, path: &str, content: &str) -> anyhow::Result<()> {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        fs::write(&path, content).with_context(|| path.display().to_string())
    }

    fn content(&self, path: &str) -> anyhow::Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| path.to_owned())
    }

    fn done(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<()> {
        let refused = self.call(tool, arguments)?;
        ensure!(!refused, "{tool} was refused where it should not be");
        Ok(())
    }

    fn refused(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<()> {
        let refused = self.call(tool, arguments)?;
        ensure!(refused, "{tool} was not refused where it should be");
        Ok(())
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<bool> {
        let session = self.session.as_mut().context("the session is open")?;
        let reply = session.call(tool, arguments);
        if self.json {
            let line = json!({ "tool": tool, "arguments": arguments, "text": reply.text, "result": reply.result });
            output::print(&format!("{line}\n"))?;
        } else {
            let colour = if reply.is_error { "\x1b[33m" } else { "\x1b[32m" };
            let mut told = format!("\x1b[36m→ {tool} {arguments}\x1b[0m\n");
            for line in reply.text.lines() {
                told.push_str(&format!("{colour}  {line}\x1b[0m\n"));
            }
            output::print(&told)?;
        }
        Ok(reply.is_error)
    }

    /// The batch in a process of its own that reads both files and is killed in the middle of the commit.
    fn crash(&mut self, batch: &Value) -> anyhow::Result<()> {
        drop(self.session.take());
        let program = std::env::current_exe().context("this program")?;
        let call = |tool: &str, arguments: &Value, kill_after: Option<&str>| {
            let mut command = std::process::Command::new(&program);
            command.args(["call", tool, &arguments.to_string(), "--session", "crash", "--root"]).arg(self.root);
            if let Some(step) = kill_after {
                command.env(KILL_AFTER, step);
            }
            command.output().context("start another surehand")
        };
        for path in ["src/main.rs", "src/lib.rs"] {
            call("read_file", &json!({ "path": path }), None)?;
        }
        // Lock, stage twice, begin, check, swap: after step 5 the first file is replaced.
        let killed = call("multi_edit", batch, Some("5"))?;
        ensure!(!killed.status.success(), "the process was to be killed");
        self.say(&format!("   ({})", killed.status))?;
        Ok(())
    }
}
