//! Calls that change much of one file at once: twenty edits of it in one call, and writes of a large file as a whole.
//! Servers that have no such call are left out.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::server::Launch;
use crate::bench::tool_dialect::{Call, Edit, ToolDialect};
use crate::bench::{Bench, Contender, contenders};
use crate::files::{content, content_with, create, text, token};
use crate::machine;
use crate::measurement::{PerServer, Summary};

/// Edits in one call.
const EDITS: usize = 20;
/// Size of the file that they are made in.
const BYTES: usize = 100 << 10;
/// Peers are not asked to write more than this.
const MOST_FOR_PEERS: usize = 1 << 20;
/// The tokens of two edits are so far apart that no state of the one is a state of the other.
const APART: usize = 100_000;

/// The times of one change on each server.
pub(crate) struct WriteRow {
    /// The kind of call.
    pub label: String,
    /// The times of the servers that have the call.
    pub times: PerServer<Option<Summary>>,
}

#[derive(Clone, Copy)]
enum Change {
    /// All tokens of a file.
    Edits,
    /// Writes a whole file of this many bytes.
    Whole(usize),
}

impl Change {
    const ALL: [(&'static str, Self); 3] = [
        ("20 edits of one file, 100 KB", Self::Edits),
        ("write 1 MB", Self::Whole(1 << 20)),
        ("write 10 MB", Self::Whole(10 << 20)),
    ];

    fn path(self) -> String {
        match self {
            Self::Edits => "edits.txt".into(),
            Self::Whole(bytes) => format!("whole-{bytes}.txt"),
        }
    }

    /// The initial content of the file.
    fn content(self) -> String {
        match self {
            Self::Edits => content_with(0, BYTES, &(0..EDITS).map(|place| place * APART).collect::<Vec<_>>()),
            Self::Whole(bytes) => content(0, bytes),
        }
    }

    /// The call of a round; none if the server has no such call.
    fn call(self, contender: &Contender, round: usize) -> Option<Call> {
        let Contender { dialect, root, .. } = contender;
        match self {
            Self::Edits => {
                let edit = |place| Edit { path: self.path(), from: place * APART + round, to: place * APART + round + 1 };
                dialect.edit_places(root, &(0..EDITS).map(edit).collect::<Vec<_>>())
            }
            // The official server ends when it is sent that much in a line.
            Self::Whole(bytes) if bytes > MOST_FOR_PEERS && *dialect != ToolDialect::Surehand => None,
            Self::Whole(bytes) => dialect.write(root, &self.path(), &content(round + 1, bytes)),
        }
    }

    /// Checks that the file contains the change that the server confirmed.
    fn check(self, contender: &Contender, round: usize) -> Result<()> {
        let now = text(&contender.root, &self.path())?;
        let is_there = match self {
            Self::Edits => (0..EDITS).all(|place| now.contains(&token(place * APART + round + 1))),
            Self::Whole(bytes) => now == content(round + 1, bytes),
        };
        ensure!(is_there, "{}: round {round} is not in the file", self.path());
        Ok(())
    }
}

/// Measures the changes in turn; the first one of each server only warms up. `suffix` distinguishes the rows from other
/// ones.
pub(super) fn measure(bench: &Bench, suffix: &str, launches: &PerServer<Launch>) -> Result<Vec<WriteRow>> {
    let roots = bench.workspaces()?;
    for (_, change) in Change::ALL {
        roots.iter().try_for_each(|root| create(root, &change.path(), &change.content()))?;
    }
    machine::settle();
    let mut field = contenders(launches, &roots)?;
    let mut row = |(label, change): (&str, Change)| -> Result<WriteRow> {
        let mut times = field.map(|_| Vec::<Duration>::new());
        for round in 0..=bench.pace.pick(6, 20) {
            for server in field.order(round) {
                let contender = field.at_mut(server);
                let Some(call) = change.call(contender, round) else { continue };
                if round == 0 {
                    contender.read(&change.path())?;
                }
                let took = contender.client.send_call(&call)?.took();
                change.check(contender, round)?;
                if round > 0 {
                    times.at_mut(server).push(took);
                }
            }
        }
        let times = times.map(|all| (!all.is_empty()).then(|| Summary::of(all)));
        Ok(WriteRow { label: format!("{label}{suffix}"), times })
    };
    Change::ALL.into_iter().map(&mut row).collect()
}
