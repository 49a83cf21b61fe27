//! `surehand rescued`: text that other programs wrote into a file while it was being replaced.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use serde_json::{Value, json};
use surehand_engine::{
    Workspace,
    rescued::{Rescue, RescuePlace},
    session_names::IdError,
};

use super::entry_format::EntryFormat;
use crate::{
    args::{RescuedAct, RescuedArgs},
    display::diff::coloured,
    local_paths::LocalPaths,
    output, question, workspace,
};

pub(crate) fn run(args: &RescuedArgs) -> anyhow::Result<ExitCode> {
    match &args.act {
        None => list(args).map(|()| ExitCode::SUCCESS),
        Some(RescuedAct::Show { id }) => show(args, id).map(|()| ExitCode::SUCCESS),
        Some(RescuedAct::Apply { id, to, yes }) => apply(args, id, to.as_deref(), *yes),
        Some(RescuedAct::Drop { ids, yes }) => drop_all(args, ids, *yes),
    }
}

fn list(args: &RescuedArgs) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.place)?;
    let rescues = workspace.rescues();
    if args.json {
        return output::print_json(&Value::Array(rescues.iter().map(surehand_engine::json::rescue).collect()));
    }
    let mut text = if rescues.is_empty() { "There are no rescued files.\n".to_owned() } else { String::new() };
    let format = EntryFormat::of(&workspace)?;
    for rescue in &rescues {
        text.push_str(&line(&format, rescue));
    }
    if !rescues.is_empty() {
        text.push_str(
            "surehand rescued show ID compares one with the current file; apply writes it to the file, drop removes it.\n",
        );
    }
    output::print(&text)
}

fn line(format: &EntryFormat, rescue: &Rescue) -> String {
    let ago = output::ago(format.now - rescue.at);
    format!("\x1b[33m{}\x1b[0m {ago:>9}  {}\n", rescue.id, format.rescue(rescue))
}

fn show(args: &RescuedArgs, id: &str) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.place)?;
    let rescue = find(&workspace, id)?;
    let diff = workspace.rescue_diff(&rescue)?;
    if args.json {
        let mut object = surehand_engine::json::rescue(&rescue);
        object["diff"] = diff.to_string().into();
        output::print_json(&object)?;
    } else if diff.to_string().is_empty() {
        output::print("It is the same as the current file.\n")?;
    } else if io::stdout().is_terminal() {
        output::print(&coloured(&diff))?;
    } else {
        output::print_bytes(diff.to_string().as_bytes())?;
    }
    Ok(())
}

fn apply(args: &RescuedArgs, id: &str, to: Option<&str>, yes: bool) -> anyhow::Result<ExitCode> {
    let mut session = workspace::open_session(&args.place)?;
    let workspace = session.workspace().clone();
    let local_paths = LocalPaths::to(workspace.path());
    let rescue = find(&workspace, id)?;
    let to = to.map(|path| local_paths.typed(path));
    let Some(path) = to.clone().or_else(|| rescue.path.as_ref().map(ToString::to_string)) else {
        anyhow::bail!("{}: its file is not known\nhint: name one with --to PATH", rescue.id);
    };
    let shown = local_paths.shown(&path);
    let is_there = workspace.path().join(&path).exists();
    if is_there && !yes && !question::ask(&format!("Overwrite {shown} with the rescued content?"), args.json)? {
        return answer(args, &json!({ "applied": false }), "", ExitCode::FAILURE);
    }
    let restored = session.apply_rescue(&rescue, to.as_deref())?;
    if let Some(failed) = restored.failed.first() {
        anyhow::bail!("{shown}: {}", failed.why);
    }
    let undo = restored.changes.first().map(|change| format!("surehand undo {change} takes it back.\n")).unwrap_or_default();
    let object = json!({ "applied": true, "path": path, "changes": restored.changes });
    answer(args, &object, &format!("Wrote the rescued content to {shown}.\n{undo}"), ExitCode::SUCCESS)
}

fn drop_all(args: &RescuedArgs, ids: &[String], yes: bool) -> anyhow::Result<ExitCode> {
    let session = workspace::open_session(&args.place)?;
    let workspace = session.workspace();
    let rescues = ids.iter().map(|id| find(workspace, id)).collect::<anyhow::Result<Vec<Rescue>>>()?;
    if let Some(gone) = rescues.iter().find(|rescue| matches!(rescue.place, RescuePlace::Store(_))) {
        anyhow::bail!("{}: it was applied or dropped before", gone.id);
    }
    if !args.json && !yes {
        let format = EntryFormat::of(workspace)?;
        output::print(&rescues.iter().map(|rescue| line(&format, rescue)).collect::<String>())?;
    }
    if !yes && !question::ask("Drop this?", args.json)? {
        return answer(args, &json!({ "dropped": [] }), "", ExitCode::FAILURE);
    }
    for rescue in &rescues {
        workspace.drop_rescue(rescue)?;
    }
    let dropped: Vec<&str> = rescues.iter().map(|rescue| rescue.id.as_str()).collect();
    let text = format!("Dropped. While its content is kept, surehand rescued apply {} still finds it.\n", dropped.join(" or "));
    answer(args, &json!({ "dropped": dropped }), &text, ExitCode::SUCCESS)
}

fn find(workspace: &Workspace, typed: &str) -> anyhow::Result<Rescue> {
    match workspace.find_rescue(typed) {
        Err(error @ IdError::Unknown { .. }) => anyhow::bail!("{error}\nhint: `surehand rescued` lists them"),
        found => Ok(found?),
    }
}

fn answer(args: &RescuedArgs, json: &Value, text: &str, code: ExitCode) -> anyhow::Result<ExitCode> {
    if args.json {
        output::print_json(json)?
    } else {
        output::print(text)?
    }
    Ok(code)
}
