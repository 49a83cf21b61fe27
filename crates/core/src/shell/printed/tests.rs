//! One case for each way in which programs print lines, and for each misleading output.

use super::*;

const CODE: &str = "fn load(p: &str) -> u32 {\n    let x = parse(p);\n    if x > 3 {\n        return 1;\n    }\n    x\n}\n\n\
                    fn save(p: &str) {\n    let y = parse(p);\n    if y > 3 {\n        return 1;\n    }\n    y\n}\n";

/// The lines that count, as `path lines` for each file. The command names all files.
fn counted(command: &str, files: &[(&str, &str)], output: &str) -> String {
    let texts: Vec<Text> = files.iter().map(|(_, content)| Text::of((*content).to_owned()).unwrap()).collect();
    let candidates: Vec<Candidate<'_>> =
        files.iter().zip(&texts).map(|((path, _), text)| Candidate { path, text, rank: CandidateRank::Named }).collect();
    let shown = PrintedOutput::new(command, output).lines_of(&candidates);
    let some = files.iter().zip(shown).filter(|(_, lines)| !lines.is_empty());
    some.map(|((path, _), lines)| format!("{path} {lines}")).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(command: &str, files: &[(&str, &str)], output: &str, expected: &str) {
    assert_eq!(counted(command, files, output), expected, "{command}\n{output}");
}

#[track_caller]
fn check_code(command: &str, output: &str, expected: &str) {
    check(command, &[("a.rs", CODE)], output, expected);
}

fn lines(from: usize, to: usize) -> String {
    CODE.split_inclusive('\n').skip(from - 1).take(to + 1 - from).collect()
}

#[test]
fn a_file_that_is_printed_is_seen() {
    check_code("cat a.rs", CODE, "a.rs 1-15");
    check_code("cat a.rs", CODE.trim_end(), "a.rs 1-15");
    check_code("ls; cat a.rs; echo bye", &format!("a.rs\nb.rs\n{CODE}bye\n"), "a.rs 1-15");
    check_code("sed -n 9,12p a.rs", &lines(9, 12), "a.rs 9-12");
    check_code("tac a.rs", &CODE.lines().rev().map(|line| format!("{line}\n")).collect::<String>(), "a.rs 1-15");
    check("cat n", &[("n", "3 three\n1 one\n2 two\n9 nine\n")], "3 three\n1 one\n2 two\n9 nine\n", "n 1-4");
    check("cat l.yml", &[("l.yml", "- a1b2\n- c3d4\n10- odd\n")], "- a1b2\n- c3d4\n10- odd\n", "l.yml 1-3");
    check("cat w", &[("w", "\u{feff}one fish\r\ntwo fish\r\n")], "\u{feff}one fish\r\ntwo fish\n", "w 1-2");
}

#[test]
fn a_line_that_is_not_whole_is_no_line() {
    check_code("cat a.rs", "fn load(p: &str) -> u32 {\n    let x = par", "a.rs 1");
    check_code("awk '{$1=$1}1' a.rs", "let x = parse(p);\nif x > 3 {\nreturn 1;\nx\n", "");
    check(
        "cut -c1-12 a",
        &[("a", "return value\nreturn\nreturn value or default\n")],
        "return value\nreturn\nreturn value\n",
        "a 1-2",
    );
    check("cat a", &[("a", "one two\nthree four\n")], "one two \nthree\tfour\n", "");
    // Some clients truncate the output in the middle of a line.
    let cut = "fn load(p: &str) -> u32 {\n    let x = parse(p);\n    if x…60 tokens truncated…urn 1;\n    }\n    y\n}\n";
    check_code("cat a.rs", cut, "a.rs 1-2, 13-15");
}

#[test]
fn a_block_in_several_places_counts_where_the_command_says() {
    check_code("sed -n '4,5p' a.rs", &lines(4, 5), "a.rs 4-5");
    check_code("head -13 a.rs | tail -2", &lines(12, 13), "a.rs 12-13");
    check_code("head -13 a.rs | tail -3", &lines(11, 13), "a.rs 11-13");
    check_code("sed -n 7p a.rs", "}\n", "a.rs 7");
    check_code("tail -1 a.rs", "}\n", "a.rs 15");
    check_code("grep -m1 'return' a.rs", "        return 1;\n", "");
    check_code("sed -n /return/p a.rs", "        return 1;\n        return 1;\n", "a.rs 4, 12");
    check("head -3 a", &[("a", "}\n}\n}\n}\n}\n")], "}\n}\n}\n", "");
}

#[test]
fn numbers_say_which_line_it_is() {
    let numbered = |from: usize, to: usize, separator: &str| -> String {
        lines(from, to).lines().zip(from..).map(|(line, number)| format!("{number:6}{separator}{line}\n")).collect()
    };
    for separator in ["\t", ": ", " | ", " │ ", " ", "  "] {
        check_code("x a.rs", &numbered(3, 13, separator), "a.rs 3-13");
        check_code("x a.rs", &numbered(1, 15, separator), "a.rs 1-15");
    }
    check_code("grep -n x a.rs", "2:    let x = parse(p);\n6:    x\n", "a.rs 2, 6");
    check_code("grep -n return a.rs", "4:        return 1;\n12:        return 1;\n", "a.rs 4, 12");
    check_code(
        "grep -nC1 load a.rs",
        "1:fn load(p: &str) -> u32 {\n2-    let x = parse(p);\n--\n8-\n9:fn save(p: &str) {\n",
        "a.rs 1-2, 8-9",
    );
    check_code("x a.rs", "     3\tfn load(p: &str) -> u32 {\n", "");
    // The indentation of one line and the text of another differed in an older version.
    let old = numbered(1, 15, "\t").replace("2\t    let x", "2\t        let x").replace("\t    x\n", "\t    x + 1\n");
    check_code("git show HEAD~1:a.rs | cat -n", &old, "a.rs 1, 3-5, 7-15");
    check(
        "cat -n l.md | tail -2",
        &[("l.md", "1. first thing\n2. second thing\n3. third thing\n")],
        "     2\t2. second thing\n     3\t3. third thing\n",
        "l.md 2-3",
    );
    check("nl -ba w", &[("w", "one fish\r\ntwo fish\r\n")], "     1\tone fish\r\n     2\ttwo fish\r\n", "w 1-2");
    check("nl a", &[("a", "one fish\n\ntwo fish\n}\n")], "     1\tone fish\n       \n     2\ttwo fish\n     3\t}\n", "a 1-4");
    check(
        "sed -n 3,5p a | cat -n",
        &[("a", "zero\none\ntwo fish\nred fish\n}\n")],
        "     1\ttwo fish\n     2\tred fish\n     3\t}\n",
        "a 3-5",
    );
    check_code(
        "git blame a.rs",
        "3f2a1b9c (A B 2026-01-01 12:00:00 +0000  2)     let x = parse(p);\n^f2a1b9c (A B 2026-01-01 12:00:00 +0000  3)     if x > 3 {\n",
        "a.rs 2-3",
    );
}

#[test]
fn code_frames_show_their_lines() {
    let files = [("s.js", "const a = 1;\nfunction f() {\n  throw new Error('no');\n}\n")];
    let jest = "  ● f\n\n      1 | const a = 1;\n      2 | function f() {\n    > 3 |   throw new Error('no');\n        |         ^\n      4 | }\n\n      at f (s.js:3:9)\n";
    check("npx jest", &files, jest, "s.js 1-4");
    // The compiler printed a blank for the tab.
    let rustc = "error[E0308]: mismatched types\n --> e.rs:2:16\n  |\n2 |     let n: &str = 5;\n  |            ----   ^ expected `&str`\n";
    check("rustc e.rs", &[("e.rs", "fn main() {\n\tlet n: &str = 5;\n}\n")], rustc, "");
}

#[test]
fn a_path_in_front_or_above_says_which_file_it_is() {
    let files = [("src/a.rs", CODE), ("src/b.rs", CODE)];
    check(
        "grep -rn parse src",
        &files,
        "src/b.rs:2:    let x = parse(p);\nsrc/a.rs:10:    let y = parse(p);\n",
        "src/a.rs 10; src/b.rs 2",
    );
    check("grep -rn '}' .", &files, "./src/a.rs:7:}\n", "src/a.rs 7");
    check("cd src; grep x a.rs b.rs", &files, "a.rs:    if x > 3 {\n", "src/a.rs 3");
    check(
        "grep -rC1 'x > 3' src",
        &files,
        "src/a.rs-    let x = parse(p);\nsrc/a.rs:    if x > 3 {\nsrc/a.rs-        return 1;\n",
        "src/a.rs 2-4",
    );
    check("rg --heading -n x", &files, "src/a.rs\n6:    x\n\nsrc/b.rs\n3:    if x > 3 {\n", "src/a.rs 6; src/b.rs 3");
    check(
        "head -n 2 src/*",
        &files,
        &format!("==> src/a.rs <==\n{}\n==> src/b.rs <==\n{}", lines(1, 2), lines(9, 10)),
        "src/a.rs 1-2; src/b.rs 9-10",
    );
    check("grep -n value we:ird.py x", &[("we:ird.py", "import os\nvalue = 1\n")], "we:ird.py:2:value = 1\n", "we:ird.py 2");
    check("rg --vimgrep x", &files, "src/a.rs:6:5:    x\n", "src/a.rs 6");
    let json =
        "{\"type\":\"match\",\"data\":{\"path\":{\"text\":\"src/a.rs\"},\"lines\":{\"text\":\"    x\\n\"},\"line_number\":6}}\n";
    check("rg --json x", &files, json, "src/a.rs 6");
    check("grep -C0 -n x p p-1", &[("p", "x\n"), ("p-1", "x\n")], "p-1:1:x\n", "p-1 1");
}

#[test]
fn equal_text_counts_for_every_file_that_is_named() {
    let header = "// Copyright 2026 The Authors\n// Licensed under the Apache License\n\n";
    let (a, b) = (format!("{header}{CODE}"), format!("{header}struct B;\n\nstruct C {{\n    x: u32,\n}}\n"));
    let files = [("a.rs", a.as_str()), ("b.rs", b.as_str())];
    check("cat x/t.rs y/t.rs", &[("x/t.rs", CODE), ("y/t.rs", CODE)], &format!("{CODE}{CODE}"), "x/t.rs 1-15; y/t.rs 1-15");
    check(
        "grep -h alpha p/a.py p/b.py",
        &[("p/a.py", "alpha = 1\nbeta = 2\n"), ("p/b.py", "alpha = 1\ngamma = 3\n")],
        "alpha = 1\nalpha = 1\n",
        "p/a.py 1; p/b.py 1",
    );
    // Lines that both files start with belong to the one whose later lines follow.
    check("cat a.rs; sed -n 6,8p b.rs", &files, &format!("{a}struct C {{\n    x: u32,\n}}\n"), "a.rs 1-18; b.rs 6-8");
    check("cat a.rs; cat b.rs", &files, &format!("{a}{b}"), "a.rs 1-18; b.rs 1-8");
}

#[test]
fn of_files_that_are_not_named_only_one_can_be_meant() {
    let text = Text::of(CODE.to_owned()).unwrap();
    let check = |rank: CandidateRank, files: &[&str], output: &str, expected: usize| {
        let candidates: Vec<Candidate<'_>> = files.iter().map(|path| Candidate { path, text: &text, rank }).collect();
        let shown = PrintedOutput::new("./show", output).lines_of(&candidates);
        assert_eq!(shown.iter().map(LineSet::count).sum::<u32>() as usize, expected, "{rank:?} {files:?}");
    };
    check(CandidateRank::Possible, &["a.rs"], CODE, 15);
    check(CandidateRank::Possible, &["a.rs", "b.rs"], CODE, 0);
    check(CandidateRank::Possible, &["a.rs"], "    let x = parse(p);\n", 1);
    check(CandidateRank::Recent, &["a.rs"], "    let x = parse(p);\n", 0);
    check(CandidateRank::Recent, &["a.rs"], CODE, 15);
}

#[test]
fn a_diff_shows_the_file_as_it_is() {
    let b = CODE.replace("    x\n", "    x + 0\n");
    let hunk = "@@ -3,7 +3,7 @@\n     if x > 3 {\n         return 1;\n     }\n-    x\n+    x + 0\n }\n \n fn save(p: &str) {\n";
    check(
        "diff -u a.rs b.rs",
        &[("a.rs", CODE), ("b.rs", &b)],
        &format!("--- a.rs\t2026-11-15\n+++ b.rs\t2026-11-15\n{hunk}"),
        "a.rs 3-9; b.rs 3-9",
    );
    check("git diff", &[("b.rs", &b)], &format!("diff --git a/b.rs b/b.rs\n--- a/b.rs\n+++ b/b.rs\n{hunk}"), "b.rs 3-9");
    // A line removed here may occur elsewhere.
    let moved = "--- a/a.txt\n+++ b/a.txt\n@@ -2,3 +2,2 @@\n middle line\n-top line\n kept line\n";
    check("git diff", &[("a.txt", "top line\nmiddle line\nkept line\n")], moved, "a.txt 2-3");
    check(
        "diff a b",
        &[("a", "one fish\ntwo fish\n"), ("b", "one fish\nred fish\n")],
        "2c2\n< two fish\n---\n> red fish\n",
        "a 2; b 2",
    );
    // The file has changed since. Lines that are still equal count as seen.
    let later = format!("// new\n{b}");
    check("git show", &[("b.rs", &later)], &format!("--- a/b.rs\n+++ b/b.rs\n{hunk}"), "b.rs 4-10");
}

#[test]
fn old_versions_show_what_has_not_changed() {
    check_code("git show HEAD~1:a.rs", &CODE.replace("parse(p);\n    if x", "parse(p, 0);\n    if x"), "a.rs 1, 3-15");
}

#[test]
fn sorted_output_does_not_show_places() {
    let file = [("s.txt", "dog house\nowl house\ncat house\ndog house\nant house\n")];
    check("sort s.txt | uniq -c", &file, "      1 ant house\n      1 cat house\n      2 dog house\n      1 owl house\n", "");
    check("sort s.txt", &file, "ant house\ncat house\ndog house\ndog house\nowl house\n", "");
    check_code("set -x; grep -c 'return' a.rs", "+ grep -c return a.rs\n2\n", "");
}

#[test]
fn text_of_the_command_itself_shows_no_lines() {
    check_code("wc -l a.rs; echo 'fn save(p: &str) {'", "15 a.rs\nfn save(p: &str) {\n", "");
    check_code("sed -n 2,6p a.rs; echo; sed -n 10,11p a.rs", &format!("{}\n{}", lines(2, 6), lines(10, 11)), "a.rs 2-6, 10-11");
    check_code("sed -n 1,7p a.rs; sed -n 9,13p a.rs", &format!("{}{}", lines(1, 7), lines(9, 13)), "a.rs 1-7, 9-13");
}

#[test]
fn decorations_are_taken_off() {
    check("cat -A a", &[("a", "\tif x:\n\t\treturn é\n")], "^Iif x:$\n^I^Ireturn M-CM-)$\n", "a 1-2");
    let colours =
        "\u{1b}[32m\u{1b}[K1\u{1b}[m\u{1b}[K\u{1b}[36m\u{1b}[K:\u{1b}[m\u{1b}[K\u{1b}[01;31m\u{1b}[Ka\u{1b}[m\u{1b}[Klpha = 1\n";
    check("grep --color=always -n a a.py", &[("a.py", "alpha = 1\nbeta = 2\n")], colours, "a.py 1");
}

#[test]
fn large_outputs_and_files_take_linear_time() {
    // Equal lines, equal blocks and nearly unique lines. Only a linear search finishes in time.
    let file: String =
        (0..40_000).map(|n| if n % 3 == 0 { format!("line {}\n", n % 20_000) } else { "}\n".to_owned() }).collect();
    let text = Text::of(file.clone()).unwrap();
    let candidates = ["a", "b", "c"].map(|path| Candidate { path, text: &text, rank: CandidateRank::Named });
    let shown = PrintedOutput::new("cat a", &file).lines_of(&candidates);
    assert_eq!(shown[0].count(), 40_000);
    PrintedOutput::new("cat a", &"}\n".repeat(100_000)).lines_of(&candidates);
    PrintedOutput::new("cat a", &"1:".repeat(500_000)).lines_of(&candidates);
}

#[test]
fn a_line_that_is_gone_leaves_its_neighbours_unseen() {
    let older = CODE.replace("    x\n", "    log(x);\n    x\n");
    check_code("git show HEAD:a.rs", &older, "a.rs 1-4, 7-15");
    let numbered: String = older.lines().zip(1..).map(|(line, number)| format!("{number:6}\t{line}\n")).collect();
    check_code("git show HEAD:a.rs | cat -n", &numbered, "a.rs 1-4, 7-15");
    // Even if the file has that line elsewhere, or the line has no words.
    check_code("git show HEAD:a.rs", &CODE.replace("    x\n", "fn save(p: &str) {\n    x\n"), "a.rs 1-4, 7-15");
    check_code("git show HEAD:a.rs", &CODE.replace("    x\n", "\n    x\n"), "a.rs 1-4, 7-15");
    // At the edges of a file, only a named revision decides, because another program may have printed the line before.
    check_code("git show HEAD:a.rs", &format!("use serde::Value;\n{CODE}"), "a.rs 2-15");
    check_code("git show 'HEAD~2:./a.rs' | cat", &format!("{CODE}\nfn gone() {{}}\n"), "a.rs 1-14");
    check_code("ls; cat a.rs", &format!("b.rs\n{CODE}"), "a.rs 1-15");
    // Text of the command itself, file names and numbers explain the rows in between.
    check_code(
        "sed -n 1,6p a.rs; echo == more; sed -n 7,15p a.rs",
        &format!("{}== more\n{}", lines(1, 6), lines(7, 15)),
        "a.rs 1-15",
    );
    let frames = "error: no\n --> a.rs:2:9\n  |\n2 |     let x = parse(p);\n  |         ^ unused\n3 |     if x > 3 {\n";
    check_code("cargo check", frames, "a.rs 2-3");
}
