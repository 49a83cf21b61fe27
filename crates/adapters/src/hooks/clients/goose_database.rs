//! Reads the results of tools from goose's session database, because its hooks do not get them. After a compaction
//! goose writes all messages again under new ids, and marks those that the model no longer sees.

use std::{collections::HashMap, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde_json::Value;

use crate::hooks::truncation;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::hooks) struct NewResults {
    /// The results that the model has seen since the last read.
    pub results: Vec<GooseResult>,
    /// Whether the messages were replaced.
    pub is_rewritten: bool,
    /// The id of the last message that was read.
    pub until: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::hooks) struct GooseResult {
    /// Empty for tools other than the shell.
    pub command: String,
    pub text: String,
}

/// At most this many messages are read; and the call of a result is searched this many messages back.
const MOST: i64 = 1_000;
const BACK: i64 = 64;

const PATIENCE: Duration = Duration::from_millis(300);

/// Reads the messages of a session after this one.
pub(in crate::hooks) fn read_new_results(record: &Path, session: &str, last: Option<u64>) -> Option<NewResults> {
    read(record, session, last.and_then(|last| i64::try_from(last).ok())).ok()
}

fn read(record: &Path, session: &str, last: Option<i64>) -> rusqlite::Result<NewResults> {
    let database = Connection::open_with_flags(record, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    database.busy_timeout(PATIENCE)?;
    let exists = |id: i64| {
        let sql = "SELECT 1 FROM messages WHERE id = ?1 AND session_id = ?2";
        database.query_row(sql, (id, session), |_| Ok(())).optional().map(|found| found.is_some())
    };
    let is_rewritten = match last {
        Some(last) => !exists(last)?,
        None => false,
    };
    let last = last.filter(|_| !is_rewritten);
    let from = last.map_or(0, |last| last.saturating_sub(BACK));
    let sql = "SELECT id, content_json, metadata_json FROM messages WHERE session_id = ?1 AND id > ?2 ORDER BY id DESC LIMIT ?3";
    let mut query = database.prepare(sql)?;
    let rows = query.query_map((session, from, MOST), |row| {
        Ok(GooseMessage { id: row.get(0)?, content: json(row.get(1)?), metadata: json(row.get(2)?) })
    })?;
    let mut messages = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    messages.reverse();
    let until = messages.last().map(|message| message.id).or(last).and_then(|id| u64::try_from(id).ok());
    Ok(NewResults { results: results(&messages, last), is_rewritten, until })
}

struct GooseMessage {
    id: i64,
    content: Value,
    metadata: Value,
}

fn json(text: Option<String>) -> Value {
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The results in messages after this one that the model still sees.
fn results(messages: &[GooseMessage], last: Option<i64>) -> Vec<GooseResult> {
    let mut commands: HashMap<&str, &str> = HashMap::new();
    let mut results = Vec::new();
    for message in messages {
        for part in message.content.as_array().into_iter().flatten() {
            let id = part["id"].as_str().unwrap_or_default();
            if let Some(command) = part["toolCall"]["value"]["arguments"]["command"].as_str() {
                commands.insert(id, command);
            }
            let is_new = last.is_none_or(|last| message.id > last) && message.metadata["agentVisible"] != false;
            if is_new && part["type"] == "toolResponse" {
                let text = shown(&part["toolResult"]["value"]["content"]);
                results.push(GooseResult { command: commands.get(id).copied().unwrap_or_default().to_owned(), text });
            }
        }
    }
    results
}

/// The text of a result, without the notes of goose. It shows only the end of a long output, and says so in a separate
/// part.
fn shown(content: &Value) -> String {
    const CUT: &str = "[Output exceeded ";
    let texts: Vec<&str> = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
    let is_cut = texts.iter().any(|text| text.starts_with(CUT));
    let text: String = texts.into_iter().filter(|text| !text.starts_with(CUT)).collect::<Vec<_>>().join("\n");
    let text = match text.rsplit_once("\n\nCommand exited with code ") {
        Some((output, code)) if code.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => output,
        _ => &text,
    };
    if is_cut { truncation::without_first_line(text).to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn database(messages: &[(i64, Value, Value)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let database = Connection::open(place.path().join("s.db")).unwrap();
        database
            .execute_batch("CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, content_json TEXT, metadata_json TEXT)")
            .unwrap();
        for (id, content, metadata) in messages {
            let row = (id, "s", content.to_string(), metadata.to_string());
            database.execute("INSERT INTO messages VALUES (?1, ?2, ?3, ?4)", row).unwrap();
        }
        place
    }

    fn request(id: &str, command: &str) -> Value {
        json!([{ "type": "toolRequest", "id": id, "toolCall": { "status": "success", "value": { "name": "shell", "arguments": { "command": command } } } }])
    }

    fn response(id: &str, texts: &[&str]) -> Value {
        let content: Vec<Value> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        json!([{ "type": "toolResponse", "id": id, "toolResult": { "status": "success", "value": { "content": content } } }])
    }

    #[test]
    fn results_are_found_with_their_commands_once() {
        let visible = json!({ "agentVisible": true });
        let place = database(&[
            (3, request("c1", "cat a"), visible.clone()),
            (4, response("c1", &["alpha\nbeta"]), visible.clone()),
            (5, request("c2", "cat b"), visible.clone()),
            (6, response("c2", &["one\n\nCommand exited with code 3"]), visible),
        ]);
        let record = place.path().join("s.db");
        let of = |command: &str, text: &str| GooseResult { command: command.to_owned(), text: text.to_owned() };
        let all = read_new_results(&record, "s", None).unwrap();
        assert_eq!(all.results, [of("cat a", "alpha\nbeta"), of("cat b", "one")]);
        assert_eq!((all.is_rewritten, all.until), (false, Some(6)));
        assert_eq!(read_new_results(&record, "s", Some(5)).unwrap().results, [of("cat b", "one")]);
        assert_eq!(
            read_new_results(&record, "s", Some(6)).unwrap(),
            NewResults { results: vec![], is_rewritten: false, until: Some(6) }
        );
        assert_eq!(read_new_results(&record, "other", None).unwrap(), NewResults::default());
        assert_eq!(read_new_results(&place.path().join("none.db"), "s", None), None);
    }

    #[test]
    fn what_was_written_anew_is_looked_at_again_and_what_is_hidden_is_not() {
        let place = database(&[
            (9, response("c1", &["alpha"]), json!({ "agentVisible": false })),
            (10, response("c2", &["beta"]), json!({})),
        ]);
        let looked = read_new_results(&place.path().join("s.db"), "s", Some(4)).unwrap();
        assert!(looked.is_rewritten);
        assert_eq!(looked.results.iter().map(|result| result.text.as_str()).collect::<Vec<_>>(), ["beta"]);
    }

    #[test]
    fn of_a_long_output_the_whole_lines_at_the_end_count() {
        let content =
            response("c", &["ne 8\nline 9", "[Output exceeded 2000 line limit (9 lines total). Full output saved to /t/x]"]);
        assert_eq!(shown(&content[0]["toolResult"]["value"]["content"]), "line 9");
    }
}
