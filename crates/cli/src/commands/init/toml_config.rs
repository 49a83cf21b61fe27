//! Adds, finds and removes the Surehand server in a TOML configuration: a table at the end, removed line by line. The
//! rest stays byte for byte, which `toml_edit` does not promise: it normalizes line ends.

use std::{ops::Range, path::Path};

use toml::de::{DeTable, DeValue};

use super::{
    json_config::{InstalledHook, NAME, Presence},
    json_edit::{SyntaxProblem, line_of, spliced},
    program::{self, ServerLaunch},
};

const SERVERS: &str = "mcp_servers";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TomlServer {
    pub presence: Presence,
    pub launch: ServerLaunch,
}

pub(crate) fn add(text: &str, server: &TomlServer) -> Result<String, SyntaxProblem> {
    let root = parse(text)?;
    if let Some((_, entry)) = entry(root.get_ref()) {
        return Ok(corrected(text, entry, &server.launch));
    }
    if server.presence == Presence::IfThere {
        return Ok(text.to_owned());
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let apart = match text {
        "" | "\u{feff}" => String::new(),
        _ if text.ends_with('\n') => newline.to_owned(),
        _ => newline.repeat(2),
    };
    let words = server.launch.words(&["mcp".to_owned()]);
    let with = format!(
        "{text}{apart}[{SERVERS}.{NAME}]{newline}command = {}{newline}args = {}{newline}",
        quoted(&words[0]),
        quoted_list(&words[1..])
    );
    parse(&with).map_err(|_| {
        let line = root
            .get_ref()
            .iter()
            .find(|(key, _)| *key.get_ref() == SERVERS)
            .map_or(1, |(key, _)| line_of(text, key.span().start));
        SyntaxProblem {
            line,
            why: format!("{SERVERS} is written in one line, so no table can be added; add {NAME} to it by hand"),
        }
    })?;
    Ok(with)
}

/// Corrects the command of an existing server. A foreign server is left alone.
fn corrected(text: &str, entry: &toml::Spanned<DeValue<'_>>, launch: &ServerLaunch) -> String {
    let words = words_of(entry);
    let wanted = launch.corrected(&words);
    let part = |name: &str| entry.get_ref().get(name).map(toml::Spanned::span);
    let (Some(command), true) = (part("command"), program::is_ours(&words) && words != wanted) else { return text.to_owned() };
    let mut parts = vec![(command, quoted(&wanted[0]))];
    if words[1..] != wanted[1..] {
        let Some(args) = part("args") else { return text.to_owned() };
        parts.push((args, quoted_list(&wanted[1..])));
    }
    spliced(text, parts)
}

/// Removes the server; `None` if `init` created the file and nothing else is in it.
pub(crate) fn remove(text: &str, server: &TomlServer, originals: &[String]) -> Result<Option<String>, SyntaxProblem> {
    let server = TomlServer { presence: Presence::Required, ..server.clone() };
    if let Some(original) = originals.iter().find(|original| add(original, &server).as_deref() == Ok(text)) {
        return Ok(Some(original.clone()));
    }
    let root = parse(text)?;
    let Some((at, entry)) = entry(root.get_ref()).filter(|_| program::is_ours(&words(root.get_ref()))) else {
        return Ok(Some(text.to_owned()));
    };
    let servers = root.get_ref().get(SERVERS).expect("its entry was found");
    if text[servers.span()].starts_with('{') {
        let why = format!("{SERVERS} is written in one line; take {NAME} out by hand");
        return Err(SyntaxProblem { line: line_of(text, servers.span().start), why });
    }
    let mut parts = Vec::new();
    gather(text, at, entry, &mut parts);
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    for part in lines_of(text, parts) {
        rest.push_str(&text[at..part.start]);
        // Also remove the blank line before a table.
        if text[part.clone()].trim_start().starts_with('[') {
            let apart = if rest.ends_with("\r\n\r\n") { 2 } else { usize::from(rest.ends_with("\n\n")) };
            rest.truncate(rest.len() - apart);
        }
        at = part.end;
    }
    rest.push_str(&text[at..]);
    Ok((!rest.trim().is_empty() || !originals.is_empty()).then_some(rest))
}

/// The command of the server named `surehand`, as words.
pub(crate) fn find(text: &str) -> Result<Vec<String>, SyntaxProblem> {
    parse(text).map(|root| words(root.get_ref()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookTrust {
    /// The user trusts the hook. Only Codex knows whether it has changed since then.
    Trusted,
    SwitchedOff,
    /// Codex does not run the hook.
    NotTrusted,
}

/// Reads from Codex's settings whether a hook is trusted, by its name there.
pub(crate) fn trust_in_hook(text: &str, name: &str) -> HookTrust {
    let Ok(root) = parse(text) else { return HookTrust::NotTrusted };
    let state = root.get_ref().get("hooks").and_then(|hooks| hooks.get_ref().get("state"));
    let Some(hook) = state.and_then(|state| state.get_ref().get(name)).map(toml::Spanned::get_ref) else {
        return HookTrust::NotTrusted;
    };
    match (hook.get("enabled").and_then(|enabled| enabled.get_ref().as_bool()), hook.get("trusted_hash")) {
        (Some(false), _) => HookTrust::SwitchedOff,
        (_, Some(_)) => HookTrust::Trusted,
        (_, None) => HookTrust::NotTrusted,
    }
}

/// Codex's name for a hook: its file, event and position.
pub(crate) fn name_of_hook(file: &Path, hook: &InstalledHook) -> String {
    let mut event = String::new();
    for letter in hook.event.chars() {
        if letter.is_ascii_uppercase() && !event.is_empty() {
            event.push('_');
        }
        event.push(letter.to_ascii_lowercase());
    }
    let (group, handler) = hook.place;
    format!("{}:{event}:{group}:{handler}", file.display())
}

fn parse(text: &str) -> Result<toml::Spanned<DeTable<'_>>, SyntaxProblem> {
    DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start.min(text.len())));
        SyntaxProblem { line, why: error.message().to_owned() }
    })
}

