//! Which programs print lines of files, with which options, and how. What the words of a command are is known by
//! [`super::words`].

use super::{
    Act, Address, Names, Numbering, Part, Reading, Search, Step, What, join,
    options::{Takes, parse},
    words::{Word, commands},
};

/// What a shell command reads, if that is all it does; `None` for anything else: pipes, redirections, expansions, other programs,
/// options that change what is printed. `cd DIR &&` in front, several reads joined by `&&`, and a shell around it
/// (`bash -lc '…'`) are understood.
pub fn reads(command: &str) -> Option<Vec<Reading>> {
    let mut readings = Vec::new();
    script(command, None, 0, &mut readings)?;
    (!readings.is_empty()).then_some(readings)
}

fn script(script_text: &str, directory: Option<&str>, depth: usize, readings: &mut Vec<Reading>) -> Option<()> {
    const DEEPEST: usize = 3;
    let mut directory = directory.map(str::to_owned);
    for words in commands(script_text)? {
        let (program, arguments) = program(words)?;
        match program.as_str() {
            "cd" => {
                let target = target_of_cd(&arguments)?;
                directory = Some(directory.map_or_else(|| target.to_owned(), |directory| join(&directory, target)));
            }
            "bash" | "sh" | "zsh" | "dash" if depth < DEEPEST => {
                script(script_of_shell(&arguments)?, directory.as_deref(), depth + 1, readings)?;
            }
            _ => {
                let (what, paths) = what(&program, &arguments)?;
                // A path of nothing or standard input is no file.
                if paths.is_empty() || paths.iter().any(|path| path.is_empty() || path == "-") {
                    return None;
                }
                readings.push(Reading { directory: directory.clone(), paths, what });
            }
        }
    }
    Some(())
}

/// The name of the program and its arguments, without what may stand in front.
fn program(words: Vec<Word>) -> Option<(String, Vec<String>)> {
    let harmless = |name: &str| name.starts_with("LC_") || ["LANG", "LANGUAGE", "TERM", "NO_COLOR", "PAGER"].contains(&name);
    let set = words.iter().take_while(|word| word.assigns().is_some()).count();
    if !words[..set].iter().all(|word| word.assigns().is_some_and(harmless)) {
        return None;
    }
    let mut words = words.into_iter().skip(set).map(|word| word.text).peekable();
    words.next_if_eq("command");
    let name = words.next()?;
    let places = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"];
    let name = places.iter().find_map(|place| name.strip_prefix(place)).unwrap_or(&name).to_owned();
    Some((name, words.collect()))
}

fn target_of_cd(arguments: &[String]) -> Option<&str> {
    let arguments = arguments.strip_prefix(&["--".to_owned()]).unwrap_or(arguments);
    let [target] = arguments else { return None };
    (!target.is_empty() && !target.starts_with('-')).then_some(target)
}

fn script_of_shell(arguments: &[String]) -> Option<&str> {
    let [options @ .., option, script] = arguments else { return None };
    let is_login = |option: &String| option == "-l" || option == "--login";
    (options.iter().all(is_login) && ["-c", "-lc", "-cl"].contains(&option.as_str())).then_some(script)
}

fn what(program: &str, arguments: &[String]) -> Option<(What, Vec<String>)> {
    match program {
        "cat" => cat(arguments),
        "nl" => nl(arguments),
        "head" => head(arguments),
        "tail" => tail(arguments),
        "sed" => sed(arguments),
        "grep" | "egrep" | "fgrep" => search(arguments, GREP),
        "rg" => search(arguments, RIPGREP),
        _ => None,
    }
}

fn cat(arguments: &[String]) -> Option<(What, Vec<String>)> {
    let table = [
        ("n number", Takes::Nothing, Numbering::All),
        ("b number-nonblank", Takes::Nothing, Numbering::NotEmpty),
        ("u", Takes::Nothing, Numbering::None),
    ];
    let arguments = parse(arguments, &table)?;
    let given = |wanted| arguments.options.iter().any(|(numbering, _)| *numbering == wanted);
    // Where both are given, -b wins.
    let numbering = [Numbering::NotEmpty, Numbering::All].into_iter().find(|numbering| given(*numbering));
    Some((What::Cat(numbering.unwrap_or(Numbering::None)), arguments.operands))
}

