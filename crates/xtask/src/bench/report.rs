//! The report as Markdown. `report::json` gives the same numbers as JSON, and `chart` a picture.

mod json;

use std::time::Duration;

use crate::bench::Pace;
use crate::bench::batch::{BatchRow, FILES};
use crate::bench::calls::{CallRow, Kind};
use crate::bench::depth::{Depth, LINES};
use crate::bench::going_back::GoingBack;
use crate::bench::growth::Growth;
use crate::bench::hook::Hook;
use crate::bench::memory::Memory;
use crate::bench::peer::{LeftOut, Peer};
use crate::bench::scan::Scan;
use crate::bench::search::Search;
use crate::bench::snapshot::Snapshot;
use crate::bench::start::StartRow;
use crate::bench::throughput::{IN_FLIGHT, ThroughputRow};
use crate::bench::units::{micros, millis, none, times_as_long};
use crate::bench::writes::WriteRow;
use crate::measurement::{PerServer, Summary};
use crate::table::{table, wrap};

/// Everything that was measured.
pub(crate) struct Report {
    /// The machine that was measured.
    pub machine: String,
    /// How much was measured.
    pub pace: Pace,
    pub names: PerServer<String>,
    /// The peers that took part.
    pub peers: Vec<&'static Peer>,
    /// The peers that did not.
    pub left_out: Vec<LeftOut>,
    pub calls: Vec<CallRow>,
    /// Round trips with server and client on one core.
    pub calls_on_one_core: Vec<CallRow>,
    /// Changes of many files.
    pub batches: Vec<BatchRow>,
    /// Changes of much of one file.
    pub writes: Vec<WriteRow>,
    /// Calls in a second.
    pub throughput: Vec<ThroughputRow>,
    /// Moving an edit to the current place of its lines, and undoing it.
    pub depth: Depth,
    /// Early and late calls of a long session.
    pub growth: Growth,
    pub start: Vec<StartRow>,
    pub hook: Hook,
    pub search: Search,
    pub scan: Scan,
    /// The state as a model gets it.
    pub snapshot: Snapshot,
    pub going_back: GoingBack,
    pub memory: Memory,
    /// How long the whole run took.
    pub took: Duration,
}

impl Report {
    /// A section for each part, ready to be put into a document.
    pub(crate) fn to_markdown(&self) -> String {
        let parts = [
            self.introduction(),
            "## Summary".into(),
            "Medians in µs, over MCP stdio. \"Times faster\" is the time of the best peer divided by that of Surehand. Peers with a * sync every edit, the others none."
                .into(),
            self.summary_table(),
            "## The peers".into(),
            self.peers_part(),
            "## Calls".into(),
            "Round trips over MCP stdio in µs; medians unless noted otherwise. Surehand syncs every edit by default, and so does the floor; in the rows called fast, neither does. The peers always work the same way."
                .into(),
            self.calls_table(&self.calls),
            "The same with server and client on one core, so that no call has to wake a core:".into(),
            self.calls_table(&self.calls_on_one_core),
            "## Batch".into(),
            format!("A change of {FILES} files of 1 KB, in one call if the server supports that, otherwise in {FILES} calls; median ms:"),
            self.batch_table(),
            "## Large changes of one file".into(),
            "In one call; median ms. Servers without such a call are left out:".into(),
            self.writes_table(),
            "## Throughput".into(),
            format!("Calls per second with {IN_FLIGHT} in flight:"),
            self.throughput_table(),
            "## Growth and memory".into(),
            self.growth_words(),
            self.growth_table(),
            self.memory_words(),
            self.memory_table(),
            self.seen_words(),
            self.seen_table(),
            "## Start".into(),
            "From spawn to reply; median ms:".into(),
            self.start_table(),
            "## Hooks".into(),
            "From exec to exit, in ms. The agent asks before an edit, and the hook allows it:".into(),
            self.hook_table(),
            "## Rebase and undo".into(),
            format!("A file of {LINES} lines; µs:"),
            self.depth_table(),
            "## Search".into(),
            format!("{} files on all cores, {}; median ms:", self.search.files, self.ripgrep()),
            self.search_table(),
            "## Scan and snapshot".into(),
            format!("{} files on all cores; median ms:", self.scan.files),
            self.scan_table(),
            format!("The state of that repository as a model gets it, {} tokens; ms:", self.snapshot.tokens),
            self.snapshot_table(),
            "## Checkpoints and restore".into(),
            "From exec to exit; median ms; beside `git status` and `git blame`. Every checkpoint of a changed state is written and synced:".into(),
            self.going_back_table(),
        ];
        parts.map(|part| wrap(&part) + "\n").join("\n")
    }

