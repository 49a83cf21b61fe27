//! Prompts that a person picks to start a story or to continue the work.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role},
};
use surehand_engine::{
    TaskScope, Tool, ToolNames, Workspace,
    core::RepoState,
    render::{rules::instructions, snapshot::format_for_prompt, tasks::line},
};

const START: &str = "start";
const CONTINUE: &str = "continue";

pub(super) fn list() -> Vec<Prompt> {
    let story = PromptArgument::new("story").with_description("The work to do").with_required(true);
    vec![
        Prompt::new(START, Some("Start a story: the rules, the state of the repository, and the work to do"), Some(vec![story])),
        Prompt::new(CONTINUE, Some("Continue the work: the state of the repository and the open tasks"), None),
    ]
}

pub(super) fn get(
    workspace: Arc<Workspace>,
    name: &str,
    arguments: Option<&JsonObject>,
    names: &ToolNames,
) -> Result<GetPromptResult, ErrorData> {
    let state = || workspace.snapshot_for(&TaskScope::of_any_session());
    let text = match name {
        START => {
            let story = arguments.and_then(|arguments| arguments.get("story")?.as_str()).map(str::trim);
            let Some(story) = story.filter(|story| !story.is_empty()) else {
                return Err(ErrorData::invalid_params("start needs the argument story: the work to do", None));
            };
            // A new story should know the repository's files. If they cannot be counted, the state leaves them out.
            drop(workspace.count_files());
            start(&state(), story, names)
        }
        CONTINUE => go_on(&state(), names),
        _ => {
            let name: String = name.chars().take(60).collect();
            return Err(ErrorData::invalid_params(format!("there is no prompt {name:?}; there are {START}, {CONTINUE}"), None));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

fn start(state: &RepoState, story: &str, names: &ToolNames) -> String {
    let tasks = names.get(Tool::UpdateTasks).map(|tasks| format!(" with {tasks}")).unwrap_or_default();
    format!(
        "{}\n{}\nThe story:\n{story}\n\nLook at the code that it touches, write down the tasks{tasks}, then do them one \
         after the other: start each, and complete it when it is done and checked.\n",
        instructions(names),
        format_for_prompt(state, names)
    )
}

fn go_on(state: &RepoState, names: &ToolNames) -> String {
    let next = match state.tasks.open().first() {
        Some(task) => format!("The next task is {}", line(task)),
        None => "No task is open: ask what to do next.\n".to_owned(),
    };
    format!(
        "Continue the work in this repository.\n\n{}\n{next}Reads in another conversation no longer count: read a file before you \
         edit it.{}\n",
        format_for_prompt(state, names),
        match (names.get(Tool::RepoState), names.get(Tool::UpdateTasks)) {
            (Some(state), Some(tasks)) => format!(" {state} shows more, {tasks} updates the list."),
            _ => String::new(),
        }
    )
}
