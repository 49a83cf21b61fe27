//! `surehand restore`: brings files back to what they were.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use jiff::{Timestamp, Zoned, civil, tz::TimeZone};
use serde_json::{Value, json};
use surehand_agent::CancelToken;
use surehand_engine::{
    Session, SessionId, Workspace,
    core::{RelPath, render::count},
    repo_state::rfc3339,
    restore::{RestoreAct, RestorePlan, RestoreRequest, RestoreTo, Restored, find_target},
    store::NotKept,
};

use crate::{args::RestoreArgs, display::Keyboard, output, workspace};

pub(crate) fn run(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let workspace = workspace::open(&args.place)?;
    let to = target(&workspace, &args.to)?;
    let mut session = Session::continued(workspace, SessionId("cli".to_owned()));
    let plan = session.plan_restore(&RestoreRequest { paths: args.paths.clone(), to })?;
    let sees_a_question = io::stdin().is_terminal() && io::stdout().is_terminal() && !args.json;
    if !args.json {
        output::print(&preview(&plan))?;
    }
    let is_wanted = match plan.files.is_empty() || args.dry_run {
        true => false,
        false if args.yes => true,
        false if sees_a_question => ask()?,
        false => {
            if !args.json {
                output::print("Nothing was restored: say --yes to restore without being asked.\n")?;
            }
            false
        }
    };
    let restored = is_wanted.then(|| session.restore(&plan));
    match (&restored, args.json) {
        (_, true) => output::print(&format!("{:#}\n", as_json(&plan, restored.as_ref())))?,
        (Some(restored), false) => output::print(&report(&plan, restored))?,
        (None, false) => {}
    }
    let is_done = restored.as_ref().map_or(plan.files.is_empty() || args.dry_run, |restored| restored.failed.is_empty());
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is meant: a time, if it reads like one, or else what the log lists.
fn target(workspace: &Workspace, name: &str) -> anyhow::Result<RestoreTo> {
    match time(name.trim(), &Zoned::now()) {
        Some(moment) => Ok(RestoreTo::Time(moment.as_millisecond())),
        None => Ok(find_target(workspace, name.trim())?),
    }
}

/// A time as people write it: how long ago, a time of day, a date with a time or without.
fn time(text: &str, now: &Zoned) -> Option<Timestamp> {
    let ago = text.strip_suffix("ago").unwrap_or(text).trim_end();
    if let Some((number, unit)) = ago.split_at_checked(ago.len().saturating_sub(1))
        && let Ok(number) = number.parse::<u32>()
        && number < 100_000
    {
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        return Timestamp::from_millisecond(now.timestamp().as_millisecond() - i64::from(number) * seconds * 1000).ok();
    }
    let zone = |zone: &TimeZone, moment: civil::DateTime| moment.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    if text.contains(':') && !text.contains('-') {
        let padded = if text.matches(':').count() == 1 { format!("{text}:00") } else { text.to_owned() };
        let padded = if padded.find(':') == Some(1) { format!("0{padded}") } else { padded };
        let moment = zone(now.time_zone(), now.date().to_datetime(padded.parse().ok()?))?;
        // A time of day that is still to come was yesterday's.
        return match moment > now.timestamp() {
            true => zone(now.time_zone(), now.date().yesterday().ok()?.to_datetime(padded.parse().ok()?)),
            false => Some(moment),
        };
    }
    if !text.contains('-') {
        return None;
    }
    let of_date = || text.parse::<civil::DateTime>().ok().and_then(|moment| zone(now.time_zone(), moment));
    text.parse::<Timestamp>().ok().or_else(of_date)
}

fn preview(plan: &RestorePlan) -> String {
    const MOST: usize = 100;
    let from = match &plan.checkpoint {
        Some(checkpoint) => format!("checkpoint {} of {}", checkpoint.id, rfc3339(checkpoint.at)),
        None => "the changes on record; there is no checkpoint of that time".to_owned(),
    };
    let mut text = format!("To the state of {}, by {from}:\n", rfc3339(plan.moment));
    for file in plan.files.iter().take(MOST) {
        text.push_str(&format!("  {:<10} {}\n", word(file.act), file.path));
    }
    if plan.files.len() > MOST {
        text.push_str(&format!("  and {} more (--json lists them)\n", plan.files.len() - MOST));
    }
    if plan.files.is_empty() {
        text.push_str("  nothing to do: the files are as they were\n");
    }
    text + &list("left as it is", &plan.left)
}

fn list(what: &str, files: &[NotKept]) -> String {
    const MOST: usize = 20;
    let mut text: String = files.iter().take(MOST).map(|file| format!("  {what}: {} ({})\n", file.path, file.why)).collect();
    if files.len() > MOST {
        text.push_str(&format!("  {what}: {} more (--json lists them)\n", files.len() - MOST));
    }
    text
}

fn word(act: RestoreAct) -> &'static str {
    match act {
        RestoreAct::Create => "create",
        RestoreAct::Overwrite => "overwrite",
        RestoreAct::Delete => "delete",
        RestoreAct::SetMode => "set mode",
    }
}

