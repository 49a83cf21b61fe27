//! The tools as models call them: name, description, schema, and the conversion of arguments into a [`Call`]. All
//! interfaces offer the same tools with the same texts. A description names another tool only if the model has it.

mod apply_patch;
mod delete_file;
mod edit_file;
mod edit_lines;
mod forget;
mod list_files;
mod move_file;
mod multi_edit;
mod read_file;
mod repo_state;
mod restore;
mod search_files;
mod undo;
mod update_tasks;
mod write_file;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use surehand_core::{Cause, Edit, Outcome, Refusal, Tool, ToolNames, render::Reply};

use crate::{call_progress::CallProgress, calls::Call, session::Session};

/// The arguments of a tool, as a model sends them.
trait ToolArguments: DeserializeOwned + JsonSchema {
    /// The description of the tool for a model that has these tools; by default, the doc comment of the type.
    fn describe(_: &ToolNames) -> String {
        schema::<Self>()["description"].as_str().expect("the type has a doc comment").replace('\n', " ")
    }

    /// Converts the arguments into a call; refused if they do not fit together.
    fn into_call(self) -> Result<Call, Refusal>;
}

struct ToolDefinition {
    describe: fn(&ToolNames) -> String,
    schema: fn() -> Map<String, Value>,
    parse: fn(Tool, &Value) -> Result<Call, Refusal>,
}

impl ToolDefinition {
    fn of<Arguments: ToolArguments>() -> Self {
        let parse = |tool: Tool, value: &Value| arguments::<Arguments>(tool.name(), value)?.into_call();
        Self { describe: Arguments::describe, schema: schema::<Arguments>, parse }
    }
}

fn definition(tool: Tool) -> ToolDefinition {
    match tool {
        Tool::ReadFile => ToolDefinition::of::<read_file::ReadFile>(),
        Tool::ListFiles => ToolDefinition::of::<list_files::ListFiles>(),
        Tool::SearchFiles => ToolDefinition::of::<search_files::SearchFiles>(),
        Tool::EditFile => ToolDefinition::of::<edit_file::EditFile>(),
        Tool::MultiEdit => ToolDefinition::of::<multi_edit::MultiEdit>(),
        Tool::EditLines => ToolDefinition::of::<edit_lines::EditLines>(),
        Tool::ApplyPatch => ToolDefinition::of::<apply_patch::ApplyPatch>(),
        Tool::WriteFile => ToolDefinition::of::<write_file::WriteFile>(),
        Tool::DeleteFile => ToolDefinition::of::<delete_file::DeleteFile>(),
        Tool::MoveFile => ToolDefinition::of::<move_file::MoveFile>(),
        Tool::Undo => ToolDefinition::of::<undo::UndoArguments>(),
        Tool::Restore => ToolDefinition::of::<restore::RestoreArguments>(),
        Tool::RepoState => ToolDefinition::of::<repo_state::RepoStateArguments>(),
        Tool::UpdateTasks => ToolDefinition::of::<update_tasks::UpdateTasks>(),
        Tool::Forget => ToolDefinition::of::<forget::ForgetArguments>(),
    }
}

/// The description of a tool for a model that has these tools.
pub fn description(tool: Tool, names: &ToolNames) -> String {
    (definition(tool).describe)(names)
}

/// The JSON schema of the arguments of a tool, for a model that has these tools.
pub fn input_schema(tool: Tool, names: &ToolNames) -> Map<String, Value> {
    let mut schema = (definition(tool).schema)();
    for field in ["description", "title", "$schema"] {
        schema.remove(field);
    }
    if names.get(Tool::EditLines).is_none()
        && let Some(Value::Object(properties)) = schema.get_mut("properties")
    {
        // Only that tool needs anchors.
        properties.remove("anchors");
    }
    schema
}

/// Parses the arguments of a call; refused if they are wrong.
pub fn parse(tool: Tool, arguments: &Value) -> Result<Call, Refusal> {
    (definition(tool).parse)(tool, arguments)
}

/// The arguments of a call, for a log; most calls are reduced to their paths.
pub fn written_arguments(call: &Call) -> Value {
    match call {
        Call::Read(read) => read_file::written(read),
        Call::Edit(Edit::Lines { path, edits }) => edit_lines::written(path, edits),
        Call::Edit(edit) => json!({ "paths": edit.paths() }),
        Call::Restore(restore) => json!({ "paths": restore.paths }),
        Call::List(_) | Call::Search(_) | Call::State(_) | Call::Tasks(_) | Call::Forget(_) => json!({}),
    }
}

impl Session {
    /// Carries out a call of a model. Unknown names and wrong arguments are refused in the outcome.
    pub fn run_tool(&mut self, progress: &CallProgress, tool: &str, arguments: &Value) -> Outcome {
        let parsed = match Tool::named(tool) {
            Some(tool) => parse(tool, arguments),
            None => Err(Refusal::of_call(Cause::NoSuchTool { name: tool.to_owned() })),
        };
        match parsed {
            Ok(call) => self.run_with(progress, &call),
            Err(refusal) => self.refuse(&(tool, arguments), refusal),
        }
    }

    /// [`Session::run_tool`] for a caller that no longer needs the arguments, so the text of a whole file is not
    /// copied.
    pub fn run_owned_tool(&mut self, progress: &CallProgress, tool: &str, mut arguments: Value) -> Outcome {
        let is_write = Tool::named(tool) == Some(Tool::WriteFile);
        match is_write.then(|| write_file::take(&mut arguments)).flatten() {
            Some(call) => self.run_with(progress, &call),
            None => self.run_tool(progress, tool, &arguments),
        }
    }

