//! Commands of a shell. Whatever the command and its output are: a line counts as seen only if the output shows it, and a longer list of what
//! is allowed covers no less.

use surehand_core::{
    Text,
    shell::{covered, is_entry, reads, seen},
};

use crate::{
    model::{Endings, Page},
    source::Source,
};

pub(super) const WORDS: &[&str] = &[
    "cat ",
    "head ",
    "tail ",
    "sed -n ",
    "nl ",
    "grep ",
    "rg ",
    "cd ",
    "bash -lc ",
    "-n",
    "-n 3",
    "-5",
    "+2",
    "-b a",
    "-A 1",
    "-H",
    "-c",
    "a",
    "b",
    "./a",
    " && ",
    " || ",
    " | ",
    ";",
    "\n",
    "'",
    "\"",
    "\\",
    "$(",
    "`",
    "${x}",
    "$x",
    " > b",
    " 2>&1",
    "2>/dev/null",
    "<<EOF",
    "1,3p",
    "'1p;$p'",
    "2q",
    "LC_ALL=C ",
    "--",
    "*",
    "#",
    "&",
    "( ",
    ")",
    "{",
    "}",
    "!",
    "~",
    "ls",
    "git status",
];

/// What the pieces of a command are drawn from.
fn command(source: &mut Source<'_>) -> String {
    if source.flag() {
        return String::from_utf8_lossy(source.until_zero(300)).into_owned();
    }
    (0..source.below(14)).map(|_| source.pick(WORDS)).collect()
}

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let line = command(&mut source);
    let list: Vec<String> = (0..source.below(3)).map(|_| command(&mut source)).collect();
    let longer: Vec<String> = list.iter().cloned().chain(["ls".to_owned()]).collect();
    assert!(!covered(&line, &list) || covered(&line, &longer), "{line:?} {list:?}");
    assert!(covered(&line, &["*".to_owned()]));
    list.iter().filter(|entry| !is_entry(entry)).for_each(|entry| {
        assert!(!covered(&line, std::slice::from_ref(entry)), "what makes no sense covers nothing: {entry:?} {line:?}");
    });
    let Some(readings) = reads(&line) else { return };
    let endings = Endings::draw(&mut source);
    let pages = [Page::draw(&mut source, 10, endings), Page::draw(&mut source, 4, endings)];
    let output = output(&mut source, &pages);
    let text_of = |path: &str| match path.rsplit('/').next() {
        Some("a") => Some(pages[0].text()),
        Some("b") => Some(pages[1].text()),
        _ => None,
    };
    for (path, lines) in seen(&readings, &mut |path| text_of(path), &output) {
        let text: Text = text_of(&path).expect("a file that is there");
        for number in lines.iter() {
            assert!(text.has_line(number), "{line:?}: line {number} of {path}");
            let shows = |row: &str| row.trim_end_matches('\r').ends_with(text.line(number));
            assert!(output.split('\n').any(shows), "{line:?} shows line {number} of {path}? {output:?}");
        }
    }
}

/// Rows of the files with what programs put around them, or anything.
fn output(source: &mut Source<'_>, pages: &[Page; 2]) -> String {
    let mut output = String::new();
    for _ in 0..source.below(16) {
        let page = source.pick(&[0, 0, 0, 1]);
        let index = source.below(10);
        let Some(line) = pages[page].lines.get(index) else { continue };
        let number = index + 1;
        match source.below(8) {
            0 => output.push_str(&format!("{number:6}\t")),
            1 => output.push_str(&format!("{number}:")),
            2 => output.push_str(&format!("{}:{number}:", ["a", "b"][page])),
            3 => output.push_str(&format!("{number}-")),
            4 => output.push_str("==> a <==\n"),
            5 => output.push_str("--\n"),
            _ => {}
        }
        output.push_str(&line.text);
        output.push_str(if source.below(16) == 15 { "" } else { "\n" });
    }
    output + &String::from_utf8_lossy(source.rest())
}