    fn introduction(&self) -> String {
        let pace = self.pace.pick("quick run", "full run");
        let seconds = self.took.as_secs_f64();
        format!("{}; {pace}, {seconds:.0} s. All servers in one run, in turn, on all cores unless noted otherwise.", self.machine)
    }

    /// The names of all servers as columns, the peers that sync marked.
    fn columns(&self) -> impl Iterator<Item = String> {
        ["surehand", "floor"].into_iter().map(str::to_owned).chain(self.peer_columns())
    }

    fn peer_columns(&self) -> impl Iterator<Item = String> {
        (0..self.peers.len()).map(|peer| self.peer_label(peer))
    }

    /// The name of a peer, with a mark if it syncs.
    pub(crate) fn peer_label(&self, peer: usize) -> String {
        let Peer { label, syncs, .. } = self.peers[peer];
        format!("{label}{}", if *syncs { "*" } else { "" })
    }

    /// The meaning of the mark, if it is used.
    pub(crate) fn mark_of_sync(&self) -> &'static str {
        if self.peers.iter().any(|peer| peer.syncs) { " · * syncs every edit" } else { "" }
    }

    fn summary_table(&self) -> String {
        let header = ["call", "size", "surehand", "floor", "surehand / floor"].map(String::from).into_iter();
        let header: Vec<_> =
            header.chain(self.with_peers(|| ["best peer", "official", "times faster"].map(String::from).into())).collect();
        let shown = [Kind::Read, Kind::Edit, Kind::EditFast];
        let rows = self.calls.iter().filter(|row| shown.contains(&row.kind)).map(|row| {
            let times = row.times.map(|times| times.p50);
            let ours = times.surehand;
            let words =
                [row.kind.label().into(), row.size.into(), micros(ours), micros(times.floor), times_as_long(ours, times.floor)];
            let beside = self.with_peers(|| {
                let (place, best) = times.best_peer().expect("there are peers");
                let official =
                    self.peers.iter().position(|peer| peer.label == "official").map(|place| micros(times.peers[place]));
                let best_peer = format!("{} {}", self.peer_label(place), micros(best));
                vec![best_peer, official.unwrap_or_else(none), times_as_long(best, ours)]
            });
            words.into_iter().chain(beside).collect::<Vec<_>>()
        });
        table(2, header, rows)
    }

    /// Cells that exist only with peers.
    fn with_peers(&self, cells: impl FnOnce() -> Vec<String>) -> Vec<String> {
        if self.peers.is_empty() { Vec::new() } else { cells() }
    }

    fn peers_part(&self) -> String {
        let header = ["name here", "package", "from", "version", "runs on", "edits are synced", "one call for many files"];
        let rows = self.peers.iter().map(|peer| {
            let [synced, batches] = [peer.syncs, peer.dialect.has_batches()].map(|is_so| if is_so { "yes" } else { "no" });
            [peer.label, peer.package, peer.registry.label(), peer.version, peer.runtime, synced, batches].map(String::from)
        });
        let taking_part = if self.peers.is_empty() { "None took part.".into() } else { table(7, header, rows) };
        let named = |LeftOut { peer, reason }: &LeftOut| format!("Left out: {} {}: {reason}.", peer.package, peer.version);
        [taking_part].into_iter().chain(self.left_out.iter().map(named)).collect::<Vec<_>>().join("\n\n")
    }

    fn calls_table(&self, calls: &[CallRow]) -> String {
        let before = ["call", "size", "surehand", "p95", "floor"].map(String::from).into_iter().chain(self.peer_columns());
        let header: Vec<_> = before.chain(self.ratio_columns()).collect();
        let rows = calls.iter().map(|row| {
            let ours = row.times.surehand;
            let words =
                [row.kind.label().into(), row.size.into(), micros(ours.p50), micros(ours.p95), micros(row.times.floor.p50)];
            let peers = row.times.peers.iter().map(|peer| micros(peer.p50));
            words.into_iter().chain(peers).chain(self.ratios(&row.times)).collect::<Vec<_>>()
        });
        table(2, header, rows)
    }

    fn ratio_columns(&self) -> Vec<String> {
        let beside = self.with_peers(|| vec!["best peer / surehand".into()]);
        ["surehand / floor".to_owned()].into_iter().chain(beside).collect()
    }

    fn ratios(&self, times: &PerServer<Summary>) -> Vec<String> {
        let times = times.map(|times| times.p50);
        let best = times.best_peer().map(|(_, best)| times_as_long(best, times.surehand));
        [times_as_long(times.surehand, times.floor)].into_iter().chain(best).collect()
    }

    fn batch_table(&self) -> String {
        let header: Vec<_> = ["batch".to_owned()].into_iter().chain(self.columns()).chain(self.ratio_columns()).collect();
        let rows = self.batches.iter().map(|row| {
            let times = row.times.iter().map(|times| millis(times.p50));
            [row.label.to_owned()].into_iter().chain(times).chain(self.ratios(&row.times)).collect::<Vec<_>>()
        });
        table(1, header, rows)
    }

    fn writes_table(&self) -> String {
        let header: Vec<_> = ["call".to_owned()].into_iter().chain(self.columns()).chain(["surehand / floor".into()]).collect();
        let rows = self.writes.iter().map(|row| {
            let cells = row.times.iter().map(|times| times.map_or_else(none, |times| millis(times.p50)));
            let ratio = row.times.surehand.zip(row.times.floor).map(|(ours, floor)| times_as_long(ours.p50, floor.p50));
            [row.label.clone()].into_iter().chain(cells).chain([ratio.unwrap_or_else(none)]).collect::<Vec<_>>()
        });
        table(1, header, rows)
    }

    fn throughput_table(&self) -> String {
        let header: Vec<_> = ["call".to_owned()].into_iter().chain(self.columns()).collect();
        let rows = self.throughput.iter().map(|row| {
            let rates = row.per_second.iter().map(|rate| format!("{rate:.0}"));
            [row.label.to_owned()].into_iter().chain(rates).collect::<Vec<_>>()
        });
        table(1, header, rows)
    }

    fn growth_words(&self) -> String {
        let Growth { files, files_of_peers, .. } = self.growth;
        let peers = if self.peers.is_empty() { String::new() } else { format!(" (peers {files_of_peers})") };
        format!("{files} files{peers} of 200 bytes, each read and edited once in one session; median µs:")
    }

    fn growth_table(&self) -> String {
        let header = ["call", "server", "files 10 to 110", "last 100 files", "late / early"];
        let rows = self.growth.rows.iter().flat_map(|(label, windows)| {
            self.names.iter().zip(windows.iter()).map(|(name, windows)| {
                let (early, late) = (windows.early, windows.late);
                [(*label).into(), name.clone(), micros(early), micros(late), times_as_long(late, early)]
            })
        });
        table(2, header, rows)
    }

    fn memory_words(&self) -> String {
        format!(
            "Resident memory in MiB after {} of these calls, and after all {}:",
            2 * self.growth.files_of_peers,
            2 * self.growth.files
        )
    }

    fn memory_table(&self) -> String {
        let mebibytes = |kib: &u64| format!("{:.1}", *kib as f64 / 1024.0);
        let all = self.growth.resident_kib_after_all.iter().map(mebibytes).chain(std::iter::repeat_with(none));
        let rows = self.names.iter().zip(self.growth.resident_kib.iter()).zip(all);
        table(1, ["server", "VmRSS", "after all"], rows.map(|((name, kib), all)| [name.clone(), mebibytes(kib), all]))
    }

    fn seen_words(&self) -> String {
        let [some, all] = self.memory.files;
        format!("Resident memory in MiB after {some} reads, each of a different file of 2 KB, and after {all}:")
    }

    fn seen_table(&self) -> String {
        let Memory { surehand_kib, floor_kib, .. } = self.memory;
        let cells = |kib: [u64; 2]| kib.map(|kib| format!("{:.1}", kib as f64 / 1024.0));
        let rows = [("surehand", cells(surehand_kib)), ("floor", cells(floor_kib))];
        let [some, all] = self.memory.files.map(|files| format!("{files} files"));
        table(1, ["server".into(), some, all], rows.map(|(name, [some, all])| [name.to_owned(), some, all]))
    }

    fn start_table(&self) -> String {
        let header: Vec<_> = ["workspace", "answer"]
            .map(String::from)
            .into_iter()
            .chain(self.columns())
            .chain(["surehand / floor".into()])
            .collect();
        let rows = self.start.iter().flat_map(|row| {
            [("initialize", &row.greeting), ("tools/list", &row.tools), ("first read", &row.read)].map(|(answer, times)| {
                let mut cells = vec![row.workspace.clone(), answer.into()];
                cells.extend(times.iter().map(|times| millis(times.p50)));
                cells.resize_with(2 + self.names.iter().count(), none);
                cells.push(times_as_long(times.surehand.p50, times.floor.p50));
                cells
            })
        });
        table(2, header, rows)
    }

    fn hook_table(&self) -> String {
        let rows = self.hook.rows.iter().map(|(label, times)| [label.clone(), millis(times.p50), millis(times.p95)]);
        table(1, ["process", "p50", "p95"], rows)
    }

    fn depth_table(&self) -> String {
        let rows = self.depth.rows.iter().map(|(label, times)| [label.to_string(), micros(times.p50), micros(times.p95)]);
        table(1, ["call", "p50", "p95"], rows)
    }

    fn ripgrep(&self) -> String {
        match &self.search.ripgrep {
            Some(version) => format!("`search_files` over MCP compared with a run of {version}"),
            None => "`search_files` over MCP (ripgrep is not installed, so there is no comparison)".into(),
        }
    }

    fn search_table(&self) -> String {
        let header = ["pattern", "surehand", "ripgrep", "surehand / ripgrep"];
        let rows = self.search.rows.iter().map(|row| {
            let ours = row.surehand.p50;
            let theirs = row.ripgrep.map(|ripgrep| ripgrep.p50);
            [
                row.label.into(),
                millis(ours),
                theirs.map_or_else(none, millis),
                theirs.map_or_else(none, |theirs| times_as_long(ours, theirs)),
            ]
        });
        table(1, header, rows)
    }

    /// Each kind of scan with its comparison.
    fn scan_rows(&self) -> [(&'static str, Summary, &'static str, Summary); 4] {
        let Scan { warm, warm_inside, git, bare, cold, sums, .. } = self.scan;
        [
            ("nothing changed, surehand scan", warm, "git status", git),
            ("nothing changed, surehand scan", warm, "bare walk + stat", bare),
            ("nothing changed, without the process", warm_inside, "bare walk + stat", bare),
            ("first, surehand scan", cold, "sha256sum on all cores", sums),
        ]
    }

    fn scan_table(&self) -> String {
        let rows = self.scan_rows().map(|(label, surehand, beside, other)| {
            let ratio = times_as_long(surehand.p50, other.p50);
            [label.into(), beside.into(), millis(surehand.p50), millis(other.p50), ratio]
        });
        table(2, ["scan", "compared with", "surehand", "the other", "surehand / other"], rows)
    }

    fn going_back_table(&self) -> String {
        let rows = self.going_back.rows.iter().map(|row| {
            let none = || "—".to_owned();
            [
                row.label.into(),
                row.files.to_string(),
                millis(row.surehand.p50),
                row.git.map_or_else(none, |git| millis(git.p50)),
                row.git.map_or_else(none, |git| times_as_long(row.surehand.p50, git.p50)),
            ]
        });
        table(1, ["what", "files", "surehand", "git", "surehand / git"], rows)
    }

    fn snapshot_table(&self) -> String {
        let Snapshot { call, command, .. } = &self.snapshot;
        let rows = [("repo_state over MCP", call), ("surehand snapshot, exec to exit", command)];
        table(1, ["how", "p50", "p95"], rows.map(|(label, times)| [label.into(), millis(times.p50), millis(times.p95)]))
    }
}
