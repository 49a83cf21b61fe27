//! Adds, finds and removes the Surehand entries of a JSON configuration: a server and hooks. `config_files` decides
//! which file needs which entries; `json_edit` edits the text.

use jsonc_parser::ast::{Object, Value};

use super::{
    json_edit::{Container, JsonNode, SyntaxProblem, line_of, parse, range_of, replaced},
    program::{self, ServerLaunch},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigEntry {
    /// The version number that the client requires in the file.
    Version(u64),
    Server {
        /// The names of the nested objects that contain the server, from the root.
        table: Vec<String>,
        presence: Presence,
        launch: ServerLaunch,
        value: JsonNode,
    },
    Hook {
        /// The argument of `surehand hook`.
        client: &'static str,
        event: &'static str,
        command: String,
        /// The pattern of the tools that the hook is for; `None` means all tools.
        tools: Option<&'static str>,
        value: JsonNode,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    /// An existing entry is corrected, but a missing one is not added.
    IfThere,
}

impl ConfigEntry {
    pub(crate) fn is_required(&self) -> bool {
        !matches!(self, ConfigEntry::Server { presence: Presence::IfThere, .. })
    }

    fn with_presence(&self, presence: Presence) -> Self {
        let mut other = self.clone();
        if let ConfigEntry::Server { presence: current, .. } = &mut other {
            *current = presence;
        }
        other
    }
}

pub(crate) const NAME: &str = "surehand";
const HOOKS: &str = "hooks";
const VERSION: &str = "version";
const COMMANDS: [&str; 2] = ["command", "bash"];
/// The names under which clients keep the pattern of the tools.
const PATTERNS: [&str; 2] = ["matcher", "match"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FoundEntries {
    /// The command of the server as words.
    pub server: Option<Vec<String>>,
    pub hooks: Vec<InstalledHook>,
    /// A foreign server has the name `surehand`.
    pub name_is_taken: bool,
    pub is_whole: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InstalledHook {
    pub event: String,
    /// The index of the hook's group, and its index within the group.
    pub place: (usize, usize),
    pub words: Vec<String>,
    /// Whether the client runs the command from its settings. Otherwise a script of `init` runs it.
    pub is_in_settings: bool,
}

impl InstalledHook {
    /// Whether the hook fails if the program is missing. Scripts check for the program themselves.
    pub(crate) fn is_unguarded(&self) -> bool {
        self.is_in_settings && !program::is_guarded(&self.words)
    }
}

/// Adds all entries. Existing entries stay where they are, with a new path if the program has moved.
pub(crate) fn add(text: &str, wanted: &[ConfigEntry]) -> Result<String, SyntaxProblem> {
    let (mark, body) = byte_order_mark(text);
    let mut body = if wanted.iter().any(ConfigEntry::is_required) { with_root(body)? } else { body.to_owned() };
    for one in wanted {
        body = add_one(&body, one)?;
    }
    Ok(format!("{mark}{body}"))
}

/// Removes all entries. `originals` are the backups; without any, `init` created the file. `None` means that the file
/// can be removed, because nothing else is in it.
pub(crate) fn remove(text: &str, wanted: &[ConfigEntry], originals: &[String]) -> Result<Option<String>, SyntaxProblem> {
    // Whether the server was requested is not recorded, so both are tried.
    for presence in [Presence::Required, Presence::IfThere] {
        let wanted: Vec<ConfigEntry> = wanted.iter().map(|one| one.with_presence(presence)).collect();
        if let Some(original) = originals.iter().find(|original| add(original, &wanted).as_deref() == Ok(text)) {
            return Ok(Some(original.clone()));
        }
    }
    let (mark, body) = byte_order_mark(text);
    let mut body = body.to_owned();
    while let Some(path) = next_of_ours(&body, wanted)? {
        body = cut(&body, path, originals)?;
    }
    body = without_version(&body, wanted, originals)?;
    let is_bare = match parse(&body)? {
        Some(Value::Object(root)) => {
            let container = Container::of_object(&root);
            container.is_bare(&body) && body.trim().len() == root.range.end - root.range.start
        }
        _ => body.trim().is_empty(),
    };
    let nothing_of_ours = body == byte_order_mark(text).1;
    Ok((!is_bare || !originals.is_empty() || nothing_of_ours).then(|| format!("{mark}{body}")))
}

pub(crate) fn find(text: &str, wanted: &[ConfigEntry]) -> Result<FoundEntries, SyntaxProblem> {
    let (_, body) = byte_order_mark(text);
    let mut ours = FoundEntries::default();
    let Some(Value::Object(root)) = parse(body)? else { return Ok(ours) };
    for one in wanted {
        match one {
            ConfigEntry::Server { table, .. } => {
                let words = server(&root, table).map(|(_, server)| command_words(server));
                ours.name_is_taken = words.as_ref().is_some_and(|words| !program::is_ours(words));
                ours.server = words.filter(|words| program::is_ours(words));
            }
            ConfigEntry::Hook { client, .. } if ours.hooks.is_empty() => {
                ours.hooks = hooks(&root, client).into_iter().map(InstalledHook::from).collect();
            }
            ConfigEntry::Hook { .. } | ConfigEntry::Version(_) => {}
        }
    }
    Ok(ours)
}

fn byte_order_mark(text: &str) -> (&str, &str) {
    text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body))
}

/// Adds an object to an empty text.
fn with_root(text: &str) -> Result<String, SyntaxProblem> {
    match parse(text)? {
        Some(_) => Ok(text.to_owned()),
        None if text.trim().is_empty() => Ok("{}\n".to_owned()),
        None => Ok(format!("{}\n{{}}\n", text.trim_end_matches(['\r', '\n']))),
    }
}

fn add_one(text: &str, wanted: &ConfigEntry) -> Result<String, SyntaxProblem> {
    let value = parse(text)?;
    if value.is_none() && !wanted.is_required() {
        return Ok(text.to_owned());
    }
    let root = object(text, value.as_ref(), "the file")?;
    match wanted {
        ConfigEntry::Version(number) => Ok(match root.get(VERSION) {
            Some(_) => text.to_owned(),
            None => Container::of_object(root).with_member(text, VERSION, &JsonNode::Number(*number)),
        }),
        ConfigEntry::Server { table, presence, launch, value } => add_server(text, root, table, (*presence, launch, value)),
        ConfigEntry::Hook { client, event, command, tools, value } => {
            let entry = || JsonNode::List(vec![value.clone()]);
            let Some(events) = root.get(HOOKS) else {
                let hooks = entry().nested(&[(*event).to_owned()]);
                return Ok(Container::of_object(root).with_member(text, HOOKS, &hooks));
            };
            let events = object(text, Some(&events.value), HOOKS)?;
            let Some(list) = events.get(event) else {
                return Ok(Container::of_object(events).with_member(text, event, &entry()));
            };
            let Some(array) = list.value.as_array() else { return Err(wrong_kind(text, &list.value, event, "a list")) };
            match hooks(root, client).into_iter().find(|hook| hook.event == *event) {
                None => Ok(Container::of_array(array).with_element(text, value)),
                Some(hook) => Ok(corrected_hook(text, root, &hook, (client, command, *tools))),
            }
        }
    }
}

fn add_server(
    text: &str,
    root: &Object<'_>,
    table: &[String],
    (presence, launch, value): (Presence, &ServerLaunch, &JsonNode),
) -> Result<String, SyntaxProblem> {
    let mut holder = root;
    for (depth, name) in table.iter().enumerate() {
        match holder.get(name) {
            Some(inner) => holder = object(text, Some(&inner.value), name)?,
            None if presence == Presence::IfThere => return Ok(text.to_owned()),
            None => {
                let inner = [&table[depth + 1..], &[NAME.to_owned()]].concat();
                return Ok(Container::of_object(holder).with_member(text, name, &value.clone().nested(&inner)));
            }
        }
    }
    match holder.get(NAME) {
        None if presence == Presence::IfThere => Ok(text.to_owned()),
        None => Ok(Container::of_object(holder).with_member(text, NAME, value)),
        Some(server) => Ok(corrected_server(text, server.value.as_object(), launch)),
    }
}

/// Corrects the command of an existing server. A foreign server is left alone.
fn corrected_server(text: &str, server: Option<&Object<'_>>, launch: &ServerLaunch) -> String {
    let Some(server) = server.filter(|server| program::is_ours(&command_words(server))) else { return text.to_owned() };
    let words = command_words(server);
    let wanted = launch.corrected(&words);
    let command = server.get("command").map(|command| &command.value);
    match (command, server.get("args").map(|args| &args.value)) {
        _ if words == wanted => text.to_owned(),
        (Some(Value::Array(list)), None) => replaced(text, vec![(range_of(list), JsonNode::texts(&wanted))]),
        (Some(Value::StringLit(command)), Some(Value::Array(args))) => {
            let (program, arguments) = (JsonNode::text(&wanted[0]), JsonNode::texts(&wanted[1..]));
            replaced(text, vec![(range_of(command), program), (range_of(args), arguments)])
        }
        _ => text.to_owned(),
    }
}

/// Updates a hook that an older version wrote. A command that the user extended stays, and so does a pattern with other
/// tools.
fn corrected_hook(
    text: &str,
    root: &Object<'_>,
    hook: &HookPosition,
    (client, command, tools): (&str, &str, Option<&str>),
) -> String {
    let Some(handler) = follow(root, &hook.path).and_then(Value::as_object) else { return text.to_owned() };
    if !program::is_plain_hook(&hook.words, client) || handler.get("args").is_some() {
        return text.to_owned();
    }
    let mut parts = Vec::new();
    if let Some(current) = COMMANDS.iter().find_map(|name| handler.get_string(name)).filter(|current| current.value != command) {
        parts.push((range_of(current), JsonNode::text(command)));
    }
    let group = follow(root, &hook.path[..hook.depth]).and_then(Value::as_object);
    let pattern = PATTERNS.iter().find_map(|name| group?.get_string(name));
    if let Some((current, tools)) = pattern.zip(tools).filter(|(current, tools)| is_part(&current.value, tools)) {
        parts.push((range_of(current), JsonNode::text(tools)));
    }
    replaced(text, parts)
}

/// Whether a pattern contains all tools of this one, and more.
fn is_part(pattern: &str, of: &str) -> bool {
    pattern != of && pattern.split('|').all(|tool| of.split('|').any(|other| other == tool))
}

fn object<'v, 'a>(text: &str, value: Option<&'v Value<'a>>, name: &str) -> Result<&'v Object<'a>, SyntaxProblem> {
    match value {
        Some(Value::Object(object)) => Ok(object),
        Some(other) => Err(wrong_kind(text, other, name, "an object")),
        None => Err(SyntaxProblem { line: 1, why: format!("{name} is empty") }),
    }
}

fn wrong_kind(text: &str, value: &Value<'_>, name: &str, kind: &str) -> SyntaxProblem {
    SyntaxProblem { line: line_of(text, jsonc_parser::common::Ranged::start(value)), why: format!("{name} is not {kind}") }
}

/// The words of a command, which may be written as one string, as a list, or as a program with arguments.
fn command_words(entry: &Object<'_>) -> Vec<String> {
    let texts = |list: &jsonc_parser::ast::Array<'_>| -> Vec<String> {
        list.elements.iter().filter_map(Value::as_string_lit).map(|text| text.value.to_string()).collect()
    };
    let args = entry.get_array("args").map(texts).unwrap_or_default();
    let mut words = match COMMANDS.iter().find_map(|name| entry.get(name)).map(|command| &command.value) {
        Some(Value::StringLit(line)) if entry.get_array("args").is_some() => vec![line.value.to_string()],
        Some(Value::StringLit(line)) => program::words(&line.value),
        Some(Value::Array(list)) => texts(list),
        _ => Vec::new(),
    };
    words.extend(args);
    words
}

struct HookPosition {
    /// Indexes from the root through the hooks, the event and the list to the entry, and on into its group.
    path: Vec<usize>,
    /// The length of the path to the part that `init` added: the hook, or the whole group if it contains no other hook.
    depth: usize,
    event: String,
    words: Vec<String>,
}

impl From<HookPosition> for InstalledHook {
    fn from(hook: HookPosition) -> Self {
        let place = (hook.path[2], hook.path.get(4).copied().unwrap_or_default());
        Self { event: hook.event, place, words: hook.words, is_in_settings: true }
    }
}

fn hooks(root: &Object<'_>, client: &str) -> Vec<HookPosition> {
    let mut found = Vec::new();
    let Some((at_hooks, events)) = member(root, HOOKS).and_then(|(at, value)| Some((at, value.as_object()?))) else {
        return found;
    };
    for (at_event, event) in events.properties.iter().enumerate() {
        let Some(list) = event.value.as_array() else { continue };
        let entries = list.elements.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_object()?)));
        for (at_entry, entry) in entries {
            let mut take = |path: Vec<usize>, depth, handler: &Object<'_>| {
                let words = command_words(handler);
                if program::is_our_hook(&words, client) {
                    found.push(HookPosition { path, depth, event: event.name.as_str().to_owned(), words });
                }
            };
            let here = vec![at_hooks, at_event, at_entry];
            // Some clients list commands; others list groups with a matcher.
            let Some((at_group, group)) = member(entry, HOOKS).and_then(|(at, value)| Some((at, value.as_array()?))) else {
                take(here, 3, entry);
                continue;
            };
            let depth = if group.elements.len() == 1 { 3 } else { 5 };
            for (at_handler, handler) in group.elements.iter().enumerate() {
                if let Some(handler) = handler.as_object() {
                    take([here.clone(), vec![at_group, at_handler]].concat(), depth, handler);
                }
            }
        }
    }
    found
}