fn nl(arguments: &[String]) -> Option<(What, Vec<String>)> {
    #[derive(Clone, Copy)]
    enum Flag {
        Body,
        Width,
    }
    let table = [("b body-numbering", Takes::Value, Flag::Body), ("w number-width", Takes::Value, Flag::Width)];
    let arguments = parse(arguments, &table)?;
    let mut numbering = Numbering::NotEmpty;
    for (option, value) in &arguments.options {
        match (option, value.as_str()) {
            (Flag::Body, "a") => numbering = Numbering::All,
            (Flag::Body, "t") => numbering = Numbering::NotEmpty,
            (Flag::Body, "n") => numbering = Numbering::None,
            (Flag::Body, _) => return None,
            (Flag::Width, width) => {
                number(width)?;
            }
        }
    }
    // Without any number nothing tells a line from the blanks in front of it.
    (numbering != Numbering::None).then_some((What::Nl(numbering), arguments.operands))
}

#[derive(Clone, Copy, PartialEq)]
enum PartOption {
    Lines,
    Quiet,
    Verbose,
}

const PART: [(&str, Takes, PartOption); 3] = [
    ("n lines #", Takes::Value, PartOption::Lines),
    ("q quiet silent", Takes::Nothing, PartOption::Quiet),
    ("v verbose", Takes::Nothing, PartOption::Verbose),
];

fn head(arguments: &[String]) -> Option<(What, Vec<String>)> {
    part(arguments, Part::First(10), |count| match count.strip_prefix('-') {
        Some(left) => number(left).map(Part::AllButLast),
        None => number(count).map(Part::First),
    })
}

fn tail(arguments: &[String]) -> Option<(What, Vec<String>)> {
    let (what, paths) = part(arguments, Part::Last(10), |count| match count.strip_prefix('+') {
        Some(from) => number(from).map(Part::From),
        None => number(count.strip_prefix('-').unwrap_or(count)).map(Part::Last),
    })?;
    // `tail +5` is a number to some and a file to others.
    (!paths.iter().any(|path| path.starts_with('+'))).then_some((what, paths))
}

fn part(arguments: &[String], usual: Part, to_part: impl Fn(&str) -> Option<Part>) -> Option<(What, Vec<String>)> {
    let arguments = parse(arguments, &PART)?;
    let mut part = usual;
    let mut headers = arguments.operands.len() > 1;
    for (option, value) in &arguments.options {
        match option {
            PartOption::Lines => part = to_part(value)?,
            PartOption::Quiet => headers = false,
            PartOption::Verbose => headers = true,
        }
    }
    Some((What::Part { part, headers }, arguments.operands))
}

/// Digits only: no sign, no `K` for thousands.
fn number(digits: &str) -> Option<usize> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn sed(arguments: &[String]) -> Option<(What, Vec<String>)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Flag {
        Silent,
        Script,
        Syntax,
    }
    let table = [
        ("n quiet silent", Takes::Nothing, Flag::Silent),
        ("e expression", Takes::Value, Flag::Script),
        ("E r regexp-extended", Takes::Nothing, Flag::Syntax),
    ];
    let mut arguments = parse(arguments, &table)?;
    if !arguments.options.iter().any(|(option, _)| *option == Flag::Silent) {
        return None;
    }
    let mut scripts: Vec<String> = arguments.options.into_iter().filter(|(o, _)| *o == Flag::Script).map(|(_, s)| s).collect();
    if scripts.is_empty() {
        if arguments.operands.is_empty() {
            return None;
        }
        scripts.push(arguments.operands.remove(0));
    }
    let commands =
        scripts.iter().flat_map(|script| script.split([';', '\n'])).map(str::trim).filter(|command| !command.is_empty());
    let steps = commands.map(step).collect::<Option<Vec<Step>>>()?;
    (!steps.is_empty()).then_some((What::Sed(steps), arguments.operands))
}

