//! The tests that every board must pass. A backend's tests call [`check`] with a function that opens the same board
//! repeatedly.

use std::{collections::BTreeSet, thread, time::Duration};

use surehand_core::{PathPattern, RelPath, SessionId, TaskStatus};

use super::{
    Agent, AgentId, Board, BoardBounds, BoardError, BoardTask, BoardTaskId, Checkout, CheckoutId, ClaimId, ContentChange,
    FileChange, Headline, Heartbeat, NewTask, News, PathClaim, PathClaimRequest, SharedHunk, TaskChoice, TaskClaimRequest,
    TaskEdit, TaskEnd,
};

/// A lease that is longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);
/// A lease that ends at once, because it ends when the clock of the board has reached its end.
const OVER: Duration = Duration::ZERO;

/// Runs the whole contract. Each call of `open` returns another handle to the same board, which is empty at first.
///
/// # Panics
/// When the backend breaks the contract.
pub fn check<B: Board>(mut open: impl FnMut() -> B) {
    everything_is_new_to_a_new_reader(open(), open());
    agents_are_there_until_they_are_silent_or_leave(open(), open());
    a_task_is_added_once(open(), open());
    a_task_is_claimed_by_one_agent(open(), open());
    tasks_are_claimed_in_order(open(), open());
    an_expired_claim_goes_to_another_agent(open(), open());
    a_late_write_is_refused(open(), open());
    a_claim_outlives_its_lease_until_it_is_taken(open(), open());
    a_request_that_is_sent_again_gets_the_same(open(), open());
    an_agent_that_leaves_holds_nothing(open(), open());
    a_person_may_take_a_task_away(open(), open());
    paths_are_held_by_one_agent(open(), open());
    paths_that_ran_out_cannot_be_extended_once_they_are_taken(open(), open());
    changes_replace_each_other_by_path(open(), open());
    a_headline_is_posted_once(open(), open());
    strange_names_come_back_as_they_are(open(), open());
    long_names_are_kept_apart(open());
    invalid_values_are_refused(open());
    news_are_read_as_soon_as_they_exist(open(), open());
    old_entries_are_dropped(open(), open());
    agents_at_once_get_each_task_once(&mut open);
    a_request_sent_twice_at_once_gets_one_task(&mut open);
    agents_at_once_hold_no_path_twice(&mut open);
}

fn path(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}

fn checkout(name: &str) -> Checkout {
    Checkout { host: "h".to_owned(), device: u64::MAX, inode: 7, path: format!("/src/{name}") }
}

fn id(name: &str) -> AgentId {
    AgentId(name.to_owned())
}

fn beat(name: &str, alive_for: Duration, lease: Duration) -> Heartbeat {
    let agent = Agent {
        id: id(name),
        session: SessionId(format!("session of {name}")),
        client: "codex".to_owned(),
        host: "h".to_owned(),
        checkout: checkout("a").id(),
        branch: Some("main".to_owned()),
        story: None,
    };
    Heartbeat { agent, alive_for, lease }
}

fn task(key: &str, priority: u32) -> NewTask {
    NewTask { key: key.to_owned(), description: format!("do {key}"), priority }
}

/// Adds tasks with keys of their story, and returns their numbers.
fn add(board: &mut impl Board, story: &str, keys: &[&str]) -> Vec<BoardTaskId> {
    let tasks: Vec<NewTask> = keys.iter().map(|key| task(&format!("{story}/{key}"), 1)).collect();
    board.add_tasks(story, &tasks).unwrap()
}

fn request(name: &str, by: &str, choice: TaskChoice, lease: Duration) -> TaskClaimRequest {
    TaskClaimRequest { id: ClaimId(name.to_owned()), by: id(by), choice, lease }
}

/// Claims the next task of a story.
fn next(board: &mut impl Board, name: &str, by: &str, story: &str, lease: Duration) -> Option<BoardTask> {
    board.claim_task(&request(name, by, TaskChoice::NextOf(story.to_owned()), lease)).unwrap()
}

fn status_of(board: &mut impl Board, story: &str, task: BoardTaskId) -> TaskStatus {
    board.tasks(story).unwrap().into_iter().find(|known| known.id == task).unwrap().status
}

