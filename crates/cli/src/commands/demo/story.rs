//! The story: a small service in nine files, what a model would do for it step by step, and what others do to the files meanwhile.

use surehand_engine::Tool;

/// What the model is asked.
pub(super) const STORY: &str = "\
Write linkshort, a service in Go that shortens links, with the standard library only: configuration from the environment, a store in \
memory, a log of requests, a check of health, tests, a README.";

/// A step of the work.
#[derive(Debug)]
pub(super) struct Step {
    /// As the list of tasks has it.
    pub task: &'static str,
    /// The file that it is about.
    pub path: &'static str,
    /// What the file must get; if nothing, it must be there.
    pub insert: Option<Insert>,
}

/// A line that is to be in a file.
#[derive(Debug)]
pub(super) struct Insert {
    /// Behind the line that has this in it.
    pub after: &'static str,
    /// The line.
    pub text: &'static str,
}

const fn write(path: &'static str, task: &'static str) -> Step {
    Step { task, path, insert: None }
}

const fn insert(path: &'static str, task: &'static str, after: &'static str, text: &'static str) -> Step {
    Step { task, path, insert: Some(Insert { after, text }) }
}

/// All steps, in order.
pub(super) const STEPS: &[Step] = &[
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

/// The files, as the model would write them.
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

/// The path that a word is, if it is one of the service.
pub(super) fn path_of(word: &str) -> Option<&'static str> {
    DRAFTS.iter().map(|(path, _)| *path).find(|path| *path == word)
}

/// The step of a task.
pub(super) fn step_of(task: &str) -> Option<&'static Step> {
    STEPS.iter().find(|step| step.task == task)
}

/// The whole file of a step as the model would write it: no two drafts are the same.
pub(super) fn draft(step: &Step, number: u64) -> String {
    let (_, text) = DRAFTS.iter().find(|(path, _)| *path == step.path).expect("every step is about a file of the service");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(insert) = &step.insert {
        let at = lines.iter().position(|line| line.contains(insert.after)).map_or(lines.len(), |at| at + 1);
        lines.insert(at, insert.text.to_owned());
    }
    lines.push(format!("// Draft {number}."));
    lines.join("\n") + "\n"
}

/// Something that somebody else does to a file.
#[derive(Debug)]
pub(super) struct Outside {
    /// When it is done.
    pub when: When,
    /// The call that it is done before or after.
    pub call: Moment,
    /// The file that is saved.
    pub path: &'static str,
    /// What is done to it.
    pub act: Act,
}

/// A call that succeeds.
#[derive(Debug)]
pub(super) struct Moment {
    /// Of this tool,
    pub tool: Tool,
    /// for this file,
    pub path: &'static str,
    /// for the so-manieth time, from 1.
    pub time: usize,
}

/// When somebody else saves a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// After the model was shown the file and before its call is carried out.
    Before,
    /// Between the turn of the call and the next one.
    AfterTurn,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    /// The file is made.
    Make(&'static str),
    /// A line comes before the first one.
    Top(&'static str),
    /// A line comes behind the one that has this in it.
    Add(&'static str, &'static str),
    /// In the line that has this in it, it becomes something else.
    Change(&'static str, &'static str),
}

impl Act {
    /// What must be in the file when all is done, else it was lost: the last line that came.
    pub(super) fn trace(self) -> &'static str {
        let (Self::Make(text) | Self::Top(text) | Self::Add(_, text) | Self::Change(_, text)) = self;
        text.lines().last().unwrap_or_default()
    }
}

/// All that others do.
pub(super) const OUTSIDE: &[Outside] = &[
    outside(When::AfterTurn, first(Tool::WriteFile, "store.go"), "store.go", Act::Top("// Copyright the linkshort authors.")),
    outside(When::Before, first(Tool::EditLines, "main.go"), "main.go", Act::Top("// Linkshort serves short links.")),
    outside(
        When::Before,
        first(Tool::WriteFile, "README.md"),
        "README.md",
        Act::Make("# linkshort\n\nShort links for all of us.\n"),
    ),
    outside(
        When::AfterTurn,
        first(Tool::EditLines, "store.go"),
        "links.go",
        Act::Change("StatusFound", "StatusTemporaryRedirect"),
    ),
    // The very line behind which the model means to insert: no proof where that would be now, so the model decides.
    outside(
        When::Before,
        Moment { tool: Tool::EditLines, path: "main.go", time: 3 },
        "main.go",
        Act::Change("Handler: routes}", "Handler: routes, ErrorLog: log.Default()}"),
    ),
    outside(
        When::AfterTurn,
        first(Tool::EditLines, "config.go"),
        "main.go",
        Act::Add("func main() {", "\tlog.SetFlags(log.LUTC | log.LstdFlags)"),
    ),
];

const fn outside(when: When, call: Moment, path: &'static str, act: Act) -> Outside {
    Outside { when, call, path, act }
}

const fn first(tool: Tool, path: &'static str) -> Moment {
    Moment { tool, path, time: 1 }
}
