//! `surehand doctor`: checks the program, the workspace and each client, and says how to fix problems. Opening the
//! workspace runs recovery; nothing else is changed.

mod client_checks;
mod dry_run;
mod workspace_checks;

use std::process::ExitCode;

use serde_json::{Value, json};

use workspace_checks::SETTINGS;

use super::init::{
    config_dirs::ConfigDirs,
    program::{self, is_same, on_path},
};
use crate::{args::StateArgs, hook_log, output, workspace};

pub(crate) fn run(args: &StateArgs) -> anyhow::Result<ExitCode> {
    let root = workspace::root(&args.place)?;
    let dirs = ConfigDirs::here(root.clone())?;
    let workspace = workspace_checks::check(&root);
    let reports = client_checks::check_clients(&dirs);
    let (is_protected, protection) = protection(&workspace, &reports);
    let clients: Vec<Value> = reports.iter().map(client_checks::ClientReport::as_json).collect();
    let mut checks = this_program();
    checks.extend(workspace);
    checks.extend(reports.into_iter().flat_map(|report| report.checks));
    checks.push(hook_failures());
    checks.push(protection);
    let is_well = checks.iter().all(Check::is_well);
    if args.json {
        let checks: Vec<Value> = checks.iter().map(Check::as_json).collect();
        let report = json!({ "ok": is_well, "protected": is_protected, "clients": clients, "checks": checks });
        output::print_json(&report)?;
    } else {
        output::print(&as_text(&checks))?;
    }
    Ok(output::exit_code(is_well))
}

/// Whether any client is guarded here, and if not, why.
fn protection(workspace: &[Check], reports: &[client_checks::ClientReport]) -> (bool, Check) {
    let check = |state, what: String| Check::new("protection", state, what);
    let (settings, others): (Vec<&Check>, Vec<&Check>) =
        workspace.iter().filter(|check| check.state == CheckState::Fail).partition(|check| check.about == SETTINGS);
    if let Some(cause) = others.first() {
        let what = format!("off in this workspace, whatever is set up: see {} above", cause.about);
        return (false, check(CheckState::Fail, what));
    }
    let guarded: Vec<&str> = reports.iter().filter(|report| report.is_guarded).map(|report| report.client.title()).collect();
    if !guarded.is_empty() {
        let what = format!("on for {}", guarded.join(", "));
        return match settings.is_empty() {
            true => (true, check(CheckState::Ok, what)),
            false => (true, check(CheckState::Warn, format!("{what}, by the default settings: see settings above"))),
        };
    }
    if let Some(report) = reports.iter().find(|report| report.is_set_up()) {
        let what = format!("off: the setup does not work, see {} above", report.client.name());
        return (false, check(CheckState::Fail, what));
    }
    let (what, remedy) = match reports.is_empty() {
        true => ("off: no client was found", "surehand init CLIENT"),
        false => ("off: no client is guarded", "surehand init"),
    };
    (false, check(CheckState::Warn, what.to_owned()).remedy(remedy))
}

struct Check {
    about: &'static str,
    state: CheckState,
    what: String,
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Ok,
    Note,
    /// Works with limits.
    Warn,
    Fail,
}

impl Check {
    fn new(about: &'static str, state: CheckState, what: impl Into<String>) -> Self {
        Self { about, state, what: what.into(), remedy: None }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn is_well(&self) -> bool {
        matches!(self.state, CheckState::Ok | CheckState::Note)
    }

    fn as_json(&self) -> Value {
        json!({ "about": self.about, "state": self.state.word_and_colour().0, "what": self.what, "remedy": self.remedy })
    }
}

impl CheckState {
    fn word_and_colour(self) -> (&'static str, &'static str) {
        match self {
            CheckState::Ok => ("ok", "32"),
            CheckState::Note => ("note", "36"),
            CheckState::Warn => ("warn", "33"),
            CheckState::Fail => ("fail", "31"),
        }
    }
}

fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let (word, colour) = check.state.word_and_colour();
        text.push_str(&format!("\x1b[{colour}m{word:<4}\x1b[0m  {}: {}\n", check.about, check.what));
        text.extend(check.remedy.iter().map(|remedy| format!("      do: {remedy}\n")));
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let end = match (count(CheckState::Fail), count(CheckState::Warn)) {
        (0, 0) => "all is well\n".to_owned(),
        (failures, warnings) => format!("{failures} failed, {warnings} could be better\n"),
    };
    text + &end
}

fn this_program() -> Vec<Check> {
    let version = env!("CARGO_PKG_VERSION");
    let Ok(this) = std::env::current_exe() else {
        return vec![Check::new("program", CheckState::Warn, format!("surehand {version}, at an unknown path"))];
    };
    let program = Check::new("program", CheckState::Ok, format!("surehand {version} at {}", this.display()));
    let path = match on_path(program::NAME) {
        Some(found) if is_same(&found, &this) => Check::new("PATH", CheckState::Ok, "surehand is this program"),
        Some(other) => Check::new("PATH", CheckState::Warn, format!("surehand is another program, {}", other.display()))
            .remedy("remove one of the two, or run `surehand init` of the one that you want"),
        None => Check::new("PATH", CheckState::Note, "surehand is not on it; `surehand init` writes the whole path"),
    };
    vec![program, path]
}

/// Failures older than this many seconds are not reported.
const NEWS: i64 = 7 * 24 * 3600;

fn hook_failures() -> Check {
    let recent = |line: &String| {
        let at: Option<jiff::Timestamp> = line.split(' ').next().and_then(|moment| moment.parse().ok());
        at.is_some_and(|at| jiff::Timestamp::now().as_second() - at.as_second() < NEWS)
    };
    let lines: Vec<String> = hook_log::last_lines(3).into_iter().filter(recent).collect();
    if lines.is_empty() {
        return Check::new("hooks", CheckState::Ok, "no failure in the last 7 days");
    }
    let log = hook_log::path().map(|path| path.display().to_string()).unwrap_or_default();
    Check::new("hooks", CheckState::Warn, format!("failed lately:\n        {}", lines.join("\n        ")))
        .remedy(format!("fix what they name; all failures are in {log}"))
}