fn everything_is_new_to_a_new_reader(mut board: impl Board, mut again: impl Board) {
    let news = again.news(None).unwrap();
    assert!(news.is_everything);
    assert_eq!((news.checkouts, news.tasks, news.headlines), (vec![], vec![], vec![]));
    board.join(&checkout("a")).unwrap();
    board.join(&checkout("a")).unwrap();
    let later = again.news(Some(&news.cursor)).unwrap();
    assert!(!later.is_everything);
    assert_eq!(later.checkouts, [checkout("a")]);
    assert_eq!(again.news(Some(&later.cursor)).unwrap().checkouts, []);
    let moved = Checkout { path: "/moved".to_owned(), ..checkout("a") };
    assert_eq!(moved.id(), checkout("a").id());
    board.join(&moved).unwrap();
    assert_eq!(again.news(Some(&later.cursor)).unwrap().checkouts, [moved]);
    assert!(again.news(Some(&super::Cursor("of another board".to_owned()))).unwrap().is_everything);
}

fn agents_are_there_until_they_are_silent_or_leave(mut board: impl Board, mut again: impl Board) {
    board.heartbeat(&[beat("p1", LONG, LONG), beat("p2", OVER, LONG), beat("p3", LONG, LONG)]).unwrap();
    board.leave(&id("p3")).unwrap();
    board.leave(&id("nobody")).unwrap();
    let alive = |news: &News| -> Vec<String> {
        let alive = news.agents.iter().filter(|presence| presence.is_alive(news.now));
        alive.map(|presence| presence.agent.id.0.clone()).collect()
    };
    let news = again.news(None).unwrap();
    assert_eq!(alive(&news), ["p1"]);
    assert_eq!(news.agents.iter().map(|presence| &presence.agent.id.0).collect::<Vec<_>>(), ["p1", "p2", "p3"]);
    let mut moved = beat("p2", LONG, LONG);
    moved.agent.branch = None;
    moved.agent.story = Some("s".to_owned());
    board.heartbeat(std::slice::from_ref(&moved)).unwrap();
    let news = again.news(Some(&news.cursor)).unwrap();
    assert_eq!(news.agents.iter().map(|presence| &presence.agent).collect::<Vec<_>>(), [&moved.agent]);
    assert_eq!(alive(&news), ["p2"]);
}

fn a_task_is_added_once(mut board: impl Board, mut again: impl Board) {
    let first = add(&mut board, "once", &["a", "b"]);
    let second = add(&mut again, "once", &["b", "c"]);
    assert_eq!(first[1], second[0]);
    let tasks = again.tasks("once").unwrap();
    assert_eq!(tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [first[0], first[1], second[1]]);
    let expected = BoardTask {
        id: first[0],
        story: "once".to_owned(),
        description: "do once/a".to_owned(),
        priority: 1,
        status: TaskStatus::Pending,
        claim: None,
    };
    assert_eq!(tasks[0], expected);
    assert_eq!(board.tasks("another").unwrap(), []);
}

fn a_task_is_claimed_by_one_agent(mut board: impl Board, mut again: impl Board) {
    let tasks = add(&mut board, "one", &["a"]);
    let claimed = next(&mut board, "one-1", "c1", "one", LONG).unwrap();
    let claim = claimed.claim.clone().unwrap();
    assert_eq!((claimed.id, claimed.status, &claim.by), (tasks[0], TaskStatus::InProgress, &id("c1")));
    assert_eq!(next(&mut again, "one-2", "c2", "one", LONG), None);
    let wanted = request("one-3", "c2", TaskChoice::This(tasks[0]), LONG);
    let refused = again.claim_task(&wanted).unwrap_err();
    assert!(matches!(&refused, BoardError::TaskHeld { by, task, .. } if *by == id("c1") && *task == tasks[0]), "{refused}");
    board.end_task(tasks[0], claim.fence, TaskEnd::Release).unwrap();
    let second = again.claim_task(&wanted).unwrap().unwrap().claim.unwrap();
    assert!(second.fence > claim.fence);
    again.end_task(tasks[0], second.fence, TaskEnd::Complete).unwrap();
    assert_eq!(status_of(&mut board, "one", tasks[0]), TaskStatus::Completed);
    let refused = board.claim_task(&request("one-4", "c1", TaskChoice::This(tasks[0]), LONG)).unwrap_err();
    assert!(matches!(refused, BoardError::TaskClosed { status: TaskStatus::Completed, .. }), "{refused}");
    let missing = board.claim_task(&request("one-5", "c1", TaskChoice::This(BoardTaskId(i64::MAX)), LONG)).unwrap_err();
    assert!(matches!(missing, BoardError::NoSuchTask(_)), "{missing}");
}

