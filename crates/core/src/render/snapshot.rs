//! Renders the state of a repository in less than 500 tokens, however large it is: first the open tasks, then the most
//! important files. Everything that does not fit is counted. [`crate::tokens`] estimates tokens.

use std::borrow::Cow;

use crate::{
    file_kind::kind_of,
    file_list::{Overview, directory, first},
    render::{
        count,
        cut::{cut, on_one_line, shorten},
        tasks::belongs_to,
    },
    repo_state::{FileState, FileStatus, RepoState, Task, TaskList},
    timestamp::rfc3339_seconds,
    tokens::estimate,
    tool::ToolNames,
};

/// The maximum number of tokens of a snapshot.
pub const MOST_TOKENS: usize = 499;

/// The least number of tokens to which every snapshot can be reduced.
pub const LEAST_TOKENS: usize = 250;

/// The state for a prompt: workspace, story, open tasks, files, time.
///
/// If room is short, open tasks come first, then files that another writer changed since they were read, then the files
/// modified last. All other files are counted by directory. Equal states give equal texts.
pub fn format_for_prompt(state: &RepoState, names: &ToolNames) -> String {
    let SnapshotText { tasks, files } = snapshot(state, names);
    tasks + &files
}

/// The state for a prompt in two parts, which a prompt may place separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotText {
    /// The workspace, the story and the tasks.
    pub tasks: String,
    /// The files and the time of the last update.
    pub files: String,
}

/// The two parts of [`format_for_prompt`].
pub fn snapshot(state: &RepoState, names: &ToolNames) -> SnapshotText {
    snapshot_within(state, names, MOST_TOKENS)
}

/// The two parts with at most `tokens` tokens, but no fewer than [`LEAST_TOKENS`].
pub fn snapshot_within(state: &RepoState, names: &ToolNames, tokens: usize) -> SnapshotText {
    let files = SnapshotFiles::of(state);
    let time = format!("Updated {}\n", rfc3339_seconds(state.last_updated));
    let mut page = SnapshotPage { text: String::new(), room: tokens.max(LEAST_TOKENS) - estimate(&time) };
    page.put("Repository state");
    page.put(&format!("Workspace: {}", shorten(&on_one_line(&state.work_dir), LONG)));
    let story = on_one_line(&state.tasks.story);
    if !story.is_empty() {
        page.put(&format!("Story: {}", cut(&story, LONG)));
    }
    put_tasks(&mut page, &state.tasks, files.least_tokens(), names);
    let tasks = std::mem::take(&mut page.text);
    files.put(&mut page);
    SnapshotText { tasks, files: page.text + &time }
}

/// The maximum number of tokens of a task's text if there is room for all tasks, and if there is not.
const LONG: usize = 50;
const SHORT: usize = 16;

/// A text, and the tokens left for more lines. Tokenizers always split between our lines, because no line starts with a
/// slash or white space, or ends with a blank. So the tokens of a text are the sum of its lines' tokens.
struct SnapshotPage {
    text: String,
    room: usize,
}

