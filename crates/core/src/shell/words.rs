//! Splits a shell command into words, as `sh` does. A command with a substitution, a redirection or a background job is
//! rejected; a word that the shell may expand to file names is marked as such.

use std::{iter::Peekable, str::Chars};

/// A word without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    pub text: String,
    /// The number of bytes at the start that were neither quoted nor escaped.
    plain: usize,
    /// Whether a shell may expand it to other words: a pattern, braces, a home directory.
    pub expands: bool,
}

impl ShellWord {
    /// The name of the variable, if this word before a command sets one.
    pub(super) fn assigned_variable(&self) -> Option<&str> {
        let (name, _) = self.text[..self.plain].split_once('=')?;
        let is_name =
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
        (is_name && !name.is_empty()).then_some(name)
    }

    fn push_plain(&mut self, c: char) {
        if self.plain == self.text.len() {
            self.plain += c.len_utf8();
        }
        self.text.push(c);
    }

    fn push_expanding(&mut self, c: char) {
        self.push_plain(c);
        self.expands = true;
    }
}

/// The words of each command that is joined by `&&`, `||`, `|`, `;` or the end of a line. No command is empty. `None`
/// if the script is not understood.
pub(super) fn split_commands(script: &str) -> Option<Vec<Vec<ShellWord>>> {
    let rest = script.trim_matches([' ', '\t', '\n']).chars().peekable();
    let mut scanner = Scanner { rest, commands: Vec::new(), words: Vec::new(), word: None };
    while let Some(c) = scanner.rest.next() {
        scanner.take(c)?;
    }
    scanner.end_command()?;
    Some(scanner.commands)
}

struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    commands: Vec<Vec<ShellWord>>,
    words: Vec<ShellWord>,
    word: Option<ShellWord>,
}

