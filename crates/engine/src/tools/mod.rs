//! The tools, in one table: every door offers these, by these names, with these words. The doc comment of a tool's arguments is
//! its description for the model, so the two cannot drift apart.

mod apply_patch;
mod change;
mod delete_file;
mod edit_file;
mod edit_lines;
mod forget;
mod list_files;
mod move_file;
mod multi_edit;
mod read_file;
mod repo_state;
mod search_files;
pub(crate) mod undo;
mod update_tasks;
mod write_file;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};
use surehand_core::{Cause, Refusal, RelPath};

use crate::{
    disk::walk::{self, Globs, Visitor, Walked},
    session::{Session, Success},
};

/// A tool that a model can call.
pub struct Tool {
    /// Its name; a promise.
    pub name: &'static str,
    /// What kind of tool it is, for clients that ask people first.
    pub hints: Hints,
    /// Description and schema of the arguments.
    describe: fn() -> Map<String, Value>,
    /// Carries out a call.
    pub(crate) run: fn(&mut Session, &Value) -> Result<Success, Refusal>,
}

/// What kind of tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    /// It changes nothing.
    ReadOnly,
    /// It changes files.
    Edits,
}

/// All tools, in the order in which they are listed.
pub const TABLE: &[Tool] = &[
    Tool { name: "read_file", hints: Hints::ReadOnly, describe: schema::<read_file::ReadFile>, run: read_file::run },
    Tool { name: "list_files", hints: Hints::ReadOnly, describe: schema::<list_files::ListFiles>, run: list_files::run },
    Tool { name: "search_files", hints: Hints::ReadOnly, describe: schema::<search_files::SearchFiles>, run: search_files::run },
    Tool { name: "edit_file", hints: Hints::Edits, describe: schema::<edit_file::EditFile>, run: edit_file::run },
    Tool { name: "multi_edit", hints: Hints::Edits, describe: schema::<multi_edit::MultiEdit>, run: multi_edit::run },
    Tool { name: "edit_lines", hints: Hints::Edits, describe: schema::<edit_lines::EditLines>, run: edit_lines::run },
    Tool { name: "apply_patch", hints: Hints::Edits, describe: schema::<apply_patch::ApplyPatch>, run: apply_patch::run },
    Tool { name: "write_file", hints: Hints::Edits, describe: schema::<write_file::WriteFile>, run: write_file::run },
    Tool { name: "delete_file", hints: Hints::Edits, describe: schema::<delete_file::DeleteFile>, run: delete_file::run },
    Tool { name: "move_file", hints: Hints::Edits, describe: schema::<move_file::MoveFile>, run: move_file::run },
    Tool { name: "undo", hints: Hints::Edits, describe: schema::<undo::Undo>, run: undo::run },
    Tool { name: "repo_state", hints: Hints::ReadOnly, describe: schema::<repo_state::RepoStateArguments>, run: repo_state::run },
    Tool { name: "update_tasks", hints: Hints::Edits, describe: schema::<update_tasks::UpdateTasks>, run: update_tasks::run },
    Tool { name: "forget", hints: Hints::ReadOnly, describe: schema::<forget::Forget>, run: forget::run },
];

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TABLE.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// What the model is told about it.
    pub fn description(&self) -> String {
        let described = (self.describe)();
        described.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The JSON schema of its arguments.
    pub fn input_schema(&self) -> Map<String, Value> {
        let mut schema = (self.describe)();
        schema.remove("description");
        schema.remove("title");
        schema.remove("$schema");
        schema
    }
}

fn schema<Arguments: JsonSchema>() -> Map<String, Value> {
    // Everything in place: some clients do not follow references.
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Arguments>().to_value();
    one_type_each(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// An optional field may be left out; that it may also be null is not said, because some clients take one type only.
fn one_type_each(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            fields.values_mut().for_each(one_type_each);
        }
        Value::Array(items) => items.iter_mut().for_each(one_type_each),
        _ => {}
    }
}

/// A whole number that a model may also write as `10.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number(u32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let whole =
            number.as_u64().or_else(|| number.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0 && *n < 1e15).map(|n| n as u64));
        let fits = whole.and_then(|number| u32::try_from(number).ok()).map(Number);
        fits.ok_or_else(|| serde::de::Error::custom(format!("{number} is not a line number or a number of lines")))
    }
}

