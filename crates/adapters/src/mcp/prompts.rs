//! Prompts: what a person picks to begin a story, or to go on with the work.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role},
};
use surehand_engine::{
    RepoTracker, Workspace,
    core::{
        RepoState,
        render::{rules::INSTRUCTIONS, snapshot::format_for_prompt, tasks::line},
    },
};

const START: &str = "start";
const CONTINUE: &str = "continue";

/// What there is.
pub(super) fn list() -> Vec<Prompt> {
    let story = PromptArgument::new("story").with_description("What is to be done").with_required(true);
    vec![
        Prompt::new(
            START,
            Some("Begin a story: the rules, the state of the repository, and what is to be done"),
            Some(vec![story]),
        ),
        Prompt::new(CONTINUE, Some("Go on with the work: the state of the repository and what is open"), None),
    ]
}

/// The words of one.
pub(super) fn get(workspace: Arc<Workspace>, name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let state = || RepoTracker::load(workspace.clone()).snapshot();
    let text = match name {
        START => {
            let story = arguments.and_then(|arguments| arguments.get("story")?.as_str()).map(str::trim);
            let Some(story) = story.filter(|story| !story.is_empty()) else {
                return Err(ErrorData::invalid_params("start needs the argument story: what is to be done", None));
            };
            start(&state(), story)
        }
        CONTINUE => go_on(&state()),
        _ => {
            let name: String = name.chars().take(60).collect();
            return Err(ErrorData::invalid_params(format!("there is no prompt {name:?}; there are {START}, {CONTINUE}"), None));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

fn start(state: &RepoState, story: &str) -> String {
    format!(
        "{INSTRUCTIONS}\n{}\nThe story:\n{story}\n\nLook at what it touches, write down the tasks with update_tasks, then do them one \
         after the other: start each, complete it when it is done and checked.\n",
        format_for_prompt(state)
    )
}

fn go_on(state: &RepoState) -> String {
    let next = match state.open_tasks().first() {
        Some(task) => format!("The next task is {}", line(task)),
        None => "No task is open: ask what is to be done next.\n".to_owned(),
    };
    format!(
        "Go on with the work in this repository.\n\n{}\n{next}What you had read in another conversation no longer counts: read what \
         you want to edit. repo_state tells more, update_tasks keeps the list.\n",
        format_for_prompt(state)
    )
}
