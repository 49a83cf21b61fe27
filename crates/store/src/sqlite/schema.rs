//! The tables, and the migrations from older formats.

/// The format of the state directory and its database. An older Surehand does not open a newer format.
pub(super) const FORMAT: i64 = 9;

/// The bytes that a row takes in the file, including indexes. A row larger than half a page gets separate pages.
macro_rules! room {
    ($($bytes:expr),+) => {
        concat!("CASE WHEN ", $($bytes),+, " < 2000 THEN 100 + ", $($bytes),+, " ELSE (4500 + ", $($bytes),+, ") / 4096 * 4096 END")
    };
}

macro_rules! version_room {
    ($row:literal) => {
        room!($row, "packed_size")
    };
}

macro_rules! checkpoint_room {
    ($row:literal) => {
        room!("(200 + length(", $row, "not_kept) + length(", $row, "files))")
    };
}

macro_rules! incident_room {
    ($row:literal) => {
        room!("(150 + 2 * coalesce(length(", $row, "path), 0) + length(", $row, "what))")
    };
}

/// Formats before 8 have fewer columns.
macro_rules! event_room {
    ($row:literal $(, $new:literal)*) => {
        room!(
            "(150 + 2 * length(",
            $row,
            "path) + length(",
            $row,
            "tool) + coalesce(length(",
            $row,
            "lines), 0) + coalesce(length(",
            $row,
            "middle), 0)"
            $(, " + coalesce(length(", $row, $new, "), 0)")*,
            ")"
        )
    };
}

/// Triggers that count the bytes of a table's rows, which `$room` measures.
macro_rules! triggers {
    ($name:literal, $table:literal, $room:ident $(, $new:literal)*) => {
        concat!(
            "CREATE TRIGGER ", $name, "_added AFTER INSERT ON ", $table,
            " BEGIN UPDATE counters SET bytes = bytes + ", $room!("NEW." $(, $new)*), "; END;
            CREATE TRIGGER ", $name, "_dropped AFTER DELETE ON ", $table,
            " BEGIN UPDATE counters SET bytes = bytes - ", $room!("OLD." $(, $new)*), "; END;"
        )
    };
}

/// The state of a checkout's files at one time, for the directory that is the root of the workspace.
macro_rules! checkpoints {
    () => {
        concat!(
            "CREATE TABLE checkpoints (
                number INTEGER PRIMARY KEY, checkout INTEGER NOT NULL, directory TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
                until INTEGER NOT NULL, session TEXT, occasion TEXT NOT NULL, name TEXT, head TEXT, is_whole INTEGER NOT NULL,
                took INTEGER NOT NULL, count INTEGER NOT NULL, not_kept TEXT NOT NULL, turn INTEGER NOT NULL, files BLOB NOT NULL
            );
            CREATE INDEX checkpoints_by_directory ON checkpoints (checkout, directory);
            ",
            triggers!("checkpoint", "checkpoints", checkpoint_room)
        )
    };
}

macro_rules! incidents {
    () => {
        concat!(
            "CREATE TABLE incidents (
                number INTEGER PRIMARY KEY, checkout INTEGER NOT NULL, turn INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
                session TEXT NOT NULL, path TEXT, is_outside INTEGER NOT NULL, after BLOB, what TEXT NOT NULL
            );
            CREATE INDEX incidents_by_path ON incidents (checkout, path);
            ",
            triggers!("incident", "incidents", incident_room)
        )
    };
}

pub(super) const INCIDENT_ROOM: &str = incident_room!("");
pub(super) const CHECKPOINT_ROOM: &str = checkpoint_room!("");
pub(super) const VERSION_ROOM: &str = version_room!("");
pub(super) const EVENT_ROOM: &str = event_room!("", "undone", "entry");

