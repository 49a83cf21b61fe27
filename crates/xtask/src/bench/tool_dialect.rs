//! The tool names and arguments of each server. Some servers require hashes with an edit: an untimed read gets them
//! first, as a model would have them from an earlier turn.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::client::Client;
use crate::files::{text, token, token_line};

/// A call that is ready to send.
pub(crate) struct Call {
    /// The name of the tool.
    pub tool: &'static str,
    pub arguments: Value,
}

impl Call {
    /// The parameters of `tools/call`.
    pub(crate) fn params(&self) -> Value {
        json!({"name": self.tool, "arguments": self.arguments})
    }
}

/// A change of the token of a file.
pub(crate) struct Edit {
    /// The file, relative to the workspace.
    pub path: String,
    /// The old state of the token.
    pub from: usize,
    pub to: usize,
}

/// The tools of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolDialect {
    /// Surehand's own tools; the floor has the same ones.
    Surehand,
    /// The official filesystem server, and servers with the same tools.
    Filesystem,
    /// `mcp-text-editor`: hashes of the file and of the lines.
    TextEditor,
    /// The crate `hashline`: lines by number and hash, answers as JSON.
    Hashline,
    /// `mcp-hashline-edit-server`: lines by number and hash, answers as text.
    HashlineEdit,
}

/// More lines than any file has, for servers that show only the start of a long file.
const ALL_LINES: usize = 10_000_000;

impl ToolDialect {
    /// Reads a whole file.
    pub(crate) fn read(self, root: &Path, path: &str) -> Call {
        let absolute = root.join(path);
        match self {
            Self::Surehand => Call { tool: "read_file", arguments: json!({"path": path}) },
            Self::Filesystem => Call { tool: "read_text_file", arguments: json!({"path": absolute}) },
            Self::TextEditor => Call {
                tool: "get_text_file_contents",
                arguments: json!({"files": [{"file_path": absolute, "ranges": [{"start": 1}]}]}),
            },
            Self::Hashline => Call { tool: "hashline_read", arguments: json!({"file": absolute}) },
            Self::HashlineEdit => Call { tool: "read_file", arguments: json!({"path": absolute, "limit": ALL_LINES}) },
        }
    }

    /// Changes the token of a file, after asking the server for the required hashes.
    pub(crate) fn edit(self, client: &mut Client, root: &Path, edit: &Edit) -> Result<Call> {
        let absolute = root.join(&edit.path);
        Ok(match self {
            Self::Surehand => Call { tool: "edit_file", arguments: replacement(edit) },
            Self::Filesystem => Call {
                tool: "edit_file",
                arguments: json!({"path": absolute, "edits": [{"oldText": token(edit.from), "newText": token(edit.to)}]}),
            },
            Self::TextEditor => {
                Call { tool: "edit_text_file_contents", arguments: json!({"files": [patch(client, root, edit)?]}) }
            }
            Self::Hashline => {
                let anchor = anchor_in_json(&client.send_call(&self.read(root, &edit.path))?.text, edit)?;
                Call {
                    tool: "hashline_edit",
                    arguments: json!({"file": absolute, "anchor": anchor, "content": token_line(edit.to)}),
                }
            }
            Self::HashlineEdit => {
                let only = json!({"path": absolute, "offset": line_number(root, edit)?, "limit": 1});
                let anchor = anchor_in_text(&client.call("read_file", only)?.text, edit)?;
                let set_line = json!({"anchor": anchor, "new_text": token_line(edit.to)});
                Call { tool: "edit_file", arguments: json!({"path": absolute, "edits": [{"set_line": set_line}]}) }
            }
        })
    }

    /// Makes several changes of one file in one call, for servers that need no hashes.
    pub(crate) fn edit_places(self, root: &Path, edits: &[Edit]) -> Option<Call> {
        match self {
            Self::Surehand => {
                let edits: Vec<_> = edits.iter().map(replacement).collect();
                Some(Call { tool: "multi_edit", arguments: json!({"edits": edits}) })
            }
            Self::Filesystem => {
                let path = root.join(&edits.first()?.path);
                let replaced = |edit: &Edit| json!({"oldText": token(edit.from), "newText": token(edit.to)});
                let edits: Vec<_> = edits.iter().map(replaced).collect();
                Some(Call { tool: "edit_file", arguments: json!({"path": path, "edits": edits}) })
            }
            Self::TextEditor | Self::Hashline | Self::HashlineEdit => None,
        }
    }

