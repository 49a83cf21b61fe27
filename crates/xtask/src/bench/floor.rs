//! The floor: a bare MCP server over stdio that does the minimum for a read and an edit. It has one thread, blocking
//! calls and no state between calls but its buffers, and syncs only on request. It trusts its only caller, the
//! benchmark, and confines nothing.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use memchr::memmem;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fstat, fsync, openat, renameat_with, unlinkat};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How far an edit has reached the disk when it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Atomic against crashes of programs; nothing is synced.
    Fast,
    /// The file and its directory are synced.
    Full,
}

/// Answers the requests on stdin until it ends.
pub(crate) fn serve(root: &Path, durability: Durability) -> Result<()> {
    let mut floor = Floor::open(root, durability)?;
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).context("stdin")? > 0 {
        // The complete answer is written in one call.
        output.write_all(floor.answer(&line)?).context("stdout")?;
        output.flush().context("stdout")?;
        line.clear();
    }
    Ok(())
}

/// The served directory, and buffers that are reused to save allocations.
struct Floor {
    root: OwnedFd,
    durability: Durability,
    content: Vec<u8>,
    answer: Vec<u8>,
}

impl Floor {
    fn open(root: &Path, durability: Durability) -> Result<Self> {
        let root = File::open(root).with_context(|| root.display().to_string())?.into();
        Ok(Self { root, durability, content: Vec::new(), answer: Vec::new() })
    }

    /// The line to write back for an input line; empty for a notification.
    fn answer(&mut self, line: &[u8]) -> Result<&[u8]> {
        self.answer.clear();
        let request: Value = serde_json::from_slice(line).context("request")?;
        let Some(id) = request.get("id") else { return Ok(&self.answer) };
        match request["method"].as_str() {
            Some("initialize") => self.put(id, "result", &greeting(&request["params"]))?,
            Some("tools/list") => self.put(id, "result", &tools())?,
            Some("tools/call") => self.call(id, &request["params"])?,
            _ => self.put(id, "error", &json!({"code": -32601, "message": "unknown method"}))?,
        }
        Ok(&self.answer)
    }