fn step(command: &str) -> Option<Step> {
    let (place, act) = match (command.strip_suffix('p'), command.strip_suffix('q')) {
        (Some(place), _) => (place.trim(), Act::Print),
        (_, Some(place)) => (place.trim(), Act::Quit),
        _ => return None,
    };
    let (from, to) = match place.split_once(',') {
        _ if place.is_empty() => (Address::Line(1), Address::Last),
        // Only one line can be the one to stop at.
        Some(_) if act == Act::Quit => return None,
        Some((from, to)) => {
            let from = address(from.trim())?;
            let to = match (to.trim().strip_prefix('+'), from) {
                (Some(more), Address::Line(from)) => Address::Line(from.checked_add(number(more)?)?),
                (Some(_), Address::Last) => return None,
                (None, _) => address(to.trim())?,
            };
            (from, to)
        }
        None => (address(place)?, address(place)?),
    };
    Some(Step { from, to, act })
}

fn address(address: &str) -> Option<Address> {
    match address {
        "$" => Some(Address::Last),
        _ => number(address).filter(|line| *line > 0).map(Address::Line),
    }
}

/// What an option of a search means for what is printed.
#[derive(Clone, Copy, PartialEq)]
enum SearchOption {
    /// Which lines are found, not how they are printed.
    Which,
    Pattern,
    Context,
    Count,
    Numbers(bool),
    Names(bool),
    Heading(bool),
    Colour,
}