    /// [`Session::run_tool`] with the result as text and JSON, for a model that has all our tools.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Reply {
        Reply::of(&self.run_tool(&CallProgress::default(), tool, arguments), &ToolNames::default())
    }
}

fn schema<Arguments: JsonSchema>() -> Map<String, Value> {
    // Inline everything, because some clients do not follow references.
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Arguments>().to_value();
    one_type_each(&mut schema);
    leave_out_the_obvious(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Removes everything that a model does not need, because every request includes the schemas. A call that violates the
/// removed rules is refused with the reason.
fn leave_out_the_obvious(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_schema = fields.contains_key("type");
            fields.retain(|name, value| {
                let is_rule = matches!(name.as_str(), "additionalProperties" | "format" | "minimum" | "default");
                !(is_schema && is_rule && !value.is_object())
            });
            // The description of a list makes that of its items redundant.
            if let Some(Value::Object(items)) = fields.get_mut("items") {
                items.remove("description");
            }
            fields.values_mut().for_each(leave_out_the_obvious);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_the_obvious),
        _ => {}
    }
}

/// Makes each type a single one: optional fields lose the alternative `null`, because some clients accept only one
/// type.
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

// A whole number, which a model may also write as `10.0` or `"10"`. A doc comment would become part of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
struct WholeNumber(u32);

// A whole number that may be negative, to count from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
struct LineOffset(i64);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        whole_number(deserializer, |number| u32::try_from(number).ok().map(WholeNumber))
    }
}

impl<'de> Deserialize<'de> for LineOffset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fits = |number: &i64| number.unsigned_abs() <= u64::from(u32::MAX);
        whole_number(deserializer, |number| Some(number).filter(fits).map(LineOffset))
    }
}

fn whole_number<'de, D: Deserializer<'de>, T>(deserializer: D, fit: impl Fn(i64) -> Option<T>) -> Result<T, D::Error> {
    let sent = Value::deserialize(deserializer)?;
    let number = match &sent {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let of_float = |number: f64| (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64);
    let whole = number.and_then(|number| number.as_i64().or_else(|| number.as_f64().and_then(of_float)));
    whole.and_then(fit).ok_or_else(|| serde::de::Error::custom(format!("{sent} is not a whole number that fits here")))
}

fn limit(tool: Tool, asked: Option<WholeNumber>) -> Result<Option<usize>, Refusal> {
    match asked {
        Some(WholeNumber(0)) => Err(Refusal::of_call(Cause::BadArguments {
            why: format!("{}: limit 0 shows nothing: ask for at least one line", tool.name()),
        })),
        asked => Ok(asked.map(|asked| asked.0 as usize)),
    }
}

/// Parses the arguments of a call; refused if they are wrong.
pub fn arguments<Arguments: DeserializeOwned>(tool: &str, value: &Value) -> Result<Arguments, Refusal> {
    let bad = |why: String| Refusal::of_call(Cause::BadArguments { why: format!("{tool}: {why}") });
    let parse = |value: &Value| {
        serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
            let why: String = error.inner().to_string().chars().take(300).collect();
            let path: String = error.path().to_string().chars().take(100).collect();
            // The path leads to the wrong field. For an unknown field, the message names it too.
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
    use surehand_core::EditDialect;

    use super::*;

    #[test]
    fn the_rules_are_stated_in_the_descriptions() {
        let names = ToolNames::default();
        for tool in Tool::ALL {
            let (description, schema, name) = (description(tool, &names), input_schema(tool, &names), tool.name());
            let is_about_reading = !matches!(tool, Tool::ListFiles | Tool::UpdateTasks | Tool::Undo);
            assert!(!is_about_reading || description.to_lowercase().contains("read"), "{name}: {description}");
            assert!(description.len() < 600, "{name}: {} characters", description.len());
            assert_eq!(schema["type"], "object");
            for (name, field) in schema["properties"].as_object().unwrap() {
                assert!(field["type"].is_string(), "{tool:?}.{name}: {field}");
            }
        }
        let rules = surehand_core::render::rules::instructions(&names);
        assert!(rules.contains("Read before you edit") && rules.contains("compacted") && rules.contains("forget"));
    }

    #[test]
    fn the_schemas_list_every_status_and_format() {
        let names = ToolNames::default();
        let schema = |tool| Value::Object(input_schema(tool, &names));
        let listed = &schema(Tool::UpdateTasks)["properties"]["set"]["items"]["properties"]["status"]["enum"];
        assert_eq!(*listed, serde_json::json!(surehand_core::TaskStatus::ALL));
        let formats = &schema(Tool::RepoState)["properties"]["format"]["enum"];
        let read = |format: &Value| serde_json::from_value::<crate::calls::StateFormat>(format.clone()).unwrap();
        let read: Vec<_> = formats.as_array().unwrap().iter().map(read).collect();
        assert_eq!(read, [crate::calls::StateFormat::Summary, crate::calls::StateFormat::Json]);
    }

    #[test]
    fn descriptions_name_only_tools_that_exist() {
        let dialects: [&[EditDialect]; 5] =
            [&EditDialect::ALL, &[EditDialect::Text], &[EditDialect::Lines], &[EditDialect::Patch], &[]];
        for names in dialects.map(ToolNames::of_dialects).into_iter().chain([ToolNames::reading_with("Read")]) {
            for tool in Tool::ALL.into_iter().filter(|tool| names.get(*tool).is_some()) {
                let text = format!("{} {}", description(tool, &names), Value::Object(input_schema(tool, &names)));
                let missing = |other: &Tool| names.get(*other).is_none_or(|name| name != other.name());
                for other in Tool::ALL.into_iter().filter(missing) {
                    assert!(!text.contains(other.name()), "{tool:?} names {other:?}: {text}");
                }
            }
        }
    }
}
