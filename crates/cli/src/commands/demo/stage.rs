//! Where the story is played: a temporary directory, the model, the others, and somebody who counts.

use std::{io, path::Path, time::Instant};

use anyhow::Context;
use surehand_agent::{AgentRun, CancelToken, Ports, RunEvent, RunSettings, command::NoApprover, event::StopReason};
use surehand_engine::{
    Config, StateHome, Workspace,
    core::{EditDialect, Mode},
};

use super::{
    deed::Deed,
    forgetful::Forgetful,
    ledger::{Ledger, Played},
    others::Others,
    plain,
    story::STORY,
};

/// So many tokens a conversation may have before it is folded: few, so that a short story shows what a long one comes to.
pub(super) const WINDOW: usize = 10_000;

/// How the story is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cast {
    /// By the loop of Surehand.
    Surehand(Mode),
    /// By a loop without anything of it.
    Plain,
}

/// Plays the story.
pub(super) fn play(cast: Cast) -> anyhow::Result<Played> {
    let dir = tempfile::Builder::new().prefix("linkshort-").tempdir().context("a temporary directory")?;
    let began = Instant::now();
    let mut audience = Audience { ledger: Ledger::default(), others: Others::new(dir.path()), last: None, failed: None };
    let is_done = match cast {
        Cast::Surehand(mode) => surehand(dir.path(), mode, &mut audience)?,
        Cast::Plain => plain::play(dir.path(), &mut Forgetful::default(), &mut |event| audience.hear(event))?,
    };
    let time = began.elapsed();
    if let Some(error) = audience.failed {
        return Err(error).context("playing the other program");
    }
    Ok(Played { kept: audience.others.kept()?, ledger: audience.ledger, is_done, time })
}

fn surehand(root: &Path, mode: Mode, audience: &mut Audience<'_>) -> anyhow::Result<bool> {
    let state = tempfile::tempdir().context("a temporary directory")?;
    let state = StateHome { fixed: Some(state.path().to_owned()), ..StateHome::default() };
    let workspace = Workspace::open(root, Config { state, ..Config::default() })?;
    let settings =
        RunSettings { mode, window: WINDOW, dialect: Some(EditDialect::Lines), ..RunSettings::for_workspace(&workspace) };
    let mut listener = |event: &RunEvent| audience.hear(event);
    let ports = Ports {
        model: &mut Forgetful::default(),
        permission: &mut NoApprover,
        listener: &mut listener,
        cancel: CancelToken::default(),
    };
    Ok(AgentRun::new(workspace, STORY, settings, ports)?.run()?.stop == StopReason::Done)
}

/// Whoever listens to a run: the others, who wait for their moment, and the ledger.
struct Audience<'a> {
    ledger: Ledger,
    others: Others<'a>,
    /// The call that is being carried out.
    last: Option<Deed>,
    failed: Option<io::Error>,
}

impl Audience<'_> {
    fn hear(&mut self, event: &RunEvent) {
        if let Err(error) = self.try_hear(event) {
            self.failed.get_or_insert(error);
        }
    }

    fn try_hear(&mut self, event: &RunEvent) -> io::Result<()> {
        self.ledger.hear(event);
        if let Some(deed) = Deed::of(event) {
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
