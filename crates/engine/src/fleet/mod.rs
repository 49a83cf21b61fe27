//! The role of a workspace in the fleet: all checkouts of its repository, on this machine and on others. This module
//! knows the id of the repository, the place and the content of its board, and the id of this checkout.

mod activity;
mod board_index;
mod branch_changes;
mod copy_age;
mod file_forecasts;
mod forecasts;
mod fork_point;
mod gate;
mod local_copy;
mod overview;
mod place;
mod repository_id;

pub(crate) use self::overview::names_of;
pub use self::{
    activity::{SavedReports, agent_of},
    branch_changes::BranchChanges,
    forecasts::Forecaster,
    fork_point::{ForkPoint, ForkPointError},
    gate::FleetWarning,
    local_copy::CopyStamp,
    overview::{AgentEntry, ChangeEntry, ClaimEntry, FleetOverview, StoryEntry, TaskEntry},
    place::{OpenServer, board_place, open_board},
    repository_id::{IdOrigin, KnownRepository, RepositoryIdError, host},
};
pub use crate::fleet_link::{BoardCalls, CopyAge, CopyVersion, FleetLink, LocalCopy, LostClaim, LostThing};