fn tasks_are_claimed_in_order(mut board: impl Board, mut again: impl Board) {
    let tasks = [task("order/low", 9), task("order/high", 1), task("order/second", 1)];
    let ids = board.add_tasks("order", &tasks).unwrap();
    add(&mut board, "order of others", &["a"]);
    for (number, expected) in [(1, ids[1]), (2, ids[2])] {
        let claimed = next(&mut again, &format!("order-{number}"), &format!("o{number}"), "order", OVER).unwrap();
        assert_eq!(claimed.id, expected);
        // Otherwise the task would look abandoned.
        again.end_task(expected, claimed.claim.unwrap().fence, TaskEnd::Complete).unwrap();
    }
    assert_eq!(next(&mut again, "order-3", "o3", "order", LONG).unwrap().id, ids[0]);
    assert_eq!(next(&mut again, "order-4", "o4", "order", LONG), None);
}

fn an_expired_claim_goes_to_another_agent(mut board: impl Board, mut again: impl Board) {
    let tasks = add(&mut board, "out", &["a", "b"]);
    let first = next(&mut board, "out-1", "d1", "out", OVER).unwrap();
    let second = next(&mut again, "out-2", "d2", "out", LONG).unwrap();
    assert_eq!((first.id, second.id), (tasks[0], tasks[0]), "one whose holder is gone comes first");
    assert!(second.claim.unwrap().fence > first.claim.unwrap().fence);
    assert_eq!(next(&mut board, "out-3", "d3", "out", LONG).unwrap().id, tasks[1]);
}

fn a_late_write_is_refused(mut board: impl Board, mut again: impl Board) {
    let task = add(&mut board, "late", &["a"])[0];
    let old = next(&mut board, "late-1", "l1", "late", OVER).unwrap().claim.unwrap().fence;
    let new = next(&mut again, "late-2", "l2", "late", LONG).unwrap().claim.unwrap().fence;
    for end in [TaskEnd::Complete, TaskEnd::Cancel, TaskEnd::Release] {
        let refused = board.end_task(task, old, end).unwrap_err();
        assert!(matches!(refused, BoardError::LostClaim { given, newest, .. } if given == old && newest == new), "{refused}");
    }
    assert_eq!(board.heartbeat(&[beat("l1", LONG, LONG)]).unwrap()[0].tasks, []);
    assert_eq!(again.heartbeat(&[beat("l2", LONG, LONG)]).unwrap()[0].tasks, [(task, new)]);
    again.end_task(task, new, TaskEnd::Complete).unwrap();
    again.end_task(task, new, TaskEnd::Complete).unwrap();
    assert!(matches!(board.end_task(task, old, TaskEnd::Complete), Err(BoardError::TaskClosed { .. })));
    assert!(matches!(board.end_task(task, new, TaskEnd::Release), Err(BoardError::TaskClosed { .. })));
}

