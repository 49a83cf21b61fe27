//! Arguments that make a program write a file or run another program: `git diff --output`, `find -exec`, `tar
//! --to-command`. They are a table, because nothing else distinguishes them from other options. Everything else is left
//! to the sandbox of the command, or to a person.

use super::words::ShellWord;

// The lists here are strings of words separated by blanks, so that each fits on a few lines.

/// Programs without any option that writes a file or runs a program.
pub(super) const READERS: &str = "cat nl head tail tac wc ls pwd cd grep egrep fgrep cut tr rev fold expand paste comm cmp diff \
    true false test [ stat du df basename dirname realpath readlink which echo printf od seq md5sum sha1sum sha256sum cksum strings";

/// The commands of git that only read, as long as no option is risky.
pub(super) const GIT_READS: &str = "status diff log show blame ls-files ls-tree grep rev-parse cat-file shortlog describe";

/// Whether the words of a command after the first `given` may make its program write a file or run another program. A
/// person has allowed the given words.
pub(super) fn adds_side_effect(command: &[ShellWord], given: usize) -> bool {
    let set = command.iter().take_while(|word| word.assigned_variable().is_some()).count();
    let Some(name) = command.get(set) else { return true };
    let program = name.text.rsplit('/').next().unwrap_or_default();
    let (own, free) = command[set + 1..].split_at(given.saturating_sub(set + 1).min(command.len() - set - 1));
    if free.is_empty() || is_one_of(program, READERS) {
        return false;
    }
    // A pattern may expand to a file name that the program interprets as an option.
    let may_become_option = |word: &ShellWord| word.expands && word.text.starts_with(['*', '?', '[', '{', '-']);
    free.iter().any(may_become_option) || Arguments { own, free }.are_risky(program)
}

/// The arguments of a program: those that a person allowed, and the free ones after them.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    own: &'a [ShellWord],
    free: &'a [ShellWord],
}

impl<'a> Arguments<'a> {
    fn are_risky(self, program: &str) -> bool {
        match program {
            "git" => self.are_risky_for_git(),
            "sed" => self.are_risky_for_filter(only_prints),
            "awk" | "gawk" | "mawk" | "nawk" => self.are_risky_for_filter(awk_only_prints),
            "tar" | "bsdtar" => self.are_risky_for_tar(),
            // The second operand is a file to write.
            "uniq" | "xxd" => self.all().filter(|word| !is_option(word)).count() > 1,
            "ssh" | "scp" | "sftp" | "less" | "more" | "man" | "vi" | "vim" | "nvim" | "view" | "nano" | "ed" | "ex"
            | "emacs" => !self.own_names_something() || self.free().any(|word| word.starts_with(['-', '+'])),
            _ if is_one_of(program, RUNNERS) => !self.own_names_something(),
            _ if is_one_of(program, INTERPRETERS) || program.starts_with("python") => {
                !self.own_names_something() && self.free().next().is_some_and(|word| word.starts_with('-'))
            }
            _ => {
                let options = RISKY.iter().find(|options| is_one_of(program, options.programs)).unwrap_or(&ANY_PROGRAM);
                self.free().any(|word| options.cover(word))
            }
        }
    }