/// The tables of a new file. Running all migrations instead would take most of the time of the first start.
pub(super) const SCHEMA: &str = concat!(
    "
    CREATE TABLE views (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, view TEXT NOT NULL, turn INTEGER NOT NULL,
        PRIMARY KEY (checkout, session, path)
    ) WITHOUT ROWID;
    CREATE INDEX views_by_turn ON views (checkout, session, turn);
    CREATE TABLE given (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, version BLOB NOT NULL,
        PRIMARY KEY (checkout, session, path)
    ) WITHOUT ROWID;
    CREATE TABLE files (
        checkout INTEGER NOT NULL, path TEXT NOT NULL, version BLOB NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
        size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL, taken INTEGER NOT NULL,
        PRIMARY KEY (checkout, path)
    ) WITHOUT ROWID;
    CREATE INDEX files_by_identity ON files (checkout, inode, device);
    CREATE TABLE versions (
        version BLOB PRIMARY KEY, packed_size INTEGER NOT NULL, used_at INTEGER NOT NULL, packed BLOB NOT NULL
    );
    CREATE INDEX versions_by_use ON versions (used_at);
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, checkout INTEGER NOT NULL, at INTEGER NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
        path TEXT NOT NULL, before BLOB, after BLOB, change TEXT NOT NULL, moved_to TEXT, mode INTEGER, undoes TEXT,
        prefix INTEGER, suffix INTEGER, middle BLOB, lines TEXT, turn INTEGER, undone TEXT, entry TEXT
    );
    CREATE INDEX events_by_path ON events (checkout, path);
    CREATE INDEX events_by_new_path ON events (checkout, moved_to) WHERE moved_to IS NOT NULL;
    CREATE INDEX events_by_change ON events (change);
    CREATE TABLE refused (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, call BLOB NOT NULL, path TEXT, count INTEGER NOT NULL,
        PRIMARY KEY (checkout, session, call)
    ) WITHOUT ROWID;
    CREATE TABLE rewrites (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (checkout, session, path)
    ) WITHOUT ROWID;
    CREATE TABLE tasks (
        checkout INTEGER NOT NULL, id INTEGER NOT NULL, description TEXT NOT NULL, status TEXT NOT NULL, priority INTEGER NOT NULL,
        story TEXT NOT NULL DEFAULT '', owner TEXT, lease INTEGER, fence INTEGER NOT NULL DEFAULT 0,
        removed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (checkout, id)
    ) WITHOUT ROWID;
    CREATE TABLE story (checkout INTEGER PRIMARY KEY, id TEXT NOT NULL);
    CREATE TABLE counters (turn INTEGER NOT NULL, bytes INTEGER NOT NULL);
    INSERT INTO counters VALUES (0, 0);
    CREATE TABLE days (number INTEGER PRIMARY KEY, day INTEGER NOT NULL UNIQUE, first_turn INTEGER NOT NULL);
    CREATE TABLE sessions (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL, at INTEGER, PRIMARY KEY (checkout, session)
    ) WITHOUT ROWID;
    CREATE INDEX sessions_by_turn ON sessions (turn);
    CREATE TABLE tracked (
        checkout INTEGER NOT NULL, path TEXT NOT NULL, version BLOB NOT NULL, status TEXT NOT NULL, changed_outside INTEGER NOT NULL,
        at INTEGER NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (checkout, path)
    ) WITHOUT ROWID;
    CREATE INDEX tracked_by_turn ON tracked (checkout, turn);
    ",
    triggers!("event", "events", event_room, "undone", "entry"),
    triggers!("version", "versions", version_room),
    checkpoints!(),
    incidents!()
);

