//! Real commands on real files: exactly the lines that a command prints count as read. To know which lines it printed,
//! the same command runs in a twin of the workspace, in which every line has a tag of its own.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "tests lay out files and say what they did not run")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
    process,
    sync::Arc,
};

use crate::fixture::fast;
use surehand_engine::{Session, ShellCommand, Workspace};
use tempfile::TempDir;

/// A line of the corpus: its text, and its tag in the twin.
#[derive(Clone)]
struct Line {
    text: String,
    tag: String,
}

/// The files of both workspaces, by path.
#[derive(Clone, Default)]
struct Corpus {
    files: BTreeMap<&'static str, (Vec<Line>, &'static str)>,
    tags: usize,
}

impl Corpus {
    /// A file whose lines end with `ending`.
    fn file(&mut self, path: &'static str, ending: &'static str, lines: impl IntoIterator<Item = String>) {
        let lines: Vec<Line> = lines.into_iter().map(|text| self.line(text)).collect();
        self.files.insert(path, (lines, ending));
    }

    fn line(&mut self, text: String) -> Line {
        self.tags += 1;
        Line { text, tag: format!("~{}~", self.tags) }
    }

    /// A file with the lines and tags of another.
    fn copy(&mut self, from: &str, to: &'static str) {
        let file = self.files[from].clone();
        self.files.insert(to, file);
    }

    /// Replaces one line by several.
    fn replace(&mut self, path: &str, at: usize, by: &[&str]) {
        let by: Vec<Line> = by.iter().map(|text| self.line((*text).to_owned())).collect();
        self.files.get_mut(path).unwrap().0.splice(at..at + 1, by);
    }

