//! Tool calls with arbitrary arguments. Every call is answered. A refusal changes nothing on disk, and neither does a
//! tool that only reads. No tool writes outside the workspace or into files of git or Surehand. Everything that a
//! session did can be undone.

use serde_json::{Value, json};
use surehand_engine::{
    Session, Tool, ToolNames,
    core::{Anchor, LineNo, Text, ToolKind},
    tools,
};

use crate::{
    json::fitting,
    sandbox::{FILES, OTHERS, Sandbox, Tree, difference},
    source::Source,
};

pub(super) const WORDS: &[&str] = &[
    "\n> read_file {\"path\":\"a.txt\"}",
    "\n> read_file {\"path\":\"a.txt\",\"anchors\":true}",
    "\n> edit_file {\"path\":\"a.txt\",\"old_string\":\"two\",\"new_string\":\"2\"}",
    "\n> undo {}",
    "\n> forget {}",
    "\n> move_file {\"path\":\"a.txt\",\"to\":\"b\"}",
    "\n> delete_file {\"path\":\"a.txt\"}",
    "\n> search_files {\"pattern\":\"a\"}",
    "\n> list_files {}",
    "\n! a.txt changed\\n",
    "\"path\":",
    "\"anchors\":true",
    "\"ranges\":[{\"start\":1,\"end\":2}]",
    "a.txt",
    "src/b.rs",
    "out/o.txt",
    "hard.txt",
    ".git/config",
    "../",
    "1#ab",
    "*** Begin Patch\\n",
    "4294967295",
    "null",
    "{}",
    "[]",
];

pub(super) fn run(data: &[u8]) {
    let sandbox = Sandbox::new();
    let session = Session::new(sandbox.open().expect("a workspace"));
    let mut caller = Caller {
        session,
        first: sandbox.tree(),
        surroundings: sandbox.surroundings(),
        sandbox,
        change: String::new(),
        was_disturbed: false,
    };
    if data.first() == Some(&b'>') {
        String::from_utf8_lossy(data).lines().take(12).for_each(|line| caller.line(line));
    } else {
        let mut source = Source::new(data);
        for _ in 0..8 {
            if !source.is_empty() {
                caller.draw(&mut source);
            }
        }
    }
    caller.take_back();
}

struct Caller {
    session: Session,
    sandbox: Sandbox,
    first: Tree,
    surroundings: Tree,
    /// The name of the last change.
    change: String,
    /// Whether another program has written a file.
    was_disturbed: bool,
}

impl Caller {
    /// `> tool {"arguments": …}`, or `! path content` for a write by another program.
    fn line(&mut self, line: &str) {
        let after = |mark: &str| line.strip_prefix(mark).and_then(|line| line.split_once(' '));
        match (after("! "), after("> ")) {
            (Some((path, content)), _) => self.disturb(path, content.replace("\\n", "\n").as_bytes()),
            (None, Some((tool, arguments))) => {
                if let Ok(arguments) = serde_json::from_str(arguments) {
                    self.call(tool, &arguments);
                }
            }
            (None, None) => {}
        }
    }

    fn draw(&mut self, source: &mut Source<'_>) {
        if source.below(10) == 9 {
            let path = source.pick(FILES);
            let content = format!(
                "{}{}",
                ["", "more\n"][source.below(2)],
                self.sandbox.shown(path).replacen("\n", "\nchanged\n", source.below(2))
            );
            return self.disturb(path, content.as_bytes());
        }
        let tool = source.pick(&Tool::ALL);
        let file = source.pick(FILES);
        let arguments =
            fitting(source, &Value::Object(tools::input_schema(tool, &ToolNames::default())), "", &mut |source, name| {
                self.text(source, name, file)
            });
        self.call(tool.name(), &arguments);
    }

    /// A value that a model might send in a field.
    fn text(&self, source: &mut Source<'_>, name: &str, file: &str) -> String {
        if source.below(16) == 15 {
            return String::from_utf8_lossy(source.until_zero(30)).into_owned();
        }
        match name {
            "path" | "from" | "to" if name != "to" || source.flag() => self.path(source, file),
            "at" | "to" => self.anchor(source, file),
            "old_string" | "pattern" => self.part(source, file),
            "patch" => self.patch(source, file),
            "change" => self.change.clone(),
            "glob" => source.pick(&["*.txt", "src/**", "!*.rs", "*.{rs,txt}", "[", "**/**", "{a,b}"]).to_owned(),
            "content" if source.flag() => format!("{}more\n", self.sandbox.shown(file)),
            _ => source
                .pick(&["x", "", "one\ntwo\n", "new\n", "é", "日本\r\n", "}\n", "    let a = 2;\n", "\0", "a\rb"])
                .to_owned(),
        }
    }