fn a_claim_outlives_its_lease_until_it_is_taken(mut board: impl Board, mut again: impl Board) {
    let tasks = add(&mut board, "outlive", &["a", "b"]);
    let claims: Vec<_> = ["outlive-1", "outlive-2"].map(|name| next(&mut board, name, "f1", "outlive", LONG).unwrap()).into();
    assert_eq!(claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), tasks);
    let fences: Vec<_> = claims.iter().map(|task| task.claim.as_ref().unwrap().fence).collect();
    let once = next(&mut again, "outlive-3", "f2", "outlive", LONG);
    assert_eq!(once, None);
    let held = board.heartbeat(&[beat("f1", LONG, LONG)]).unwrap();
    assert_eq!(held[0].tasks, [(tasks[0], fences[0]), (tasks[1], fences[1])]);

    let task = add(&mut board, "outlive 2", &["a"])[0];
    let claim = next(&mut board, "outlive-4", "f3", "outlive 2", OVER).unwrap().claim.unwrap();
    assert_eq!(board.heartbeat(&[beat("f3", LONG, LONG)]).unwrap()[0].tasks, [(task, claim.fence)]);
    assert_eq!(next(&mut again, "outlive-5", "f2", "outlive 2", LONG), None, "the heartbeat has extended it");
    let task = add(&mut board, "outlive 3", &["a"])[0];
    let claim = next(&mut board, "outlive-6", "f4", "outlive 3", OVER).unwrap().claim.unwrap();
    board.end_task(task, claim.fence, TaskEnd::Complete).unwrap();
    assert_eq!(status_of(&mut again, "outlive 3", task), TaskStatus::Completed);
}

fn a_request_that_is_sent_again_gets_the_same(mut board: impl Board, mut again: impl Board) {
    let tasks = add(&mut board, "again", &["a", "b"]);
    let first = next(&mut board, "again-1", "r1", "again", OVER).unwrap();
    let second = next(&mut again, "again-1", "r1", "again", LONG).unwrap();
    assert_eq!((first.id, second.id), (tasks[0], tasks[0]));
    assert_eq!(first.claim.as_ref().unwrap().fence, second.claim.as_ref().unwrap().fence);
    let same_agent = request("again-2", "r1", TaskChoice::This(tasks[0]), LONG);
    assert_eq!(board.claim_task(&same_agent).unwrap().unwrap().claim.unwrap().fence, second.claim.as_ref().unwrap().fence);
    board.end_task(tasks[0], second.claim.unwrap().fence, TaskEnd::Complete).unwrap();
    assert_eq!(board.claim_task(&same_agent).unwrap(), None, "a request whose claim is over gets no other task");
    assert_eq!(board.tasks("again").unwrap()[1].status, TaskStatus::Pending);
}

fn an_agent_that_leaves_holds_nothing(mut board: impl Board, mut again: impl Board) {
    let task = add(&mut board, "leave", &["a"])[0];
    let old = next(&mut board, "leave-1", "v1", "leave", LONG).unwrap().claim.unwrap().fence;
    board.claim_paths(&paths("leave-p", "v1", "leave/**")).unwrap();
    board.leave(&id("v1")).unwrap();
    let new = next(&mut again, "leave-2", "v2", "leave", LONG).unwrap();
    assert_eq!(new.id, task);
    assert!(matches!(board.end_task(task, old, TaskEnd::Complete), Err(BoardError::LostClaim { .. })));
    again.claim_paths(&paths("leave-q", "v2", "leave/a")).unwrap();
}

fn a_person_may_take_a_task_away(mut board: impl Board, mut again: impl Board) {
    let task = add(&mut board, "person", &["a"])[0];
    let fence = next(&mut board, "person-1", "t1", "person", LONG).unwrap().claim.unwrap().fence;
    let edit = |by: Option<&str>, status| TaskEdit { task, by: by.map(id), description: None, priority: None, status };
    let refused = again.edit_task(&edit(Some("t2"), Some(TaskStatus::Cancelled))).unwrap_err();
    assert!(matches!(refused, BoardError::TaskHeld { .. }), "{refused}");
    let words = TaskEdit { description: Some("other words".to_owned()), priority: Some(u32::MAX), ..edit(None, None) };
    let changed = again.edit_task(&words).unwrap();
    assert_eq!((changed.description.as_str(), changed.priority), ("other words", u32::MAX));
    assert_eq!(changed.claim.unwrap().fence, fence, "its holder keeps it");
    assert_eq!(again.edit_task(&edit(None, Some(TaskStatus::Pending))).unwrap().claim, None);
    assert!(matches!(board.end_task(task, fence, TaskEnd::Complete), Err(BoardError::LostClaim { .. })));
    again.edit_task(&edit(None, Some(TaskStatus::Cancelled))).unwrap();
    assert_eq!(next(&mut board, "person-2", "t1", "person", LONG), None);
    assert_eq!(again.edit_task(&edit(None, Some(TaskStatus::Pending))).unwrap().status, TaskStatus::Pending);
    assert!(next(&mut board, "person-3", "t1", "person", LONG).unwrap().claim.unwrap().fence > fence);
}

