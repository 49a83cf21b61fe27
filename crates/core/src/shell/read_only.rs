//! Whether a command is known to change no file. Only what is in a table is known; a program, an option or a construct that is not
//! makes the answer no.

use super::words::{ShellWord, chain};

/// Whether every program that a command runs is known to read, and to do nothing else.
///
/// ```
/// use surehand_core::shell::only_reads;
///
/// assert!(only_reads("cd src && sed -n '1,80p' a.rs | grep -n foo"));
/// assert!(!only_reads("sed -i s/a/b/ a.rs"));
/// assert!(!only_reads("cat a > b"));
/// ```
pub fn only_reads(command: &str) -> bool {
    script_only_reads(command, 0)
}

fn script_only_reads(script: &str, depth: usize) -> bool {
    const DEEPEST: usize = 3;
    let Some(chain) = chain(script) else { return false };
    chain.commands.iter().all(|words| {
        let Some((program, arguments)) = program(words) else { return false };
        match program {
            "bash" | "sh" | "zsh" | "dash" => {
                depth < DEEPEST && script_of_shell(arguments).is_some_and(|script| script_only_reads(script, depth + 1))
            }
            _ => program_only_reads(program, arguments),
        }
    })
}

/// The name of the program and its arguments, without what may stand in front.
pub(super) fn program(words: &[ShellWord]) -> Option<(&str, &[ShellWord])> {
    let harmless = |name: &str| name.starts_with("LC_") || ["LANG", "LANGUAGE", "TERM", "NO_COLOR"].contains(&name);
    let set = words.iter().take_while(|word| word.assigns().is_some()).count();
    if !words[..set].iter().all(|word| word.assigns().is_some_and(harmless)) {
        return None;
    }
    let mut words = &words[set..];
    if words.first().is_some_and(|word| word.text == "command") {
        words = &words[1..];
    }
    let (name, arguments) = words.split_first().filter(|(name, _)| !name.expands)?;
    let places = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"];
    Some((places.iter().find_map(|place| name.text.strip_prefix(place)).unwrap_or(&name.text), arguments))
}

pub(super) fn script_of_shell(arguments: &[ShellWord]) -> Option<&str> {
    let [options @ .., option, script] = arguments else { return None };
    let is_login = |option: &ShellWord| option.text == "-l" || option.text == "--login";
    (options.iter().all(is_login) && ["-c", "-lc", "-cl"].contains(&option.text.as_str())).then_some(&script.text)
}

fn program_only_reads(program: &str, arguments: &[ShellWord]) -> bool {
    // A pattern may become the name of a file that is taken for an option.
    let is_certain = || !arguments.iter().any(|word| word.expands && word.text.starts_with(['*', '?', '[', '{']));
    let has = |is_it: &dyn Fn(&str) -> bool| arguments.iter().any(|word| is_it(&word.text));
    match program {
        "cat" | "nl" | "head" | "tail" | "tac" | "wc" | "ls" | "pwd" | "cd" | "grep" | "egrep" | "fgrep" | "cut" | "tr"
        | "rev" | "fold" | "expand" | "paste" | "comm" | "cmp" | "diff" | "true" | "false" | "test" | "[" | "stat" | "du"
        | "df" | "basename" | "dirname" | "realpath" | "readlink" | "which" | "echo" | "printf" | "od" | "seq" | "md5sum"
        | "sha256sum" => true,
        "sed" => sed_only_prints(arguments),
        "rg" => is_certain() && !has(&|word| word.starts_with("--pre") || word.starts_with("--hostname-bin")),
        "sort" => {
            is_certain() && !has(&|word| is_short_option(word, 'o') || word.starts_with("--o") || word.starts_with("--compress"))
        }
        // A second operand of uniq is its output.
        "uniq" => is_certain() && arguments.iter().filter(|word| !word.text.starts_with('-')).count() <= 1,
        "find" => {
            let acts = ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls"];
            is_certain() && !has(&|word| acts.contains(&word) || word.starts_with("-fprint"))
        }
        "git" => is_certain() && git_only_reads(arguments),
        _ => false,
    }
}

fn is_short_option(word: &str, letter: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
}

/// `sed -n` with nothing but `p`, `q` and `=` by line numbers: other commands of sed write files and run programs.
fn sed_only_prints(arguments: &[ShellWord]) -> bool {
    let is_script = |script: &str| {
        let commands = script.split([';', '\n']).map(str::trim).filter(|command| !command.is_empty());
        let place = |place: &str| place.chars().all(|c| c.is_ascii_digit() || " ,$+~!".contains(c));
        commands.into_iter().all(|command| command.strip_suffix(['p', 'q', '=']).is_some_and(place))
    };
    let mut words = arguments.iter().filter(|word| !matches!(word.text.as_str(), "-n" | "--quiet" | "--silent" | "-E" | "-r"));
    let is_option = |word: &ShellWord| word.text.starts_with('-') || word.expands;
    words.next().is_some_and(|script| !is_option(script) && is_script(&script.text))
        && !words.any(|word| word.text.starts_with('-'))
}

fn git_only_reads(arguments: &[ShellWord]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let mut subcommand = words.next();
    while let Some(option @ ("-C" | "--no-pager")) = subcommand {
        if option == "-C" {
            words.next();
        }
        subcommand = words.next();
    }
    let reads = ["status", "diff", "log", "show", "blame", "ls-files", "ls-tree", "grep", "rev-parse", "cat-file", "shortlog"];
    let runs = |word: &str| {
        ["--output", "--ext-diff", "--open-files", "--textconv", "--filters"].iter().any(|option| word.starts_with(option))
            || is_short_option(word, 'O')
    };
    subcommand.is_some_and(|name| reads.contains(&name)) && !words.any(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_programs_only_read() {
        for command in [
            "cat a",
            "ls -la src && sed -n '1,80p;5q' a.rs",
            "nl -ba a | sed -n '1,120p'",
            "LC_ALL=C grep -rn foo . 2>/dev/null | head -20",
            "cd src; rg -n 'a|b' -S .",
            "bash -lc 'cat a | wc -l'",
            "git --no-pager show HEAD:a",
            "git -C sub diff --stat",
            "find . -name '*.rs' -type f",
            "sort a | uniq -c",
            "cat src/*.rs",
        ] {
            assert!(only_reads(command), "{command}");
        }
    }

    #[test]
    fn whatever_may_write_is_not_known_to_read() {
        for command in [
            "",
            "make",
            "cat a > b",
            "tee a",
            "sed -i s/a/b/ a",
            "sed -n 'w x' a",
            "sed -n 1p -i a",
            "sed -n '1e date' a",
            "sed -n -f x a",
            "sort a -o a",
            "sort -ro a a",
            "sort *",
            "uniq a b",
            "find . -delete",
            "find . -exec rm {} +",
            "rg --pre ./x a",
            "git checkout .",
            "git -c core.pager=x log",
            "git diff --output=a",
            "git grep -Ovim x",
            "PATH=. cat a",
            "./cat a",
            "cat $(touch a)",
            "bash -c 'rm a'",
            "bash a.sh",
            "awk 1 a",
            "xargs cat",
        ] {
            assert!(!only_reads(command), "{command}");
        }
    }
}
