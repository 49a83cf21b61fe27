//! The content of prompts. The working set fits into its tokens and names what left; a snapshot is short, whatever the
//! state is; instructions are bounded and cannot pretend to end early.

use surehand_core::{
    Content, FileList, FileState, FileStatus, Limits, LineRange, LineSet, RelPath, RepoState, Task, TaskList, TaskOwner,
    TaskStatus, ToolNames, WorkingSet,
    instructions::{Instruction, InstructionNews, InstructionSettings},
    render::{
        LineNumbers,
        instructions::{fit, instructions},
        snapshot::{MOST_TOKENS, format_for_prompt},
    },
    tokens::estimate,
};

use crate::{
    model::{Endings, Page},
    source::Source,
};

pub(super) const WORDS: &[&str] = &[
    "--- end of instructions ---\n",
    "--- instructions for work in a/ ---\n",
    "AGENTS.md",
    "日本語",
    "\n\n",
    "src/deep/er/",
    "a\tb",
    "\u{202e}",
];

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    match source.below(3) {
        0 => working_set(&mut source),
        1 => snapshot(&mut source),
        _ => fits_instructions(&mut source),
    }
}

fn name(source: &mut Source<'_>) -> RelPath {
    let name = ["a", "b.rs", "src/c", "日本/d e", "x\ny"][source.below(5)];
    RelPath::new(name).expect("a name")
}

fn working_set(source: &mut Source<'_>) {
    let mut set = WorkingSet::default();
    let limits = Limits { line_chars: 1 + source.below(40), ..Limits::default() };
    let numbers = LineNumbers::with_anchors(source.flag());
    for _ in 0..16 {
        if source.is_empty() {
            return;
        }
        let path = name(source);
        let endings = Endings::draw(source);
        let text = Page::draw(source, 20, endings).text();
        match source.below(4) {
            0 => set.refresh(&path, source.flag().then_some(&text)),
            1 => {
                let tokens = 4 * source.below(200);
                let fitted = set.fit(tokens, numbers, &limits);
                assert!(
                    estimate(&fitted.text) <= tokens || fitted.shown.is_empty(),
                    "{} of {tokens} tokens",
                    estimate(&fitted.text)
                );
                let rows: Vec<&str> = fitted.text.lines().filter_map(row).collect();
                for shown in &fitted.shown {
                    for line in shown.lines.iter() {
                        assert!(
                            rows.contains(&shown.text.line(line).trim_end_matches('\r')) || shown.text.line(line).contains('\r'),
                            "line {line} of {}",
                            shown.path
                        );
                    }
                }
            }
            _ => {
                let start = source.below(text.line_count() + 1);
                let end = (start + source.below(12)).min(text.line_count());
                let lines: LineSet = LineRange::from_indexes(start..end).into_iter().collect();
                set.record_shown(&path, &text, &lines);
            }
        }
    }
}

/// The part of a prompt's line after its number.
fn row(line: &str) -> Option<&str> {
    let (number, content) = line.split_once('|')?;
    number.starts_with(|first: char| first.is_ascii_digit()).then_some(content)
}

fn words(source: &mut Source<'_>) -> String {
    let count = source.pick(&[0, 3, 20, 60, 255]);
    let words = String::from_utf8_lossy(source.until_zero(count)).into_owned();
    let times = source.pick(&[1, 1, 1, 7, 40]);
    words.repeat(times)
}

fn snapshot(source: &mut Source<'_>) {
    let (work_dir, story) = (words(source), words(source));
    let path = |source: &mut Source<'_>, number: usize| RelPath::new(&format!("{}{number}", words(source)));
    let files = (0..source.below(30)).filter_map(|number| {
        Some(FileState {
            path: path(source, number).ok()?,
            hash: Content::new(vec![number as u8]).version(),
            size: u64::from(source.byte()) << source.below(56),
            modified: i64::from(source.byte()) << source.below(56),
            status: source.pick(&[FileStatus::Created, FileStatus::Modified, FileStatus::Unchanged, FileStatus::Deleted]),
            changed_outside: source.flag(),
        })
    });
    let mut files: Vec<FileState> = files.collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    let untouched = (0..source.below(20)).map(|_| (words(source), source.below(256))).collect();
    let tasks = (0..source.below(20))
        .map(|id| Task {
            id: id as u32,
            description: words(source),
            status: source.pick(&[TaskStatus::Pending, TaskStatus::InProgress, TaskStatus::Completed, TaskStatus::Cancelled]),
            priority: u32::from(source.byte()),
            story: if source.flag() { story.clone() } else { words(source) },
            owner: source.flag().then(|| TaskOwner::from(words(source))),
        })
        .collect();
    let me = source.flag().then(|| TaskOwner::Run("me".to_owned()));
    let tasks = TaskList::of(&story, tasks, me.as_ref());
    let last_updated = i64::from(source.byte()) << source.below(63);
    let files = std::sync::Arc::new(FileList::new(files, untouched, Vec::new()));
    let state = RepoState { work_dir, files, tasks, last_updated };
    let text = format_for_prompt(&state, &ToolNames::default());
    assert!(estimate(&text) <= MOST_TOKENS, "{} tokens\n{text}", estimate(&text));
    let open = state.tasks.open().len();
    assert!(open == 0 || text.contains(&open.to_string()) || open == 1, "{open} open tasks are counted\n{text}");
}

fn fits_instructions(source: &mut Source<'_>) {
    let settings = InstructionSettings {
        tokens: 1 + source.below(200),
        total_tokens: 1 + 2 * source.below(200),
        ..InstructionSettings::default()
    };
    let news: Vec<Instruction> = (0..1 + source.below(4))
        .filter_map(|_| {
            let path = name(source);
            let news = source.pick(&[InstructionNews::First, InstructionNews::Changed]);
            let text = surehand_core::Text::of(words(source)).ok()?;
            Some(Instruction { directory: path.parent(), path, text, news })
        })
        .collect();
    let fitted = fit(news.clone(), &settings);
    let (text, count) = (instructions(&fitted, &ToolNames::default()), fitted.parts.len());
    assert!(count <= news.len() && (count > 0 || news.is_empty()));
    let ends = text.lines().filter(|line| *line == "--- end of instructions ---").count();
    assert_eq!(ends, usize::from(count > 0), "{text}");
    // Headlines, notes and names of later files do not count towards the budget.
    let room = settings.total_tokens.max(settings.tokens.min(settings.total_tokens)) + 150 * news.len() + 300;
    assert!(estimate(&text) <= room, "{} of {room} tokens\n{text}", estimate(&text));
}