fn member<'v, 'a>(object: &'v Object<'a>, name: &str) -> Option<(usize, &'v Value<'a>)> {
    let at = object.properties.iter().position(|property| property.name.as_str() == name)?;
    Some((at, &object.properties[at].value))
}

/// The server named `surehand`, with its position.
fn server<'v, 'a>(root: &'v Object<'a>, table: &[String]) -> Option<(Vec<usize>, &'v Object<'a>)> {
    let (mut path, mut object) = (Vec::new(), root);
    for name in table.iter().map(String::as_str).chain([NAME]) {
        let (at, value) = member(object, name)?;
        path.push(at);
        object = value.as_object()?;
    }
    Some((path, object))
}

fn follow<'v, 'a>(root: &'v Object<'a>, path: &[usize]) -> Option<&'v Value<'a>> {
    let (first, rest) = path.split_first()?;
    let mut value = &root.properties.get(*first)?.value;
    for at in rest {
        value = match value {
            Value::Object(object) => &object.properties.get(*at)?.value,
            Value::Array(array) => array.elements.get(*at)?,
            _ => return None,
        };
    }
    Some(value)
}

/// The position of any Surehand entry that is still in the text.
fn next_of_ours(text: &str, wanted: &[ConfigEntry]) -> Result<Option<Vec<usize>>, SyntaxProblem> {
    let Some(Value::Object(root)) = parse(text)? else { return Ok(None) };
    let path = wanted.iter().find_map(|one| match one {
        ConfigEntry::Version(_) => None,
        ConfigEntry::Server { table, .. } => {
            let (path, server) = server(&root, table)?;
            program::is_ours(&command_words(server)).then_some(path)
        }
        ConfigEntry::Hook { client, .. } => {
            let mut hook = hooks(&root, client).pop()?;
            hook.path.truncate(hook.depth);
            Some(hook.path)
        }
    });
    Ok(path)
}

