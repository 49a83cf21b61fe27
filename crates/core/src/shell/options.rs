//! The options of a program, read by a table of those it is known to have. An option that is not in the table could change
//! what is printed, so it is not understood.

/// Whether a value belongs to an option.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Takes {
    Nothing,
    Value,
}

/// Spellings of an option, apart by blanks (one letter: `-n`, more: `--number`, `#`: `-20`), and what it means.
pub(super) type Table<M> = [(&'static str, Takes, M)];

/// The arguments of a program.
pub(super) struct Arguments<M> {
    /// In the order given; the value is empty where the option takes none.
    pub options: Vec<(M, String)>,
    pub operands: Vec<String>,
}

/// Sorts arguments into options and operands; `None` if one of them is not in the table or lacks its value.
pub(super) fn parse<M: Copy>(words: &[String], table: &Table<M>) -> Option<Arguments<M>> {
    let known = |name: &str| table.iter().find(|entry| entry.0.split(' ').any(|spelling| spelling == name));
    let mut arguments = Arguments { options: Vec::new(), operands: Vec::new() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            arguments.operands.extend(words.cloned());
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
            let &(_, takes, meaning) = known(name).filter(|_| name.len() > 1)?;
            let value = match takes {
                Takes::Nothing => value.is_none().then(String::new)?,
                Takes::Value => value.or_else(|| words.next().cloned())?,
            };
            arguments.options.push((meaning, value));
            continue;
        }
        let Some(mut letters) = word.strip_prefix('-') else {
            arguments.operands.push(word.clone());
            continue;
        };
        if letters.is_empty() {
            // Standard input is nothing that we could look at.
            return None;
        }
        if letters.bytes().all(|byte| byte.is_ascii_digit()) {
            arguments.options.push((known("#")?.2, letters.to_owned()));
            continue;
        }
        while let Some(letter) = letters.chars().next() {
            letters = &letters[letter.len_utf8()..];
            let &(_, takes, meaning) = known(letter.encode_utf8(&mut [0; 4])).filter(|_| letter != '#')?;
            let value = match takes {
                Takes::Nothing => String::new(),
                Takes::Value if letters.is_empty() => words.next()?.clone(),
                Takes::Value => std::mem::take(&mut letters).to_owned(),
            };
            arguments.options.push((meaning, value));
        }
    }
    Some(arguments)
}
