//! Settings that the decisions in this crate depend on: how strict the gate is, and the limits.

/// How strict the gate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whether an edit needs a read first. If not, the gate only notices outside changes of files that were read.
    pub require_read: bool,
    /// How to treat an edit of a file that changed since it was read.
    pub on_change: OnChange,
    /// Whether a repeated read of unchanged lines is answered with a note instead of the lines. Off by default: over
    /// plain MCP, the server does not learn when the client dropped the lines from its context.
    pub short_rereads: bool,
    /// How to treat an edit of paths that another agent has claimed.
    pub claims: OnOverlap,
    /// How to treat an edit that will conflict with changes in another checkout.
    pub collisions: OnOverlap,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            require_read: true,
            on_change: OnChange::Refuse,
            short_rereads: false,
            claims: OnOverlap::Warn,
            collisions: OnOverlap::Warn,
        }
    }
}

/// The treatment of an edit that overlaps with another agent's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnOverlap {
    /// The edit is made, and the reply names the overlap.
    Warn,
    /// The edit is refused.
    Refuse,
}

/// How to treat an edit of a file that changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// The edit is refused, with the lines that changed.
    Refuse,
    /// The edit is applied where its lines are now if they are proven to be the ones that were seen, else refused.
    Rebase,
}

/// How an agent's prompt is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextMode {
    /// From the current state.
    #[default]
    Snapshot,
    /// From the whole conversation, which is folded when it gets too long.
    History,
}

/// How much one call may read or show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of lines in one read.
    pub read_lines: usize,
    /// Maximum number of bytes in one read.
    pub read_bytes: usize,
    /// Maximum number of characters shown of one line; the rest is cut and the line counts as partly seen.
    pub line_chars: usize,
    /// Maximum size of a file in bytes; a larger file is neither read nor edited.
    pub file_bytes: u64,
    /// Maximum number of edits in one batch.
    pub batch_edits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { read_lines: 2000, read_bytes: 100_000, line_chars: 2000, file_bytes: 50_000_000, batch_edits: 1000 }
    }
}
