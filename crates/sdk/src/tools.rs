//! The tools that a session offers to a model, under the names that the model knows.

use serde_json::{Map, Value};
use surehand_engine::{Call, Edit, Outcome, Refusal, Tool, ToolNames, core::outcome::RefusedOutcome, tools};

use crate::error::SdkError;

/// A tool as a model gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// Its effect and when to use it, for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub input_schema: Map<String, Value>,
}

#[derive(Debug, Clone)]
pub(crate) struct OfferedTools {
    pub(crate) names: ToolNames,
}

impl OfferedTools {
    /// All tools, or those that are listed: our name, and the name that the model knows.
    pub(crate) fn new(listed: Option<&[(String, String)]>) -> Result<Self, SdkError> {
        let Some(listed) = listed else { return Ok(Self { names: ToolNames::default() }) };
        let reads = listed.iter().find(|(ours, _)| Tool::named(ours) == Some(Tool::ReadFile));
        let read = reads.map_or_else(|| Tool::ReadFile.name().to_owned(), |(_, theirs)| theirs.clone());
        let mut names = ToolNames::reading_with(read);
        for (ours, theirs) in listed {
            let Some(tool) = Tool::named(ours) else {
                let known: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
                return Err(SdkError::bad_argument(format!("there is no tool {ours}; there are {}", known.join(", "))));
            };
            if theirs.is_empty() {
                return Err(SdkError::bad_argument(format!("the name for {ours} is empty")));
            }
            names = names.with(tool, theirs.clone());
        }
        Ok(Self { names })
    }

    /// Our name of a tool by the name that the model knows, or by our own.
    pub(crate) fn ours<'a>(&self, called: &'a str) -> &'a str {
        let is_called = |tool: &Tool| self.names.get(*tool) == Some(called);
        Tool::ALL.into_iter().find(is_called).map_or(called, |tool| tool.name())
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: Tool| {
            Some(ToolSpec {
                name: self.names.get(tool)?.to_owned(),
                description: tools::description(tool, &self.names),
                input_schema: tools::input_schema(tool, &self.names),
            })
        };
        Tool::ALL.into_iter().filter_map(spec).collect()
    }
}

/// The edit of a call of an edit tool, such as `edit_lines` with its arguments. Refused if the arguments are wrong.
pub fn edit_of_tool(tool: &str, arguments: &Value) -> Result<Edit, SdkError> {
    let known = Tool::named(tool).ok_or_else(|| SdkError::bad_argument(format!("there is no tool {tool}")))?;
    match tools::parse(known, arguments) {
        Ok(Call::Edit(edit)) => Ok(edit),
        Ok(_) => Err(SdkError::bad_argument(format!("{tool} edits no file"))),
        Err(refusal) => Err(refused(refusal, &ToolNames::default())),
    }
}

/// The error for a refusal that no session has counted.
pub(crate) fn refused(refusal: Refusal, names: &ToolNames) -> SdkError {
    let refused = RefusedOutcome { refusal: Box::new(refusal), repeat: 1, text: None };
    SdkError::refused(&Outcome::new(Err(refused)), names).expect("it is refused")
}