type Entry<'t, 'a> = (Range<usize>, &'t toml::Spanned<DeValue<'a>>);

fn entry<'t, 'a>(root: &'t DeTable<'a>) -> Option<Entry<'t, 'a>> {
    let servers = root.get(SERVERS)?.get_ref().as_table()?;
    servers.iter().find(|(key, _)| *key.get_ref() == NAME).map(|(key, value)| (key.span(), value))
}

fn words(root: &DeTable<'_>) -> Vec<String> {
    entry(root).map(|(_, entry)| words_of(entry)).unwrap_or_default()
}

fn words_of(entry: &toml::Spanned<DeValue<'_>>) -> Vec<String> {
    let command = entry.get_ref().get("command").and_then(|command| command.get_ref().as_str());
    let args = entry.get_ref().get("args").and_then(|args| args.get_ref().as_array());
    let args = args.into_iter().flat_map(|args| args.iter()).filter_map(|word| word.get_ref().as_str());
    command.into_iter().chain(args).map(str::to_owned).collect()
}

fn quoted(text: &str) -> String {
    // JSON escapes are valid TOML escapes.
    serde_json::Value::from(text).to_string()
}

fn quoted_list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

/// Collects the ranges of an entry: table headings, and keys with their values.
fn gather(text: &str, key: Range<usize>, value: &toml::Spanned<DeValue<'_>>, parts: &mut Vec<Range<usize>>) {
    let span = value.span();
    let Some(table) = value.get_ref().as_table().filter(|_| !text[span.clone()].starts_with('{')) else {
        parts.push(key.start..span.end);
        return;
    };
    if text[span.clone()].starts_with('[') {
        parts.push(span);
    }
    table.iter().for_each(|(key, value)| gather(text, key.span(), value, parts));
}

