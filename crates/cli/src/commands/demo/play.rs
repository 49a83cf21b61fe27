//! Where the story is played: a temporary directory, the model, the others, and somebody who counts.

use std::{io, path::Path, time::Instant};

use anyhow::Context;
use surehand_agent::{AgentRun, CancelToken, Ports, RunEvent, RunSettings, command::NoApprover, event::StopReason};
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

/// So many tokens a conversation may have before it is folded: few, so that a short story shows what a long one comes to.
pub(super) const WINDOW: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoLoop {
    Surehand(ContextMode),
    Plain,
}

pub(super) fn play(cast: DemoLoop) -> anyhow::Result<PlayedRun> {
    let dir = tempfile::Builder::new().prefix("linkshort-").tempdir().context("a temporary directory")?;
    let began = Instant::now();
    let mut audience =
        DemoObserver { ledger: RunStats::default(), others: OtherPrograms::new(dir.path()), last: None, failed: None };
    let is_done = match cast {
        DemoLoop::Surehand(mode) => surehand(dir.path(), mode, &mut audience)?,
        DemoLoop::Plain => plain_loop::play(dir.path(), &mut ForgetfulModel::default(), &mut |event| audience.hear(event))?,
    };
    let time = began.elapsed();
    if let Some(error) = audience.failed {
        return Err(error).context("playing the other program");
    }
    Ok(PlayedRun { kept: audience.others.kept()?, ledger: audience.ledger, is_done, time })
}

fn surehand(root: &Path, mode: ContextMode, audience: &mut DemoObserver<'_>) -> anyhow::Result<bool> {
    let state = tempfile::tempdir().context("a temporary directory")?;
    let state = StateHome { fixed: Some(state.path().to_owned()), ..StateHome::default() };
    let workspace = Workspace::open(root, Config { state, ..Config::default() })?;
    let settings =
        RunSettings { mode, window: WINDOW, dialect: Some(EditDialect::Lines), ..RunSettings::for_workspace(&workspace) };
    let mut listener = |event: &RunEvent| audience.hear(event);
    let ports = Ports {
        model: &mut ForgetfulModel::default(),
        permission: &mut NoApprover,
        listener: &mut listener,
        cancel: CancelToken::default(),
    };
    Ok(AgentRun::new(workspace, STORY, settings, ports)?.run()?.stop == StopReason::Done)
}

/// Whoever listens to a run: the others, who wait for their moment, and the ledger.
struct DemoObserver<'a> {
    ledger: RunStats,
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
        self.ledger.hear(event);
        if let Some(deed) = ToolCall::of(event) {
            self.last = Some(deed.clone());
            return if deed.is_repair { Ok(()) } else { self.others.before(&deed) };
        }
        match (event, &self.last) {
            (RunEvent::Result { is_error, .. }, Some(deed)) => {
                self.ledger.count(deed, *is_error);
                if !is_error {
                    self.others.after(deed);
                }
                Ok(())
            }
            (RunEvent::TurnEnded { .. }, _) => self.others.turn_ended(),
            _ => Ok(()),
        }
    }
}