type SearchTable = [(&'static str, Takes, SearchOption)];

const GREP: &SearchTable = &[
    ("e regexp", Takes::Value, SearchOption::Pattern),
    (
        "i y ignore-case no-ignore-case F fixed-strings E extended-regexp G basic-regexp P perl-regexp w word-regexp x line-regexp \
         v invert-match s no-messages a text",
        Takes::Nothing,
        SearchOption::Which,
    ),
    ("A after-context B before-context C context #", Takes::Value, SearchOption::Context),
    ("m max-count", Takes::Value, SearchOption::Count),
    ("n line-number", Takes::Nothing, SearchOption::Numbers(true)),
    ("H with-filename", Takes::Nothing, SearchOption::Names(true)),
    ("h no-filename", Takes::Nothing, SearchOption::Names(false)),
    ("color colour", Takes::Value, SearchOption::Colour),
];

const RIPGREP: &SearchTable = &[
    ("e regexp", Takes::Value, SearchOption::Pattern),
    (
        "i ignore-case S smart-case s case-sensitive F fixed-strings P pcre2 w word-regexp x line-regexp v invert-match \
         no-messages a text hidden no-ignore no-config",
        Takes::Nothing,
        SearchOption::Which,
    ),
    ("A after-context B before-context C context", Takes::Value, SearchOption::Context),
    ("m max-count", Takes::Value, SearchOption::Count),
    ("n line-number", Takes::Nothing, SearchOption::Numbers(true)),
    ("N no-line-number", Takes::Nothing, SearchOption::Numbers(false)),
    ("H with-filename", Takes::Nothing, SearchOption::Names(true)),
    ("I no-filename", Takes::Nothing, SearchOption::Names(false)),
    ("heading", Takes::Nothing, SearchOption::Heading(true)),
    ("no-heading", Takes::Nothing, SearchOption::Heading(false)),
    ("color", Takes::Value, SearchOption::Colour),
];

fn search(arguments: &[String], table: &SearchTable) -> Option<(What, Vec<String>)> {
    let arguments = parse(arguments, table)?;
    let mut paths = arguments.operands;
    if !arguments.options.iter().any(|(option, _)| *option == SearchOption::Pattern) {
        if paths.is_empty() {
            return None;
        }
        paths.remove(0);
    }
    let (mut numbers, mut context, mut named, mut heading) = (false, false, paths.len() > 1, false);
    for (option, value) in &arguments.options {
        match option {
            SearchOption::Which | SearchOption::Pattern => {}
            SearchOption::Context => {
                number(value)?;
                context = true;
            }
            SearchOption::Count => {
                number(value)?;
            }
            SearchOption::Numbers(shown) => numbers = *shown,
            SearchOption::Names(shown) => named = *shown,
            SearchOption::Heading(shown) => heading = *shown,
            SearchOption::Colour if ["never", "auto"].contains(&value.as_str()) => {}
            SearchOption::Colour => return None,
        }
    }
    let names = match (named, heading) {
        (false, _) => Names::Hidden,
        (true, false) => Names::InFront,
        (true, true) => Names::Above,
    };
    Some((What::Search(Search { numbers, names, context }), paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `dir: program(paths)`, short enough for a table.
    fn compact(reading: &Reading) -> String {
        let address = |address| match address {
            Address::Line(line) => line.to_string(),
            Address::Last => "$".to_owned(),
        };
        let what = match &reading.what {
            What::Cat(Numbering::None) => "cat".to_owned(),
            What::Cat(numbering) => format!("cat {numbering:?}"),
            What::Nl(numbering) => format!("nl {numbering:?}"),
            What::Part { part, headers } => format!("{part:?}{}", if *headers { " with headers" } else { "" }),
            What::Sed(steps) => {
                let step = |step: &Step| {
                    format!("{},{}{}", address(step.from), address(step.to), if step.act == Act::Print { "p" } else { "q" })
                };
                format!("sed {}", steps.iter().map(step).collect::<Vec<_>>().join(";"))
            }
            What::Search(Search { numbers, names, context }) => {
                let flags = [("numbers", *numbers), ("context", *context)].into_iter().filter(|flag| flag.1).map(|flag| flag.0);
                format!("search {names:?}{}", flags.map(|flag| format!(" {flag}")).collect::<String>())
            }
        };
        let directory = reading.directory.as_ref().map(|directory| format!("{directory}: ")).unwrap_or_default();
        format!("{directory}{what} ({})", reading.paths.join(", "))
    }

    #[track_caller]
    fn check(command: &str, expected: &str) {
        let found = reads(command).map(|readings| readings.iter().map(compact).collect::<Vec<_>>().join(" && "));
        assert_eq!(found.as_deref().unwrap_or("no plain read"), expected, "{command}");
    }

    #[test]
    fn cat_and_nl() {
        check("cat a.rs", "cat (a.rs)");
        check("cat 'a b' -- -c", "cat (a b, -c)");
        check("cat -n a", "cat All (a)");
        check("cat a --number", "cat All (a)");
        check("cat -bn a", "cat NotEmpty (a)");
        check("/bin/cat -u a", "cat (a)");
        check("nl a", "nl NotEmpty (a)");
        check("nl -ba a", "nl All (a)");
        check("nl -b a -w 3 a", "nl All (a)");
        check("nl --body-numbering=a a", "nl All (a)");
    }

    #[test]
    fn head_and_tail() {
        check("head a", "First(10) (a)");
        check("head -n 5 a", "First(5) (a)");
        check("head -n5 a b", "First(5) with headers (a, b)");
        check("head -5 a", "First(5) (a)");
        check("head --lines=5 -q a b", "First(5) (a, b)");
        check("head -vn 5 a", "First(5) with headers (a)");
        check("head -n -5 a", "AllButLast(5) (a)");
        check("tail a", "Last(10) (a)");
        check("tail -20 a", "Last(20) (a)");
        check("tail -n -20 a", "Last(20) (a)");
        check("tail -n +20 a", "From(20) (a)");
    }

    #[test]
    fn sed_by_line_numbers() {
        check("sed -n '1,5p' a", "sed 1,5p (a)");
        check("sed -n 7p a b", "sed 7,7p (a, b)");
        check("sed -n '10,$p' a", "sed 10,$p (a)");
        check("sed -n '$p' a", "sed $,$p (a)");
        check("sed -n p a", "sed 1,$p (a)");
        check("sed -n '1,5p;9p' a", "sed 1,5p;9,9p (a)");
        check("sed -ne '1,5p' -e 9p a", "sed 1,5p;9,9p (a)");
        check("sed --quiet --expression='1, 5 p' a", "sed 1,5p (a)");
        check("sed -n '5,+3p' a", "sed 5,8p (a)");
        check("sed -n '3,5p;5q' a", "sed 3,5p;5,5q (a)");
    }

    #[test]
    fn searches_on_named_files() {
        check("grep foo a", "search Hidden (a)");
        check("grep -n foo a", "search Hidden numbers (a)");
        check("grep -n -i -F -w foo a b", "search InFront numbers (a, b)");
        check("grep -inE 'a|b' a", "search Hidden numbers (a)");
        check("grep -A3 foo a", "search Hidden context (a)");
        check("grep -n -B 2 -C1 foo a", "search Hidden numbers context (a)");
        check("grep -3 foo a", "search Hidden context (a)");
        check("grep -H foo a", "search InFront (a)");
        check("grep -hv foo a b", "search Hidden (a, b)");
        check("grep -e foo -e bar a", "search Hidden (a)");
        check("grep --color=never -m 5 foo a", "search Hidden (a)");
        check("grep -- -x a", "search Hidden (a)");
        check("rg -n foo a b", "search InFront numbers (a, b)");
        check("rg --no-heading --line-number foo a", "search Hidden numbers (a)");
        check("rg --heading -n foo a b", "search Above numbers (a, b)");
        check("rg -NI foo a b", "search Hidden (a, b)");
        check("rg --color never foo a", "search Hidden (a)");
    }

    #[test]
    fn what_stands_around_a_read() {
        check("cd src && cat a", "src: cat (a)");
        check("cd src && cd -- ui/ && cat a && cat /b", "src/ui/: cat (a) && src/ui/: cat (/b)");
        check("cat a && cd /src && head -n 1 b", "cat (a) && /src: First(1) (b)");
        check("bash -lc 'cat a'", "cat (a)");
        check("bash -lc \"sed -n '1,5p' a\"", "sed 1,5p (a)");
        check("/bin/zsh -l -c 'cd src && cat a' && sh -c 'cat b'", "src: cat (a) && cat (b)");
        check("cd x && bash -c 'cd y && cat a' && cat b", "x/y: cat (a) && x: cat (b)");
        check("command cat a 2>/dev/null", "cat (a)");
        check("LC_ALL=C LANG=C grep foo a 2>&1", "search Hidden (a)");
    }

    #[test]
    fn anything_else_is_no_plain_read() {
        for command in [
            "",
            "ls",
            "cat",
            "cat -",
            "cat a -",
            "cat ''",
            "cat -A a",
            "cat -s a",
            "cat -e a",
            "cat --foo a",
            "cat a | head",
            "cat a; cat b",
            "cat a || cat b",
            "cat a > b",
            "cat *.rs",
            "cat $a",
            "cat ~/a",
            "cat a &",
            "nl -s: a",
            "nl -bn a",
            "nl -v5 a",
            "head -c 5 a",
            "head -n 5k a",
            "head -n",
            "head -z a",
            "tail -f a",
            "tail -c +5 a",
            "tail +5 a",
            "sed 5q a",
            "sed -n a",
            "sed -i 1d a",
            "sed -n -i 1p a",
            "sed -ni 1p a",
            "sed -n '1,5d' a",
            "sed -n '/a/p' a",
            "sed -n '1,5p'",
            "sed -n '0p' a",
            "sed -n '1~2p' a",
            "sed -n '5!p' a",
            "sed -n '1p;w x' a",
            "sed -n '1,2{p}' a",
            "sed -n = a",
            "sed -n -f x a",
            "sed -n '' a",
            "sed -n '1,5q' a",
            "sed -n '1e' a",
            "grep foo",
            "grep -o foo a",
            "grep -c foo a",
            "grep -l foo a",
            "grep -r foo a",
            "grep -q foo a",
            "grep -b foo a",
            "grep -f x a",
            "grep -z foo a",
            "grep --color=always foo a",
            "grep --json foo a",
            "rg foo",
            "rg -r x foo a",
            "rg --json foo a",
            "rg -p foo a",
            "rg -E latin1 foo a",
            "rg -M 5 foo a",
            "rg --trim foo a",
            "rg -3 foo a",
            "rg -U foo a",
            "cd",
            "cd src",
            "cd - && cat a",
            "cd a b && cat a",
            "bash a.sh",
            "bash -c 'cat a' b",
            "bash -c 'cat a | tee b'",
            "bash -xc 'cat a'",
            "PATH=. cat a",
            "LC_ALL=C",
            "command -v cat",
            "sudo cat a",
            "./cat a",
            "! cat a",
            "time cat a",
            "echo a && cat a",
            "cat a && rm a",
            "sh -c 'sh -c \"sh -c \\\"sh -c cat\\\"\"'",
        ] {
            check(command, "no plain read");
        }
    }
}
