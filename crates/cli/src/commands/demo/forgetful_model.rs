//! The model of the demo. It can write the service, but it knows only what its prompt shows, and repeats work that is
//! not shown. It is the same for every mode, and does not know which mode it runs in.

use serde_json::{Value, json};
use surehand_agent::{
    CancelToken,
    model::{ChatModel, ModelAnswer, ModelCall, ModelError, Prompt, StreamEvent},
    tool::DONE,
};
use surehand_engine::Tool;

use super::{
    prompt_contents::PromptContents,
    story::{self, STEPS, StoryStep},
};

/// A model that remembers nothing from one prompt to the next.
#[derive(Debug, Default)]
pub(super) struct ForgetfulModel {
    /// The number of calls to the model. Varies what it writes, as chance does with a real model.
    asked: u64,
}

impl ChatModel for ForgetfulModel {
    fn name(&self) -> &str {
        "forgetful"
    }

    fn ask(&mut self, prompt: &Prompt, _: &CancelToken, _: &mut dyn FnMut(StreamEvent<'_>)) -> Result<ModelAnswer, ModelError> {
        self.asked += 1;
        let calls = next(&PromptContents::of(prompt), self.asked).into_iter().zip(1..).map(|((tool, arguments), number)| {
            ModelCall { id: format!("call_{}_{number}", self.asked), name: tool.to_owned(), arguments: arguments.to_string() }
        });
        Ok(ModelAnswer { calls: calls.collect(), ..ModelAnswer::default() })
    }
}

type PlannedCall = (&'static str, Value);

/// The next calls: plan if there are no tasks, else work on the first task that is not done, else finish.
fn next(contents: &PromptContents<'_>, asked: u64) -> Vec<PlannedCall> {
    let Some(tasks) = &contents.tasks else { return vec![plan()] };
    let known: Vec<(u32, &StoryStep)> = tasks.iter().filter_map(|(id, task)| Some((*id, story::step_of(task)?))).collect();
    if known.is_empty() {
        return vec![(DONE, json!({ "summary": "Linkshort shortens links." }))];
    }
    let open = known.iter().position(|(_, step)| !is_done(contents, step)).unwrap_or(known.len());
    let mut calls = Vec::new();
    if open > 0 {
        let set: Vec<Value> = known[..open].iter().map(|(id, _)| json!({ "id": id, "status": "completed" })).collect();
        calls.push((Tool::UpdateTasks.name(), json!({ "set": set })));
    }
    calls.extend(known.get(open).map(|(_, step)| work(contents, step, asked)));
    calls
}

fn plan() -> PlannedCall {
    let add: Vec<Value> = STEPS.iter().map(|step| json!({ "description": step.task })).collect();
    (Tool::UpdateTasks.name(), json!({ "add": add }))
}

fn is_done(contents: &PromptContents<'_>, step: &StoryStep) -> bool {
    let Some(file) = contents.files.get(step.path) else { return false };
    step.insert.as_ref().is_none_or(|insert| file.rows.iter().any(|(_, text)| *text == insert.text))
}

/// Writes a file that is not known to exist, reads one that is not shown, and edits one that is.
fn work(contents: &PromptContents<'_>, step: &StoryStep, asked: u64) -> PlannedCall {
    let (Some(file), Some(insert)) = (contents.files.get(step.path), &step.insert) else {
        return (Tool::WriteFile.name(), json!({ "path": step.path, "content": story::draft(step, asked) }));
    };
    let edit = match file.rows.iter().rev().find(|(_, text)| text.contains(insert.after)) {
        Some((anchor, _)) => json!({ "op": "insert_after", "at": anchor, "text": insert.text }),
        None if file.is_whole => json!({ "op": "append", "text": insert.text }),
        None => return (Tool::ReadFile.name(), json!({ "path": step.path, "anchors": true })),
    };
    (Tool::EditLines.name(), json!({ "path": step.path, "edits": [edit] }))
}

#[cfg(test)]
mod tests {
    use surehand_agent::model::ChatMessage;

    use super::*;

    /// Checks the model's next calls when the prompt shows only this.
    #[track_caller]
    fn check(shown: &str, expected: &[(&str, &str)]) {
        let prompt = Prompt { messages: vec![ChatMessage::User(shown.to_owned())], ..Prompt::default() };
        let calls = next(&PromptContents::of(&prompt), 7);
        let summary = |(tool, arguments): &PlannedCall| {
            let edit = &arguments["edits"][0];
            let about = [&arguments["path"], &edit["op"], &edit["at"], &arguments["set"][0]["id"]];
            let about: Vec<String> = about.iter().filter(|value| !value.is_null()).map(|value| value.to_string()).collect();
            (*tool, about.join(" ").replace('"', ""))
        };
        let calls: Vec<(&str, String)> = calls.iter().map(summary).collect();
        assert_eq!(calls, expected.iter().map(|(tool, about)| (*tool, (*about).to_owned())).collect::<Vec<_>>());
    }

    const TASKS: &str = "2 tasks open, 0 completed:\n4. [pending] main.go: server\n5. [pending] main.go: logging\n";

    #[test]
    fn without_a_list_of_tasks_it_plans() {
        check("Work on the story.\n", &[("update_tasks", "")]);
    }

    #[test]
    fn a_file_that_is_not_shown_to_exist_is_written() {
        check(TASKS, &[("write_file", "main.go")]);
        check("1 task open, 1 completed:\n5. [pending] main.go: logging\n", &[("write_file", "main.go")]);
    }

    #[test]
    fn a_file_that_exists_is_read_then_edited_then_done() {
        let read = "main.go (1 line, version 83e24e)\n9#ab|\tserver := x\n";
        let edited = "10#cd|\tserver.Handler = Logged(routes)\n";
        check(&format!("{TASKS}main.go created\n"), &[("update_tasks", "4"), ("read_file", "main.go")]);
        check(&format!("{TASKS}{read}"), &[("update_tasks", "4"), ("edit_lines", "main.go insert_after 9#ab")]);
        check(&format!("{TASKS}{read}{edited}"), &[("update_tasks", "4")]);
    }

    #[test]
    fn a_refused_overwrite_becomes_a_read() {
        check(&format!("{TASKS}Error: main.go was not read this session\n"), &[("update_tasks", "4"), ("read_file", "main.go")]);
    }

    #[test]
    fn a_line_that_is_gone_does_not_stop_it() {
        let read = "main.go (1 line, version 83e24e)\n1#ab|package main\n";
        check(&format!("{TASKS}{read}"), &[("update_tasks", "4"), ("edit_lines", "main.go append")]);
    }

    #[test]
    fn when_nothing_is_open_it_is_done() {
        check("All tasks are done (2 of 2): call `done`.\n", &[("done", "")]);
    }

    #[test]
    fn no_two_drafts_are_the_same() {
        let step = &STEPS[0];
        assert_ne!(story::draft(step, 1), story::draft(step, 2));
    }
}