    fn free(self) -> impl Iterator<Item = &'a str> {
        self.free.iter().map(|word| word.text.as_str())
    }

    fn all(self) -> impl Iterator<Item = &'a str> {
        self.own.iter().chain(self.free).map(|word| word.text.as_str())
    }

    /// Whether one of the person's words can be the program or script that all other words are arguments of.
    fn own_names_something(self) -> bool {
        let is_name = |word: &&ShellWord| {
            !is_option(&word.text) && !word.text.contains('=') && !word.text.starts_with(|c: char| c.is_ascii_digit())
        };
        self.own.iter().any(|word| is_name(&word))
    }

    fn are_risky_for_git(self) -> bool {
        let mut words = self.all();
        let mut taken = 0;
        let command = loop {
            taken += 1;
            match words.next() {
                None => return false,
                Some("--no-pager" | "--version") => {}
                Some("-C") => {
                    taken += 1;
                    words.next();
                }
                // The person chose this option, and is responsible for its value.
                Some(option) if is_option(option) && taken <= self.own.len() => {
                    if ["-c", "--git-dir", "--work-tree", "--namespace", "--config-env"].contains(&option) {
                        taken += 1;
                        words.next();
                    }
                }
                Some(option) if is_option(option) => return true,
                Some(command) => break command,
            }
        };
        if taken > self.own.len() && !is_one_of(command, GIT_READS) || is_one_of(command, GIT_RUNS) {
            return true;
        }
        let short = match command {
            "grep" => "O",
            "archive" | "format-patch" => "o",
            "rebase" => "x",
            "clone" => "cu",
            _ => "",
        };
        let options = RiskyOptions { short, ..GIT };
        let own_rest = taken.saturating_sub(self.own.len());
        self.free().skip(own_rest).any(|word| options.cover(word) || word.starts_with("ext::"))
    }

    /// Checks a program whose first operand is a script, unless the script is among the person's words.
    fn are_risky_for_filter(self, only_prints: fn(&[&str]) -> bool) -> bool {
        if self.own.iter().any(|word| !is_option(&word.text)) {
            return self.free().any(is_option);
        }
        !only_prints(&self.all().collect::<Vec<_>>())
    }

    /// Only listing an archive is known not to write.
    fn are_risky_for_tar(self) -> bool {
        let lists = |letters: &str| letters.chars().all(|c| "tvfzjJ".contains(c));
        let is_key = |at: usize| at == 0 && self.own.is_empty();
        self.free().enumerate().any(|(at, word)| match word.strip_prefix('-') {
            Some(option) if option.starts_with('-') => !["-list", "-verbose", "-gzip", "-xz"].contains(&option),
            Some(letters) => !lists(letters),
            None if is_key(at) => !lists(word),
            // An archive on another machine is opened by another program.
            None => word.contains(':'),
        })
    }
}

/// Whether a list of words separated by blanks contains this word.
pub(super) fn is_one_of(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1
}

/// Whether a `sed -n` script has only `p`, `q` and `=` with line numbers: other commands of sed write files and run
/// programs.
fn only_prints(arguments: &[&str]) -> bool {
    let is_script = |script: &str| {
        let commands = script.split([';', '\n']).map(str::trim).filter(|command| !command.is_empty());
        let place = |place: &str| place.chars().all(|c| c.is_ascii_digit() || " ,$+~!".contains(c));
        commands.into_iter().all(|command| command.strip_suffix(['p', 'q', '=']).is_some_and(place))
    };
    let mut words = arguments.iter().filter(|word| !matches!(**word, "-n" | "--quiet" | "--silent" | "-E" | "-r"));
    words.next().is_some_and(|script| !is_option(script) && is_script(script)) && !words.any(|word| is_option(word))
}

/// Whether an awk script has no pipes, redirections, input from commands, and calls that run programs or load code.
fn awk_only_prints(arguments: &[&str]) -> bool {
    let mut words = arguments.iter();
    let script = loop {
        match words.next() {
            Some(&("-F" | "-v")) => drop(words.next()),
            Some(option) if option.starts_with("-F") || option.starts_with("-v") => {}
            script => break script,
        }
    };
    let acts = ["system", "|", ">", "getline", "@", "close", "-i", "-f"];
    script.is_some_and(|script| !is_option(script) && !acts.iter().any(|act| script.contains(act)))
        && !words.any(|word| is_option(word))
}

/// Options of some programs that write files or run programs.
#[derive(Clone, Copy)]
struct RiskyOptions {
    programs: &'static str,
    /// Names after two dashes, which may be shortened and joined to a value with `=`.
    long: &'static str,
    /// Names after one dash or two, never shortened, as `find` and `go` have them.
    words: &'static str,
    /// Letters after one dash, anywhere in a cluster.
    short: &'static str,
}

impl RiskyOptions {
    const fn of(programs: &'static str, long: &'static str, short: &'static str) -> Self {
        Self { programs, long, words: "", short }
    }

    fn cover(&self, word: &str) -> bool {
        let Some(option) = word.strip_prefix('-') else { return false };
        let long = option.strip_prefix('-');
        let name = long.unwrap_or(option).split('=').next().unwrap_or_default();
        let is_word = is_one_of(name, self.words);
        match long {
            Some(_) => is_word || !name.is_empty() && self.long.split_ascii_whitespace().any(|risky| risky.starts_with(name)),
            None => is_word || option.contains(|c| self.short.contains(c)),
        }
    }
}