    /// Writes a whole file, for servers that can.
    pub(crate) fn write(self, root: &Path, path: &str, content: &str) -> Option<Call> {
        match self {
            Self::Surehand => Some(Call { tool: "write_file", arguments: json!({"path": path, "content": content}) }),
            Self::Filesystem => {
                Some(Call { tool: "write_file", arguments: json!({"path": root.join(path), "content": content}) })
            }
            Self::TextEditor | Self::Hashline | Self::HashlineEdit => None,
        }
    }

    /// Whether one call can change several files.
    pub(crate) fn has_batches(self) -> bool {
        matches!(self, Self::Surehand | Self::TextEditor)
    }

    /// Changes many files: in one call if the server can, otherwise in one per file.
    pub(crate) fn batch(self, client: &mut Client, root: &Path, edits: &[Edit]) -> Result<Vec<Call>> {
        Ok(match self {
            Self::Surehand => {
                let edits: Vec<_> = edits.iter().map(replacement).collect();
                vec![Call { tool: "multi_edit", arguments: json!({"edits": edits}) }]
            }
            Self::TextEditor => {
                let files: Vec<_> = edits.iter().map(|edit| patch(client, root, edit)).collect::<Result<_>>()?;
                vec![Call { tool: "edit_text_file_contents", arguments: json!({"files": files}) }]
            }
            Self::Filesystem | Self::Hashline | Self::HashlineEdit => {
                edits.iter().map(|edit| self.edit(client, root, edit)).collect::<Result<_>>()?
            }
        })
    }
}

/// An edit for `edit_file`, or one of many for `multi_edit`.
fn replacement(edit: &Edit) -> Value {
    json!({"path": edit.path, "old_string": token(edit.from), "new_string": token(edit.to)})
}

/// A file of `edit_text_file_contents`, with the required hashes.
fn patch(client: &mut Client, root: &Path, edit: &Edit) -> Result<Value> {
    let (absolute, line) = (root.join(&edit.path), line_number(root, edit)?);
    let only = json!({"files": [{"file_path": absolute, "ranges": [{"start": line, "end": line}]}]});
    let answer: Value = serde_json::from_str(&client.call("get_text_file_contents", only)?.text).context("its answer")?;
    let file = &answer[absolute.to_str().context("a path that is not UTF-8")?];
    ensure!(file["file_hash"].is_string(), "no hash: {answer}");
    let contents = token_line(edit.to) + "\n";
    let range_hash = &file["ranges"][0]["range_hash"];
    let patch = json!({"line_start": line, "line_end": line, "range_hash": range_hash, "contents": contents});
    Ok(json!({"path": absolute, "file_hash": file["file_hash"], "patches": [patch]}))
}

/// The 1-based line of the token.
fn line_number(root: &Path, edit: &Edit) -> Result<usize> {
    let wanted = token_line(edit.from);
    let before = text(root, &edit.path)?.lines().position(|line| line == wanted);
    Ok(before.with_context(|| format!("{}: {wanted} is not there", edit.path))? + 1)
}

/// `LINE:HASH` of the token in an answer of the crate `hashline`.
fn anchor_in_json(answer: &str, edit: &Edit) -> Result<String> {
    let answer: Value = serde_json::from_str(answer).context("its answer")?;
    let lines = answer["data"]["lines"].as_array().context("no lines in its answer")?;
    let wanted = token_line(edit.from);
    let line =
        lines.iter().find(|line| line["content"] == wanted).with_context(|| format!("{}: {wanted} is not shown", edit.path))?;
    Ok(format!("{}:{}", line["n"], line["hash"].as_str().context("a line without a hash")?))
}

/// `LINE:HASH` of the token in an answer with rows of `LINE:HASH|text`.
fn anchor_in_text(answer: &str, edit: &Edit) -> Result<String> {
    let wanted = token_line(edit.from);
    let mut lines = answer.lines().filter_map(|line| line.split_once('|'));
    let found = lines.find(|(_, text)| *text == wanted);
    Ok(found.with_context(|| format!("{}: {wanted} is not shown", edit.path))?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit() -> Edit {
        Edit { path: "a.txt".into(), from: 0, to: 1 }
    }

    #[test]
    fn an_anchor_is_taken_from_the_line_of_the_token() {
        let shown = format!("File: a.txt (2 lines)\n\n```\n1:60|one\n2:b1|{}\n```", token_line(0));
        assert_eq!(anchor_in_text(&shown, &edit()).unwrap(), "2:b1");
    }

    #[test]
    fn a_token_that_is_not_shown_is_an_error() {
        assert!(anchor_in_text("1:60|one\n", &edit()).is_err());
    }

    #[test]
    fn our_batch_is_one_call() {
        let replaced = replacement(&edit());
        assert_eq!(replaced, json!({"path": "a.txt", "old_string": token(0), "new_string": token(1)}));
    }
}
