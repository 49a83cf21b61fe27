//! The board of the fleet on the page. The board is a file to which another clone has reported.

use std::{
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use surehand_engine::{
    Config, SessionId, Workspace,
    core::PathPattern,
    fleet::{BoardCalls, BranchChanges, LocalCopy},
    store::board::{
        Agent, AgentId, Board, BoardAnswer, BoardCall, BoardCopy, BoardError, ClaimId, Headline, Heartbeat, NewTask,
        PathClaimRequest, SqliteBoard, TaskChoice, TaskClaimRequest,
    },
};
use surehand_ui::BoardAccess;
use tempfile::TempDir;

use crate::server::Server;

const MINUTE: Duration = Duration::from_secs(60);
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{202e}";

/// A board in a file, as the helper keeps it for a workspace. An outage has a reason.
#[derive(Clone)]
struct BoardInFile {
    board: Arc<Mutex<SqliteBoard>>,
    workspace: Arc<Workspace>,
    outage: Arc<Mutex<Option<String>>>,
}

impl BoardInFile {
    fn check(&self) -> Result<(), BoardError> {
        match &*self.outage.lock().unwrap() {
            Some(why) => Err(BoardError::Unreachable { place: "this machine".to_owned(), why: why.clone() }),
            None => Ok(()),
        }
    }

    fn copy(&self) -> BoardCopy {
        let mut board = BoardCopy::default();
        board.apply(self.board.lock().unwrap().news(None).unwrap());
        board
    }
}

impl BoardCalls for BoardInFile {
    fn call(&self, call: &BoardCall) -> Result<BoardAnswer, BoardError> {
        self.check()?;
        call.carry_out(&mut *self.board.lock().unwrap())
    }
}

impl BoardAccess for BoardInFile {
    fn refresh(&self) -> Result<(), String> {
        self.check().map_err(|error| error.to_string())?;
        self.workspace.repository_id().unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let read_at = Some(i64::try_from(now).unwrap());
        let copy = LocalCopy { read_at, place: "this machine".to_owned(), board: self.copy(), ..LocalCopy::default() };
        self.workspace.write_local_copy(&copy).unwrap();
        Ok(())
    }
}

/// The page of a clone, and another clone of the same repository.
struct Fleet {
    server: Server,
    board: BoardInFile,
    others: TempDir,
}

impl Fleet {
    fn start() -> Self {
        let (mine, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let origin = others.path().join("origin.git").display().to_string();
        git(others.path(), &["init", "-q", "--bare", "-b", "main", "origin.git"]);
        git(mine.path(), &["init", "-q", "-b", "main"]);
        write(&mine.path().join("a.txt"), &text(0, ""));
        for words in [
            &["add", "."][..],
            &["commit", "-q", "-m", "first"],
            &["remote", "add", "origin", &origin],
            &["push", "-q", "origin", "main"],
        ] {
            git(mine.path(), words);
        }
        git(others.path(), &["clone", "-q", "origin.git", "theirs"]);
        let workspace = open(mine.path());
        let board = SqliteBoard::open(&others.path().join("board.db")).unwrap();
        let board = BoardInFile { board: Arc::new(Mutex::new(board)), workspace, outage: Arc::default() };
        let server = Server::start_with(mine, Some(Box::new(board.clone())));
        Self { server, board, others }
    }

    /// Puts an agent of a clone and its changes on the board.
    fn report(&self, workspace: &Workspace, session: &str, branch: &str) {
        let checkout = workspace.checkout().unwrap();
        let agent = Agent {
            id: AgentId(session.to_owned()),
            session: SessionId(session.to_owned()),
            client: "codex".to_owned(),
            host: checkout.host.clone(),
            checkout: checkout.id(),
            branch: Some(branch.to_owned()),
            story: Some("login".to_owned()),
        };
        let mut board = self.board.board.lock().unwrap();
        board.join(&checkout).unwrap();
        board.heartbeat(&[Heartbeat { agent, alive_for: MINUTE, lease: MINUTE }]).unwrap();
        let found = BranchChanges::find(workspace).unwrap();
        let by = Some(AgentId(session.to_owned()));
        let changes: Vec<_> =
            found.files().map(|change| surehand_engine::store::board::FileChange { by: by.clone(), ..change.clone() }).collect();
        board.report_changes(&checkout.id(), &changes).unwrap();
    }

    fn claim(&self, id: &str, by: &str, pattern: &str) -> Result<(), BoardError> {
        let (id, by, pattern) = (ClaimId(id.to_owned()), AgentId(by.to_owned()), PathPattern::new(pattern).unwrap());
        let request = PathClaimRequest { id, by, pattern, lease: MINUTE };
        self.board.board.lock().unwrap().claim_paths(&request).map(drop)
    }

    /// The board of a page that was notified of a newer copy.
    fn shown(&self) -> Value {
        let mut feed = self.server.feed();
        self.server.get("board").json();
        assert!(feed.any(|message| message == json!({})));
        self.server.get("board").json()
    }
}

fn open(root: &Path) -> Arc<Workspace> {
    Workspace::open(root, Config::default()).unwrap()
}

fn git(dir: &Path, words: &[&str]) {
    let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
    let done = Command::new("git").current_dir(dir).args(identity).args(words).output().unwrap();
    assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[expect(clippy::disallowed_methods, reason = "the test plays another program")]
fn write(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
}

/// Twenty lines, of which one is changed.
fn text(changed: usize, to: &str) -> String {
    (1..=20).map(|number| if number == changed { format!("{to}\n") } else { format!("{number}\n") }).collect()
}

#[test]
fn the_board_shows_who_works_where_and_what_will_conflict() {
    let fleet = Fleet::start();
    let theirs = open(&fleet.others.path().join("theirs"));
    write(&fleet.server.dir.path().join("a.txt"), &text(7, "mine"));
    write(&theirs.path().join("a.txt"), &text(7, "theirs"));
    fleet.report(&fleet.server.workspace(), "claude-1", "main");
    fleet.report(&theirs, "codex-2", HOSTILE);
    let task = NewTask { key: "1".to_owned(), description: HOSTILE.to_owned(), priority: 1 };
    let claim = TaskClaimRequest {
        id: ClaimId("t".to_owned()),
        by: AgentId("codex-2".to_owned()),
        choice: TaskChoice::NextOf("login".to_owned()),
        lease: MINUTE,
    };
    let mut board = fleet.board.board.lock().unwrap();
    board.add_tasks("login", &[task]).unwrap();
    board.claim_task(&claim).unwrap().unwrap();
    let headline = Headline {
        id: "h".to_owned(),
        checkout: theirs.checkout().unwrap().id(),
        agent: Some(AgentId("codex-2".to_owned())),
        kind: "edit_file".to_owned(),
        path: None,
        summary: HOSTILE.to_owned(),
    };
    board.post(&[headline]).unwrap();
    drop(board);
    fleet.claim("c", "codex-2", "src/**").unwrap();
    let shown = fleet.shown();
    let board = &shown["board"];
    let agent = |session: &str| {
        let agents = board["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["session"] == session).unwrap()
    };
    let facts = |agent: &Value| (agent["here"].clone(), agent["alive"].clone(), agent["branch"].clone());
    assert_eq!(facts(agent("claude-1")), (json!(true), json!(true), json!("main")));
    assert_eq!(facts(agent("codex-2")), (json!(false), json!(true), json!(HOSTILE)));
    let task = &board["stories"][0]["tasks"][0];
    assert_eq!((&task["description"], &task["by"], &task["abandoned"]), (&json!(HOSTILE), &json!("codex 2"), &json!(false)));
    assert!(task["lasts"].as_i64().unwrap() > 0, "{task}");
    assert_eq!((&board["claims"][0]["pattern"], &board["claims"][0]["by"]), (&json!("src/**"), &json!("codex 2")));
    let changes = board["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes.iter().all(|change| change["lines"] == json!([{ "start": 7, "end": 7 }])), "{changes:?}");
    let forecast = &shown["forecasts"][0];
    assert_eq!((&forecast["path"], &forecast["agent"]), (&json!("a.txt"), &json!("codex 2")));
    assert!(forecast["text"].as_str().unwrap().contains("line 7"), "{forecast}");
    let headline = &board["headlines"][0];
    assert_eq!((&headline["agent"], &headline["summary"]), (&json!("codex-2"), &json!(HOSTILE)));
    assert_eq!((&shown["trouble"], board["age"].is_i64()), (&Value::Null, true));
}

#[test]
fn a_claim_is_cancelled_after_a_preview() {
    let fleet = Fleet::start();
    fleet.report(&fleet.server.workspace(), "claude-1", "main");
    fleet.claim("<b>", "claude-1", "src/**").unwrap();
    assert_eq!(fleet.shown()["board"]["claims"][0]["id"], "<b>");
    let cancel = json!({ "act": "cancel_claim", "claim": "<b>" });
    let preview = fleet.server.post("preview", &cancel).json();
    assert_eq!((&preview["claim"]["pattern"], &preview["claim"]["by"]), (&json!("src/**"), &json!("claude 1")));
    assert!(fleet.claim("2", "codex-2", "src/a.rs").is_err(), "a preview changes nothing");
    let mut feed = fleet.server.feed();
    let done = fleet.server.post("act", &cancel).json();
    assert_eq!(done, json!({ "released": "src/**", "by": "claude 1" }));
    assert!(feed.any(|message| message == json!({})), "all pages hear of it");
    assert_eq!(fleet.server.get("board").json()["board"]["claims"], json!([]));
    fleet.claim("2", "codex-2", "src/a.rs").unwrap();
    let again = fleet.server.post("act", &cancel);
    assert_eq!((again.status, again.body.contains("has ended")), (404, true), "{}", again.body);
}

#[test]
fn an_outage_of_the_board_is_named_and_what_was_known_stays() {
    let fleet = Fleet::start();
    fleet.report(&fleet.server.workspace(), "claude-1", "main");
    fleet.claim("1", "claude-1", "src/**").unwrap();
    fleet.board.refresh().unwrap();
    *fleet.board.outage.lock().unwrap() = Some("the disk is gone".to_owned());
    // The page does not wait for the board, and asks again while it is being read.
    let shown = std::iter::repeat_with(|| fleet.server.get("board").json()).find(|shown| shown["reading"] == false).unwrap();
    for trouble in [&shown["trouble"], &shown["board"]["trouble"]] {
        assert!(trouble.as_str().unwrap().contains("the disk is gone"), "{shown}");
    }
    assert_eq!(shown["board"]["claims"][0]["pattern"], "src/**");
    let refused = fleet.server.post("act", &json!({ "act": "cancel_claim", "claim": "1" }));
    assert_eq!((refused.status, refused.body.contains("the disk is gone")), (502, true), "{}", refused.body);
    assert_eq!(fleet.board.copy().claims.len(), 1);
}

#[test]
fn without_a_board_the_page_says_so() {
    let server = Server::start();
    assert_eq!(server.get("board").json(), json!({ "enabled": false, "board": null }));
    for question in ["preview", "act"] {
        let answer = server.post(question, &json!({ "act": "cancel_claim", "claim": "1" }));
        assert_eq!((answer.status, answer.body.contains("board.enabled")), (404, true), "{}", answer.body);
    }
}
