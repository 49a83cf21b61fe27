//! Decides whether a command may delete or overwrite files unrelated to its purpose. This is a weaker test than whether
//! it only reads: a build writes, but it seldom overwrites other work.

use super::{
    read_only::{flat_commands, program},
    side_effects::is_one_of,
    words::ShellWord,
};

/// Whether some program of a command is made to delete, move or overwrite files, or is not known well enough to rule it
/// out.
///
/// ```
/// use surehand_core::shell::may_destroy;
///
/// assert!(may_destroy("git stash && make"));
/// assert!(may_destroy("echo x > notes.txt"));
/// assert!(!may_destroy("cargo test && git commit -m done"));
/// ```
pub fn may_destroy(command: &str) -> bool {
    let may_destroy =
        |words: &Vec<ShellWord>| program(words).is_none_or(|(program, arguments)| program_may_destroy(program, arguments));
    flat_commands(command, 0).is_none_or(|commands| commands.iter().any(may_destroy))
}

fn program_may_destroy(program: &str, arguments: &[ShellWord]) -> bool {
    match program {
        "rm" | "rmdir" | "unlink" | "shred" | "mv" | "cp" | "dd" | "truncate" | "tee" | "install" | "ln" | "find" | "xargs"
        | "rsync" | "parallel" | "patch" | "tar" | "unzip" => true,
        // Their arguments contain the program to run.
        "sudo" | "doas" | "env" | "time" | "nice" | "nohup" | "timeout" | "exec" | "eval" | "source" | "." | "ssh" => true,
        "sed" | "perl" | "ruby" => arguments.iter().any(|word| is_in_place(&word.text)),
        "git" => git_may_destroy(arguments),
        _ => false,
    }
}

fn is_in_place(option: &str) -> bool {
    option.starts_with("--in-place") || (option.starts_with('-') && !option.starts_with("--") && option.contains('i'))
}

/// The commands of git that keep the files of the work tree.
const GIT_KEEPS: &str = "add archive blame branch cat-file commit config describe diff fetch grep init log ls-files ls-remote \
    ls-tree notes push reflog remote rev-list rev-parse shortlog show status tag version";

fn git_may_destroy(arguments: &[ShellWord]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let mut subcommand = words.next();
    while let Some(option) = subcommand.filter(|word| word.starts_with('-')) {
        if matches!(option, "-C" | "-c") {
            words.next();
        }
        subcommand = words.next();
    }
    // An alias may run any command.
    subcommand.is_some_and(|name| !is_one_of(name, GIT_KEEPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_delete_or_overwrite_are_known() {
        for command in [
            "git checkout .",
            "git -C sub clean -fd",
            "git -c a.b=c stash",
            "git restore x",
            "git reset --hard",
            "git switch main",
            "git rebase main",
            "git pull",
            "git wipe",
            "rm -rf src",
            "cd a && /bin/mv b c",
            "find . -name x",
            "ls | xargs echo",
            "rsync -a a/ b/",
            "sed -i s/a/b/ x",
            "bash -c 'rm x'",
            "bash script.sh",
            "sudo ls",
            "python3 - <<'E'\nE",
            "cat a > b",
            "$X y",
            "echo $(rm x)",
        ] {
            assert!(may_destroy(command), "{command}");
        }
    }

    #[test]
    fn others_are_let_go() {
        for command in
            ["cargo test", "make -j4", "npm run build", "git add . && git commit -m x", "git status", "sed -n 1,2p a", "ls"]
        {
            assert!(!may_destroy(command), "{command}");
        }
    }
}
