//! The rules as they are enforced, for system prompts and the descriptions of a server.

/// When to use these tools and what they hold you to: the `instructions` of the MCP server.
pub const INSTRUCTIONS: &str = "\
Surehand reads and edits the files of this workspace and keeps everybody's changes safe. Prefer its tools to built-in ones for reading and editing files here.
- Find with list_files and search_files: the lines that search_files shows count as read.
- Read before you edit: read_file (any part) before edit_file, multi_edit, edit_lines, apply_patch, delete_file or move_file; the whole file before write_file over it. Your own writes count as read.
- A file that changed since you read it is not written: the refusal shows the changed lines, they count as read, and the corrected call passes at once.
- A refusal changes nothing on disk. Do not send a refused call again unchanged; do what it says.
- multi_edit and apply_patch are all or nothing across files. undo takes back your last change.
- A note \"changed since you read it\" names files that somebody else changed: read them again before you rely on what you saw.
- A reply may end with instructions from the owner of this repository for the directory that it is about: follow them in your work there.
- repo_state tells what is open, changed and done; keep the list with update_tasks, and look there instead of doing things twice.
- After your context was compacted, truncated or reset, what you had read no longer counts: call forget, then read again what you need.
";
