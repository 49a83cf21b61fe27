//! `surehand demo`: shows a refusal and a rescue. Then it plays a story with a forgetful model while other programs
//! save the same files: in both modes, and without Surehand for comparison. Everything happens in temporary
//! directories.

mod forgetful_model;
mod live;
mod opening;
mod other_programs;
mod plain_loop;
mod play;
mod plot;
mod prompt_contents;
mod report;
mod run_stats;
mod story;
mod tool_call;

use anyhow::ensure;
use serde_json::json;
use surehand_engine::core::ContextMode;

use self::{
    play::{DemoLoop, play},
    plot::Glyphs,
    report::{INTRO, NEXT, PlayedRuns},
    run_stats::PlayedRun,
};
use crate::{
    args::DemoArgs,
    display::{
        columns,
        style::{Colours, Painter},
    },
    output,
};

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if args.ui {
        return live::run(args);
    }
    if args.json {
        let played = perform(&mut |_| Ok(()))?;
        let modes = json!({ "snapshot": played.snapshot.as_json(), "history": played.history.as_json() });
        return output::print_json(&json!({ "modes": modes, "plain": played.plain.as_json() }));
    }
    output::print(&format!("{}\n{INTRO}", opening::play()?))?;
    let played = perform(&mut output::print)?;
    let painter = Painter { width: columns(), colours: Colours::On };
    let (table, plots) = (report::table(&played, painter), report::plots(&played, painter, glyphs()));
    output::print(&format!("\n{table}\n{plots}\n{NEXT}"))
}

fn perform(say: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<PlayedRuns> {
    let mut one = |name: &str, demo_loop: DemoLoop| {
        say(&format!("  {name:<56}"))?;
        let played = play(demo_loop)?;
        say(&format!("{:>3} turns, {:.1} s\n", played.stats.prompts.len(), played.time.as_secs_f64()))?;
        anyhow::Ok(played)
    };
    let plain = one("plain loop: does as told, sums up when it gets long", DemoLoop::Plain)?;
    let history = one("Surehand, history: the prompt is the conversation", DemoLoop::Surehand(ContextMode::History))?;
    let snapshot = one("Surehand, snapshot: the prompt is the present", DemoLoop::Surehand(ContextMode::Snapshot))?;
    promised("history", &history)?;
    promised("snapshot", &snapshot)?;
    Ok(PlayedRuns { plain, history, snapshot })
}

fn promised(mode: &str, played: &PlayedRun) -> anyhow::Result<()> {
    ensure!(played.is_done, "{mode}: the story was not brought to its end");
    ensure!(played.kept.lost == 0, "{mode}: changes of other programs were lost: {}", played.kept.lost);
    ensure!(
        played.kept.saved == story::OUTSIDE.len(),
        "{mode}: not all changes of other programs were made: {}",
        played.kept.saved
    );
    for (path, times) in &played.stats.writes {
        ensure!(*times == 1, "{path}: written more than once in mode {mode}: {times}");
    }
    Ok(())
}

/// The characters that the terminal can show. Without a locale, UTF-8 is assumed.
fn glyphs() -> Glyphs {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    glyphs_for(variable("TERM").as_deref(), locale.as_deref())
}

fn glyphs_for(term: Option<&str>, locale: Option<&str>) -> Glyphs {
    let is_utf8 = |locale: &str| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    if term == Some("dumb") || locale.is_some_and(|locale| !is_utf8(locale)) { Glyphs::Ascii } else { Glyphs::Blocks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_for_terminals_that_can_show_them() {
        for (term, locale, expected) in [
            (Some("xterm-256color"), Some("en_GB.UTF-8"), Glyphs::Blocks),
            (Some("xterm"), Some("C.utf8"), Glyphs::Blocks),
            (None, None, Glyphs::Blocks),
            (Some("xterm"), Some("C"), Glyphs::Ascii),
            (Some("dumb"), Some("en_GB.UTF-8"), Glyphs::Ascii),
        ] {
            assert_eq!(glyphs_for(term, locale), expected, "{term:?} {locale:?}");
        }
    }
}