fn paths(name: &str, by: &str, pattern: &str) -> PathClaimRequest {
    PathClaimRequest { id: ClaimId(name.to_owned()), by: id(by), pattern: PathPattern::new(pattern).unwrap(), lease: LONG }
}

/// The claim of this name, as a new reader sees it.
fn path_claim(board: &mut impl Board, name: &str) -> (PathClaim, bool) {
    let news = board.news(None).unwrap();
    let claim = news.paths.into_iter().find(|claim| claim.id.0 == name).unwrap();
    let is_held = claim.is_held(news.now);
    (claim, is_held)
}

fn paths_are_held_by_one_agent(mut board: impl Board, mut again: impl Board) {
    let first = board.claim_paths(&paths("path-1", "a1", "p/src/**")).unwrap();
    for pattern in ["p/src/a.rs", "p/**/*.rs", "p/**"] {
        let refused = again.claim_paths(&paths("path-2", "a2", pattern)).unwrap_err();
        assert!(matches!(&refused, BoardError::PathsHeld { by, held, .. } if *by == id("a1") && held == "p/src/**"), "{refused}");
    }
    let beside = again.claim_paths(&paths("path-2", "a2", "p/doc/**")).unwrap();
    let own = board.claim_paths(&paths("path-3", "a1", "p/src/a.rs")).unwrap();
    assert!(own.fence > beside.fence && beside.fence > first.fence);
    assert_eq!(board.claim_paths(&paths("path-1", "a1", "p/src/**")).unwrap().fence, first.fence);
    assert!(matches!(again.claim_paths(&paths("path-1", "a2", "q")), Err(BoardError::BadValue(_))), "the name is taken");
    assert_eq!(path_claim(&mut again, "path-1").0.pattern.as_str(), "p/src/**");
    let held = board.heartbeat(&[beat("a1", LONG, LONG)]).unwrap();
    assert_eq!(held[0].paths, [(first.id.clone(), first.fence), (own.id.clone(), own.fence)]);
    for claim in [&first.id, &own.id, &first.id] {
        board.release_paths(claim).unwrap();
    }
    assert!(!path_claim(&mut again, "path-1").1);
    let taken = again.claim_paths(&paths("path-4", "a2", "p/**/*.rs")).unwrap();
    assert!(taken.fence > own.fence);
    again.release_paths(&taken.id).unwrap();
    assert!(board.claim_paths(&paths("path-1", "a1", "p/src/**")).unwrap().fence > taken.fence, "a claim anew");
}

fn paths_that_ran_out_cannot_be_extended_once_they_are_taken(mut board: impl Board, mut again: impl Board) {
    let short = |name: &str, by: &str| PathClaimRequest { lease: OVER, ..paths(name, by, "e/**") };
    let old = board.claim_paths(&short("ext-1", "e1")).unwrap();
    let extended = board.heartbeat(&[beat("e1", LONG, LONG)]).unwrap();
    assert_eq!(extended[0].paths, [(old.id.clone(), old.fence)]);
    assert!(matches!(again.claim_paths(&short("ext-2", "e2")), Err(BoardError::PathsHeld { .. })));
    board.release_paths(&old.id).unwrap();
    let old = board.claim_paths(&short("ext-3", "e1")).unwrap();
    let new = again.claim_paths(&paths("ext-4", "e2", "e/x")).unwrap();
    assert!(new.fence > old.fence);
    assert_eq!(board.heartbeat(&[beat("e1", LONG, LONG)]).unwrap()[0].paths, []);
    assert!(!path_claim(&mut board, "ext-3").1);
    assert!(path_claim(&mut board, "ext-4").1);
}

fn change(file: &str, revision: i64, change: ContentChange) -> FileChange {
    FileChange { path: path(file), fork_point: "c0ffee".to_owned(), base: None, change, by: Some(id("k1")), revision }
}

