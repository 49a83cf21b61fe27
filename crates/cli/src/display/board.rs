//! The board as text.

use surehand_engine::{
    core::{LineRange, TaskStatus, render::collision::collision},
    fleet::{AgentEntry, ChangeEntry, FleetOverview, IdOrigin, StoryEntry},
};

use crate::{
    local_paths::LocalPaths,
    output::{ago, span},
};

/// The number of lines that are shown of each part.
const MOST: usize = 20;
const MOST_HEADLINES: usize = 8;

pub(crate) fn as_text(board: &FleetOverview, local_paths: &LocalPaths) -> String {
    let mut text = head(board);
    text.push_str(&part("Agents", board.agents.iter().map(agent_line)));
    let claim = |claim: &surehand_engine::fleet::ClaimEntry| {
        format!(
            "{}  {}, for another {}",
            local_paths.shown(claim.pattern.as_str()),
            claim.by,
            span(claim.lasts.max(0) as u64 / 1000)
        )
    };
    text.push_str(&part("Claims", board.claims.iter().map(claim)));
    text.extend(board.stories.iter().map(story));
    text.push_str(&part("Changes since the fork point", board.changes.iter().map(|change| change_line(change, local_paths))));
    text.push_str(&part("Forecast", board.forecasts.iter().filter_map(collision).collect::<Vec<_>>().into_iter()));
    let skipped = board.headlines.len().saturating_sub(MOST_HEADLINES);
    let headline = |posted: &surehand_engine::store::board::PostedHeadline| {
        let by = posted.headline.agent.as_ref().map(|agent| name_of(board, &agent.0)).unwrap_or_default();
        format!("{by}: {}", posted.headline.summary)
    };
    text.push_str(&part("Last headlines", board.headlines.iter().skip(skipped).map(headline)));
    text
}

fn head(board: &FleetOverview) -> String {
    let id = &board.repository.id.0;
    let age = board.age.map_or("never read".to_owned(), |age| format!("read {}", ago(age)));
    let mut text = format!("Board of repository {id}\non {}, {age}\n", board.place);
    if board.repository.origin == IdOrigin::Random {
        text.push_str("Other clones join it with `surehand board join ID`.\n");
    }
    text.extend(board.trouble.iter().map(|trouble| format!("\x1b[33mnot current\x1b[0m: {trouble}\n")));
    text
}

fn part(title: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let all = lines.len();
    if all == 0 {
        return String::new();
    }
    let mut text = format!("\n{title}\n");
    text.extend(lines.take(MOST).map(|line| format!("  {line}\n")));
    if all > MOST {
        text.push_str(&format!("  and {} more (surehand board --json lists all)\n", all - MOST));
    }
    text
}

fn agent_line(agent: &AgentEntry) -> String {
    let place = if agent.here { "here".to_owned() } else { format!("{}:{}", agent.host, agent.root) };
    let mut facts = vec![place];
    facts.extend(agent.branch.iter().map(|branch| format!("branch {branch}")));
    facts.extend(agent.story.iter().map(|story| format!("story {story:?}")));
    if !agent.tasks.is_empty() {
        let ids: Vec<String> = agent.tasks.iter().map(ToString::to_string).collect();
        facts.push(format!("task {}", ids.join(", ")));
    }
    facts.push(if agent.alive { "alive".to_owned() } else { format!("gone, seen {}", ago(agent.seen_ago)) });
    format!("\x1b[33m{}\x1b[0m  {}", agent.name, facts.join(", "))
}

fn story(story: &StoryEntry) -> String {
    let name = if story.story.is_empty() { "Tasks".to_owned() } else { format!("Tasks of story {:?}", story.story) };
    let (open, closed): (Vec<_>, Vec<_>) =
        story.tasks.iter().partition(|task| matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress));
    let lines = open.iter().map(|task| {
        let by = match (&task.by, task.abandoned) {
            (Some(by), false) => format!(" ({by})"),
            (Some(by), true) => format!(" ({by} is gone; it is free)"),
            (None, _) => String::new(),
        };
        format!("{}. {}{by}", task.id, task.description)
    });
    let done = if closed.is_empty() { String::new() } else { format!(", {} closed", closed.len()) };
    match open.len() {
        0 => format!("\n{name}: none is open{done}\n"),
        _ => part(&format!("{name}{done}"), lines),
    }
}

fn change_line(change: &ChangeEntry, local_paths: &LocalPaths) -> String {
    let lines: Vec<String> = change.lines.iter().map(range).collect();
    let what = match change.kind {
        "lines" if lines.is_empty() => " lines removed".to_owned(),
        "lines" => format!(" {}", lines.join(", ")),
        other => format!(" ({other})"),
    };
    let by = change.by.as_ref().map(|by| format!("  {by}")).unwrap_or_default();
    match change.here {
        true => format!("{}{what}{by}", local_paths.shown(change.path.as_str())),
        false => format!("{}:{}/{}{what}{by}", change.host, change.root, change.path),
    }
}

fn range(lines: &LineRange) -> String {
    if lines.start == lines.end { lines.start.to_string() } else { format!("{}-{}", lines.start, lines.end) }
}

fn name_of(board: &FleetOverview, agent: &str) -> String {
    let known = board.agents.iter().find(|known| known.session.0 == agent);
    known.map_or_else(|| agent.chars().take(20).collect(), |known| known.name.clone())
}