impl SnapshotPage {
    fn put(&mut self, line: &str) {
        self.room = self.room.saturating_sub(cost(line));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn has_room(&self, line: &str, keep: usize) -> bool {
        cost(line) + keep <= self.room
    }
}

/// The tokens of a line including its line break.
fn cost(line: &str) -> usize {
    estimate(&format!("{line}\n"))
}

fn put_tasks(page: &mut SnapshotPage, list: &TaskList, keep: usize, names: &ToolNames) {
    let (open, done) = (list.open(), list.tasks.len() - list.open().len());
    if list.is_done() {
        let finish = names.done().map(|done| format!(": call `{done}`")).unwrap_or_default();
        page.put(&format!("All tasks are done ({done} of {done}){finish}."));
    } else if open.is_empty() {
        page.put("No tasks.");
    } else {
        page.put(&format!("Open tasks: {} ({done} done)", open.len()));
        put_open_tasks(page, &open, keep);
    }
    put_tasks_of_others(page, &list.of_others, keep);
}

fn put_open_tasks(page: &mut SnapshotPage, open: &[&Task], keep: usize) {
    let room = page.room.saturating_sub(keep);
    let all = [LONG, SHORT].into_iter().find_map(|tokens| {
        let lines = as_many_as_fit(open.iter().map(|task| task_line(task, tokens)), room);
        (lines.len() == open.len()).then_some(lines)
    });
    if let Some(lines) = all {
        lines.iter().for_each(|line| page.put(line));
        return;
    }
    let more = |listed: usize| format!("… and {}", count(open.len() - listed, "more open task"));
    let lines = as_many_as_fit(open.iter().map(|task| task_line(task, SHORT)), room.saturating_sub(cost(&more(0))));
    lines.iter().for_each(|line| page.put(line));
    page.put(&more(lines.len()));
}

/// Some of the other owners' tasks, if there is room.
fn put_tasks_of_others(page: &mut SnapshotPage, tasks: &[Task], keep: usize) {
    const FEW: usize = 3;
    let heading = format!("Of other stories and runs, not to be done here: {}", count(tasks.len(), "open task"));
    if tasks.is_empty() || !page.has_room(&heading, keep) {
        return;
    }
    page.put(&heading);
    let line = |task: &Task| format!("{} ({})", task_line(task, SHORT), cut(&on_one_line(&belongs_to(task)), LONG));
    let lines = as_many_as_fit(tasks.iter().take(FEW).map(line), page.room.saturating_sub(keep));
    lines.iter().for_each(|line| page.put(line));
}

/// A task with at most `tokens` tokens of its text.
fn task_line(task: &Task, tokens: usize) -> String {
    let line = format!("{}. [{}] {}", task.id, task.status.name(), cut(&on_one_line(&task.description), tokens));
    line.trim_end().to_owned()
}

fn as_many_as_fit(lines: impl Iterator<Item = String>, room: usize) -> Vec<String> {
    let with_sum = lines.scan(0, |sum, line| {
        *sum += cost(&line);
        Some((line, *sum))
    });
    with_sum.take_while(|(_, sum)| *sum <= room).map(|(line, _)| line).collect()
}

/// The files of a state that may get a line of their own, and the number of files in each directory.
struct SnapshotFiles<'a> {
    overview: &'a Overview,
    directories: Vec<Directory<'a>>,
}

/// The files directly in a directory.
#[derive(Debug, Clone, Copy)]
struct Directory<'a> {
    /// The path with a trailing slash; empty for the root.
    path: &'a str,
    files: usize,
    /// The number of its files that have a line of their own.
    listed: usize,
}

impl Directory<'_> {
    fn left(&self) -> usize {
        self.files - self.listed
    }
}

impl<'a> SnapshotFiles<'a> {
    fn of(state: &'a RepoState) -> Self {
        let overview = state.files.overview();
        let directory = |(path, files): &'a (String, usize)| Directory { path, files: *files, listed: 0 };
        Self { overview, directories: overview.directories.iter().map(directory).collect() }
    }

    fn heading(&self) -> String {
        if self.overview.total == 0 {
            return "No files.".to_owned();
        }
        let mut heading = format!("Files: {}", self.overview.total - self.overview.deleted);
        if self.overview.deleted > 0 {
            heading.push_str(&format!(" and {} deleted", self.overview.deleted));
        }
        if self.overview.changed_outside > 0 {
            heading.push_str(&format!(", of which {} changed outside since read", self.overview.changed_outside));
        }
        heading
    }

    /// The tokens of the shortest form: the heading and a count.
    fn least_tokens(&self) -> usize {
        cost(&self.heading()) + cost(&rest(self.overview.total, self.directories.len()))
    }

    fn put(mut self, page: &mut SnapshotPage) {
        page.put(&self.heading());
        let lines = as_many_as_fit(self.overview.first.iter().map(file_line), page.room);
        if lines.len() == self.overview.total {
            lines.iter().for_each(|line| page.put(line));
            return;
        }
        let listed = self.put_first(page, &lines);
        for file in &self.overview.first[..listed] {
            let at = self.directories.binary_search_by_key(&directory(file), |directory| directory.path);
            self.directories[at.expect("every file is in a directory")].listed += 1;
        }
        self.directories.retain(|directory| directory.left() > 0);
        self.directories = rolled_up(self.directories);
        self.put_directories(page);
    }

