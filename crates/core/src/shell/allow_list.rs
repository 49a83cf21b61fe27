//! Decides whether a list of allowed commands covers a command line. The list has the first words of commands, such as
//! `cargo test` and `git status`; the words after them are free. A line that could run a program that is not in the
//! list is not covered: an unnecessary question costs a moment, but a wrong answer may destroy data.

use super::{
    side_effects::adds_side_effect,
    words::{ShellWord, split_commands},
};

/// Whether a list covers every program that a command line runs.
///
/// ```
/// use surehand_core::shell::covered;
///
/// let allow = ["cargo test".to_owned(), "git status".to_owned()];
/// assert!(covered("cargo test -p core && git status", &allow));
/// assert!(!covered("cargo test; rm -r .", &allow));
/// assert!(!covered("git -c core.pager=rm status", &allow));
/// assert!(covered("anything > at-all", &["*".to_owned()]));
/// ```
///
/// Commands may be joined by `&&`, `||`, `|`, `;` or the end of a line; then each must be covered. A line with a
/// substitution, a variable, a subshell, a background job, a comment or a redirection other than `2>&1` and
/// `2>/dev/null` is not covered. A variable assignment before the program is a word like any other: the list must have
/// it, too. After the words of an entry, an option that is known to write a file or to run a program
/// (`git diff --output`, `find -exec`) is not covered.
pub fn covered(line: &str, allow: &[String]) -> bool {
    let entries: Vec<AllowedCommand> = allow.iter().filter_map(|entry| AllowedCommand::of(entry)).collect();
    if entries.iter().any(|entry| matches!(entry, AllowedCommand::Everything)) {
        return true;
    }
    let Some(commands) = split_commands(line) else { return false };
    commands.iter().all(|words| entries.iter().any(|entry| entry.covers(words)))
}

/// Whether this is a valid entry of such a list: the first words of one command, or `*` for everything. An invalid
/// entry covers nothing.
pub fn is_entry(text: &str) -> bool {
    AllowedCommand::of(text).is_some()
}

enum AllowedCommand {
    Everything,
    /// The first words of a command.
    Words(Vec<ShellWord>),
}

impl AllowedCommand {
    fn of(text: &str) -> Option<Self> {
        // Other programs write `cargo *` where `cargo` is enough here.
        let words = match text.trim() {
            "*" => return Some(Self::Everything),
            text => text.strip_suffix(" *").unwrap_or(text),
        };
        let mut commands = split_commands(words)?;
        let words = commands.pop().filter(|_| commands.is_empty())?;
        // Words that only set variables would cover any program after them.
        let names_a_program = words.iter().any(|word| word.assigned_variable().is_none());
        (names_a_program && !words.iter().any(|word| word.expands)).then_some(Self::Words(words))
    }