fn changes_replace_each_other_by_path(mut board: impl Board, mut again: impl Board) {
    let (here, there) = (checkout("a").id(), Checkout { inode: 8, ..checkout("b") }.id());
    let hunk = |text: Option<&str>| SharedHunk { before: 3..3, after: 3..5, text: text.map(str::to_owned) };
    let lines = |text| ContentChange::Lines(vec![hunk(text)]);
    let start = again.news(None).unwrap().cursor;
    board.report_changes(&here, &[change("x", 1, lines(Some("a\r\n\u{0}b"))), change("y", 1, ContentChange::Deleted)]).unwrap();
    board.report_changes(&there, &[change("x", 1, ContentChange::Binary)]).unwrap();
    let mut news = again.news(Some(&start)).unwrap();
    news.changes.sort_by_key(|(checkout, change)| (*checkout != here, change.path.clone()));
    let expected = [
        (here.clone(), change("x", 1, lines(Some("a\r\n\u{0}b")))),
        (here.clone(), change("y", 1, ContentChange::Deleted)),
        (there, change("x", 1, ContentChange::Binary)),
    ];
    assert_eq!(news.changes, expected);
    board.report_changes(&here, &[change("x", 3, ContentChange::Same)]).unwrap();
    board.report_changes(&here, &[change("x", 2, lines(None))]).unwrap();
    let news = again.news(Some(&news.cursor)).unwrap();
    assert_eq!(news.changes, [(here, change("x", 3, ContentChange::Same))], "what was delayed changes nothing");
}

fn headline(name: &str) -> Headline {
    Headline {
        id: name.to_owned(),
        checkout: checkout("a").id(),
        agent: None,
        kind: "edit".to_owned(),
        path: Some(path("a")),
        summary: "3 lines".to_owned(),
    }
}

fn a_headline_is_posted_once(mut board: impl Board, mut again: impl Board) {
    let start = again.news(None).unwrap().cursor;
    board.post(&[headline("n1"), headline("n2")]).unwrap();
    again.post(&[headline("n2"), headline("n3")]).unwrap();
    let news = again.news(Some(&start)).unwrap();
    let ids: Vec<_> = news.headlines.iter().map(|posted| posted.headline.id.as_str()).collect();
    assert_eq!(ids, ["n1", "n2", "n3"]);
    assert!(news.headlines.iter().all(|posted| posted.at <= news.now && posted.headline.summary == "3 lines"));
    board.post(&[headline("n1")]).unwrap();
    assert_eq!(again.news(Some(&news.cursor)).unwrap().headlines, []);
}

fn strange_names_come_back_as_they_are(mut board: impl Board, mut again: impl Board) {
    let start = again.news(None).unwrap().cursor;
    let story = "it's; DROP TABLE tasks -- \u{1f980} \"\\ %s $1 \n\t";
    let ids = board.add_tasks(story, &[NewTask { description: story.to_owned(), ..task("strange", 1) }]).unwrap();
    let claimed = next(&mut board, "strange ' 1", "o'b; --", story, LONG).unwrap();
    assert_eq!((claimed.id, claimed.story.as_str(), claimed.description.as_str()), (ids[0], story, story));
    assert_eq!(claimed.claim.unwrap().by, id("o'b; --"));
    let file = path("d\u{1}r/a b\n\"'\\\u{202e}*");
    let posted = Headline { path: Some(file.clone()), ..headline("strange") };
    board.post(std::slice::from_ref(&posted)).unwrap();
    assert_eq!(again.news(Some(&start)).unwrap().headlines[0].headline, posted);
}

/// Letters that do not compress well.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 33) as u8 % 26)
    };
    (0..length).map(letter).collect()
}

