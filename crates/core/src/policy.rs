//! Settings that the decisions in this crate depend on: how strict the gate is, and the limits.

/// How strict the gate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whether an edit needs a read first. Off, only outside changes of files that were read are noticed.
    pub require_read: bool,
    /// What becomes of an edit of a file that changed since it was read.
    pub on_change: OnChange,
    /// Whether a read of lines that are unchanged since this session was shown them is answered with a note instead of the
    /// lines. Off by default: over plain MCP nobody tells the server when the client dropped them from its context.
    pub short_rereads: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { require_read: true, on_change: OnChange::Refuse, short_rereads: false }
    }
}

/// What becomes of an edit of a file that changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// It is refused, with the lines that changed.
    Refuse,
    /// It is made where its lines are now, if they are proven to be the ones that were seen; else it is refused.
    Rebase,
}

/// How the prompt of an agent is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextMode {
    /// From the present state.
    #[default]
    Snapshot,
    /// From the whole conversation, folded when it gets too long.
    History,
}

/// How much one call may read or show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Lines in one read.
    pub read_lines: usize,
    /// Bytes in one read.
    pub read_bytes: usize,
    /// Characters of one line; the rest is cut and the line counts as partly seen.
    pub line_chars: usize,
    /// Bytes of a file that is read or edited at all.
    pub file_bytes: u64,
    /// Edits in one batch.
    pub batch_edits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { read_lines: 2000, read_bytes: 100_000, line_chars: 2000, file_bytes: 50_000_000, batch_edits: 1000 }
    }
}