    /// Runs one tool; a failure of the tool is a result with `isError`, as in any MCP server.
    fn call(&mut self, id: &Value, params: &Value) -> Result<()> {
        write!(self.answer, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#)?;
        let start = self.answer.len();
        let arguments = &params["arguments"];
        let outcome = match params["name"].as_str() {
            Some("read_file") => self.read_file(arguments),
            Some("edit_file") => self.edit_file(arguments),
            Some("multi_edit") => self.multi_edit(arguments),
            Some("write_file") => self.write_file(arguments),
            _ => Err(anyhow!("unknown tool")),
        };
        let failed = outcome.is_err();
        if let Err(error) = outcome {
            self.answer.truncate(start);
            say(&format!("Error: {error:#}"), &mut self.answer);
        }
        writeln!(self.answer, r#""}}],"isError":{failed}}}}}"#)?;
        Ok(())
    }

    /// Answers with a header line and the file as `LINE|text`.
    fn read_file(&mut self, arguments: &Value) -> Result<()> {
        let path = argument(arguments, "path")?;
        self.load(path)?;
        str::from_utf8(&self.content).context("not UTF-8")?;
        let header = format!("{path} {} bytes, sha256 {}\n", self.content.len(), short_hash(&self.content));
        say(&header, &mut self.answer);
        number_lines(&self.content, &mut self.answer);
        Ok(())
    }

    /// Replaces the only occurrence of `old_string`.
    fn edit_file(&mut self, arguments: &Value) -> Result<()> {
        self.edit(argument(arguments, "path")?, std::slice::from_ref(arguments))
    }

    /// Makes the edits in order, and those of one file together. Unlike ours, it keeps the files already changed if a
    /// later edit fails.
    fn multi_edit(&mut self, arguments: &Value) -> Result<()> {
        let edits = arguments["edits"].as_array().context("missing argument: edits")?;
        let by_file = edits.chunk_by(|one, next| one["path"] == next["path"]);
        by_file.into_iter().try_for_each(|edits| self.edit(argument(&edits[0], "path")?, edits))
    }

    /// Edits one file: a temporary file is swapped in and the displaced one unlinked.
    fn edit(&mut self, path: &str, edits: &[Value]) -> Result<()> {
        let mode = self.load(path)?;
        let base = short_hash(&self.content);
        for edit in edits {
            let [old, new] = [argument(edit, "old_string")?, argument(edit, "new_string")?];
            let at = find_unique(&self.content, old.as_bytes())?;
            self.content.splice(at..at + old.len(), new.bytes());
        }
        self.replace(path, mode)?;
        say(&format!("{path}: {} replacements, base {base}", edits.len()), &mut self.answer);
        Ok(())
    }

    /// Replaces the content of a file.
    fn write_file(&mut self, arguments: &Value) -> Result<()> {
        let path = argument(arguments, "path")?;
        let mode = self.load(path)?;
        self.content.clear();
        self.content.extend_from_slice(argument(arguments, "content")?.as_bytes());
        self.replace(path, mode)?;
        say(&format!("{path}: {} bytes", self.content.len()), &mut self.answer);
        Ok(())
    }

    /// Reads a file into `self.content` and returns its mode.
    fn load(&mut self, path: &str) -> Result<Mode> {
        let mut file = File::from(openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
        let stat = fstat(&file)?;
        self.content.clear();
        self.content.reserve(usize::try_from(stat.st_size)?);
        file.read_to_end(&mut self.content)?;
        Ok(Mode::from_raw_mode(stat.st_mode))
    }

    /// Replaces a file by `self.content`.
    fn replace(&self, path: &str, mode: Mode) -> Result<()> {
        let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
        // Calls run one at a time, so the name is free again after each.
        let temp = format!("{directory}/.{name}.floor");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.root, &temp, flags, mode)?);
        file.write_all(&self.content)?;
        if self.durability == Durability::Full {
            fsync(&file)?;
        }
        drop(file);
        renameat_with(&self.root, &temp, &self.root, path, RenameFlags::EXCHANGE)?;
        unlinkat(&self.root, &temp, AtFlags::empty())?;
        if self.durability == Durability::Full {
            fsync(openat(&self.root, directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)?;
        }
        Ok(())
    }

    /// Writes an answer that is small enough to be built as a value.
    fn put(&mut self, id: &Value, outcome: &str, value: &Value) -> Result<()> {
        writeln!(self.answer, "{}", json!({"jsonrpc": "2.0", "id": id, outcome: value}))?;
        Ok(())
    }
}

/// The result of `initialize`.
fn greeting(params: &Value) -> Value {
    json!({
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "floor", "version": "0"},
    })
}

/// The result of `tools/list`.
fn tools() -> Value {
    let schema = |names: &[&str]| {
        let properties: serde_json::Map<_, _> = names.iter().map(|name| ((*name).into(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties, "required": names})
    };
    json!({"tools": [
        {"name": "read_file", "inputSchema": schema(&["path"])},
        {"name": "edit_file", "inputSchema": schema(&["path", "old_string", "new_string"])},
        {"name": "multi_edit", "inputSchema": {"type": "object", "required": ["edits"]}},
        {"name": "write_file", "inputSchema": schema(&["path", "content"])},
    ]})
}

/// A string argument of a tool.
fn argument<'a>(arguments: &'a Value, name: &str) -> Result<&'a str> {
    arguments[name].as_str().with_context(|| format!("missing argument: {name}"))
}

/// The offset of the only occurrence.
fn find_unique(content: &[u8], wanted: &[u8]) -> Result<usize> {
    ensure!(!wanted.is_empty(), "old_string is empty");
    let finder = memmem::Finder::new(wanted);
    let Some(at) = finder.find(content) else { bail!("old_string not found") };
    ensure!(finder.find(&content[at + 1..]).is_none(), "old_string is not unique");
    Ok(at)
}

