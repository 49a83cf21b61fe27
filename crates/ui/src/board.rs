//! The board of the fleet on the page: its content, and the end of a claim.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use hyper::StatusCode;
use serde_json::{Value, json};
use surehand_engine::{
    Workspace,
    core::{Collision, render::collision::collision},
    fleet::{BoardCalls, ClaimEntry, FleetOverview},
    store::board::BoardCall,
};

use crate::api::ApiError;

/// The connection of the page to the board. The program provides it, so that this crate needs no helper.
pub trait BoardAccess: BoardCalls {
    /// Makes the local copy of the board current. The error says why that is not possible.
    fn refresh(&self) -> Result<(), String>;
}

/// The shortest interval between updates of the local copy.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// The board as the page sees it. The page does not wait for a board that cannot be reached: it gets the local copy at
/// once, and the feed announces a newer one.
pub(crate) struct BoardView(Option<Arc<Connection>>);

struct Connection {
    access: Box<dyn BoardAccess>,
    refresh: Mutex<Refresh>,
}

#[derive(Default)]
struct Refresh {
    began: Option<Instant>,
    is_running: bool,
    trouble: Option<String>,
}

impl BoardView {
    /// Without `access`, the page says that the user has disabled the board.
    pub(crate) fn new(access: Option<Box<dyn BoardAccess>>) -> Self {
        Self(access.map(|access| Arc::new(Connection { access, refresh: Mutex::default() })))
    }

    /// The content of the board, as `surehand board --json` prints it, and the forecasts as text.
    pub(crate) fn shown(&self, workspace: &Workspace) -> Result<Value, ApiError> {
        let Some(connection) = &self.0 else { return Ok(json!({ "enabled": false, "board": null })) };
        let (is_reading, trouble) = connection.refresh_in_time();
        let mut overview = overview(workspace)?;
        if let Some(overview) = &mut overview {
            overview.trouble = overview.trouble.take().or_else(|| trouble.clone());
        }
        let collisions = overview.iter().flat_map(|overview| &overview.forecasts).filter_map(forecast);
        let forecasts: Vec<Value> = collisions.collect();
        Ok(json!({ "enabled": true, "reading": is_reading, "trouble": trouble, "forecasts": forecasts, "board": overview }))
    }

    /// The claim that would end.
    pub(crate) fn preview_cancel(&self, workspace: &Workspace, claim: &str) -> Result<Value, ApiError> {
        self.connection()?;
        Ok(json!({ "files": [], "claim": find_claim(workspace, claim)? }))
    }

    /// Ends a claim of any agent, like `surehand board release`.
    pub(crate) fn cancel(&self, workspace: &Workspace, claim: &str) -> Result<Value, ApiError> {
        let connection = self.connection()?;
        let claim = find_claim(workspace, claim)?;
        let released = connection.access.call(&BoardCall::ReleasePaths { claim: claim.id, by: None });
        released.map_err(|error| ApiError::new(StatusCode::BAD_GATEWAY, error))?;
        connection.refresh();
        Ok(json!({ "released": claim.pattern, "by": claim.by }))
    }

    fn connection(&self) -> Result<&Connection, ApiError> {
        self.0.as_deref().ok_or_else(|| ApiError::absent("there is no board: board.enabled is false in your settings"))
    }
}

impl Connection {
    /// Starts an update of the copy on another thread if it is due. Returns whether one is running, and the error of
    /// the last one.
    fn refresh_in_time(self: &Arc<Self>) -> (bool, Option<String>) {
        let mut state = self.refresh.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_running && state.began.is_none_or(|began| began.elapsed() >= REFRESH_EVERY) {
            (state.is_running, state.began) = (true, Some(Instant::now()));
            let connection = self.clone();
            thread::spawn(move || connection.refresh());
        }
        (state.is_running, state.trouble.clone())
    }

    fn refresh(&self) {
        let trouble = self.access.refresh().err();
        let mut state = self.refresh.lock().unwrap_or_else(PoisonError::into_inner);
        (state.is_running, state.trouble) = (false, trouble);
    }
}

fn overview(workspace: &Workspace) -> Result<Option<FleetOverview>, ApiError> {
    workspace.fleet_overview().map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error))
}

fn find_claim(workspace: &Workspace, id: &str) -> Result<ClaimEntry, ApiError> {
    let claims = overview(workspace)?.map(|overview| overview.claims).unwrap_or_default();
    let found = claims.into_iter().find(|claim| claim.id.0 == id);
    found.ok_or_else(|| ApiError::absent("this claim has ended"))
}

fn forecast(found: &Collision) -> Option<Value> {
    Some(json!({ "path": found.path, "agent": found.agent, "text": collision(found)? }))
}
