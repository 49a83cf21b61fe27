//! The report of the demo: a table and a plot.

use super::{
    plot::{self, Canvas, Glyphs},
    run_stats::{PlayedRun, RunStats},
};
use crate::display::style::{Painter, Style, abbreviate};

pub(super) const INTRO: &str = "\
3. What that is worth in a long task

A model writes a small service in Go. It knows only what its prompt shows: what
has left the prompt, it does again. Meanwhile others save changes to the same
files. The same model, three times:
";

pub(super) const NEXT: &str = "\
Next:  surehand init      guards the agents that you have, in this project
       surehand doctor    says whether everything is guarded
";

#[derive(Debug)]
pub(super) struct PlayedRuns {
    pub plain: PlayedRun,
    pub history: PlayedRun,
    pub snapshot: PlayedRun,
}

pub(super) fn table(played: &PlayedRuns, painter: Painter) -> String {
    let all = [&played.plain, &played.history, &played.snapshot];
    let mut table = painter.paint(Style::Bold, &row("", ["plain loop", "history", "snapshot"].map(str::to_owned)));
    let mut put = |name: &str, cell: &dyn Fn(&PlayedRun) -> String| table.push_str(&row(name, all.map(cell)));
    put("turns until done", &|played| if played.is_done { turns(played) } else { format!("not in {}", turns(played)) });
    put("writes per unique file", &|played| number(played.stats.writes_per_file()));
    put("most writes of one file", &|played| most_writes(&played.stats));
    put("changes of others lost", &|played| format!("{} of {}", played.kept.lost, played.kept.saved));
    put("reads", &|played| played.stats.reads.to_string());
    put("refusals", &|played| played.stats.refusals.to_string());
    put("  repaired by the loop", &|played| played.stats.repairs.to_string());
    put("tokens of a prompt, first", &|played| abbreviate(played.stats.prompts.first().copied().unwrap_or_default() as u64));
    put("  median", &|played| abbreviate(played.stats.median() as u64));
    put("  longest", &|played| abbreviate(played.stats.longest() as u64));
    put("  all together", &|played| abbreviate(played.stats.prompts.iter().sum::<usize>() as u64));
    put("seconds", &|played| format!("{:.2}", played.time.as_secs_f64()));
    table
}

fn row(name: &str, cells: [String; 3]) -> String {
    let [plain, history, snapshot] = cells;
    format!("{name:<26}{plain:>18}{history:>16}{snapshot:>16}\n")
}

fn turns(played: &PlayedRun) -> String {
    played.stats.prompts.len().to_string()
}

fn number(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

fn most_writes(stats: &RunStats) -> String {
    let most = stats.writes.iter().max_by_key(|(path, times)| (**times, path.as_str() == "main.go"));
    most.map_or_else(|| "0".to_owned(), |(path, times)| if *times > 1 { format!("{times} ({path})") } else { times.to_string() })
}

/// The tokens of each prompt, on one scale.
pub(super) fn plots(played: &PlayedRuns, painter: Painter, glyphs: Glyphs) -> String {
    const ROWS: usize = 5;
    const MARGIN: usize = 8;
    const WIDEST: usize = 100;
    let (history, snapshot) = (&played.history.stats, &played.snapshot.stats);
    let turns = history.prompts.len().max(snapshot.prompts.len());
    let top = history.longest().max(snapshot.longest());
    let canvas = Canvas { width: painter.room(MARGIN).min(WIDEST), height: ROWS, glyphs };
    let [side, corner, floor] = glyphs.frame();
    let floor = format!("{:>6} {corner}{}\n", 0, floor.to_string().repeat(canvas.width));
    let mut text = String::new();
    for (name, stats, style) in [("history", history, Style::Yellow), ("snapshot", snapshot, Style::Green)] {
        text.push_str(&painter.paint(Style::Bold, &format!("tokens per turn, {name}")));
        text.push_str(if stats.folds > 0 { " (where it falls, the conversation was folded)\n" } else { "\n" });
        for (row, line) in plot::bars(&stats.prompts, turns, top, canvas).iter().enumerate() {
            let label = if row == 0 { abbreviate(top as u64) } else { String::new() };
            text.push_str(&format!("{label:>6} {side}{}\n", painter.paint(style, line)));
        }
        text.push_str(&floor);
    }
    text.push_str(&format!("{:MARGIN$}turn 1{turns:>1$}\n", "", canvas.width.saturating_sub(6)));
    text
}