/// The first bytes of the content's SHA-256.
fn short_hash(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    format!("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
}

/// Appends the lines as `LINE|text`, counting from one, for the inside of a JSON string.
fn number_lines(content: &[u8], answer: &mut Vec<u8>) {
    let mut number = vec![b'1'];
    answer.extend_from_slice(b"1|");
    escape(content.strip_suffix(b"\n").unwrap_or(content), answer, |answer| {
        count_up(&mut number);
        answer.extend_from_slice(&number);
        answer.push(b'|');
    });
}

/// Appends a short text for the inside of a JSON string.
fn say(text: &str, answer: &mut Vec<u8>) {
    escape(text.as_bytes(), answer, |_| ());
}

/// Appends text for the inside of a JSON string and calls `next_line` after every line break. The answer is written in
/// one pass; building the text first and serialising it would pass over a large file twice more.
fn escape(text: &[u8], answer: &mut Vec<u8>, mut next_line: impl FnMut(&mut Vec<u8>)) {
    let mut copied = 0;
    for (at, &byte) in text.iter().enumerate() {
        if !ESCAPED[usize::from(byte)] {
            continue;
        }
        answer.extend_from_slice(&text[copied..at]);
        copied = at + 1;
        match byte {
            b'\n' => {
                answer.extend_from_slice(b"\\n");
                next_line(answer);
            }
            b'"' | b'\\' => answer.extend_from_slice(&[b'\\', byte]),
            _ => answer.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    answer.extend_from_slice(&text[copied..]);
}

/// The bytes that a JSON string cannot hold as they are.
static ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped
};

/// Adds one to a decimal number in ASCII. Formatting every number would be noticeable with large files.
fn count_up(number: &mut Vec<u8>) {
    for digit in number.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    number.insert(0, b'1');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One call on a directory with the file `a.txt`: the text, whether it is an error, and the file afterwards.
    fn call(content: &str, name: &str, arguments: Value) -> (String, bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        std::fs::write(&path, content).unwrap();
        let mut floor = Floor::open(directory.path(), Durability::Full).unwrap();
        let request =
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let answer: Value = serde_json::from_slice(floor.answer(request.to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!(answer["id"], 7);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file stays");
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (text, result["isError"].as_bool().unwrap(), std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn a_read_numbers_the_lines() {
        let (text, failed, _) = call("one\n\"two\"\nlast", "read_file", json!({"path": "a.txt"}));
        assert!(!failed);
        assert_eq!(text, "a.txt 14 bytes, sha256 64b68bba\n1|one\n2|\"two\"\n3|last");
    }

    #[test]
    fn an_edit_replaces_the_only_occurrence() {
        let (_, failed, after) = call("a b c\n", "edit_file", json!({"path": "a.txt", "old_string": "b", "new_string": "long"}));
        assert!(!failed);
        assert_eq!(after, "a long c\n");
    }

    #[test]
    fn an_ambiguous_edit_is_an_error_and_leaves_the_file() {
        let (text, failed, after) = call("b b\n", "edit_file", json!({"path": "a.txt", "old_string": "b", "new_string": "c"}));
        assert!(failed);
        assert_eq!((text.as_str(), after.as_str()), ("Error: old_string is not unique", "b b\n"));
    }

    #[test]
    fn many_edits_are_one_call() {
        let edit = |old, new| json!({"path": "a.txt", "old_string": old, "new_string": new});
        let (_, failed, after) = call("a b c\n", "multi_edit", json!({"edits": [edit("a", "one"), edit("c", "three")]}));
        assert!(!failed);
        assert_eq!(after, "one b three\n");
    }

    #[test]
    fn a_write_replaces_everything() {
        let (_, failed, after) = call("a b c\n", "write_file", json!({"path": "a.txt", "content": "new\n"}));
        assert!(!failed);
        assert_eq!(after, "new\n");
    }

    #[test]
    fn counting_carries_into_a_new_digit() {
        let mut number = b"99".to_vec();
        count_up(&mut number);
        assert_eq!(number, b"100");
    }
}