    fn write(&self, root: &Path, is_twin: bool) {
        for (path, (lines, ending)) in &self.files {
            let tag = |line: &Line| if is_twin { line.tag.clone() } else { String::new() };
            let content: String = lines.iter().map(|line| format!("{}{}{ending}", line.text, tag(line))).collect();
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
}

/// A workspace and its twin, with the same history.
struct Twins {
    corpus: Corpus,
    original: TempDir,
    twin: TempDir,
    workspace: Arc<Workspace>,
}

impl Twins {
    fn new() -> Self {
        let mut corpus = corpus();
        let (original, twin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let commit = |corpus: &Corpus, script: &str| {
            corpus.write(original.path(), false);
            corpus.write(twin.path(), true);
            [&original, &twin].iter().for_each(|dir| drop(bash(dir.path(), script)));
        };
        commit(&corpus, "git init -q . && git add -A && git commit -qm one");
        corpus.replace("app/tool.py", 20, &["    target = compute(self, 'again')"]);
        corpus.replace("src/engine.rs", 50, &["    // what was here is gone", "    let renewed = target.renew();"]);
        commit(&corpus, "git commit -qam two");
        corpus.replace("src/engine.rs", 12, &["    let opened = open(path)?; // target"]);
        corpus.replace("app/other.py", 5, &["def other_target(value, more):"]);
        commit(&corpus, "true");
        let workspace = Workspace::open(original.path(), fast()).unwrap();
        Self { corpus, original, twin, workspace }
    }

    /// Runs a command in both, and compares the lines that count as read with those that the twin printed.
    fn play(&self, line: &str) -> Score {
        let output = bash(self.original.path(), line);
        let printed = self.printed(line, &bash(self.twin.path(), line));
        let seen = self.seen(line, &output);
        Score {
            right: seen.intersection(&printed).count(),
            missed: printed.difference(&seen).cloned().collect(),
            wrong: seen.difference(&printed).cloned().collect(),
        }
    }

    /// The lines that count as read after a command has printed this output.
    fn seen(&self, line: &str, output: &str) -> BTreeSet<(String, u32)> {
        let mut session = Session::new(self.workspace.clone());
        let directory = self.original.path().to_str().unwrap();
        let running = session.command_begins(&ShellCommand { line, directory, output: "" });
        let effects = session.command_ended(running, &ShellCommand { line, directory, output });
        let of_file = |read: &surehand_engine::core::KnownLines| {
            let path = read.path.to_string();
            read.lines.iter().map(|line| (path.clone(), line.get())).collect::<Vec<_>>()
        };
        effects.read.iter().flat_map(of_file).collect()
    }

    /// The complete lines whose tags are in an output. A copy has the tags of its original, so a copy was printed if
    /// the command or the output names it.
    fn printed(&self, command: &str, output: &str) -> BTreeSet<(String, u32)> {
        // `cat -A` writes tabs in its own way, and colour codes separate a text from its tag.
        let output = without_colours(&output.replace("^I", "\t"));
        let mut rows: HashMap<&str, Vec<&str>> = HashMap::new();
        // `git diff` may cut the text after the header of a hunk.
        for row in output.lines().filter(|row| !row.starts_with("@@ ")) {
            let tags = row.split('~').filter(|tag| !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_digit()));
            tags.for_each(|tag| rows.entry(tag).or_default().push(row));
        }
        let mut printed = BTreeSet::new();
        let names = |path: &str| command.contains(path.rsplit('/').next().unwrap());
        let is_other = |path: &str| match path {
            "src/store.rs" => names("store_new.rs") && !names(path),
            "src/store_new.rs" => {
                !names(path) && !output.contains("store_new.rs:") && !["git", "*.rs"].iter().any(|word| command.contains(word))
            }
            _ => false,
        };
        for (path, (lines, _)) in self.corpus.files.iter().filter(|(path, _)| !is_other(path)) {
            for (line, number) in lines.iter().zip(1..) {
                let complete = format!("{}{}", line.text, line.tag);
                if rows.get(line.tag.trim_matches('~')).is_some_and(|rows| rows.iter().any(|row| row.contains(&complete))) {
                    printed.insert(((*path).to_owned(), number));
                }
            }
        }
        printed
    }
}

fn without_colours(output: &str) -> String {
    let mut parts = output.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once(['m', 'K']).map_or("", |(_, rest)| rest))
}

struct Score {
    right: usize,
    missed: Vec<(String, u32)>,
    wrong: Vec<(String, u32)>,
}

fn bash(dir: &Path, script: &str) -> String {
    let mut command = process::Command::new("bash");
    command.args(["-c", script]).current_dir(dir).stdin(process::Stdio::null());
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.com"),
        ("LC_ALL", "C.UTF-8"),
    ] {
        command.env(name, value);
    }
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

/// Files as in real repositories: headers that many files share, frequent lines, copies, and files other than source
/// code.
fn corpus() -> Corpus {
    let mut corpus = Corpus::default();
    let header = || ["// Copyright 2026 The Authors", "// Licensed under the Apache License", "// See LICENSE for details", ""];
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let function = |name: &str, number: usize| {
        let mut lines = own(&["    }", "    Ok(())", "}", ""]);
        lines.splice(
            0..0,
            [
                format!("/// Does what {name} number {number} has to do."),
                format!("pub fn {name}_{number}(path: &Path) -> Result<()> {{"),
                format!("    let opened = open_{name}(path, {number})?;"),
                "    if opened.is_empty() {".to_owned(),
                "        return Ok(());".to_owned(),
                "    }".to_owned(),
                format!("    for (index, item) in opened.iter().enumerate().skip({number}) {{"),
                if number.is_multiple_of(3) {
                    "        target(item);".to_owned()
                } else {
                    format!("        item.{name}(index);")
                },
            ],
        );
        lines
    };
    let rust = |name: &str, functions: usize| {
        let body = (0..functions).flat_map(|number| function(name, number));
        own(&header()).into_iter().chain(body).collect::<Vec<_>>()
    };
    let python = |name: &str, methods: usize| {
        let mut lines = own(&["import os", "import sys", "", ""]);
        for number in 0..methods {
            lines.extend([
                format!("class {name}{number}:"),
                format!("    def run_{number}(self, value):"),
                "        if value is None:".to_owned(),
                "            return None".to_owned(),
                format!("        target_{number} = value + {number}"),
                "        return self".to_owned(),
                String::new(),
                "    # end".to_owned(),
                String::new(),
            ]);
        }
        lines
    };
    corpus.file("src/engine.rs", "\n", rust("engine", 14));
    corpus.file("src/store.rs", "\n", rust("store", 9));
    corpus.file("src/deep/view.rs", "\n", rust("view", 5));
    corpus.file("app/tool.py", "\n", python("Tool", 12));
    corpus.file("app/other.py", "\n", python("Other", 6));
    corpus.file("vendor/one/tool.py", "\n", python("Tool", 12));
    corpus.file("vendor/two/engine.rs", "\n", rust("engine", 12));
    corpus.file(
        "win/crlf.txt",
        "\r\n",
        (0..60).map(|number| if number % 7 == 0 { String::new() } else { format!("windows target line {number}") }),
    );
    let go = |number: usize| {
        vec![
            format!("func Handle{number}(w io.Writer) error {{"),
            "\tif w == nil {".to_owned(),
            "\t\treturn errTarget".to_owned(),
            "\t}".to_owned(),
            format!("\treturn write(w, {number})"),
            "}".to_owned(),
            String::new(),
        ]
    };
    corpus.file("go/main.go", "\n", own(&["package main", ""]).into_iter().chain((0..15).flat_map(go)));
    corpus.file(
        "data/long.txt",
        "\n",
        (0..20).map(|number| format!("long target {number} {}", "word ".repeat(300)).trim_end().to_owned()),
    );
    corpus.file("data/list.md", "\n", (1..40).map(|number| format!("{number}. item {} of the target list", number * 7)));
    corpus.file(
        "data/conf.yml",
        "\n",
        (0..30).flat_map(|number| {
            vec![
                format!("- name: entry{number}"),
                format!("  port: {}", 8000 + number),
                "  enabled: true".to_owned(),
                "---".to_owned(),
            ]
        }),
    );
    corpus.file("data/braces.json", "\n", (0..24).map(|number| ["{", "  [", "  ],", "}"][number % 4].to_owned()));
    corpus.copy("src/store.rs", "src/store_new.rs");
    corpus.replace("src/store_new.rs", 30, &["    let changed = here();"]);
    corpus.replace("src/store_new.rs", 70, &["    // another change"]);
    corpus
}

/// Commands that real agents ran. `F` is a file, `D` its directory, `B` its base name, `O` another file.
const READS: &str = r##"
cat F
sed -n '1,200p' F
nl -ba F | sed -n '1,120p'
cat F | head -50
head -n 50 F
tail -n +1 F
grep -n target F
grep -rn target D
cd D && cat B
ls D && cat F
wc -l F; cat F
cat F && echo --- && cat O
for f in F O; do echo "== $f"; cat $f; done
awk 'NR>=1 && NR<=40' F
awk '{print NR": "$0}' F
python3 -c "print(open('F', newline='').read())"
git show HEAD:F
git show HEAD~1:F | cat -n
find D -name B -exec cat {} \;
find D -name B | xargs cat
cat $(git ls-files F)
less F
bash -lc 'cat F'
cat < F
(cat F)
cat F 2>/dev/null || true
cat "F"
cat ./F
FILE=F; cat $FILE
cat -A F
cat -n F
grep -n "" F
sed '' F
sed 25q F
pwd && git status --short && cat F
cat F | sed -n '1,20p'
git grep -n target -- D
set -e; cat F
timeout 5 cat F
time cat F
python3 - <<'X'
print(open('F', newline='').read())
X
ls -la D && sed -n '1,80p' F && sed -n '1,80p' O
printf '\n--- F\n' && cat F
cat F # look at it
nl -ba F | tail -20
grep -C3 target F
grep -n -A5 -B5 target F
cat F | grep -n target
cat F | cat
echo hello; cat F; echo bye
cat F | tee /dev/null
{ cat F; }
if [ -f F ]; then cat F; fi
cat F | less
command cat F
env cat F
/bin/cat F
cat F | nl -ba
sed -n '1,40p;60,80p' F
sed -n '/target/,/end/p' F
sed -n 1,40p F | cat -n
awk 'NR==10,NR==40' F
tail -40 F
cat F O
cat -- F
git --no-pager show HEAD:F
cat F |head
nl F
test -f F && cat F
[ -f F ] && cat F
cat F || echo missing
cd D; cat B
ls; cat F
grep -rn target .
grep -rnE 'target|alpha' D
perl -ne 'print' F
tac F
ls D | head; sed -n '1,200p' F
grep --color=always -n target F
sed -n '30,45p' F; echo; echo ==; sed -n '46,50p' F
head -30 F | tail -12
head -20 F O
tail -5 F O
awk '{printf "%4d │ %s\n", NR, $0}' F
awk '{printf "%4d | %s\n", NR, $0}' F | sed -n 5,25p
awk '{printf "%s:%d:%s\n", FILENAME, FNR, $0}' F
sed = F | paste - - | head -30
git blame -s F | head -30
git blame F | tail -25
git grep --heading --break -n target
git grep -h -n 'target' -- F
cat F | grep target
grep -h target F O
sed -n '10p' F; sed -n '20,22p' F; sed -n '31p' F
head -n -5 F
tail -n 12 F | head -n 6
while read -r x; do printf '%s\n' "$x"; done < /dev/null; cat F
mapfile -t a < F; printf '%s\n' "${a[@]}"
xargs -a /dev/null; cat D/B
perl -pe '' F | cat -n
diff /dev/null F
git diff --no-index /dev/null F
cat D/../F
sed -n '5,15p' F | sed 's/^/> /'
pr -t -n F | head -40
rg -n target F
rg -n target D
rg -C3 target F
rg --no-heading -n target
rg -n 'target|alpha' -S D
rg --heading -n target
rg --json target D
batcat F
batcat --style=numbers --color=always F
"##;

/// Commands that concern more than one file.
const OTHERS: &str = r##"
git diff
git diff HEAD~1
git diff --stat; git diff -U1
git show
git show HEAD~1
git log -p -2
git log -p -1 -- app
diff -u src/store.rs src/store_new.rs
diff src/store.rs src/store_new.rs
git diff -U0
cat app/*.py
head -n 12 src/*.rs
cat src/*.rs | head -150
cat src/engine.rs src/store.rs
for f in src/*.rs; do echo "=== $f ==="; sed -n '1,20p' "$f"; done
find src -name '*.rs' | xargs grep -n target
find . -name '*.py' -not -path './vendor/*' -exec grep -Hn target {} +
grep -rn 'pub fn' src | sort -t: -k1,1 -k2,2n
grep -rn target --include=*.go .
grep -rc target src; sed -n 5,16p src/deep/view.rs
cat vendor/one/tool.py
cat vendor/two/engine.rs | head -60
cat data/braces.json
cat -n data/braces.json
cat data/list.md
cat -n data/list.md | tail -12
cat data/conf.yml
sed -n '41,60p' data/conf.yml
awk 'NR>20' data/list.md
cut -d: -f1 data/conf.yml | head -0; cat data/long.txt
cd src && for f in engine.rs store.rs; do echo "%% $f"; sed -n '17,28p' $f; done
cd src/deep && cat view.rs ../store.rs
cat app/tool.py; cat vendor/one/tool.py
python3 -c "import json,sys; [print(json.dumps({'type':'match','data':{'path':{'text':p},'lines':{'text':l},'line_number':n}},separators=(',',':'))) for p in ['src/store.rs'] for n,l in enumerate(open(p),1) if 'target' in l]"
sed -n 1,30p src/engine.rs; sed -n 1,30p src/store.rs; sed -n 1,30p src/deep/view.rs
wc -l app/*.py && tail -n 8 src/engine.rs src/store.rs
git ls-files src | while read -r f; do echo "$f"; grep -n 'let opened' "$f"; done
"##;

/// Outputs in another form than the file. A line may count only if a row of the output is that line.
const RESHAPED: &str = r##"
cut -c1-12 F
expand F
fold -w 20 F
fmt F
tr a-z A-Z < F
rev F
column -t F
git diff --word-diff
diff -y -W 80 F O
paste F O
sed 's/^ *//' F
awk '{$1=$1}1' F
sed 's/target/TARGET/' F
head -c 777 F
grep -o 'target.*' F
tr -s ' ' < F
cat -s F
wc F
strings F | sed 's/^/  /'
"##;

/// The text is shown, but at another position.
const DISORDERED: &str = "sort F\nsort F | uniq -c\nsort -u F\nsort -r F\nshuf --random-source=F F\n";

/// The files that the commands run on, each with another one, in the same directory or elsewhere.
const PLAYED_ON: [(&str, &str); 4] = [
    ("app/tool.py", "app/other.py"),
    ("src/engine.rs", "src/store.rs"),
    ("win/crlf.txt", "go/main.go"),
    ("go/main.go", "data/conf.yml"),
];

/// Random parts of files.
fn random_parts(corpus: &Corpus) -> Vec<String> {
    let files: Vec<(&str, usize)> = corpus.files.iter().map(|(path, (lines, _))| (*path, lines.len())).collect();
    let mut state: u64 = 7;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let mut commands = Vec::new();
    for number in 0..90 {
        let ((one, lines), (other, others)) = (files[below(files.len())], files[below(files.len())]);
        let (from, start) = (1 + below(lines), 1 + below(others));
        let (to, end, count) = (from + 2 + below(40), start + 2 + below(30), 3 + below(30));
        commands.push(match number % 9 {
            0 => format!("sed -n '{from},{to}p' {one}; sed -n '{start},{end}p' {other}"),
            1 => format!("head -n {to} {one} | tail -n {count}"),
            2 => format!("cat -n {one} | sed -n '{from},{to}p'"),
            3 => format!("awk 'NR>={from} && NR<={to}' {one}"),
            4 => format!("tail -n +{from} {one} | head -{count}"),
            5 => format!("for f in {one} {other}; do echo \"=== $f\"; sed -n '{from},{to}p' $f; done"),
            6 => format!("git show HEAD~1:{one} | sed -n '{from},{to}p'"),
            7 => format!("nl {one} | head -{to}; tail -{count} {other}"),
            _ => format!("sed -n '{from},{to}p' {one} && echo && sed -n '{},{}p' {one}", to + 3, to + 9),
        });
    }
    commands
}

/// The commands of a list. A here-document is a part of its command.
fn commands(list: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in list.lines().filter(|line| !line.is_empty()) {
        match commands.last_mut().filter(|last| last.contains("<<'X'") && !last.ends_with("\nX")) {
            Some(last) => *last = format!("{last}\n{line}"),
            None => commands.push(line.to_owned()),
        }
    }
    commands
}

/// Inserts these files into a command.
fn about(command: &str, file: &str, other: &str) -> String {
    let (directory, base) = file.rsplit_once('/').unwrap();
    let mut filled = String::new();
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    for (at, c) in command.char_indices() {
        let is_word = !is_part(command[..at].chars().last()) && !is_part(command[at + c.len_utf8()..].chars().next());
        match c {
            'F' if is_word => filled.push_str(file),
            'D' if is_word => filled.push_str(directory),
            'B' if is_word => filled.push_str(base),
            'O' if is_word => filled.push_str(other),
            c => filled.push(c),
        }
    }
    filled
}

/// The commands of a list that this machine can run. Commands whose program is missing are printed.
fn runnable(list: &str) -> Vec<String> {
    let optional = ["python3", "perl", "less", "column", "strings", "rg", "batcat"];
    let lacking: Vec<&str> =
        optional.into_iter().filter(|program| bash(Path::new("/"), &format!("command -v {program}")).is_empty()).collect();
    let needs = |command: &String| command.split_whitespace().find(|word| lacking.contains(word)).map(str::to_owned);
    let (runnable, not_run): (Vec<String>, Vec<String>) =
        commands(list).into_iter().partition(|command| needs(command).is_none());
    not_run.iter().for_each(|command| println!("not run, since there is no such program: {command}"));
    runnable
}

#[test]
fn lines_that_real_commands_print_count_as_read() {
    let twins = Twins::new();
    let reads = runnable(READS);
    // These take long to start with any file.
    let is_slow = |command: &String| ["python3", "bash -lc"].iter().any(|slow| command.starts_with(slow));
    let of_file = |(file, other): &(&str, &str)| {
        let is_first = *file == PLAYED_ON[0].0;
        reads
            .iter()
            .filter(|command| is_first || !is_slow(command))
            .map(|command| about(command, file, other))
            .collect::<Vec<_>>()
    };
    let of_files = PLAYED_ON.iter().flat_map(of_file);
    let all: Vec<String> = of_files.chain(runnable(OTHERS)).chain(random_parts(&twins.corpus)).collect();
    // Most of the time is spent on starting processes.
    let scores: Vec<(String, Score)> = std::thread::scope(|scope| {
        let play = |commands: &[String]| commands.iter().map(|line| (line.clone(), twins.play(line))).collect::<Vec<_>>();
        let threads: Vec<_> = all.chunks(all.len().div_ceil(4)).map(|commands| scope.spawn(move || play(commands))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let (mut right, mut missed, mut wrong) = (0, 0, 0);
    for (command, score) in &scores {
        if !score.missed.is_empty() || !score.wrong.is_empty() {
            println!("{command}\n  right {}, wrong {:?}, missed {:?}", score.right, score.wrong, score.missed);
        }
        right += score.right;
        missed += score.missed.len();
        wrong += score.wrong.len();
    }
    println!("{right} lines right, {missed} missed, {wrong} wrong in {} commands", scores.len());
    assert!(scores.len() > 400 && right > 20_000, "the corpus has shrunk: {right} lines of {} commands", scores.len());
    assert!(missed * 50 <= right + missed, "{missed} of {} lines missed", right + missed);
    assert!(wrong * 1000 < right, "{wrong} of {right} lines wrong");
}

#[test]
fn an_output_in_another_shape_shows_only_whole_lines() {
    let twins = Twins::new();
    let reshaped = runnable(RESHAPED);
    for (file, other) in PLAYED_ON {
        for command in reshaped.iter().map(|command| about(command, file, other)) {
            let output = bash(twins.original.path(), &command);
            let rows: BTreeSet<&str> = output.lines().flat_map(|row| [row, row.get(1..).unwrap_or_default()]).collect();
            for (path, line) in twins.seen(&command, &output) {
                let text = &twins.corpus.files[path.as_str()].0[line as usize - 1].text;
                assert!(rows.contains(text.as_str()), "{command}: {path}:{line}: {text}");
            }
        }
    }
}

#[test]
fn a_sorted_output_shows_no_places() {
    let twins = Twins::new();
    // The lines of the other file are already nearly sorted.
    for (file, other) in PLAYED_ON.into_iter().filter(|(file, _)| *file != "win/crlf.txt") {
        for command in commands(DISORDERED).iter().map(|command| about(command, file, other)) {
            let output = bash(twins.original.path(), &command);
            let seen = twins.seen(&command, &output);
            let total = twins.corpus.files[file].0.len();
            assert!(seen.len() * 10 < total, "{command}: {} of {total} lines", seen.len());
        }
    }
}