fn long_names_are_kept_apart(mut board: impl Board) {
    let start = board.news(None).unwrap().cursor;
    let name = noise(980);
    let [one, other] = ["1", "2"].map(|end| format!("{name}{end}"));
    let ids = board.add_tasks(&one, &[task(&one, 1), task(&other, 1)]).unwrap();
    assert_eq!(next(&mut board, &one, &one, &one, LONG).unwrap().id, ids[0]);
    assert_eq!(next(&mut board, &other, &other, &one, LONG).unwrap().id, ids[1]);
    board.heartbeat(&[beat(&one, LONG, LONG), beat(&other, LONG, LONG)]).unwrap();
    let directory = noise(2000);
    let [file, file_beside] = ["1", "2"].map(|end| change(&format!("{directory}/{directory}{end}"), 1, ContentChange::Deleted));
    board.report_changes(&CheckoutId(name), &[file.clone(), file_beside.clone()]).unwrap();
    let changes = board.news(Some(&start)).unwrap().changes.into_iter().map(|(_, change)| change);
    assert_eq!(changes.collect::<Vec<_>>(), [file, file_beside]);
}

fn invalid_values_are_refused(mut board: impl Board) {
    let start = board.news(None).unwrap().cursor;
    let bad = |result: Result<(), BoardError>| assert!(matches!(result, Err(BoardError::BadValue(_))), "{result:?}");
    let described = |description: &str| NewTask { description: description.to_owned(), ..task("bad", 1) };
    for description in ["", " \n", "a\0b", &"x".repeat(10_001)] {
        bad(board.add_tasks("s", &[described(description)]).map(drop));
    }
    bad(board.add_tasks("s\0", &[task("bad", 1)]).map(drop));
    bad(board.add_tasks("s", &[task("bad", 1), task("bad", 2)]).map(drop));
    bad(board.add_tasks("s", &[task("good", 1), NewTask { key: String::new(), ..task("bad", 1) }]).map(drop));
    bad(board.heartbeat(&[beat("", LONG, LONG)]).map(drop));
    bad(board.heartbeat(&[beat("a\0", LONG, LONG)]).map(drop));
    bad(board.heartbeat(&[beat(&"\u{1f980}".repeat(251), LONG, LONG)]).map(drop));
    bad(board.post(&[Headline { summary: "x".repeat(1001), ..headline("bad") }]));
    bad(board.join(&Checkout { host: String::new(), ..checkout("a") }));
    let in_progress =
        TaskEdit { task: BoardTaskId(1), by: None, description: None, priority: None, status: Some(TaskStatus::InProgress) };
    bad(board.edit_task(&in_progress).map(drop));
    let text = Some("x".repeat((1 << 20) + 1));
    let lines = ContentChange::Lines(vec![SharedHunk { before: 0..0, after: 0..1, text }]);
    bad(board.report_changes(&checkout("a").id(), &[change("big", 1, lines)]));
    let news = board.news(Some(&start)).unwrap();
    assert_eq!((news.tasks, news.agents, news.changes, news.headlines), (vec![], vec![], vec![], vec![]));
}

fn news_are_read_as_soon_as_they_exist(mut board: impl Board, mut again: impl Board) {
    let mut cursor = again.news(None).unwrap().cursor;
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for number in 0..40 {
                board.post(&[headline(&format!("w{number}"))]).unwrap();
            }
        });
        let mut seen = BTreeSet::new();
        while seen.len() < 40 {
            again.wait(Duration::from_millis(100)).unwrap();
            let news = again.news(Some(&cursor)).unwrap();
            assert!(!news.is_everything);
            seen.extend(news.headlines.into_iter().map(|posted| posted.headline.id));
            cursor = news.cursor;
        }
        writer.join().unwrap();
    });
    assert_eq!(again.news(Some(&cursor)).unwrap().headlines, []);
}

fn old_entries_are_dropped(mut board: impl Board, mut again: impl Board) {
    let keep = BoardBounds::default();
    let before = again.news(None).unwrap();
    board.post(&[headline("prune")]).unwrap();
    let tasks = add(&mut board, "prune", &["a", "b"]);
    let claim = next(&mut board, "prune-1", "q1", "prune", LONG).unwrap().claim.unwrap();
    board.end_task(tasks[0], claim.fence, TaskEnd::Complete).unwrap();
    while board.prune(&keep).unwrap() {}
    assert!(!again.news(Some(&before.cursor)).unwrap().is_everything, "nothing was dropped");
    let bounds = BoardBounds { headlines: OVER, closed_tasks: OVER, ..keep };
    while board.prune(&bounds).unwrap() {}
    let after = again.news(Some(&before.cursor)).unwrap();
    assert!(after.is_everything, "a reader that was away learns that something is gone");
    assert_eq!(after.headlines, []);
    assert_eq!(board.tasks("prune").unwrap().iter().map(|task| task.id).collect::<Vec<_>>(), [tasks[1]]);
    assert!(!after.changes.is_empty() && !after.agents.is_empty());
    assert!(!again.news(Some(&after.cursor)).unwrap().is_everything);
}