    fn covers(&self, command: &[ShellWord]) -> bool {
        let Self::Words(words) = self else { return true };
        let is_same = |(wanted, word): (&ShellWord, &ShellWord)| {
            !word.expands
                && word.text == wanted.text
                && word.assigned_variable().is_some() == wanted.assigned_variable().is_some()
        };
        command.len() >= words.len() && words.iter().zip(command).all(is_same) && !adds_side_effect(command, words.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    fn usual() -> Vec<String> {
        list(&["cargo test", "git status", "npm run lint", "ls", "find", "tail"])
    }

    #[track_caller]
    fn check(lines: &[&str], expected: bool) {
        for line in lines {
            assert_eq!(covered(line, &usual()), expected, "{line:?}");
        }
    }

    #[test]
    fn an_entry_covers_what_begins_with_its_words() {
        check(&["cargo test", "cargo test -p core -- --nocapture", "git status", "npm run lint", "ls"], true);
        check(&["cargo", "cargo build", "cargo testing", "cargo-test", "cargotest", "git", "npm run", "npm lint run"], false);
        check(&["Cargo test", "./cargo test", "/usr/bin/cargo test", "command cargo test", "exec ls", "eval ls"], false);
    }

    #[test]
    fn blanks_and_quotes_are_taken_as_the_shell_takes_them() {
        check(
            &["cargo\ttest", "  cargo   test \n", "cargo 'test'", "\"cargo\" te\"st\"", "c\\argo test", "cargo \\\n test"],
            true,
        );
        check(&["ls 'a;rm b'", "ls \"a && rm b\"", "ls a\\;rm", "ls '$(rm)'", "ls '`rm`'", "ls \"\\$(rm)\"", "ls a\\>b"], true);
        check(
            &["'cargo test'", "\"cargo test\"", "cargo\\ test", "cargo\u{a0}test", "cargo\u{2003}test", "cargo\u{b}test"],
            false,
        );
        check(&["cargo\rtest", "cargo test\r", "cargo '' test", "ls 'a", "ls \"a", "ls a\\", "ls 'a' b'", "ls \"a\\\""], false);
    }

    #[test]
    fn each_command_of_a_chain_must_be_covered() {
        check(
            &["cargo test && git status", "cargo test;ls", "cargo test || ls", "cargo test | tail -5", "ls\nls", "ls &&\n ls"],
            true,
        );
        check(&["cargo test; rm a", "cargo test;rm a", "cargo test && rm a", "cargo test&&rm a", "cargo test || rm a"], false);
        check(&["cargo test | sh", "cargo test|sh", "cargo test\nrm a", "rm a; cargo test", "rm a\ncargo test"], false);
        check(
            &["ls |& rm", "ls |& ls", "ls &", "ls & rm", "ls & ls", "ls &&& rm", "ls ;; ls", "ls ;", "; ls", "ls |", "ls &&"],
            false,
        );
        check(&["ls \\\n; rm", "ls \\\n rm\\\n", "ls;\\\nrm", "ls |\\\n| rm", "ls &\\\n& rm"], false);
    }

    #[test]
    fn a_line_with_a_substitution_or_a_subshell_is_never_covered() {
        check(&["git status$(rm)", "git status $(rm)", "git status `rm`", "git status \"$(rm)\"", "git status \"`rm`\""], false);
        check(
            &["(ls)", "ls; (rm)", "ls <(rm)", "ls >(rm)", "ls 2>(rm)", "{ ls; }", "ls() { rm; }; ls", "function ls { rm; }"],
            false,
        );
        check(
            &["$(echo ls)", "`echo ls`", "${x:-ls}", "$x", "ls $x", "ls ${x:=$(rm)}", "ls \"${x}\"", "ls $((a[$(rm)]))"],
            false,
        );
        check(&["ls $'a'", "ls $\"a\"", "ls $\\\n(rm)", "ls \"$\\\n(rm)\"", "ls \"a$\\\n{x}\"", "ls $\\\n'a'"], false);
        check(
            &["if ls; then rm; fi", "if ls; then ls; fi", "while ls; do ls; done", "! ls", "time ls", "case a in a) ls;; esac"],
            false,
        );
    }

    #[test]
    fn nothing_may_be_written_or_read_on_the_side() {
        check(
            &["cargo test 2>&1", "cargo test 2>/dev/null", "cargo test 2>&1 | tail -5", "cargo test 2>&1|tail", "ls 2>&1; ls"],
            true,
        );
        check(&["ls > a", "ls >a", "ls>a", "ls >> a", "ls 2> a", "ls 2>>a", "ls &> a", "ls >& a", "ls >| a", "ls 1>&2"], false);
        check(
            &[
                "ls < a",
                "ls << a\nb\na",
                "ls <<< a",
                "ls <> a",
                "ls 2>&1a",
                "ls 2>&1$(rm)",
                "ls 2>/dev/nullx",
                "ls 2>/dev/null/../a",
            ],
            false,
        );
        check(&["> a", ">a ls", "2>&1", "2>/dev/null"], false);
    }

    #[test]
    fn words_before_the_program_count() {
        check(&["FOO=1 cargo test", "PATH=. ls", "LD_PRELOAD=./a.so ls", "env FOO=1 rm", "env ls", "sudo ls", "nice ls"], false);
        check(&["A+=1 ls", "A[0]=1 ls", "A= ls", "A='b c' ls", "A=1", "git -c core.pager=x status", "git -C .. status"], false);
        let allow = list(&["FOO=1 cargo test", "env", "timeout 60 cargo test"]);
        assert!(covered("FOO=1 cargo test -v", &allow) && covered("timeout 60 cargo test -v", &allow) && covered("env", &allow));
        assert!(!covered("env FOO=1 rm", &allow) && !covered("env cargo test", &allow));
        assert!(!covered("FOO=2 cargo test", &allow) && !covered("'FOO=1' cargo test", &allow) && !covered("cargo test", &allow));
    }

    #[test]
    fn patterns_are_arguments_and_never_programs() {
        check(&["ls *.rs", "ls src/?.rs", "ls [ab]", "ls {a,b}", "ls ~", "ls a~ b=c", "find . -name '*'"], true);
        check(&["l*", "cargo t*t", "cargo te?t", "cargo [t]est", "{ls,-a}", "cargo {test,x}", "~/ls", "=ls", "*"], false);
    }

    #[test]
    fn options_that_write_or_run_are_not_covered_by_the_words_before_them() {
        check(
            &["find . -exec rm {} \\;", "find . -delete", "find *", "git status --output=a", "git status \\\n --outp\\ut a"],
            false,
        );
        check(
            &["cargo test --config a=b", "git status && find . -fls a", "npm run lint --script-shell=./a", "ls | find . -ok a"],
            false,
        );
        assert!(
            covered("find . -delete", &list(&["find . -delete"]))
                && !covered("find . -delete -fls a", &list(&["find . -delete"]))
        );
    }

    #[test]
    fn comments_are_asked_about() {
        check(&["ls # a", "# a\nls", "ls;#a\nrm", "ls #a\nrm", "#"], false);
        check(&["ls a#b", "ls '#'", "ls \\#"], true);
    }

    #[test]
    fn nothing_covers_nothing() {
        check(&["", " ", "\n", "''", "\"\"", "\\\n"], false);
        for allow in [list(&[]), list(&["", " ", "''", "\n"])] {
            assert!(!covered("ls", &allow) && !covered("", &allow) && !covered("rm", &allow), "{allow:?}");
        }
    }

    #[test]
    fn a_star_covers_everything() {
        for line in ["", "rm -r /", "ls > a", "$(rm)", "'"] {
            assert!(covered(line, &list(&["ls", " * "])), "{line}");
        }
        assert!(covered("cargo build", &list(&["cargo *"])) && !covered("rm", &list(&["cargo *"])));
        assert!(!covered("cargo build > a", &list(&["cargo *"])));
    }

    #[test]
    fn an_entry_is_the_beginning_of_one_command() {
        for entry in ["ls", "cargo test", " git  status ", "*", "cargo *", "A=1 make", "git commit -m 'a b'", "make 2>&1"] {
            assert!(is_entry(entry), "{entry}");
        }
        for entry in
            ["", " ", "ls; rm", "a && b", "a | b", "ls > a", "$x", "$(a)", "ls *.rs", "l*", "A=1", "A=1 B=2", "'a", "* ls"]
        {
            assert!(!is_entry(entry), "{entry}");
            // It covers nothing, not even itself.
            assert!(!covered(entry, &list(&[entry])), "{entry}");
        }
    }

    proptest! {
        /// Whatever surrounds it, a program that is not in the list does not run without a question.
        #[test]
        fn another_program_is_never_covered(before in "[a-z '\"$\\\\]{0,4}", join in "(;|&&|\\|\\||\\||\n|&|; \\\\\n)", after in "[ -z]{0,6}") {
            let line = format!("ls {before}{join}rm {after}");
            // Inside quotes or behind a backslash it is an argument.
            let is_argument = before.contains(['\'', '"', '\\']);
            prop_assert!(is_argument || !covered(&line, &usual()), "{line:?}");
        }

        /// A quoted argument is only an argument, whatever it contains.
        #[test]
        fn a_quoted_argument_changes_nothing(argument in "[^'\0]{0,20}") {
            let line = format!("ls '{argument}'");
            prop_assert!(covered(&line, &usual()), "{line:?}");
        }
    }
}