/// Programs whose arguments are a command to run.
const RUNNERS: &str = "xargs env nohup nice ionice timeout time watch parallel sudo doas su exec eval source . command builtin stdbuf \
    setsid chroot unshare nsenter strace ltrace gdb flock script busybox entr trap alias sh bash dash zsh ksh fish";

/// Programs that take code from their options.
const INTERPRETERS: &str = "perl ruby node nodejs deno bun php lua tclsh";

/// Commands of git that run a program among their arguments, or that set which programs git runs.
const GIT_RUNS: &str = "bisect config credential daemon difftool filter-branch help hook instaweb maintenance mergetool send-email \
    submodule web--browse";

const GIT: RiskyOptions = RiskyOptions::of(
    "git",
    "output output-directory ext-diff textconv filters open-files-in-pager exec exec-path upload-pack receive-pack \
        template config config-env extcmd edit git-dir work-tree",
    "",
);

/// The usual names of such options, for programs that are not in the table.
const ANY_PROGRAM: RiskyOptions = RiskyOptions::of(
    "",
    "output output-file output-dir outfile outdir out-dir log-file exec command pager editor shell in-place \
        to-command compress-program preprocessor",
    "",
);

const RISKY: [RiskyOptions; 21] = [
    RiskyOptions { words: "exec execdir ok okdir delete fls fprint fprint0 fprintf", ..RiskyOptions::of("find gfind", "", "") },
    RiskyOptions::of("fd fdfind", "exec exec-batch", "xX"),
    RiskyOptions::of("rg", "pre hostname-bin", ""),
    RiskyOptions::of("ag ack", "pager output ackrc", ""),
    RiskyOptions::of("sort gsort", "output compress-program temporary-directory", "oT"),
    RiskyOptions::of("tree", "output", "oR"),
    RiskyOptions::of("file", "compile", "C"),
    RiskyOptions::of("diff3 sdiff", "diff-program output", "o"),
    RiskyOptions::of("bat batcat", "pager", ""),
    RiskyOptions::of("yq", "inplace", "i"),
    RiskyOptions::of("date hostname", "set file", "sF"),
    RiskyOptions::of(
        "curl",
        "output output-dir remote-name remote-name-all remote-header-name config dump-header cookie-jar trace \
        trace-ascii stderr hsts alt-svc etag-save libcurl engine",
        "oOKDcJ",
    ),
    RiskyOptions::of("wget", "output-document output-file execute use-askpass directory-prefix", "oOeP"),
    RiskyOptions::of("rsync", "rsh rsync-path log-file write-batch delete remove-source-files", "e"),
    RiskyOptions::of("zip unzip", "unzip-command", "T"),
    RiskyOptions::of("make gmake", "eval file makefile directory include-dir", "fCEI"),
    RiskyOptions::of("cargo", "config target-dir artifact-dir out-dir manifest-path lockfile-path root", "CZ"),
    RiskyOptions::of(
        "npm npx pnpm yarn",
        "script-shell node-options shell editor viewer prefix userconfig globalconfig call cwd",
        "",
    ),
    RiskyOptions {
        words: "exec toolexec vettool o C modfile overlay pkgdir outputdir coverprofile cpuprofile memprofile blockprofile \
            mutexprofile trace ldflags gcflags asmflags",
        ..RiskyOptions::of("go", "", "")
    },
    RiskyOptions::of(
        "pytest py.test",
        "basetemp junitxml junit-xml log-file rootdir override-ini pdbcls debug confcutdir",
        "pco",
    ),
    RiskyOptions::of("ruff eslint prettier black tsc", "fix output-file write outdir outfile config", "ow"),
];

#[cfg(test)]
mod tests {
    use super::{super::words::split_commands, *};

    #[track_caller]
    fn check(given: usize, commands: &[&str], expected: bool) {
        for command in commands {
            let words = split_commands(command).unwrap().remove(0);
            assert_eq!(adds_side_effect(&words, given), expected, "{command}");
        }
    }

