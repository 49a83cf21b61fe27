//! Renders the rules that Surehand enforces, for system prompts and the description of the MCP server.

use crate::tool::{Tool, ToolNames};

/// The rules and the use of each tool, for a model with these tools. They are the `instructions` of the MCP server.
pub fn instructions(names: &ToolNames) -> String {
    let read = names.read();
    let edits =
        names.any_of(&[Tool::EditFile, Tool::MultiEdit, Tool::EditLines, Tool::ApplyPatch, Tool::DeleteFile, Tool::MoveFile]);
    let mut text = String::from(
        "Surehand reads and edits the files of this workspace without losing anyone's changes. Prefer its tools to built-in ones here.\n",
    );
    let mut rule = |rule: String| text.push_str(&format!("- {rule}\n"));
    if let Some(search) = names.get(Tool::SearchFiles) {
        let find = names.all_of(&[Tool::ListFiles, Tool::SearchFiles]);
        rule(format!("Find with {find}: the lines that {search} shows count as read."));
    }
    let over = names.phrase(Tool::WriteFile, "; the whole file before ", " over it");
    let edits = if edits.is_empty() { "an edit".to_owned() } else { edits };
    rule(format!("Read before you edit: {read} (any part) before {edits}{over}. Your own writes count as read."));
    rule("A file that changed since you read it is not written: the refusal shows the changed lines, which count as read, so the corrected call passes.".to_owned());
    rule("A refusal changes nothing. Do not send the same call again unless it says so.".to_owned());
    let batch = names.all_of(&[Tool::MultiEdit, Tool::ApplyPatch]);
    let both = [Tool::MultiEdit, Tool::ApplyPatch].iter().all(|tool| names.get(*tool).is_some());
    let is = if both { "are" } else { "is" };
    let batch = if batch.is_empty() { String::new() } else { format!("{batch} {is} all or nothing. ") };
    let undo = names.phrase(Tool::Undo, "", " takes back your last change.");
    let restore = names.phrase(Tool::Restore, " ", " brings back lost work.");
    if !batch.is_empty() || !undo.is_empty() {
        rule(format!("{batch}{undo}{restore}").trim().to_owned());
    }
    rule(
        "A note \"changed since you read it\" names files that others changed: read them again before you rely on them."
            .to_owned(),
    );
    rule("A reply may end with instructions from the owner of this repository for a directory: follow them there.".to_owned());
    if let (Some(state), Some(tasks)) = (names.get(Tool::RepoState), names.get(Tool::UpdateTasks)) {
        rule(format!("{state} shows what is open, changed and done; keep the list with {tasks} so that no work is done twice."));
    }
    if let Some(forget) = names.get(Tool::Forget) {
        rule(format!(
            "After your context was compacted or reset, earlier reads no longer count: call {forget}, then read again."
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::EditDialect;

    #[test]
    fn the_rules_name_the_tools_that_there_are_and_no_others() {
        for dialects in [&EditDialect::ALL[..], &[EditDialect::Text], &[EditDialect::Lines], &[EditDialect::Patch], &[]] {
            let names = ToolNames::of_dialects(dialects);
            let rules = instructions(&names);
            for tool in Tool::ALL {
                assert_eq!(rules.contains(tool.name()), names.get(tool).is_some(), "{}: {rules}", tool.name());
            }
        }
        let rules = instructions(&ToolNames::reading_with("Read"));
        assert!(Tool::ALL.iter().all(|tool| !rules.contains(tool.name())), "{rules}");
    }
}
