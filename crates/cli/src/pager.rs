//! The pager: on a terminal, long output goes to a program that shows it page by page.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Seek, Write},
    os::unix::process::CommandExt,
    process::Command,
};

use crate::{args::PagerArgs, output};

/// Prints text, on a terminal through the pager. The pager replaces this process, so that it gets the signals and the
/// keyboard: close everything before. Without a pager, the text is printed.
pub(crate) fn print(text: &str, args: &PagerArgs) -> anyhow::Result<()> {
    if !args.no_pager
        && io::stdout().is_terminal()
        && let Some(mut pager) = pager(|name| std::env::var_os(name))
    {
        // This returns only if it failed.
        let _ = exec(&mut pager, &output::for_terminal(text));
    }
    output::print(text)
}

fn exec(pager: &mut Command, text: &str) -> io::Result<()> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Err(pager.stdin(file).exec())
}

/// The pager that the environment variables select; `None` if none is wanted.
fn pager(variable: impl Fn(&str) -> Option<OsString>) -> Option<Command> {
    if variable("TERM").is_some_and(|terminal| terminal == "dumb") {
        return None;
    }
    let chosen = ["SUREHAND_PAGER", "PAGER"].into_iter().find_map(&variable);
    let chosen = chosen.map_or_else(|| "less -FRX".to_owned(), |chosen| chosen.to_string_lossy().into_owned());
    let mut words = chosen.split_whitespace();
    let program = words.next().filter(|program| *program != "cat")?;
    let mut pager = if chosen.contains(['|', ';', '&', '$', '`', '"', '\'', '<', '>']) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &chosen]);
        shell
    } else {
        let mut pager = Command::new(program);
        pager.args(words);
        pager
    };
    // These options make less quit if everything fits, and show colours.
    if variable("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    Some(pager)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        let words = pager(variable).map(|pager| {
            let words = [pager.get_program()].into_iter().chain(pager.get_args());
            words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        });
        assert_eq!(words.as_deref(), expected, "{variables:?}");
    }

    #[test]
    fn the_pager_is_the_one_that_is_named() {
        check(&[], Some("less -FRX"));
        check(&[("PAGER", "more")], Some("more"));
        check(&[("PAGER", "more"), ("SUREHAND_PAGER", "delta --paging always")], Some("delta --paging always"));
        check(&[("PAGER", "less | cat")], Some("sh -c less | cat"));
        for none in [("SUREHAND_PAGER", ""), ("PAGER", "cat"), ("TERM", "dumb")] {
            check(&[none], None);
        }
    }

    #[test]
    fn a_pager_that_is_missing_is_an_error() {
        assert_eq!(exec(&mut Command::new("/nowhere/less"), "x").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
