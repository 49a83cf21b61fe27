//! Incidents: logged events that are neither changes nor checkpoints.

use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, RelPath, SessionId, string_ids};

use crate::Millis;

string_ids! {
    /// The id of an incident.
    IncidentId
}

/// A logged event that is neither a change nor a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// The random id of the incident.
    pub id: IncidentId,
    /// The time when it was noticed.
    pub at: Millis,
    /// The session that noticed it, or whose call was refused.
    pub session: SessionId,
    /// The file, if it concerns one.
    pub path: Option<RelPath>,
    /// The event, with its details.
    pub kind: IncidentKind,
}

/// The kind of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum IncidentKind {
    /// A call was refused.
    Refused {
        /// The name of the tool.
        tool: String,
        /// The stable name of the cause.
        code: String,
        /// How often this exact call has been refused in a row.
        repeat: u32,
    },
    /// A file changed without a recorded change. Each new content is recorded once, however many sessions notice it.
    Outside {
        /// The version that the session knew; `None` if the file did not exist.
        before: Option<ContentHash>,
        /// The version that was found; `None` if the file is gone.
        after: Option<ContentHash>,
    },
    /// A rescued file was deleted. Its content is kept like any other version.
    RescueDropped {
        /// The name of the rescued file.
        rescue: String,
        /// The version of its content.
        version: ContentHash,
    },
}

impl IncidentKind {
    /// The content that a file changed from outside was found to have; the inner `None` means a deleted file.
    pub(crate) fn found_outside(&self) -> Option<Option<&ContentHash>> {
        match self {
            Self::Outside { after, .. } => Some(after.as_ref()),
            Self::Refused { .. } | Self::RescueDropped { .. } => None,
        }
    }
}