fn report(plan: &RestorePlan, restored: &Restored) -> String {
    let mut text = format!("Restored {}.\n", count(restored.files.len(), "file"));
    text.push_str(&list("not restored", &restored.failed));
    text.push_str(&format!("To take it back: surehand restore --to {}\n", plan.before));
    if let [change] = &restored.changes[..] {
        text.push_str(&format!("or, contents of files only: surehand undo {change}\n"));
    }
    text
}

fn as_json(plan: &RestorePlan, restored: Option<&Restored>) -> Value {
    let file = |path: &RelPath, act: RestoreAct| json!({ "path": path, "act": word(act).replace(' ', "_") });
    let mut said = json!({
        "to": rfc3339(plan.moment),
        "checkpoint": plan.checkpoint.as_ref().map(|checkpoint| &checkpoint.id),
        "before": plan.before,
        "files": plan.files.iter().map(|planned| file(&planned.path, planned.act)).collect::<Vec<_>>(),
        "left": plan.left,
        "restored": restored.is_some(),
    });
    if let Some(restored) = restored {
        said["changes"] = json!(restored.changes);
        said["done"] = restored.files.iter().map(|(path, act)| file(path, *act)).collect();
        said["failed"] = json!(restored.failed);
    }
    said
}

fn ask() -> anyhow::Result<bool> {
    let Some(keyboard) = Keyboard::find() else { return Ok(false) };
    keyboard.forget();
    loop {
        output::print("Restore this? \x1b[1my\x1b[0m yes, \x1b[1mn\x1b[0m no > ")?;
        let Some(typed) = keyboard.line(&CancelToken::default())? else { return Ok(false) };
        match typed.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let now: Zoned = "2026-03-10T14:00:00+01:00[+01:00]".parse().unwrap();
        assert_eq!(time(text, &now).map(|moment| moment.to_string()).as_deref(), expected, "{text}");
    }

    #[test]
    fn times_are_understood_as_people_write_them() {
        check("10m", Some("2026-03-10T12:50:00Z"));
        check("2h ago", Some("2026-03-10T11:00:00Z"));
        check("45s", Some("2026-03-10T12:59:15Z"));
        check("3d", Some("2026-03-07T13:00:00Z"));
        check("13:05", Some("2026-03-10T12:05:00Z"));
        check("9:05:30", Some("2026-03-10T08:05:30Z"));
        check("14:05", Some("2026-03-09T13:05:00Z"));
        check("2026-03-01T10:00:00Z", Some("2026-03-01T10:00:00Z"));
        check("2026-03-01T10:00:00+02:00", Some("2026-03-01T08:00:00Z"));
        check("2026-03-01 10:00", Some("2026-03-01T09:00:00Z"));
        check("2026-03-01", Some("2026-02-28T23:00:00Z"));
    }

    #[test]
    fn names_are_not_taken_for_times() {
        for name in ["", "m", "abc", "3f2a91bc", "1234", "12x", "25:00", "before-refactoring", "a:b", "m ago"] {
            check(name, None);
        }
    }
}
