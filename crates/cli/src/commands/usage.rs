//! `surehand usage`: the stored data, and its size.

use serde_json::{Value, json};
use surehand_adapters::session_roots::{SessionRoots, SessionRootsUsage};
use surehand_engine::{
    RESCUED,
    core::render::count,
    store::{KeptAmount, StoreUsage},
    usage::{BoardUsage, CheckoutUsage, StateUsage, TreePresence, boards, state_directories},
};

use crate::{args::UsageArgs, hook_log, output, user_dirs, workspace};

pub(crate) fn run(args: &UsageArgs) -> anyhow::Result<()> {
    let (json, text) = if args.all { all()? } else { here(args)? };
    if args.state.json { output::print_json(&json) } else { output::print(&text) }
}

/// The data stored for the repository around the current directory.
fn here(args: &UsageArgs) -> anyhow::Result<(Value, String)> {
    let workspace = workspace::open_read_only(&args.state.place)?;
    let Some(usage) = workspace.usage()? else {
        let text = format!("Nothing is stored for {}.\n", workspace.path().display());
        return Ok((json!({ "bytes": 0, "repositories": [] }), text));
    };
    let limit = format!(
        "Limits: versions, changes and checkpoints {} (versions.bytes), {} days of use (versions.days).\n",
        size(workspace.config().versions.bytes),
        workspace.config().versions.days
    );
    let text = in_full(&usage) + &limit + "surehand clean removes the parts that you select.\n";
    Ok((json!({ "bytes": usage.bytes, "repositories": [state_as_json(&usage)] }), text))
}

/// The data stored for the user, including repositories that are gone.
fn all() -> anyhow::Result<(Value, String)> {
    let home = user_dirs::state_home()?;
    let sessions = SessionRoots::usage(&home)?;
    let mut states = Vec::new();
    let mut unreadable = Vec::new();
    for path in state_directories(&home, &sessions.roots)? {
        match StateUsage::of(&path) {
            Ok(usage) => states.extend(usage),
            Err(error) => unreadable.push((path, error.to_string())),
        }
    }
    states.sort_by_key(|usage| std::cmp::Reverse(usage.bytes));
    let boards = boards(&home)?;
    let log = hook_log::size();
    let bytes = states.iter().map(|usage| usage.bytes).sum::<u64>()
        + boards.iter().map(|board| board.bytes).sum::<u64>()
        + sessions.records.bytes
        + log;
    let json = json!({
        "bytes": bytes,
        "repositories": states.iter().map(state_as_json).collect::<Vec<_>>(),
        "unreadable": unreadable.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect::<Vec<_>>(),
        "boards": boards.iter().map(board_as_json).collect::<Vec<_>>(),
        "sessions": { "count": sessions.records.count, "bytes": sessions.records.bytes, "gone": sessions.gone.count },
        "hook_log": log,
    });
    let mut text: String = states.iter().map(in_a_line).collect();
    for (path, why) in &unreadable {
        text.push_str(&format!("{:>9}  {}: {why}\n", "?", path.display()));
    }
    text.push_str(&boards.iter().map(board_line).collect::<String>());
    text.push_str(&session_line(&sessions));
    if log > 0 {
        text.push_str(&format!("{:>9}  the log of hooks that failed\n", size(log)));
    }
    if text.is_empty() {
        return Ok((json, "Nothing is stored.\n".to_owned()));
    }
    text.push_str(&format!("{:>9}  in all\n", size(bytes)));
    let has_gone = states.iter().any(|usage| of_gone(usage).count > 0) || boards.iter().any(BoardUsage::is_gone);
    if has_gone || sessions.gone.count > 0 {
        text.push_str("surehand clean --gone removes the data of work trees that are gone.\n");
    }
    text.push_str(
        "A repository that keeps its state in .git is listed if an agent with hooks worked there in the last 30 days.
",
    );
    Ok((json, text))
}

/// A repository, with all data that is stored for it.
fn in_full(usage: &StateUsage) -> String {
    let mut text = format!("{}  {}\n", usage.path.display(), size(usage.bytes));
    let mut row = |name: &str, amount: KeptAmount, what: &str| {
        let note = if what.is_empty() { String::new() } else { format!("  {what}") };
        text.push_str(&format!("  {name:<16} {:>7}  {:>9}{note}\n", amount.count, size(amount.bytes)));
    };
    let mut known = 0;
    match &usage.store {
        Ok(store) => {
            for (name, amount, what) in rows(store) {
                known += amount.bytes;
                row(name, amount, what);
            }
            let views = count(usize::try_from(store.views.count).unwrap_or_default(), "file");
            row("sessions", KeptAmount { count: store.sessions, bytes: store.views.bytes }, &format!("with views of {views}"));
            known += store.views.bytes;
        }
        Err(why) => row("database", KeptAmount::default(), &format!("cannot be read: {why}")),
    }
    for (name, part, what) in PARTS {
        known += usage.part(part).bytes;
        row(name, usage.part(part), what);
    }
    text.push_str(&format!(
        "  {:<16} {:>7}  {:>9}  indexes, locks, free space in the database\n",
        "other",
        "",
        size(usage.bytes.saturating_sub(known))
    ));
    for checkout in usage.checkouts.iter().filter(|checkout| checkout.presence != TreePresence::There) {
        text.push_str(&format!("  {}\n", gone_line(checkout)));
    }
    text
}