/// Many handles claim tasks at the same time.
fn agents_at_once_get_each_task_once<B: Board>(open: &mut impl FnMut() -> B) {
    const AGENTS: usize = 8;
    let mut board = open();
    let keys: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    let added = add(&mut board, "race", &keys.iter().map(String::as_str).collect::<Vec<_>>());
    let boards: Vec<B> = (0..AGENTS).map(|_| open()).collect();
    let claimed: Vec<BoardTaskId> = thread::scope(|scope| {
        let work = |(number, mut board): (usize, B)| {
            let name = format!("race {number}");
            let mut claimed = Vec::new();
            while let Some(task) = next(&mut board, &format!("{name} {}", claimed.len()), &name, "race", LONG) {
                let claim = task.claim.unwrap();
                assert_eq!(claim.by.0, name);
                board.end_task(task.id, claim.fence, TaskEnd::Complete).unwrap();
                claimed.push(task.id);
            }
            claimed
        };
        let agents: Vec<_> = boards.into_iter().enumerate().map(|agent| scope.spawn(move || work(agent))).collect();
        agents.into_iter().flat_map(|agent| agent.join().unwrap()).collect()
    });
    assert_eq!(claimed.len(), added.len(), "none twice");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), added.into_iter().collect(), "none lost");
}

/// As if an agent sent its request again while the server still works on the first one.
fn a_request_sent_twice_at_once_gets_one_task<B: Board>(open: &mut impl FnMut() -> B) {
    let mut boards: Vec<B> = (0..6).map(|_| open()).collect();
    for round in 0..10 {
        let story = format!("twice {round}");
        add(&mut boards[0], &story, &["a", "b", "c"]);
        thread::scope(|scope| {
            for board in &mut boards {
                scope.spawn(|| next(board, &story, "w1", &story, LONG).unwrap());
            }
        });
        let held = boards[0].tasks(&story).unwrap().into_iter().filter(|task| task.claim.is_some());
        assert_eq!(held.count(), 1);
    }
}

fn agents_at_once_hold_no_path_twice<B: Board>(open: &mut impl FnMut() -> B) {
    let boards: Vec<B> = (0..6).map(|_| open()).collect();
    let granted: usize = thread::scope(|scope| {
        let claim = |(number, mut board): (usize, B)| {
            let pattern = if number % 2 == 0 { "o/**".to_owned() } else { format!("o/**/{number}.rs") };
            board.claim_paths(&paths(&format!("at once {number}"), &format!("at once {number}"), &pattern))
        };
        let agents: Vec<_> = boards.into_iter().enumerate().map(|agent| scope.spawn(move || claim(agent))).collect();
        let results: Vec<_> = agents.into_iter().map(|agent| agent.join().unwrap()).collect();
        for result in &results {
            assert!(matches!(result, Ok(_) | Err(BoardError::PathsHeld { .. })), "{result:?}");
        }
        results.into_iter().flatten().filter(|claim| claim.pattern.as_str() == "o/**").count()
    });
    // Claims on different files are compatible. A claim on the whole directory conflicts with all of them.
    let claims =
        open().news(None).unwrap().paths.into_iter().filter(|claim| claim.id.0.starts_with("at once")).collect::<Vec<_>>();
    assert!(granted <= 1 && !claims.is_empty());
    for (one, other) in claims.iter().flat_map(|one| claims.iter().map(move |other| (one, other))) {
        assert!(one.id == other.id || !one.pattern.overlaps(&other.pattern), "{one:?} {other:?}");
    }
}
