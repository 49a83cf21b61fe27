//! Plays the story in a temporary directory with one of the loops, and counts what happens.

use std::{io, path::Path, sync::Arc, time::Instant};

use anyhow::Context;
use surehand_agent::{AgentRun, CancelToken, NoPerson, Ports, RunEvent, RunSettings, command::NoApprover, event::StopReason};
use surehand_engine::{
    Config, StateHome, Workspace,
    core::{ContextMode, EditDialect},
};

use super::{
    forgetful_model::ForgetfulModel,
    other_programs::OtherPrograms,
    plain_loop,
    run_stats::{PlayedRun, RunStats},
    story::STORY,
    tool_call::ToolCall,
};

/// Number of tokens at which a conversation is folded. It is small, so that a short story shows what happens in a long
/// one.
pub(super) const WINDOW: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoLoop {
    Surehand(ContextMode),
    Plain,
}

pub(super) fn play(demo_loop: DemoLoop) -> anyhow::Result<PlayedRun> {
    let dir = tempfile::Builder::new().prefix("linkshort-").tempdir().context("a temporary directory")?;
    let began = Instant::now();
    let mut observer =
        DemoObserver { stats: RunStats::default(), others: OtherPrograms::new(dir.path()), last: None, failed: None };
    let is_done = match demo_loop {
        DemoLoop::Surehand(mode) => surehand(dir.path(), mode, &mut observer)?,
        DemoLoop::Plain => plain_loop::play(dir.path(), &mut ForgetfulModel::default(), &mut |event| observer.hear(event))?,
    };
    let time = began.elapsed();
    if let Some(error) = observer.failed {
        return Err(error).context("playing the other program");
    }
    Ok(PlayedRun { kept: observer.others.kept()?, stats: observer.stats, is_done, time })
}

fn surehand(root: &Path, mode: ContextMode, observer: &mut DemoObserver<'_>) -> anyhow::Result<bool> {
    let state = tempfile::tempdir().context("a temporary directory")?;
    let workspace = open_workspace(root, state.path())?;
    let settings = RunSettings { mode, ..RunSettings::for_workspace(&workspace) };
    let stop = run_agent(workspace, settings, &mut |event| observer.hear(event), CancelToken::default())?;
    Ok(stop == StopReason::Done)
}

/// Opens a workspace that keeps its state in this directory.
pub(super) fn open_workspace(root: &Path, state: &Path) -> anyhow::Result<Arc<Workspace>> {
    let state = StateHome { fixed: Some(state.to_owned()), ..StateHome::default() };
    Ok(Workspace::open(root, Config { state, ..Config::default() })?)
}

/// Lets the agent and the model of the demo work on the story.
pub(super) fn run_agent(
    workspace: Arc<Workspace>,
    settings: RunSettings,
    listener: &mut dyn FnMut(&RunEvent),
    cancel: CancelToken,
) -> anyhow::Result<StopReason> {
    let settings = RunSettings { window: WINDOW, dialect: Some(EditDialect::Lines), ..settings };
    let (model, permission, person) = (&mut ForgetfulModel::default(), &mut NoApprover, &mut NoPerson);
    let ports = Ports { model, permission, person, listener, cancel };
    Ok(AgentRun::new(workspace, STORY, settings, ports)?.run()?.stop)
}

/// Passes the events of a run to the other programs and the statistics.
struct DemoObserver<'a> {
    stats: RunStats,
    others: OtherPrograms<'a>,
    last: Option<ToolCall>,
    failed: Option<io::Error>,
}

impl DemoObserver<'_> {
    fn hear(&mut self, event: &RunEvent) {
        if let Err(error) = self.try_hear(event) {
            self.failed.get_or_insert(error);
        }
    }

    fn try_hear(&mut self, event: &RunEvent) -> io::Result<()> {
        self.stats.hear(event);
        if let Some(tool_call) = ToolCall::of(event) {
            self.last = Some(tool_call.clone());
            return if tool_call.is_repair { Ok(()) } else { self.others.before(&tool_call) };
        }
        match (event, &self.last) {
            (RunEvent::Result { is_error, .. }, Some(tool_call)) => {
                self.stats.count(tool_call, *is_error);
                if !is_error {
                    self.others.after(tool_call);
                }
                Ok(())
            }
            (RunEvent::TurnEnded { .. }, _) => self.others.turn_ended(),
            _ => Ok(()),
        }
    }
}