    fn path(&self, source: &mut Source<'_>, file: &str) -> String {
        match source.below(8) {
            0 => source.pick(OTHERS).to_owned(),
            1 => source.pick(FILES).to_owned(),
            2 => self.sandbox.root().join(file).to_string_lossy().into_owned(),
            _ => file.to_owned(),
        }
    }

    fn part(&self, source: &mut Source<'_>, file: &str) -> String {
        let shown = self.sandbox.shown(file);
        let lines: Vec<&str> = shown.split_inclusive('\n').collect();
        let start = source.below(lines.len().max(1)).min(lines.len());
        let end = (start + 1 + source.below(2)).min(lines.len());
        let part = lines[start..end].concat();
        if source.flag() { part } else { part.trim().to_owned() }
    }

    fn anchor(&self, source: &mut Source<'_>, file: &str) -> String {
        let Ok(text) = Text::new(std::fs::read(self.sandbox.root().join(file)).unwrap_or_default()) else {
            return "1#ab".to_owned();
        };
        let line = LineNo::at_index(source.below(9));
        Anchor::of(line, text.line(line)).to_string()
    }

    fn patch(&self, source: &mut Source<'_>, file: &str) -> String {
        let (path, old) = (self.path(source, file), self.part(source, file));
        let old = old.trim_end_matches('\n');
        let rows = format!("-{}\n+new line\n", old.replace('\n', "\n-"));
        let body = match source.below(7) {
            0 => format!("*** Add File: {path}\n+added\n"),
            1 => format!("*** Delete File: {path}\n"),
            2 => format!("*** Update File: {path}\n*** Move to: {}\n@@\n{rows}", source.pick(FILES)),
            3 => format!("*** Update File: {path}\n*** Move to: {}\n", source.pick(FILES)),
            4 => return format!("--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,1 @@\n{rows}"),
            5 => format!("*** Update File: {path}\n@@\n{rows}*** Add File: new.txt\n+x\n"),
            _ => format!("*** Update File: {path}\n@@\n{rows}"),
        };
        format!("*** Begin Patch\n{body}*** End Patch\n")
    }

    fn disturb(&mut self, path: &str, content: &[u8]) {
        if FILES.contains(&path) {
            self.sandbox.write(path, content);
            self.was_disturbed = true;
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) {
        let before = self.sandbox.tree();
        let reply = self.session.call(tool, arguments);
        let said = || format!("{tool} {arguments}\n{}", reply.text);
        assert!(!reply.text.is_empty(), "{}", said());
        assert_eq!(reply.result["success"], !reply.is_error, "{}", said());
        if let Some(change) = reply.result["change"].as_str() {
            self.change = change.to_owned();
        }
        let after = self.sandbox.tree();
        let only_reads = Tool::named(tool).is_none_or(|tool| matches!(tool.kind(), ToolKind::Reads | ToolKind::Forgets));
        if reply.is_error || only_reads {
            assert_eq!(before, after, "{}\n{}", said(), difference(&before, &after));
        }
        for name in [".git/config", "surehand.toml", "out@", "outfile@"] {
            assert_eq!(self.first.get(name), after.get(name), "{name}: {}", said());
        }
        let added = |name: &&String| name.starts_with(".git/") && !self.first.contains_key(*name);
        assert_eq!(after.keys().find(added), None, "{}", said());
        let around = self.sandbox.surroundings();
        assert_eq!(self.surroundings, around, "{}\n{}", said(), difference(&self.surroundings, &around));
    }

    /// Everything that this session did, and no other program, can be undone.
    fn take_back(&mut self) {
        if self.was_disturbed || self.sandbox.tree() == self.first {
            return;
        }
        let reply = self.session.call("undo", &json!({ "all": true }));
        assert!(!reply.is_error, "{}", reply.text);
        let after = self.sandbox.tree();
        assert_eq!(self.first, after, "{}\n{}", reply.text, difference(&self.first, &after));
    }
}