/// The directories of a checkout that are listed one by one.
const PARTS: [(&str, &str, &str); 3] = [
    ("rescued files", RESCUED, "see surehand rescued"),
    ("runs", "runs", "of surehand run"),
    ("staged files", "staged", "of edits that are being made"),
];

fn rows(store: &StoreUsage) -> [(&'static str, KeptAmount, &'static str); 4] {
    [
        ("versions", store.versions, "contents of files, for undo and restore"),
        ("changes", store.changes, ""),
        ("checkpoints", store.checkpoints, ""),
        ("other log entries", store.incidents, ""),
    ]
}

fn gone_line(checkout: &CheckoutUsage) -> String {
    let why = match checkout.presence {
        TreePresence::SetAside => "state of another tree that was here before, moved aside",
        TreePresence::Gone | TreePresence::There => "a work tree that is gone",
    };
    format!("{} ({}): {why}, {}", checkout.name, checkout.root.display(), size(checkout.bytes))
}

fn in_a_line(usage: &StateUsage) -> String {
    let roots: Vec<String> = usage.checkouts.iter().map(|checkout| checkout.root.display().to_string()).collect();
    let name = match (usage.checkouts.iter().find(|checkout| checkout.name == "main"), roots.first()) {
        (Some(main), _) => main.root.display().to_string(),
        (None, Some(first)) => first.clone(),
        (None, None) => usage.path.display().to_string(),
    };
    let gone = of_gone(usage);
    let gone = match usage.is_gone() {
        true => " (gone)".to_owned(),
        false if gone.count == 1 => format!(" (one of its work trees is gone: {})", size(gone.bytes)),
        false if gone.count > 1 => format!(" ({} of its work trees are gone: {})", gone.count, size(gone.bytes)),
        false => String::new(),
    };
    let trouble = usage.store.as_ref().err().map(|why| format!(" (its database cannot be read: {why})")).unwrap_or_default();
    format!("{:>9}  {name}{gone}{trouble}\n", size(usage.bytes))
}

/// The data stored for work trees that are gone.
fn of_gone(usage: &StateUsage) -> KeptAmount {
    let gone = usage.checkouts.iter().filter(|checkout| checkout.presence != TreePresence::There);
    let (count, bytes) = gone.fold((0, 0), |(count, bytes), checkout| (count + 1, bytes + checkout.bytes));
    KeptAmount { count, bytes }
}

fn board_line(board: &BoardUsage) -> String {
    let of = match &board.roots {
        Ok(roots) if roots.is_empty() => "a board without checkouts".to_owned(),
        Ok(roots) => {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            format!("the board of {}", output::first_names(&roots, 1))
        }
        Err(why) => format!("a board that cannot be read: {why}"),
    };
    let gone = if board.is_gone() { " (gone)" } else { "" };
    format!("{:>9}  {of}{gone}\n", size(board.bytes))
}

fn session_line(sessions: &SessionRootsUsage) -> String {
    if sessions.records.count == 0 {
        return String::new();
    }
    let number = |count: u64| usize::try_from(count).unwrap_or_default();
    let gone = match sessions.gone.count {
        0 => String::new(),
        gone => format!(", {gone} of them in work trees that are gone"),
    };
    let records = count(number(sessions.records.count), "session");
    format!("{:>9}  where {records} worked{gone}\n", size(sessions.records.bytes))
}

/// `512 bytes`, `1.5 MB`
pub(super) fn size(bytes: u64) -> String {
    let units = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (unit, one) = units.into_iter().rev().find(|(_, one)| bytes as f64 >= *one * 0.9995).unwrap_or(units[0]);
    let number = bytes as f64 / one;
    if number < 99.95 { format!("{number:.1} {unit}") } else { format!("{number:.0} {unit}") }
}

pub(super) fn amount_as_json(amount: KeptAmount) -> Value {
    json!({ "count": amount.count, "bytes": amount.bytes })
}

fn state_as_json(usage: &StateUsage) -> Value {
    let checkout = |checkout: &CheckoutUsage| {
        let part = |name: &str| amount_as_json(checkout.parts.get(name).copied().unwrap_or_default());
        json!({
            "checkout": checkout.name,
            "root": checkout.root,
            "is": match checkout.presence {
                TreePresence::There => "there",
                TreePresence::Gone => "gone",
                TreePresence::SetAside => "set_aside",
            },
            "bytes": checkout.bytes,
            "rescued": part(RESCUED),
            "runs": part("runs"),
            "staged": part("staged"),
        })
    };
    let mut object = json!({
        "path": usage.path,
        "bytes": usage.bytes,
        "gone": usage.is_gone(),
        "checkouts": usage.checkouts.iter().map(checkout).collect::<Vec<_>>(),
    });
    match &usage.store {
        Ok(store) => {
            for (name, amount) in [
                ("versions", store.versions),
                ("changes", store.changes),
                ("checkpoints", store.checkpoints),
                ("other_entries", store.incidents),
                ("views", store.views),
            ] {
                object[name] = amount_as_json(amount);
            }
            object["sessions"] = store.sessions.into();
        }
        Err(why) => object["unreadable"] = why.as_str().into(),
    }
    object
}

fn board_as_json(board: &BoardUsage) -> Value {
    json!({
        "path": board.path,
        "bytes": board.bytes,
        "roots": board.roots.as_ref().ok(),
        "unreadable": board.roots.as_ref().err(),
        "gone": board.is_gone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_a_unit() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (99_949, "99.9 kB"),
            (99_960, "100 kB"),
            (999_400, "999 kB"),
            (999_600, "1.0 MB"),
            (1_234_567_890, "1.2 GB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }
}
