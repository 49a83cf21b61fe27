//! The messages between the helper and its callers: one JSON object per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use surehand_engine::{
    BoardConfig, SessionId, StateHome,
    store::{
        Millis,
        board::{BoardAnswer, BoardCall, BoardError},
    },
};

/// Rises when the messages change. A helper that meets a newer caller ends, so that the caller can start its own.
pub(crate) const FORMAT: u32 = 1;

/// The longest message, in bytes.
pub(crate) const MAX_MESSAGE: u64 = 16 << 20;

/// A workspace, and how to reach its board.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkspacePlace {
    /// The absolute path of the root.
    pub root: PathBuf,
    /// The directories in which state may be kept.
    pub state: StateHome,
    /// The user's settings for boards.
    pub board: BoardConfig,
}

/// A sign of life of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The session of the agent, by which the helper identifies it.
    pub session: SessionId,
    /// The program, such as `codex`.
    pub client: String,
    /// The process that it lives and dies with, by [`ClientProcess::name`], if that is known.
    ///
    /// [`ClientProcess::name`]: surehand_engine::client_process::ClientProcess::name
    pub process: Option<String>,
    /// The story that it works on.
    pub story: Option<String>,
    /// Whether the agent has ended.
    pub is_over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub format: u32,
    /// The version of the caller's program.
    pub program: String,
    pub request: Request,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Agents are at work. There is no reply.
    Report {
        place: WorkspacePlace,
        agents: Vec<AgentReport>,
    },
    /// An operation of the board.
    Call {
        place: WorkspacePlace,
        call: BoardCall,
    },
    /// The workspace wants its local copy to be current, although no agent works there.
    Look {
        place: WorkspacePlace,
    },
    Status,
    Stop,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Answer(BoardAnswer),
    Failed(BoardError),
    Status(HelperStatus),
    /// The local copy is current.
    Current,
    /// The helper ends instead of answering; the caller starts its own.
    Ending,
    /// The caller is older than the helper, or its message is malformed.
    Rejected {
        why: String,
    },
}

/// The status of the helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperStatus {
    /// Its process id.
    pub process: u32,
    /// The version of its program.
    pub program: String,
    /// The boards to which it is connected.
    pub boards: Vec<BoardStatus>,
}

/// A board to which the helper is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardStatus {
    /// The id of the repository.
    pub repository: String,
    /// The address of the board, for people.
    pub place: String,
    /// The roots of the workspaces that it serves.
    pub roots: Vec<PathBuf>,
    /// The number of agents that it keeps alive.
    pub agents: usize,
    /// When the board was last read, in milliseconds since the Unix epoch; `None` if it never was.
    pub read_at: Option<Millis>,
    /// Why the board cannot be reached; `None` if it can.
    pub trouble: Option<String>,
}