    /// Keeps a third of the room free of files that are merely recent, so that directories can be listed too.
    fn put_first(&self, page: &mut SnapshotPage, lines: &[String]) -> usize {
        let rest = cost(&rest(self.overview.total, self.directories.len()));
        let share = page.room.saturating_sub(rest) / 3;
        for (listed, (file, line)) in self.overview.first.iter().zip(lines).enumerate() {
            let keep = if file.changed_outside { rest } else { rest + share };
            if !page.has_room(line, keep) {
                return listed;
            }
            page.put(line);
        }
        lines.len()
    }

    fn put_directories(&self, page: &mut SnapshotPage) {
        let left = || self.directories.iter().filter(|directory| directory.left() > 0);
        let (mut files, mut directories) = (left().map(Directory::left).sum::<usize>(), left().count());
        let order = |a: &&Directory<'_>, b: &&Directory<'_>| b.left().cmp(&a.left()).then_with(|| a.path.cmp(b.path));
        for directory in first(left(), MOST_DIRECTORY_LINES, order) {
            let line = directory_line(directory);
            let keep = if directories == 1 { 0 } else { cost(&rest(files, directories)) };
            if !page.has_room(&line, keep) {
                break;
            }
            page.put(&line);
            files -= directory.left();
            directories -= 1;
        }
        if files > 0 {
            page.put(&rest(files, directories));
        }
    }
}

/// More directory lines than this never fit.
const MOST_DIRECTORY_LINES: usize = 64;

/// More directories than this are merged into their parents, as deep as the limit allows.
const MOST_DIRECTORIES: usize = 20;