    #[test]
    fn options_that_write_or_run_are_known_in_every_spelling() {
        check(1, &["sort -oa b", "sort -ro a b", "sort --outp=a b", "sort --output a", "sort --comp=sh a", "sort -T. a"], true);
        check(1, &["find . -exec rm {} +", "find . -delete", "find . -fprintf a x", "fd -x rm", "rg --pre ./x a"], true);
        check(
            1,
            &["tar xf a", "tar -tf a --to-command=x", "tar tf a --checkpoint-action=exec=x", "tar tf host:a", "tar tIx a"],
            true,
        );
        check(1, &["xargs rm", "env A=1 rm", "ssh -oProxyCommand=x a", "less +!x", "man -Px ls", "timeout 5 rm", "bash a"], true);
        check(
            1,
            &["uniq a b", "python3 -c x", "perl -e x", "go test -exec x", "go test --exec=x", "cargo test --config a=b"],
            true,
        );
        check(2, &["go test -o=x", "npm test --script-shell=x", "npm run --script-s x", "make all SHELL=x --eval=x"], true);
        check(
            1,
            &["curl -sO a", "curl --outp a b", "wget -O a b", "unknown --output=a", "unknown --in-place", "unknown --ex x"],
            true,
        );
    }

    #[test]
    fn other_options_are_free() {
        check(
            1,
            &["sort -rn a", "find . -name x -type f", "rg -n --glob x a", "tar tvf a.tar", "uniq -c a", "python3 a.py"],
            false,
        );
        check(
            2,
            &["cargo test -p a -- --nocapture", "npm test --silent", "go test -run=x ./a", "cargo test --color never"],
            false,
        );
        check(1, &["ls --output", "cat -o", "make all", "env", "unknown -o a", "sort", "tree -L 2"], false);
    }

    #[test]
    fn words_chosen_by_a_person_are_trusted() {
        check(
            3,
            &["find . -delete", "sort -o a b", "timeout 5 rm x", "git diff --output=a", "xargs -0 rm x", "tar xf a b"],
            false,
        );
        check(3, &["sed -n 1p a", "sed -i s/a/b/ a", "awk -F: {} a", "bash -x fix"], false);
    }

    #[test]
    fn git_is_known_by_its_commands() {
        check(
            2,
            &["git diff --outp=a", "git diff --output a", "git log --ext-diff", "git grep -nOvim a", "git grep --open a"],
            true,
        );
        check(
            2,
            &[
                "git fetch ext::sh",
                "git fetch --upload-pack=x a",
                "git rebase -x x",
                "git rebase --exec x",
                "git show --textconv",
            ],
            true,
        );
        check(
            2,
            &["git archive -oa HEAD", "git clone -c a=b c", "git clone --template=x c", "git config a b", "git bisect run x"],
            true,
        );
        check(
            2,
            &["git diff *", "git diff [a]", "git diff {--output=a,b}", "git diff --outpu{t=a,}", "git submodule foreach x"],
            true,
        );
        check(
            1,
            &["git -c a=b status", "git --exec-path=. status", "git -p log", "git wipe", "git commit", "git --git-dir a log"],
            true,
        );
        check(1, &["git status", "git -C a log --oneline", "git --no-pager diff", "git --version", "git"], false);
        check(
            2,
            &["git diff --stat HEAD~1 -- a", "git log --oneline -5", "git log -SFOO", "git grep -n a", "git commit -m x"],
            false,
        );
        check(3, &["git -C a log --output=x", "git --no-pager grep -O", "git -C a config x", "git -C a submodule x"], true);
        check(3, &["git -C a log -5", "git --no-pager diff a"], false);
    }

    #[test]
    fn scripts_only_print() {
        check(1, &["sed s/a/b/e a", "sed -i 1p a", "sed -n 'w x' a", "sed -f a b", "sed -n 1p --in-place a", "sed 1e"], true);
        check(1, &["sed -n '1,5p;9q' a", "sed -n 1p a b", "awk '{ print $1 }' a", "awk -F: -v a=b '$1 == a' x"], false);
        check(
            1,
            &["awk 'BEGIN{system(\"x\")}'", "awk '{print > \"x\"}'", "awk '{print | \"x\"}'", "awk -f a b", "gawk -i inplace 1"],
            true,
        );
        check(1, &["awk '{ \"x\" | getline }'", "awk 1 -f a", "gawk -lx 1", "awk --file=a"], true);
    }
}