/// Each step migrates the schema from one format to the next.
///
/// All checkouts of a repository share the file, so that replaced content outlives a worktree. Rows about files belong
/// to one checkout, by a number derived from its name, and have paths relative to the work tree. Versions are shared.
pub(super) const MIGRATIONS: [&str; FORMAT as usize] = [
    "
    CREATE TABLE views (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, view TEXT NOT NULL, turn INTEGER NOT NULL,
        PRIMARY KEY (checkout, session, path)
    ) WITHOUT ROWID;
    CREATE INDEX views_by_turn ON views (checkout, session, turn);
    CREATE TABLE given (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, version BLOB NOT NULL,
        PRIMARY KEY (checkout, session, path)
    ) WITHOUT ROWID;
    CREATE TABLE files (
        checkout INTEGER NOT NULL, path TEXT NOT NULL, version BLOB NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
        size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL, taken INTEGER NOT NULL,
        PRIMARY KEY (checkout, path)
    ) WITHOUT ROWID;
    CREATE INDEX files_by_identity ON files (checkout, inode, device);
    CREATE TABLE versions (
        version BLOB PRIMARY KEY, packed_size INTEGER NOT NULL, used_at INTEGER NOT NULL, packed BLOB NOT NULL
    );
    CREATE INDEX versions_by_use ON versions (used_at);
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, checkout INTEGER NOT NULL, at INTEGER NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
        path TEXT NOT NULL, before BLOB, after BLOB, change TEXT NOT NULL, moved_to TEXT, mode INTEGER, undoes TEXT,
        prefix INTEGER, suffix INTEGER, middle BLOB
    );
    CREATE INDEX events_by_path ON events (checkout, path);
    CREATE INDEX events_by_new_path ON events (checkout, moved_to) WHERE moved_to IS NOT NULL;
    CREATE TABLE refused (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, call BLOB NOT NULL, path TEXT, count INTEGER NOT NULL,
        PRIMARY KEY (checkout, session, call)
    ) WITHOUT ROWID;
    CREATE TABLE rewrites (
        checkout INTEGER NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (checkout, session, path)
    ) WITHOUT ROWID;
    CREATE TABLE tasks (
        checkout INTEGER NOT NULL, id INTEGER NOT NULL, description TEXT NOT NULL, status TEXT NOT NULL, priority INTEGER NOT NULL,
        PRIMARY KEY (checkout, id)
    ) WITHOUT ROWID;
    CREATE TABLE story (checkout INTEGER PRIMARY KEY, id TEXT NOT NULL);
    ",
    // The line map of a change.
    "ALTER TABLE events ADD COLUMN lines TEXT;",
    // The bounds of the file. All rows of one write share a turn. Turns only rise, whatever clocks show, so they
    // measure age and the order of use. `versions.used_at` holds the turn of the last use. Older rows have milliseconds
    // there (and in `events.at`, which counts if the row has no turn), so turns start after the largest of those.
    concat!(
        "ALTER TABLE events ADD COLUMN turn INTEGER;
        CREATE TABLE counters (turn INTEGER NOT NULL, bytes INTEGER NOT NULL);
        INSERT INTO counters SELECT
            max(coalesce((SELECT max(at) FROM events), 0), coalesce((SELECT max(used_at) FROM versions), 0)),
            coalesce((SELECT sum(", event_room!(""), ") FROM events), 0)
            + coalesce((SELECT sum(", version_room!(""), ") FROM versions), 0);
        ", triggers!("event", "events", event_room), triggers!("version", "versions", version_room), "
        CREATE TABLE days (number INTEGER PRIMARY KEY, day INTEGER NOT NULL UNIQUE, first_turn INTEGER NOT NULL);
        INSERT INTO days (day, first_turn) SELECT day, day * 86400000 FROM
            (SELECT at / 86400000 AS day FROM events UNION SELECT used_at / 86400000 FROM versions) ORDER BY day;
        CREATE TABLE sessions (
            checkout INTEGER NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (checkout, session)
        ) WITHOUT ROWID;
        CREATE INDEX sessions_by_turn ON sessions (turn);
        INSERT INTO sessions SELECT checkout, session, (SELECT turn FROM counters) FROM
            (SELECT checkout, session FROM views UNION SELECT checkout, session FROM given
            UNION SELECT checkout, session FROM refused UNION SELECT checkout, session FROM rewrites);"
    ),
    // Both the recording process and a process that finds its outbox may insert the same event.
    "CREATE INDEX IF NOT EXISTS events_by_change ON events (change);",
    // The state of the files that sessions touched. It used to be a separate file, so it is derived from the stored
    // events and views.
    "
    CREATE TABLE tracked (
        checkout INTEGER NOT NULL, path TEXT NOT NULL, version BLOB NOT NULL, status TEXT NOT NULL, changed_outside INTEGER NOT NULL,
        at INTEGER NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (checkout, path)
    ) WITHOUT ROWID;
    CREATE INDEX tracked_by_turn ON tracked (checkout, turn);
    INSERT INTO tracked WITH
        steps AS MATERIALIZED (
            SELECT checkout, path, before, CASE WHEN moved_to IS NULL THEN after END AS after, at, id FROM events
            UNION ALL SELECT checkout, moved_to, before, after, at, id FROM events WHERE moved_to IS NOT NULL),
        ends AS (SELECT checkout, path, min(id) AS first, max(id) AS last FROM steps GROUP BY checkout, path)
        SELECT last.checkout, last.path, coalesce(last.after, last.before),
            CASE WHEN last.after IS NULL THEN 'deleted' WHEN first.before IS NULL THEN 'created' ELSE 'modified' END,
            0, last.at, (SELECT turn FROM counters)
        FROM ends JOIN steps AS first ON first.id = ends.first AND first.checkout = ends.checkout AND first.path = ends.path
        JOIN steps AS last ON last.id = ends.last AND last.checkout = ends.checkout AND last.path = ends.path
        WHERE coalesce(last.after, last.before) IS NOT NULL GROUP BY last.checkout, last.path;
    INSERT OR IGNORE INTO tracked SELECT checkout, path, version, 'unchanged', 0, modified / 1000000, (SELECT turn FROM counters) FROM files
        WHERE EXISTS (SELECT 1 FROM views WHERE views.checkout = files.checkout AND views.path = files.path);
    ",
    // Tasks belong to a story, and to the model that added them, if one did. A claim lasts until its lease ends; the
    // fence rises with every new holder, so that late updates are detected. A removed task keeps its row, so that its
    // number is never used again.
    "
    ALTER TABLE tasks ADD COLUMN story TEXT NOT NULL DEFAULT '';
    ALTER TABLE tasks ADD COLUMN owner TEXT;
    ALTER TABLE tasks ADD COLUMN lease INTEGER;
    ALTER TABLE tasks ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE tasks ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;
    UPDATE tasks SET story = coalesce((SELECT id FROM story WHERE story.checkout = tasks.checkout), '');
    ",
    checkpoints!(),
    // The hunks that were undone by lines, and changes of a path other than its content.
    concat!(
        "ALTER TABLE events ADD COLUMN undone TEXT;
        ALTER TABLE events ADD COLUMN entry TEXT;
        DROP TRIGGER event_added;
        DROP TRIGGER event_dropped;",
        triggers!("event", "events", event_room, "undone", "entry")
    ),
    // Incidents, and the time of the last activity of a session.
    concat!("ALTER TABLE sessions ADD COLUMN at INTEGER;", incidents!()),
];

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn schema_of(connection: &Connection) -> Vec<String> {
        let texts = |sql: &str| -> Vec<String> {
            let mut query = connection.prepare(sql).unwrap();
            let columns = query.column_count();
            let row = |row: &rusqlite::Row<'_>| {
                let values: Vec<String> = (0..columns).map(|column| format!("{:?}", row.get_ref(column).unwrap())).collect();
                Ok(values.join(" "))
            };
            query.query_map([], row).unwrap().map(Result::unwrap).collect()
        };
        let tables = "SELECT list.name, list.wr, info.* FROM pragma_table_list list, pragma_table_xinfo(list.name) info
            WHERE list.name NOT LIKE 'sqlite_%' ORDER BY list.name, info.cid";
        let indexes = "SELECT master.tbl_name, list.*, info.* FROM sqlite_schema master, pragma_index_list(master.name) list,
            pragma_index_xinfo(list.name) info WHERE master.type = 'table' ORDER BY master.name, list.name, info.seqno";
        let others = "SELECT name, sql FROM sqlite_schema WHERE type <> 'table' ORDER BY name";
        let without_spaces = |sql: Vec<String>| sql.iter().map(|sql| sql.replace(char::is_whitespace, "")).collect();
        let without_numbers = "SELECT turn, bytes FROM counters";
        let others: Vec<String> = without_spaces(texts(others));
        [texts(tables), texts(indexes), others, texts(without_numbers)].concat()
    }

    #[test]
    fn a_new_file_is_as_one_that_went_through_all_formats() {
        let (new, old) = (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        new.execute_batch(SCHEMA).unwrap();
        MIGRATIONS.iter().for_each(|step| old.execute_batch(step).unwrap());
        let (new, old) = (schema_of(&new), schema_of(&old));
        assert!(new.len() > 100, "{new:#?}");
        assert_eq!(new, old);
    }
}