impl Scanner<'_> {
    fn take(&mut self, c: char) -> Option<()> {
        match c {
            ' ' | '\t' => self.end_word(),
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            '\\' => match self.rest.next()? {
                '\n' => {}
                escaped => self.word().text.push(escaped),
            },
            '&' => {
                self.rest.next_if_eq(&'&')?;
                self.next_command()?;
            }
            '|' => {
                // `|&` is a pipe in some shells and a syntax error in others.
                if self.rest.next_if_eq(&'|').is_none() && self.rest.peek() == Some(&'&') {
                    return None;
                }
                self.next_command()?;
            }
            ';' | '\n' => self.next_command()?,
            '>' => self.redirection()?,
            '$' => self.take_dollar(Quotes::None)?,
            '<' | '(' | ')' | '`' => return None,
            '*' | '?' | '[' | '{' | '}' => self.word().push_expanding(c),
            // A home directory, and in zsh the path of a program.
            '~' | '=' if self.word.is_none() => self.word().push_expanding(c),
            // A comment.
            '#' if self.word.is_none() => return None,
            plain => self.word().push_plain(plain),
        }
        Some(())
    }

    fn word(&mut self) -> &mut ShellWord {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) -> Option<()> {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        (!words.is_empty()).then(|| self.commands.push(words))
    }

    fn next_command(&mut self) -> Option<()> {
        self.end_command()?;
        while self.rest.next_if(|c| matches!(c, ' ' | '\t' | '\n')).is_some() {}
        Some(())
    }

    fn single_quoted(&mut self) -> Option<()> {
        loop {
            match self.rest.next()? {
                '\'' => break,
                quoted => self.word().text.push(quoted),
            }
        }
        self.word();
        Some(())
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word();
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.take_dollar(Quotes::Double)?,
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => self.word().text.push(escaped),
                    other => self.word().text.extend(['\\', other]),
                },
                quoted => self.word().text.push(quoted),
            }
        }
    }

    /// A dollar sign is literal only if nothing after it could be expanded.
    fn take_dollar(&mut self, quotes: Quotes) -> Option<()> {
        let expands =
            |c: &char| c.is_alphanumeric() || "_{([@*#?$!-".contains(*c) || quotes == Quotes::None && "'\"".contains(*c);
        // The shell joins continued lines first, so the expanded part may be on the next line.
        let mut ahead = self.rest.clone();
        let is_continued = ahead.next() == Some('\\') && ahead.next() == Some('\n');
        if is_continued || self.rest.peek().is_some_and(expands) {
            return None;
        }
        self.word().text.push('$');
        Some(())
    }

    /// Accepts `2>/dev/null` and `2>&1`. No other redirection is allowed.
    fn redirection(&mut self) -> Option<()> {
        let descriptor = self.word.take()?;
        if descriptor.text != "2" || descriptor.plain != 1 {
            return None;
        }
        let target = if self.rest.peek() == Some(&'&') { "&1" } else { "/dev/null" };
        while self.rest.next_if_eq(&' ').is_some() {}
        for expected in target.chars() {
            self.rest.next_if_eq(&expected)?;
        }
        self.rest.peek().is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | '&' | ';' | '|')).then_some(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    None,
    Double,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: &str) {
        let render = |words: &Vec<ShellWord>| words.iter().map(|word| format!("<{}>", word.text)).collect::<String>();
        let found = split_commands(script).map(|commands| commands.iter().map(render).collect::<Vec<_>>().join(" && "));
        assert_eq!(found.as_deref().unwrap_or("not understood"), expected);
    }

    #[test]
    fn words_are_taken_apart_as_sh_does_it() {
        check("cat a b", "<cat><a><b>");
        check("  cat\ta \n", "<cat><a>");
        check("cat 'a b' \"c d\"", "<cat><a b><c d>");
        check("cat a\\ b c'd'\"e\"f", "<cat><a b><cdef>");
        check("cat '' \"\"", "<cat><><>");
        check(r#"grep "a\"b\$c\n" 'x\y'"#, r#"<grep><a"b$c\n><x\y>"#);
        check("cat \\\n a", "<cat><a>");
        check("grep \"foo$\" a", "<grep><foo$><a>");
        check("sed -n '5,$p' a#b", "<sed><-n><5,$p><a#b>");
        check("cat a&&cat b && \n cat c", "<cat><a> && <cat><b> && <cat><c>");
        check("cat a | head; cat b || ls\nls", "<cat><a> && <head> && <cat><b> && <ls> && <ls>");
        check("cat *.rs ~/a", "<cat><*.rs><~/a>");
        check("cat a 2>/dev/null", "<cat><a>");
        check("cat a 2> /dev/null && cat b 2>&1", "<cat><a> && <cat><b>");
    }

    #[test]
    fn substitutions_and_redirections_are_not_understood() {
        for script in [
            "",
            "cat 'a",
            "cat \"a",
            "cat a\\",
            "cat $a",
            "cat \"$a\"",
            "cat $(ls)",
            "cat `ls`",
            "cat \"`ls`\"",
            "cat a # b",
            "cat a &",
            "cat a > b",
            "cat a 2> b",
            "cat a 2>>/dev/null",
            "cat a 1>&2",
            "cat a2>/dev/null",
            "cat < a",
            "(cat a)",
            "cat a &&",
            "&& cat a",
            "cat $'a'",
            "cat $\\\na",
            "cat \"$\\\n(ls)\"",
            "sed -n \"1,$p\" a",
            "cat a 2>/dev/nullx",
            "cat a '2'>/dev/null",
        ] {
            check(script, "not understood");
        }
    }

    #[test]
    fn an_assignment_is_one_only_outside_quotes() {
        let name = |script| split_commands(script).unwrap()[0][0].assigned_variable().map(str::to_owned);
        assert_eq!(name("LC_ALL=C cat a").as_deref(), Some("LC_ALL"));
        assert_eq!(name("LC_ALL='C d' cat a").as_deref(), Some("LC_ALL"));
        assert_eq!(name("'LC_ALL=C' cat a"), None);
        assert_eq!(name("2A=b cat"), None);
        assert_eq!(name("cat"), None);
    }
}
