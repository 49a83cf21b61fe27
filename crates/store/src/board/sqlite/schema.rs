//! The tables of the board's file, and the migrations from older formats.

/// The format of the file. An older Surehand does not open a newer format.
pub(super) const FORMAT: i64 = 1;

/// Each step migrates the tables from one format to the next. Every row has the turn of the transaction that last wrote
/// it, so that a reader finds the new rows.
pub(super) const MIGRATIONS: [&str; FORMAT as usize] = ["
    CREATE TABLE board (timeline INTEGER NOT NULL, turn INTEGER NOT NULL, pruned INTEGER NOT NULL, counter INTEGER NOT NULL);
    -- A file that is begun anew is younger than any before, so its fencing numbers are higher.
    INSERT INTO board VALUES (unixepoch(), 0, 0, 0);
    CREATE TABLE checkouts (id TEXT PRIMARY KEY, checkout TEXT NOT NULL, seen INTEGER NOT NULL, turn INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX checkouts_by_turn ON checkouts (turn);
    CREATE TABLE agents (
        id TEXT PRIMARY KEY, agent TEXT NOT NULL, seen INTEGER NOT NULL, until INTEGER NOT NULL, turn INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX agents_by_turn ON agents (turn);
    CREATE TABLE tasks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, story TEXT NOT NULL, description TEXT NOT NULL,
        priority INTEGER NOT NULL, status TEXT NOT NULL, claim TEXT, holder TEXT, until INTEGER, timeline INTEGER NOT NULL DEFAULT 0,
        counter INTEGER NOT NULL DEFAULT 0, seen INTEGER NOT NULL, turn INTEGER NOT NULL
    );
    CREATE INDEX tasks_by_turn ON tasks (turn);
    CREATE INDEX tasks_by_claim ON tasks (claim) WHERE claim IS NOT NULL;
    CREATE INDEX tasks_by_story ON tasks (story, status, priority, id);
    CREATE INDEX tasks_by_holder ON tasks (holder) WHERE status = 'in_progress';
    CREATE TABLE path_claims (
        id TEXT PRIMARY KEY, holder TEXT NOT NULL, pattern TEXT NOT NULL, until INTEGER NOT NULL, is_over INTEGER NOT NULL,
        timeline INTEGER NOT NULL, counter INTEGER NOT NULL, turn INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX path_claims_by_turn ON path_claims (turn);
    CREATE TABLE changes (
        checkout TEXT NOT NULL, path TEXT NOT NULL, change TEXT NOT NULL, revision INTEGER NOT NULL, is_same INTEGER NOT NULL,
        seen INTEGER NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (checkout, path)
    ) WITHOUT ROWID;
    CREATE INDEX changes_by_turn ON changes (turn);
    CREATE TABLE headlines (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, headline TEXT NOT NULL, turn INTEGER NOT NULL
    );
    CREATE INDEX headlines_by_turn ON headlines (turn);
"];