/// Removes an item, and the containers that this leaves empty, unless a backup contains them.
fn cut(text: &str, mut path: Vec<usize>, originals: &[String]) -> Result<String, SyntaxProblem> {
    let value = parse(text)?;
    let root = object(text, value.as_ref(), "the file")?;
    while path.len() > 1 {
        let holder = &path[..path.len() - 1];
        let Some(container) = follow(root, holder).and_then(container) else { break };
        if !container.has_one_item_only(text) || was_there(originals, &names(root, holder)) {
            break;
        }
        path.pop();
    }
    let last = path.pop().unwrap_or_default();
    let holder = if path.is_empty() { Some(Container::of_object(root)) } else { follow(root, &path).and_then(container) };
    Ok(holder.map_or_else(|| text.to_owned(), |holder| holder.without(text, last)))
}

fn container(value: &Value<'_>) -> Option<Container> {
    match value {
        Value::Object(object) => Some(Container::of_object(object)),
        Value::Array(array) => Some(Container::of_array(array)),
        _ => None,
    }
}

fn names(root: &Object<'_>, path: &[usize]) -> Vec<String> {
    let mut names = Vec::new();
    let mut object = Some(root);
    for at in path {
        let Some(property) = object.and_then(|object| object.properties.get(*at)) else { break };
        names.push(property.name.as_str().to_owned());
        object = property.value.as_object();
    }
    names
}

fn was_there(originals: &[String], names: &[String]) -> bool {
    originals.iter().any(|original| {
        let Ok(Some(Value::Object(root))) = parse(byte_order_mark(original).1) else { return false };
        let mut object = Some(&root);
        names.iter().all(|name| {
            let property = object.and_then(|object| object.get(name));
            object = property.and_then(|property| property.value.as_object());
            property.is_some()
        })
    })
}

/// Removes the version number if it is the only member left.
fn without_version(text: &str, wanted: &[ConfigEntry], originals: &[String]) -> Result<String, SyntaxProblem> {
    let Some(Value::Object(root)) = parse(text)? else { return Ok(text.to_owned()) };
    let is_ours = wanted.iter().any(|one| matches!(one, ConfigEntry::Version(_))) && !was_there(originals, &[VERSION.to_owned()]);
    let is_alone = root.properties.len() == 1 && root.get(VERSION).is_some();
    Ok(if is_ours && is_alone { Container::of_object(&root).without(text, 0) } else { text.to_owned() })
}

#[cfg(test)]
mod tests;