/// Extends ranges to whole lines, and joins adjacent ones.
fn lines_of(text: &str, mut parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    parts.sort_by_key(|part| part.start);
    let mut lines: Vec<Range<usize>> = Vec::new();
    for part in parts {
        let start = text[..part.start].rfind('\n').map_or(0, |end| end + 1);
        let end = text[part.end..].find('\n').map_or(text.len(), |end| part.end + end + 1);
        match lines.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => lines.push(start..end),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OURS: &str = "[mcp_servers.surehand]\ncommand = \"surehand\"\nargs = [\"mcp\"]\n";

    fn server(program: &str) -> TomlServer {
        let launch = ServerLaunch { program: program.to_owned(), is_guarded: false };
        TomlServer { presence: Presence::Required, launch }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let with = add(text, &server("surehand")).unwrap();
        assert_eq!(with, expected);
        assert_eq!(add(&with, &server("surehand")).unwrap(), with, "a second time changes nothing");
        assert_eq!(remove(&with, &server("surehand"), &[text.to_owned()]).unwrap().as_deref(), Some(text));
        assert_eq!(find(&with).unwrap(), ["surehand", "mcp"]);
    }

    #[test]
    fn the_server_is_a_table_at_the_end() {
        check("", OURS);
        check("model = \"x\"\n", &format!("model = \"x\"\n\n{OURS}"));
        check("# only a comment", &format!("# only a comment\n\n{OURS}"));
        check("[mcp_servers.a]\ncommand = \"a\"\n", &format!("[mcp_servers.a]\ncommand = \"a\"\n\n{OURS}"));
        check("a = 1\r\n", &format!("a = 1\r\n\r\n{}", OURS.replace('\n', "\r\n")));
    }

    #[test]
    fn what_came_since_stays() {
        let removed = |text: &str| remove(text, &server("surehand"), &[]).unwrap();
        assert_eq!(removed(OURS), None);
        assert_eq!(removed(&format!("a = 1\n\n{OURS}")).as_deref(), Some("a = 1\n"));
        assert_eq!(removed(&format!("a = 1\r\n\r\n{}", OURS.replace('\n', "\r\n"))).as_deref(), Some("a = 1\r\n"));
        let later = format!(
            "a = 1\n\n{OURS}env = {{ A = \"b\" }} # mine\n\n# about b\n[b]\nc = 2\n\n[mcp_servers.surehand.tools]\nx = [\n  1,\n]\n"
        );
        assert_eq!(removed(&later).as_deref(), Some("a = 1\n\n# about b\n[b]\nc = 2\n"));
        let inside = "[mcp_servers]\na = { command = \"a\" }\nsurehand = { command = \"surehand\", args = [\"mcp\"] }\nb = 1\n";
        assert_eq!(removed(inside).as_deref(), Some("[mcp_servers]\na = { command = \"a\" }\nb = 1\n"));
    }

    #[test]
    fn a_program_that_has_moved_is_corrected() {
        let moved = add(&OURS.replace("\"surehand\"\n", "'/old/surehand' # here\n"), &server("/new/surehand")).unwrap();
        assert_eq!(moved, OURS.replace("\"surehand\"\n", "\"/new/surehand\" # here\n"));
    }

    #[test]
    fn a_server_is_guarded_in_its_place() {
        let launch = ServerLaunch { program: "surehand".to_owned(), is_guarded: true };
        let guarded = TomlServer { presence: Presence::IfThere, launch };
        let old = "[mcp_servers.surehand]\nargs = ['mcp'] # mine\ncommand = \"/old/surehand\"\n";
        let new = add(old, &guarded).unwrap();
        assert!(
            new.starts_with("[mcp_servers.surehand]\nargs = [\"-c\", ") && new.ends_with("# mine\ncommand = \"sh\"\n"),
            "{new}"
        );
        assert_eq!(add(&new, &guarded).unwrap(), new);
        assert_eq!(remove(&new, &guarded, &[]).unwrap(), None);
        assert_eq!(add("a = 1\n", &guarded).unwrap(), "a = 1\n");
    }

    #[test]
    fn a_foreign_server_is_left_alone() {
        for theirs in ["[mcp_servers.surehand]\ncommand = \"npx\"\n", "[mcp_servers.surehand]\nurl = \"http://x\"\n"] {
            assert_eq!(add(theirs, &server("surehand")).unwrap(), theirs);
            assert_eq!(remove(theirs, &server("surehand"), &[]).unwrap().as_deref(), Some(theirs));
        }
    }

    #[test]
    fn an_impossible_change_names_its_line() {
        let line = |text: &str| add(text, &server("surehand")).unwrap_err().line;
        assert_eq!(line("a = 1\nb = = 2\n"), 2);
        assert_eq!(line("a = 1\n\nmcp_servers = { a = { command = \"a\" } }\n"), 3);
    }

    #[track_caller]
    fn check_trust(state: &str, expected: HookTrust) {
        let place = InstalledHook { event: "PreToolUse".to_owned(), place: (1, 0), ..InstalledHook::default() };
        let name = name_of_hook(Path::new("/a.b/hooks.json"), &place);
        assert_eq!(trust_in_hook(state, &name), expected, "{state}");
    }

    #[test]
    fn codex_runs_a_hook_that_is_trusted_and_not_switched_off() {
        check_trust("", HookTrust::NotTrusted);
        check_trust("[hooks.state]\n", HookTrust::NotTrusted);
        check_trust("hooks = 1\n", HookTrust::NotTrusted);
        check_trust("[hooks.state.\"/a.b/hooks.json:pre_tool_use:1:0\"]\ntrusted_hash = \"sha256:1\"\n", HookTrust::Trusted);
        check_trust("[hooks.state.'/a.b/hooks.json:pre_tool_use:1:0']\nenabled = true\ntrusted_hash = 'x'\n", HookTrust::Trusted);
        check_trust(
            "[hooks.state.'/a.b/hooks.json:pre_tool_use:1:0']\nenabled = false\ntrusted_hash = 'x'\n",
            HookTrust::SwitchedOff,
        );
        check_trust("[hooks.state.'/a.b/hooks.json:pre_tool_use:1:0']\nenabled = true\n", HookTrust::NotTrusted);
        check_trust("[hooks.state.'/a.b/hooks.json:pre_tool_use:0:0']\ntrusted_hash = 'x'\n", HookTrust::NotTrusted);
    }

    proptest! {
        #[test]
        fn removing_gives_what_was_there(
            keys in proptest::collection::vec("[a-z]{1,6}", 0..4),
            tables in proptest::collection::btree_set("[a-z]{1,5}", 0..4),
            blank in "\n{0,3}",
            ending in prop_oneof![Just("\n"), Just("\r\n")],
            at_the_end in prop_oneof![Just(""), Just("\n"), Just("\n\n"), Just("\n# the end")],
        ) {
            let mut text: String = keys.iter().enumerate().map(|(n, key)| format!("{key}{n} = {n} # {key}\n")).collect();
            for table in &tables {
                text.push_str(&format!("{blank}[mcp_servers.{table}x]\ncommand = '{table}'\n"));
            }
            let text = format!("{}{at_the_end}", text.trim_end()).replace('\n', ending);
            let with = add(&text, &server("/a b/surehand")).unwrap();
            prop_assert_eq!(remove(&with, &server("/a b/surehand"), std::slice::from_ref(&text)).unwrap(), Some(text.clone()));
            if text.ends_with('\n') && !text.trim().is_empty() {
                prop_assert_eq!(remove(&with, &server("/a b/surehand"), &[]).unwrap().unwrap_or_default(), text);
            }
        }
    }
}
