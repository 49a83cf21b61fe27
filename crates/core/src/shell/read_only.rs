//! Decides whether a command is known to change no file. A table lists the known programs; any other program, option or
//! construct makes the answer no.

use super::{
    side_effects::{GIT_READS, READERS, adds_side_effect, is_one_of},
    words::{ShellWord, split_commands},
};

/// Whether every program that a command runs is known to read only.
///
/// ```
/// use surehand_core::shell::only_reads;
///
/// assert!(only_reads("cd src && sed -n '1,80p' a.rs | grep -n foo"));
/// assert!(!only_reads("sed -i s/a/b/ a.rs"));
/// assert!(!only_reads("cat a > b"));
/// ```
pub fn only_reads(command: &str) -> bool {
    let only_reads = |words: &Vec<ShellWord>| {
        let Some((program, arguments)) = program(words) else { return false };
        let given = words.len() - arguments.len();
        program_only_reads(program, arguments) && !adds_side_effect(&words[given - 1..], 1)
    };
    flat_commands(command, 0).is_some_and(|commands| commands.iter().all(only_reads))
}

/// Whether a command only reads, and only in the directory where it starts. In another directory, git would use the
/// configuration of a repository there, which may name programs to run.
pub fn only_reads_here(command: &str) -> bool {
    let Some(commands) = split_commands(command) else { return false };
    let has = |texts: &[&str]| commands.iter().flatten().any(|word| texts.contains(&word.text.as_str()));
    let calls_git = commands.iter().flatten().any(|word| word.text.contains("git"));
    // The script of a nested shell is not examined.
    only_reads(command) && !has(&["bash", "sh", "zsh", "dash"]) && !(calls_git && has(&["cd", "-C"]))
}

/// The commands of a script, with those of nested `sh -c` scripts in their place; `None` if a script is not understood.
pub(super) fn flat_commands(script: &str, depth: usize) -> Option<Vec<Vec<ShellWord>>> {
    const DEEPEST: usize = 3;
    let mut flat = Vec::new();
    for words in split_commands(script)? {
        match program(&words) {
            Some(("bash" | "sh" | "zsh" | "dash", arguments)) => {
                let script = script_of_shell(arguments).filter(|_| depth < DEEPEST)?;
                flat.extend(flat_commands(script, depth + 1)?);
            }
            _ => flat.push(words),
        }
    }
    Some(flat)
}

/// The program and its arguments, without prefixes such as variable assignments.
pub(super) fn program(words: &[ShellWord]) -> Option<(&str, &[ShellWord])> {
    let harmless = |name: &str| name.starts_with("LC_") || ["LANG", "LANGUAGE", "TERM", "NO_COLOR"].contains(&name);
    let set = words.iter().take_while(|word| word.assigned_variable().is_some()).count();
    if !words[..set].iter().all(|word| word.assigned_variable().is_some_and(harmless)) {
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

fn script_of_shell(arguments: &[ShellWord]) -> Option<&str> {
    let [options @ .., option, script] = arguments else { return None };
    let is_login = |option: &ShellWord| option.text == "-l" || option.text == "--login";
    (options.iter().all(is_login) && ["-c", "-lc", "-cl"].contains(&option.text.as_str())).then_some(&script.text)
}

fn program_only_reads(program: &str, arguments: &[ShellWord]) -> bool {
    match program {
        "sed" | "rg" | "sort" | "uniq" | "find" => true,
        "git" => arguments.iter().any(|word| is_one_of(&word.text, GIT_READS)),
        _ => is_one_of(program, READERS),
    }
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
    fn git_elsewhere_may_run_what_a_repository_there_names() {
        for command in ["git status", "cd src && cat a", "git log | grep -n x", "command git diff"] {
            assert!(only_reads_here(command), "{command}");
        }
        for command in [
            "cd sub && git status",
            "cd sub; g'i't status",
            "'c'd sub; git status",
            "git -C sub status",
            "bash -c 'git -C sub status'",
            "sh -c \"cat a\"",
            "make",
        ] {
            assert!(!only_reads_here(command), "{command}");
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