impl JsonSchema for Number {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 1 })
    }
}

/// Whether a call has edits, and not too many.
fn check_count(session: &Session, tool: &str, edits: usize) -> Result<(), Refusal> {
    let limit = session.limits().batch_edits;
    if edits == 0 {
        return Err(Refusal::of_call(Cause::BadArguments { why: format!("{tool}: edits is empty") }));
    }
    if edits > limit {
        let (unit, setting) = ("edits in one call", "limits.batch_edits");
        return Err(Refusal::of_call(Cause::TooLarge { unit, size: edits as u64, limit: limit as u64, setting }));
    }
    Ok(())
}

/// How many lines a call may show, as far as the settings allow.
fn limit(tool: &str, asked: Option<Number>, default: usize, session: &Session) -> Result<usize, Refusal> {
    match asked {
        Some(Number(0)) => Err(Refusal::of_call(Cause::BadArguments {
            why: format!("{tool}: limit 0 shows nothing: ask for at least one line"),
        })),
        asked => Ok(asked.map_or(default, |asked| asked.0 as usize).min(session.limits().read_lines)),
    }
}

/// Walks the workspace from a directory down.
fn walk<V: Visitor>(
    tool: &str,
    session: &Session,
    below: Option<&RelPath>,
    glob: Option<&str>,
    visitor: impl Fn() -> V + Sync,
) -> Result<Walked<V>, Refusal> {
    let globs = glob.map_or_else(|| Ok(Globs::all()), Globs::of);
    let bad = |error| Refusal::of_call(Cause::BadArguments { why: format!("{tool}: glob: {error}") });
    let (course, root) = (&session.course, session.workspace().root());
    let mut walked = walk::walk_on(course, root, below, &globs.map_err(bad)?, visitor).map_err(|error| {
        let why = format!("cannot list it: {error}");
        Refusal::of_spelling(below.map_or(".", RelPath::as_str), Cause::Io { why })
    })?;
    check_is_wanted(session)?;
    walked.left_out.sort();
    Ok(walked)
}

/// Whether somebody still waits for the call.
fn check_is_wanted(session: &Session) -> Result<(), Refusal> {
    if session.course.is_stopped() {
        return Err(Refusal::of_call(Cause::Io { why: "the call was cancelled".to_owned() }));
    }
    Ok(())
}

/// The arguments of a call, or what is wrong with them.
pub fn arguments<Arguments: DeserializeOwned>(tool: &str, value: &Value) -> Result<Arguments, Refusal> {
    let bad = |why: String| Refusal::of_call(Cause::BadArguments { why: format!("{tool}: {why}") });
    let parse = |value: &Value| {
        serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
            let why: String = error.inner().to_string().chars().take(300).collect();
            let path: String = error.path().to_string().chars().take(100).collect();
            // The path leads to the field that is wrong. One that is unknown is named by the message as well.
            let named = path.rsplit(['.']).next().is_some_and(|last| why.contains(&format!("`{last}`")));
            let place = if named { path.rsplit_once('.').map_or("", |(parent, _)| parent) } else { path.trim_start_matches('.') };
            bad(if place.is_empty() { why } else { format!("{place}: {why}") })
        })
    };
    match value {
        Value::Object(_) => parse(value),
        Value::Null => parse(&Value::Object(Map::new())),
        _ => Err(bad("the arguments must be a JSON object".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_stated_in_the_descriptions() {
        for tool in TABLE {
            let (description, schema) = (tool.description(), tool.input_schema());
            let rule = if tool.name == "forget" { "read it again" } else { "read" };
            assert!(description.contains(rule), "{}: {description}", tool.name);
            assert!(description.len() < 600, "{}: {} characters", tool.name, description.len());
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false);
            for (name, field) in schema["properties"].as_object().unwrap() {
                assert!(field["description"].is_string(), "{}.{name} has no description", tool.name);
                assert!(field["type"].is_string(), "{}.{name}: {field}", tool.name);
            }
        }
        let rules = surehand_core::render::rules::INSTRUCTIONS;
        assert!(rules.contains("Read before you edit") && rules.contains("compacted") && rules.contains("forget"));
    }
}