/// Sorted directories, merged into their parents if there are too many.
fn rolled_up(directories: Vec<Directory<'_>>) -> Vec<Directory<'_>> {
    if directories.len() <= MOST_DIRECTORIES {
        return directories;
    }
    let at = |depth: usize| {
        let is_same = move |a: &Directory<'_>, b: &Directory<'_>| top(a.path, depth) == top(b.path, depth);
        directories.chunk_by(is_same).map(move |inside| Directory {
            path: top(inside[0].path, depth),
            files: inside.iter().map(|directory| directory.files).sum(),
            listed: inside.iter().map(|directory| directory.listed).sum(),
        })
    };
    let fits = |depth: &usize| at(*depth).take(MOST_DIRECTORIES + 1).count() <= MOST_DIRECTORIES;
    let depth = (1..MOST_DIRECTORIES).take_while(fits).last().unwrap_or(1);
    at(depth).collect()
}

/// The directory, or its parent at this depth.
fn top(path: &str, depth: usize) -> &str {
    let end = path.match_indices('/').nth(depth - 1).map_or(path.len(), |(at, _)| at + 1);
    &path[..end]
}

fn rest(files: usize, directories: usize) -> String {
    let directories = if directories == 1 { "1 directory".to_owned() } else { format!("{directories} directories") };
    format!("… and {} in {directories}", count(files, "more file"))
}

fn directory_line(directory: &Directory<'_>) -> String {
    let path = if directory.path.is_empty() { Cow::Borrowed("./") } else { shorten_path(directory.path) };
    let noun = if directory.listed == 0 { "file" } else { "more file" };
    format!("{path}: {}", count(directory.left(), noun))
}

fn file_line(file: &FileState) -> String {
    let path = shorten_path(file.path.as_str());
    let status = match file.status {
        FileStatus::Created => ", created",
        FileStatus::Modified => ", modified",
        FileStatus::Unchanged => "",
        FileStatus::Deleted => ", deleted",
    };
    let outside = if file.changed_outside { ", changed outside since read" } else { "" };
    format!("{path} {} {} bytes {}{status}{outside}", file.hash.short(), file.size, kind_of(&file.path))
}

/// A path as shown at the start of a line. It is quoted if it contains control characters or has blanks at its ends.
fn shorten_path(path: &str) -> Cow<'_, str> {
    let is_plain = !path.chars().any(char::is_control) && path.trim() == path;
    if is_plain { shorten(path, LONG) } else { Cow::Owned(shorten(&format!("{path:?}"), LONG).into_owned()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use insta::assert_snapshot;
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::{
        file_list::FileList,
        hash::ContentHash,
        path::RelPath,
        repo_state::{TaskOwner, TaskStatus},
        timestamp::Millis,
    };

    fn real(text: &str) -> usize {
        bpe_openai::o200k_base().count(text)
    }

    fn file(path: &str, size: u64, modified: Millis, status: FileStatus) -> FileState {
        let hash = ContentHash::of(path.as_bytes());
        FileState { path: RelPath::new(path).unwrap(), hash, size, modified, status, changed_outside: false }
    }

    fn task(id: u32, description: &str, status: TaskStatus) -> Task {
        Task { id, description: description.to_owned(), status, priority: id, story: "PAY-214".to_owned(), owner: None }
    }

    fn state(files: Vec<FileState>, tasks: Vec<Task>) -> RepoState {
        let tasks = TaskList::of("PAY-214", tasks, None);
        let (work_dir, files) = ("/home/ann/shop".to_owned(), Arc::new(FileList::from(files)));
        RepoState { work_dir, files, tasks, last_updated: 1_767_323_045_678 }
    }

    /// Files of a medium-sized project: some code and many generated files.
    fn many(number: usize) -> Vec<FileState> {
        let area = |n: usize| match n % 10 {
            0 => "src/orders",
            1 => "src/payment/providers",
            2 => "tests",
            3..=7 => "src/generated/client/models",
            _ => "docs/decisions",
        };
        let path = |n: usize| format!("{}/part_{n}.{}", area(n), if n % 10 > 7 { "md" } else { "rs" });
        (0..number).map(|n| file(&path(n), 100 + n as u64 * 37, n as Millis, FileStatus::Unchanged)).collect()
    }

    #[track_caller]
    fn prompt(state: &RepoState) -> String {
        let text = format_for_prompt(state, &ToolNames::default().with_done("done"));
        assert!(real(&text) < 500, "{} tokens:\n{text}", real(&text));
        text
    }

    #[test]
    fn a_task_that_says_nothing_ends_its_line_without_a_blank() {
        let text = prompt(&state(Vec::new(), vec![task(7, "\u{1b}", TaskStatus::Pending)]));
        assert!(text.contains("7. [pending]\n"), "{text}");
    }

    #[test]
    fn nothing_yet() {
        let state = RepoState { tasks: TaskList::default(), ..state(vec![], vec![]) };
        assert_snapshot!(prompt(&state), @"
        Repository state
        Workspace: /home/ann/shop
        No tasks.
        No files.
        Updated 2026-01-02T03:04:05Z
        ");
    }

    #[test]
    fn three_files_and_two_tasks() {
        let mut files = vec![
            file("Cargo.toml", 412, 1, FileStatus::Unchanged),
            file("src/main.rs", 1204, 3, FileStatus::Modified),
            file("src/pay.rs", 88, 2, FileStatus::Created),
        ];
        files[0].changed_outside = true;
        let tasks = vec![
            task(1, "Read the specification", TaskStatus::Completed),
            task(2, "Write the tests for refunds", TaskStatus::Pending),
            task(3, "Move the provider behind\na trait", TaskStatus::InProgress),
        ];
        assert_snapshot!(prompt(&state(files, tasks)), @"
        Repository state
        Workspace: /home/ann/shop
        Story: PAY-214
        Open tasks: 2 (1 done)
        3. [in_progress] Move the provider behind a trait
        2. [pending] Write the tests for refunds
        Files: 3, of which 1 changed outside since read
        Cargo.toml 2e9d96 412 bytes toml, changed outside since read
        src/main.rs 42cb68 1204 bytes rust, modified
        src/pay.rs 1526fe 88 bytes rust, created
        Updated 2026-01-02T03:04:05Z
        ");
    }

    #[test]
    fn when_all_is_done_it_says_so_and_asks_for_done() {
        let tasks = vec![task(1, "Write it", TaskStatus::Completed), task(2, "Test it", TaskStatus::Completed)];
        let state = state(vec![file("old.rs", 10, 0, FileStatus::Deleted)], tasks);
        assert_snapshot!(prompt(&state), @"
        Repository state
        Workspace: /home/ann/shop
        Story: PAY-214
        All tasks are done (2 of 2): call `done`.
        Files: 0 and 1 deleted
        old.rs 69bcd6 10 bytes rust, deleted
        Updated 2026-01-02T03:04:05Z
        ");
    }

    #[test]
    fn done_needs_tasks_that_were_there() {
        let check = |tasks: Vec<Task>, expected: bool| assert_eq!(state(vec![], tasks).tasks.is_done(), expected);
        check(vec![], false);
        check(vec![task(1, "a", TaskStatus::Completed)], true);
        check(vec![task(1, "a", TaskStatus::Completed), task(2, "b", TaskStatus::InProgress)], false);
        check(vec![task(1, "a", TaskStatus::Pending)], false);
    }

    #[test]
    fn forty_files() {
        assert_snapshot!(prompt(&state(many(40), vec![task(1, "Rename the models", TaskStatus::Pending)])), @"
        Repository state
        Workspace: /home/ann/shop
        Story: PAY-214
        Open tasks: 1 (0 done)
        1. [pending] Rename the models
        Files: 40
        docs/decisions/part_39.md 87604b 1543 bytes markdown
        docs/decisions/part_38.md 75517d 1506 bytes markdown
        src/generated/client/models/part_37.rs 3e6cc7 1469 bytes rust
        src/generated/client/models/part_36.rs e598a7 1432 bytes rust
        src/generated/client/models/part_35.rs 753c60 1395 bytes rust
        src/generated/client/models/part_34.rs d1c538 1358 bytes rust
        src/generated/client/models/part_33.rs 8a3468 1321 bytes rust
        tests/part_32.rs 86f13d 1284 bytes rust
        src/payment/providers/part_31.rs 0f689f 1247 bytes rust
        src/orders/part_30.rs ae11dd 1210 bytes rust
        docs/decisions/part_29.md 142537 1173 bytes markdown
        docs/decisions/part_28.md 760a5c 1136 bytes markdown
        src/generated/client/models/part_27.rs d6ea53 1099 bytes rust
        src/generated/client/models/: 14 more files
        docs/decisions/: 4 more files
        src/orders/: 3 more files
        src/payment/providers/: 3 more files
        tests/: 3 more files
        Updated 2026-01-02T03:04:05Z
        ");
    }

    #[test]
    fn three_thousand_files() {
        let mut files = many(3000);
        files[7].changed_outside = true;
        files.extend((0..40).map(|n| file(&format!("vendor/lib{n}/lib.rs"), 5, -1, FileStatus::Unchanged)));
        assert_snapshot!(prompt(&state(files, vec![])), @"
        Repository state
        Workspace: /home/ann/shop
        Story: PAY-214
        No tasks.
        Files: 3040, of which 1 changed outside since read
        src/generated/client/models/part_7.rs 5ce084 359 bytes rust, changed outside since read
        docs/decisions/part_2999.md e5b7f0 111063 bytes markdown
        docs/decisions/part_2998.md e970fc 111026 bytes markdown
        src/generated/client/models/part_2997.rs 07a39f 110989 bytes rust
        src/generated/client/models/part_2996.rs 3aa7e3 110952 bytes rust
        src/generated/client/models/part_2995.rs 1cf8b4 110915 bytes rust
        src/generated/client/models/part_2994.rs 5ec270 110878 bytes rust
        src/generated/client/models/part_2993.rs f64d20 110841 bytes rust
        tests/part_2992.rs 63f460 110804 bytes rust
        src/payment/providers/part_2991.rs 040a3b 110767 bytes rust
        src/orders/part_2990.rs 5d39bd 110730 bytes rust
        docs/decisions/part_2989.md c2f98e 110693 bytes markdown
        docs/decisions/part_2988.md 16140b 110656 bytes markdown
        src/: 2092 more files
        docs/: 596 more files
        tests/: 299 more files
        vendor/: 40 files
        Updated 2026-01-02T03:04:05Z
        ");
    }

    #[test]
    fn tasks_come_before_files_and_are_counted_when_they_do_not_fit() {
        let description = "Go through every provider and make sure that a refund that was refused is told to the caller";
        let tasks = (1..=80).map(|id| task(id, description, TaskStatus::Pending)).collect();
        assert_snapshot!(prompt(&state(many(200), tasks)), @"
        Repository state
        Workspace: /home/ann/shop
        Story: PAY-214
        Open tasks: 80 (0 done)
        1. [pending] Go through every provider and make su…[+55 chars]
        2. [pending] Go through every provider and make su…[+55 chars]
        3. [pending] Go through every provider and make su…[+55 chars]
        4. [pending] Go through every provider and make su…[+55 chars]
        5. [pending] Go through every provider and make su…[+55 chars]
        6. [pending] Go through every provider and make su…[+55 chars]
        7. [pending] Go through every provider and make su…[+55 chars]
        8. [pending] Go through every provider and make su…[+55 chars]
        9. [pending] Go through every provider and make su…[+55 chars]
        10. [pending] Go through every provider and make su…[+55 chars]
        11. [pending] Go through every provider and make su…[+55 chars]
        12. [pending] Go through every provider and make su…[+55 chars]
        13. [pending] Go through every provider and make su…[+55 chars]
        14. [pending] Go through every provider and make su…[+55 chars]
        15. [pending] Go through every provider and make su…[+55 chars]
        16. [pending] Go through every provider and make su…[+55 chars]
        17. [pending] Go through every provider and make su…[+55 chars]
        18. [pending] Go through every provider and make su…[+55 chars]
        19. [pending] Go through every provider and make su…[+55 chars]
        … and 61 more open tasks
        Files: 200
        … and 200 more files in 5 directories
        Updated 2026-01-02T03:04:05Z
        ");
    }

    #[test]
    fn long_values_are_visibly_cut() {
        let long = format!("src/{}/name.rs", "deeply/nested/".repeat(40));
        let tasks = vec![task(1, &"do this and then that ".repeat(100), TaskStatus::Pending)];
        let files = vec![file(&long, 5, 0, FileStatus::Unchanged), file("line\nbreak", 5, 0, FileStatus::Unchanged)];
        assert_snapshot!(prompt(&state(files, tasks)), @r#"
        Repository state
        Workspace: /home/ann/shop
        Story: PAY-214
        Open tasks: 1 (0 done)
        1. [pending] do this and then that do this and then that do this and then that do this and then that do this and then that do this and then that do this and then that do this and the…[+2030 chars]
        Files: 2
        "line\nbreak" 697aff 5 bytes file
        src/deeply/nested/deeply/nested/deeply/ne…ested/deeply/nested/deeply/nested/deeply/nested/deeply/nested/deeply/nested/name.rs 62704d 5 bytes rust
        Updated 2026-01-02T03:04:05Z
        "#);
    }

    #[test]
    fn the_order_in_which_files_come_does_not_matter() {
        let files = many(500);
        let mut turned = files.clone();
        turned.reverse();
        assert_eq!(prompt(&state(files, vec![])), prompt(&state(turned, vec![])));
    }

    #[test]
    fn three_hundred_thousand_files_fit_as_well() {
        assert!(prompt(&state(many(300_000), vec![])).contains("Files: 300000\n"));
    }

    fn names() -> impl Strategy<Value = String> + Clone {
        prop_oneof![
            6 => "[a-z]{1,12}(\\.[a-z]{1,4})?",
            2 => select(vec!["src", "docs", "generated", "index.d.ts", "Makefile", "README.md"]).prop_map(str::to_owned),
            1 => "[ -~]{1,40}",
            1 => "\\PC{1,20}",
            1 => "[中文字😀é\u{301}\u{a0}\u{2028}\u{200d}\t\n\u{1b}']{1,30}",
            1 => ("[a-z0-9😀é]", 200_usize..4000).prop_map(|(character, times)| character.chars().cycle().take(times).collect()),
        ]
    }

    fn files() -> impl Strategy<Value = Vec<FileState>> {
        let status = select(vec![FileStatus::Created, FileStatus::Modified, FileStatus::Unchanged, FileStatus::Deleted]);
        let one = (vec(names(), 1..5), any::<u64>(), any::<Millis>(), status, prop::bool::weighted(0.1));
        prop_oneof![vec(one.clone(), 0..60), vec(one, 0..3000)].prop_map(|files| {
            let file = |(names, size, modified, status, changed_outside): (Vec<String>, _, _, _, _)| {
                let path = RelPath::new(&names.join("/")).ok()?;
                let hash = ContentHash::of(path.as_str().as_bytes());
                Some((path.clone(), FileState { path, hash, size, modified, status, changed_outside }))
            };
            let by_path: std::collections::BTreeMap<_, _> = files.into_iter().filter_map(file).collect();
            by_path.into_values().collect()
        })
    }

    fn words() -> impl Strategy<Value = String> + Clone {
        "(?s).{0,200}"
    }

    fn tasks() -> impl Strategy<Value = Vec<Task>> {
        let status = select(vec![TaskStatus::Pending, TaskStatus::InProgress, TaskStatus::Completed, TaskStatus::Cancelled]);
        let (story, owner) =
            (prop_oneof![3 => "PAY", 1 => words()], prop::option::weighted(0.2, words().prop_map(TaskOwner::Run)));
        let description = prop_oneof!["[a-z ]{0,60}", "(?s).{0,300}", "[ -~\n]{0,2000}"];
        let one = (any::<u32>(), description, status, 0..4_u32, story, owner);
        let task = |(id, description, status, priority, story, owner)| Task { id, description, status, priority, story, owner };
        prop_oneof![vec(one.clone(), 0..6), vec(one, 0..500)].prop_map(move |tasks| tasks.into_iter().map(task).collect())
    }

    fn states() -> impl Strategy<Value = RepoState> {
        let untouched = prop::collection::btree_map("([a-c]{1,3}/){0,3}", 0..5000_usize, 0..20);
        let story = prop_oneof![Just("PAY".to_owned()), words()];
        (files(), untouched, tasks(), words(), story, any::<Millis>()).prop_map(
            |(files, untouched, tasks, work_dir, story, last_updated)| {
                let files = Arc::new(FileList::new(files, untouched.into_iter().collect(), Vec::new()));
                let tasks = TaskList::of(&story, tasks, Some(&TaskOwner::Run("me".to_owned())));
                RepoState { work_dir, files, tasks, last_updated }
            },
        )
    }

    /// The number before a word.
    fn before(line: &str, word: &str) -> usize {
        line.split(word).next().unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_state_takes_less_than_500_tokens(state in states()) {
            let text = format_for_prompt(&state, &ToolNames::default().with_done("done"));
            prop_assert!(real(&text) < 500, "{} tokens:\n{}", real(&text), text);
            prop_assert!(estimate(&text) <= MOST_TOKENS);
            let short = snapshot_within(&state, &ToolNames::default().with_done("done"), LEAST_TOKENS);
            prop_assert!(estimate(&(short.tasks + &short.files)) <= LEAST_TOKENS);
        }

        #[test]
        fn every_file_and_every_open_task_is_listed_or_counted(state in states()) {
            let text = format_for_prompt(&state, &ToolNames::default().with_done("done"));
            let mut lines = text.lines().skip_while(|line| !line.starts_with("Open tasks: "));
            if !state.tasks.open().is_empty() {
                let open = before(lines.next().unwrap(), " (");
                prop_assert_eq!(open, state.tasks.open().len());
                let is_end = |line: &str| line.starts_with("Files: ") || line == "No files." || line.starts_with("Of other stories");
                let lines: Vec<&str> = lines.take_while(|line| !is_end(line)).collect();
                let counted = lines.iter().filter(|line| line.starts_with('…')).map(|line| before(line, " more open")).sum::<usize>();
                let listed = lines.iter().filter(|line| line.contains(". [pending]") || line.contains(". [in_progress]")).count();
                prop_assert_eq!(listed + counted, open, "{}", text);
            }
            let lines = text.lines().skip_while(|line| !line.starts_with("Files: ")).skip(1);
            let lines: Vec<&str> = lines.filter(|line| !line.starts_with("Updated ")).collect();
            let (listed, counts): (Vec<&str>, Vec<&str>) = lines.into_iter().partition(|line| line.contains(" bytes "));
            let counted = counts.iter().map(|line| match line.strip_prefix("… and ") {
                Some(rest) => before(rest, " more file"),
                None => line.rsplit(": ").next().unwrap().split(' ').next().unwrap().parse().unwrap(),
            });
            let untouched: usize = state.files.untouched().iter().map(|(_, files)| files).sum();
            prop_assert_eq!(listed.len() + counted.sum::<usize>(), state.files.len() + untouched, "{}", text);
        }
    }
}
