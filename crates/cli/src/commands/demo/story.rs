//! The story: a small service in nine files, the steps of the model, and the changes of other programs.

use surehand_engine::Tool;

pub(super) const STORY: &str = "\
Write linkshort, a service in Go that shortens links, with the standard library only: configuration from the environment, a store in \
memory, a log of requests, a check of health, tests, a README.";

#[derive(Debug)]
pub(super) struct StoryStep {
    pub task: &'static str,
    pub path: &'static str,
    /// The line to insert; without one, the file must exist.
    pub insert: Option<Insert>,
}

#[derive(Debug)]
pub(super) struct Insert {
    pub after: &'static str,
    pub text: &'static str,
}

const fn write(path: &'static str, task: &'static str) -> StoryStep {
    StoryStep { task, path, insert: None }
}

const fn insert(path: &'static str, task: &'static str, after: &'static str, text: &'static str) -> StoryStep {
    StoryStep { task, path, insert: Some(Insert { after, text }) }
}

pub(super) const STEPS: &[StoryStep] = &[
    write("go.mod", "go.mod: module"),
    write("config.go", "config.go: environment"),
    write("store.go", "store.go: links"),
    write("code.go", "code.go: codes"),
    write("links.go", "links.go: add, follow"),
    write("log.go", "log.go: requests"),
    write("main.go", "main.go: server"),
    write("store_test.go", "store_test.go: store"),
    insert(
        "main.go",
        "main.go: /healthz",
        "links.Follow",
        "\troutes.HandleFunc(\"GET /healthz\", func(http.ResponseWriter, *http.Request) {})",
    ),
    insert("README.md", "README.md: usage", "# linkshort", "Run it: `ADDR=:8080 go run .`"),
    insert("store.go", "store.go: visits", "target, found := ", "\ts.visits[code]++"),
    insert("main.go", "main.go: logging", "server := ", "\tserver.Handler = Logged(routes)"),
    insert("links.go", "links.go: caching", "code := ", "\tw.Header().Set(\"Cache-Control\", \"no-store\")"),
    insert("main.go", "main.go: read limit", "server := ", "\tserver.ReadTimeout = 5 * time.Second"),
    insert("config.go", "config.go: BASE", "config := ", "\tconfig.Base = cmp.Or(os.Getenv(\"BASE\"), config.Base)"),
    insert("main.go", "main.go: time", "\"net/http\"", "\t\"time\""),
    insert("config.go", "config.go: version", "import \"os\"", "const Version = \"1.0\""),
    insert("main.go", "main.go: version", "config := ", "\tlog.Printf(\"linkshort %s\", Version)"),
    insert("store_test.go", "store_test.go: visits", "store := ", "\tdefer func() { t.Log(store.visits) }()"),
    insert("main.go", "main.go: header limit", "server := ", "\tserver.MaxHeaderBytes = 16 << 10"),
    insert("code.go", "code.go: length", "const alphabet", "const length = 7"),
    insert("main.go", "main.go: numbers", "links.Add", "\troutes.Handle(\"GET /debug/vars\", expvar.Handler())"),
    insert("log.go", "log.go: callers", "log.Printf(", "\t\tlog.Printf(\"from %s\", r.RemoteAddr)"),
    insert("main.go", "main.go: expvar", "import (", "\t\"expvar\""),
    insert("README.md", "README.md: BASE", "Run it: ", "`BASE` is what links begin with."),
    insert("main.go", "main.go: idle limit", "server := ", "\tserver.IdleTimeout = time.Minute"),
];

const DRAFTS: &[(&str, &str)] = &[
    ("go.mod", include_str!("service/go.mod")),
    ("config.go", include_str!("service/config.go")),
    ("store.go", include_str!("service/store.go")),
    ("code.go", include_str!("service/code.go")),
    ("links.go", include_str!("service/links.go")),
    ("log.go", include_str!("service/log.go")),
    ("main.go", include_str!("service/main.go")),
    ("store_test.go", include_str!("service/store_test.go")),
    ("README.md", include_str!("service/README.md")),
];

pub(super) fn path_of(word: &str) -> Option<&'static str> {
    DRAFTS.iter().map(|(path, _)| *path).find(|path| *path == word)
}

pub(super) fn step_of(task: &str) -> Option<&'static StoryStep> {
    STEPS.iter().find(|step| step.task == task)
}

/// The file of a step as the model would write it. No two drafts are equal.
pub(super) fn draft(step: &StoryStep, number: u64) -> String {
    let (_, text) = DRAFTS.iter().find(|(path, _)| *path == step.path).expect("every step is about a file of the service");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(insert) = &step.insert {
        let at = lines.iter().position(|line| line.contains(insert.after)).map_or(lines.len(), |at| at + 1);
        lines.insert(at, insert.text.to_owned());
    }
    lines.push(format!("// Draft {number}."));
    lines.join("\n") + "\n"
}

#[derive(Debug)]
pub(super) struct OutsideChange {
    pub when: SaveTime,
    /// The call before or after which the change is made.
    pub call: CallMoment,
    pub path: &'static str,
    pub act: OutsideAct,
}

#[derive(Debug)]
pub(super) struct CallMoment {
    pub tool: Tool,
    pub path: &'static str,
    /// Which of these calls, counted from 1.
    pub time: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaveTime {
    /// After the model has seen the file, and before its call runs.
    Before,
    /// After the turn of the call.
    AfterTurn,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum OutsideAct {
    Make(&'static str),
    /// Inserts a line at the top.
    Top(&'static str),
    /// Inserts a line after the one that contains the first text.
    Add(&'static str, &'static str),
    /// Replaces the first text with the second.
    Change(&'static str, &'static str),
}

impl OutsideAct {
    /// The text that must be in the file at the end; if it is missing, the change was lost.
    pub(super) fn trace(self) -> &'static str {
        let (Self::Make(text) | Self::Top(text) | Self::Add(_, text) | Self::Change(_, text)) = self;
        text.lines().last().unwrap_or_default()
    }
}

pub(super) const OUTSIDE: &[OutsideChange] = &[
    change(
        SaveTime::AfterTurn,
        first(Tool::WriteFile, "store.go"),
        "store.go",
        OutsideAct::Top("// Copyright the linkshort authors."),
    ),
    change(SaveTime::Before, first(Tool::EditLines, "main.go"), "main.go", OutsideAct::Top("// Linkshort serves short links.")),
    change(
        SaveTime::Before,
        first(Tool::WriteFile, "README.md"),
        "README.md",
        OutsideAct::Make("# linkshort\n\nShort links for all of us.\n"),
    ),
    change(
        SaveTime::AfterTurn,
        first(Tool::EditLines, "store.go"),
        "links.go",
        OutsideAct::Change("StatusFound", "StatusTemporaryRedirect"),
    ),
    // This changes the line of the model's anchor: no proof is possible, so the model must decide.
    change(
        SaveTime::Before,
        CallMoment { tool: Tool::EditLines, path: "main.go", time: 3 },
        "main.go",
        OutsideAct::Change("Handler: routes}", "Handler: routes, ErrorLog: log.Default()}"),
    ),
    change(
        SaveTime::AfterTurn,
        first(Tool::EditLines, "config.go"),
        "main.go",
        OutsideAct::Add("func main() {", "\tlog.SetFlags(log.LUTC | log.LstdFlags)"),
    ),
];

const fn change(when: SaveTime, call: CallMoment, path: &'static str, act: OutsideAct) -> OutsideChange {
    OutsideChange { when, call, path, act }
}

const fn first(tool: Tool, path: &'static str) -> CallMoment {
    CallMoment { tool, path, time: 1 }
}
