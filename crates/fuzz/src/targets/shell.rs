//! Shell commands. Whatever the command and its output are, a line counts as seen only if a row of the output shows it
//! in one of the known decorations, and in no more places than there are rows. Text of the command itself counts only
//! for new lines. A longer allow list covers no less.

use surehand_core::{
    Text,
    shell::{
        covered, is_entry, mentions, only_reads,
        own_text::OwnText,
        printed::{Candidate, CandidateRank, PrintedOutput},
    },
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
    assert!(!only_reads(&format!("{line} > b")), "{line:?}");
    let endings = Endings::draw(&mut source);
    let pages = [Page::draw(&mut source, 10, endings), Page::draw(&mut source, 4, endings)];
    let texts = [pages[0].text(), pages[1].text()];
    let output = output(&mut source, &pages);
    mentions::in_command(&line);
    mentions::in_output(&output);
    check_printed(&line, &output, &texts);
    check_own_text(&line, &output, &texts);
}

fn check_printed(line: &str, output: &str, texts: &[Text; 2]) {
    for ranks in [[CandidateRank::Named; 2], [CandidateRank::Named, CandidateRank::Possible], [CandidateRank::Recent; 2]] {
        let candidates =
            [("src/a", 0), ("b", 1)].map(|(path, index)| Candidate { path, text: &texts[index], rank: ranks[index] });
        let shown = PrintedOutput::new(line, output).lines_of(&candidates);
        let rows = output.split('\n').count();
        for (lines, text) in shown.iter().zip(texts) {
            assert!(lines.count() as usize <= rows, "{line:?}: {lines} of {output:?}");
            for number in lines.iter() {
                assert!(text.has_line(number), "{line:?}: line {number}");
                let said = text.line(number);
                assert!(output.split('\n').any(|row| shows(row, said)), "{line:?} shows line {number}? {output:?}");
            }
        }
    }
}

/// Whether a row shows a line, decorated or plain. `cat -A` replaces invisible characters, JSON escapes others.
fn shows(row: &str, line: &str) -> bool {
    let row = row.trim_end_matches('\r');
    let is_encoded = row.ends_with('$') || row.starts_with("{\"type\"");
    row.ends_with(line) || is_encoded || row.contains('\u{1b}') || row.trim().is_empty() && line.is_empty()
}

fn check_own_text(line: &str, output: &str, [before, after]: &[Text; 2]) {
    let own = OwnText::of(&format!("{line} <<'EOF'\n{output}"));
    assert!(own.written(Some(after), after).is_empty());
    for lines in [own.written(None, after), own.written(Some(before), after)] {
        assert!(lines.iter().all(|number| after.has_line(number)), "{lines}");
    }
}

/// Rows of the files with decorations of programs, or anything else.
fn output(source: &mut Source<'_>, pages: &[Page; 2]) -> String {
    let mut output = String::new();
    for _ in 0..source.below(16) {
        let page = source.pick(&[0, 0, 0, 1]);
        let index = source.below(10);
        let Some(line) = pages[page].lines.get(index) else { continue };
        let number = index + 1;
        match source.below(9) {
            8 => output.push_str("--- a/b\n+++ b/b\n@@ -1,3 +1,3 @@\n "),
            0 if source.flag() => output.push_str(["+", " ", "> ", "- "][index % 4]),
            0 => output.push_str(&format!("{number:6}\t")),
            1 => output.push_str(&format!("{number}:")),
            2 => output.push_str(&format!("{}:{number}:", ["src/a", "b"][page])),
            3 => output.push_str(&format!("{number}-")),
            4 => output.push_str("==> src/a <==\n"),
            5 => output.push_str("--\n"),
            _ => {}
        }
        output.push_str(&line.text);
        output.push_str(if source.below(16) == 15 { "" } else { "\n" });
    }
    output + &String::from_utf8_lossy(source.rest())
}
