//! The reference pages are generated from the program. `UPDATE_REFERENCE=1` writes them.
#![expect(clippy::disallowed_methods, reason = "writes the pages when asked to")]

use std::{fmt::Write, fs, path::Path, process::Command};

use serde_json::Value;
use surehand_engine::{KEYS, RepositoryRule, Tool, ToolNames, tools};

/// Reflows paragraphs to 120 columns. Tables, headings and code stay as they are.
fn wrap(page: &str) -> String {
    const WIDTH: usize = 120;
    let mut lines: Vec<String> = Vec::new();
    let (mut is_code, mut is_prose) = (false, false);
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || line.is_empty() || line.starts_with(['|', '#']) {
            lines.push(line.to_owned());
            is_prose = false;
            continue;
        }
        for word in line.split_whitespace() {
            match lines.last_mut() {
                Some(last) if is_prose && last.chars().count() + 1 + word.chars().count() <= WIDTH => {
                    *last = format!("{last} {word}");
                }
                _ => lines.push(word.to_owned()),
            }
            is_prose = true;
        }
    }
    lines.join("\n") + "\n"
}

#[track_caller]
fn check(page: &str, content: &str) {
    let content = wrap(content);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &content).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == content, "docs/reference/{page} is not up to date: run the tests once with UPDATE_REFERENCE=1");
}

#[test]
fn tools() {
    let mut page = String::from(
        "# Tools\n\nGenerated from the tools themselves. MCP, `surehand call` and the library all offer these tools with these descriptions.\n",
    );
    let names = ToolNames::default();
    for tool in Tool::ALL {
        write!(
            page,
            "\n## {}\n\n{}\n\n| argument | type | meaning |\n|---|---|---|\n",
            tool.name(),
            tools::description(tool, &names)
        )
        .unwrap();
        let schema = tools::input_schema(tool, &names);
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        rows(&mut page, "", &Value::Object(schema.clone()), &required);
    }
    page.push_str(RESULTS);
    check("tools.md", &page);
}

fn rows(page: &mut String, prefix: &str, schema: &Value, required: &[&str]) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let kind = match field["type"].as_str() {
            Some("array") => "list".to_owned(),
            Some(kind) => kind.to_owned(),
            None => "string".to_owned(),
        };
        let choices: Vec<String> =
            field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(|c| format!("`{c}`")).collect();
        let meaning = [field["description"].as_str().unwrap_or_default().to_owned(), choices.join(" ")].join(" ");
        writeln!(page, "| `{prefix}{name}{optional}` | {kind} | {} |", meaning.trim().replace('\n', " ").replace('|', "\\|"))
            .unwrap();
        let items = &field["items"];
        let inner: Vec<&str> = items["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        rows(page, &format!("{prefix}{name}[]."), items, &inner);
    }
}

const RESULTS: &str = "
## Results

A result is text for the model. Programs get the same as one JSON object: from `surehand call --json` (with the text), in `Reply::result`, and over MCP in the result's `_meta[\"surehand/result\"]` if the call's `_meta` has `\"surehand/result\": true`. Without that, the result has no object, because some clients show it to the model.

The text starts with the tool's own output. Then come [instructions](../guide/instructions.md), from a line that begins with `--- instructions for work in ` to `--- end of instructions ---`, and then lines that begin with `note: `. The text of a refusal begins with `Error:`, and nothing on disk has changed.

Every result:

| field | present | meaning |
|---|---|---|
| `success` | always | Whether the call was carried out. |
| `changed_elsewhere` | if there are any | `[{path, deleted, by}]`: files that changed since they were read. |
| `instructions` | if some are in the text | The paths of these files. |
| `warnings` | if there are any | What else happened, as text. |

For a file that was read or changed. `multi_edit`, `apply_patch`, `undo` and `restore` have one such object per file in `files`; if there is only one file, its fields are also at the top level:

| field | present | meaning |
|---|---|---|
| `path` | always | The file, relative to the root. |
| `version` | unless it was deleted | The SHA-256 of its content. |
| `total_lines` | for text | Its number of lines. |
| `shown` | for text | The lines shown in full, as `[{start, end}]`; they count as read. |
| `unchanged` | `read_file` | The content that the session has seen is still current, and was not shown again. |
| `diff` | after a change | The diff, as far as the model was shown it. |
| `shifted` | after a change | `[{after, by}]`: lines after this old number moved by this many. |
| `first_changed_line` | after a change | The first changed line, in the new numbering. |
| `created` | for a new file | `true`. |
| `deleted` | for a deleted file | `true`. |
| `from` | after a move | Its previous path. |
| `rebased` | after an outside change | `{changed}`: lines changed by others; the edit was applied beside them. |
| `rewritten` | if a program rewrote it at once | `true`: the file is not what was sent. |
| `written` | if not written by an exchange | How it was written, and what that means. |
| `noop` with `message` | `write_file` | The file already had this content, and nothing was written. |
| `rewrites` | `write_file` | How often it was written in full with little change. |
| `change` | after a change | The name of the change, for `undo`, `log` and `diff`. |
| `undone` | `undo` | The changes that were undone, with nothing left of them. |
| `redone` | `undo`, if it took an undo back | The changes that are there again: `{change, tool, session}` of each. |
| `partly_undone` | `undo`, if something was left | The changes that were undone in part. |
| `left` | `undo` and `restore`, if something was left; also in a refusal | What was left: `[{path, why, hunks}]`, `hunks: [{change, why, lines, below, wanted}]`. `lines` are the present lines, `{start, end}`, or null for a place below line `below`; `wanted` are the lines that would come. `why` is `lines_changed`, `lines_in_doubt`, `unencodable`, `encoding_changed`, `deleted`, `not_text`, `not_kept`, `moved`, `name_taken`, `entry_changed` or, with a sentence in `reason`, `failed`. |
| `entries` | `undo` and `restore`, if links, directories or permissions came back | What the paths are now: `[{path, is}]`; `is` is `link` (with `target`), `directory`, `file` (with `mode` if only that changed) or `nothing`. |

Other tools:

| tool | fields |
|---|---|
| `list_files` | `files` (paths), `directories: [{path, files}]` for directories shown as counts, `total`, `cut` (whether something was left out) |
| `search_files` | `files: [{path, version, total_lines, matches, shown}]`, `total` matches and `total_files` including those not shown, `cut` |
| `repo_state` | `files_tracked`, `open_tasks` (a count) |
| `update_tasks` | `story_id`, `tasks: [{id, description, status, priority, story, owner}]` of this story, `open_tasks` (a count), `tasks_of_others` (the open ones); for shared tasks instead `story_id`, `claimed` (the number of the task that the caller has got, or null), `shared_tasks: [{id, description, status, priority, mine, by}]` |
| `forget` | `forgotten` (paths), unless everything was forgotten |

A refusal has `success: false` and `refusal`, with these fields:

| field | present | meaning |
|---|---|---|
| `code` | always | The kind of refusal, see below. |
| `path` | always | The file, or null. |
| `affected_ranges` | always | The conflicting lines of the edit or of the file, as `[{start, end}]`. |
| `remaps` | always | An object from the sent anchor to the line's current anchor. |
| `repeat` | always | How often the same call was refused. |
| `remedy` | always | What to do, as text. |
| `mismatches` | for anchors that do not match what was seen | `[{line, anchor, expected, found, why}]` |
| `version` | if lines of the file are shown | The version of those lines. |

Codes: `unread` `stale` `deleted` `partial` `not_found` `ambiguous` `no_change` `anchor_mismatch` `overlap` `exists` `binary`
`encoding` `too_large` `outside_workspace` `protected` `bad_range` `bad_arguments` `conflict` `claimed` `collision` `io`.
";

/// Every field that is put into a result occurs in the source.
#[test]
fn every_field_of_a_result_is_documented() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/render/json.rs");
    let source = fs::read_to_string(source).unwrap();
    let names = source.split('"').skip(1).step_by(2);
    let is_field = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let fields: Vec<&str> = names.filter(is_field).collect();
    assert!(fields.len() > 40, "{fields:?}");
    let words: Vec<&str> = RESULTS.split(|c: char| !c.is_ascii_lowercase() && c != '_').collect();
    for field in fields {
        assert!(words.contains(&field), "{field}");
    }
}

#[test]
fn settings() {
    let mut page = String::from(
        "# Settings\n\nGenerated from the settings themselves. Surehand reads your own `~/.config/surehand/surehand.toml`, then `surehand.toml` in the root \
         of the workspace, then the environment (`policy.durability` is `SUREHAND_POLICY_DURABILITY`). The environment wins. An unknown key in your \
         own file is an error that names the nearest known one.\n\nA repository can make protection stricter, never weaker: the last column says what its \
         `surehand.toml` may set. Surehand ignores everything else there. It also ignores the whole file if it is not valid, is a link or not a regular \
         file, or has more than 64 KiB. `surehand doctor` and `surehand run` name what is ignored.\n\n| key | takes | default | meaning | a repository may set |\n|---|---|---|---|---|\n",
    );
    for key in KEYS {
        let repository = match key.repository {
            RepositoryRule::Nothing => "nothing",
            RepositoryRule::Only { what, .. } => what,
        };
        writeln!(page, "| `{}` | {} | `{}` | {} | {repository} |", key.name, key.wanted, key.default(), key.meaning).unwrap();
    }
    page.push_str(
        "\nFor tests, in debug builds only: `SUREHAND_TEST_KILL_AFTER=N` makes a process kill itself (SIGKILL) after step N of its next commit.\n\n\
         Output and exit codes of the commands: [commands](commands.md).\n",
    );
    check("settings.md", &page);
}

/// A command: its name, when it exits with 1 (0 means done, 2 an error), and its output with `--json`.
struct Documented {
    name: &'static str,
    ends: &'static str,
    json: &'static str,
}

const NO_JSON: &str = "";

const COMMANDS: &[Documented] = &[
    Documented {
        name: "init",
        ends: "1 if something was not written because it was not confirmed, or if no client was found",
        json: "An object: `root`, `program` (how it is called from here), `note` (why that is a full path, or null) and
`clients: [{client, installed, scope, state, error, guarded, limits, files, next}]`, one per client and scope. `scope`: `me`, `everywhere`, `project`.
`state`: `done`, `nothing` (to do), `planned` (a dry run), `not_asked` (without `--yes`), `failed` (then `error` says why, the exit code is 2, and the other
clients are still set up). `guarded` and `limits` say what is guarded and what cannot be. `files: [{path, act, what, diff, backup, note}]`, `act`: `create`, `change`,
`remove`, `none`; `what` is what Surehand adds; `backup` is the copy of the original file, or null. `next`: what is left for the user to do.",
    },
    Documented {
        name: "doctor",
        ends: "1 if a check warns or fails",
        json: "An object: `ok` (no check warns or fails), `protected` (some client is guarded here), `clients: [{client, installed, guarded, scopes, limits}]`
(installed or set up; `scopes` are those with hooks) and `checks: [{about, state, what, remedy}]`, `state`: `ok`, `note`, `warn`, `fail`;
`remedy` may be null.",
    },
    Documented {
        name: "status",
        ends: "",
        json: "An object: `work_dir`, `story_id`, `files: {created, modified, deleted, unchanged, changed_outside}` (lists of paths; `unchanged` is a
number), `sessions: [{session, files, stale}]` (how many files each session has seen, and which of them changed since), `open_tasks: [{id, description, status, priority, story, owner}]`,
`last_change: {change, at, tool, session}` or null, `rescued` (paths), `notices`.",
    },
    Documented {
        name: "snapshot",
        ends: "",
        json: "An object, as in `.surehand/repostate.json`: `work_dir`, `story_id`, `files: [{path, hash, size, mod_time, type, status}]`,
`open_tasks: [{description, status, priority}]`, `last_updated`. A file whose current content no session has seen also has `changed_outside: true`.",
    },
    Documented {
        name: "tasks",
        ends: "",
        json: "An object: `story_id`, `tasks: [{id, description, status, priority, story, owner}]` (all of the story), `status`: `pending`, `in_progress`,
`completed`, `cancelled`; `owner` is `run ID` or `session ID`, and absent if a person added the task. `tasks_of_others` are the open tasks of other
stories. Commands that change tasks print the same object.",
    },
    Documented {
        name: "log",
        ends: "",
        json: "An array, newest first. Each entry has `id`, `at` and `kind`: `change`, `undo`, `restore`, `checkpoint`, `outside`, `refusal`, `rescue`.
Changes, undos and restores: `{change, session, tool, undone, files}`, `files: [{path, moved_to, before, after, undoes}]`;
`before` and `after` are versions, null if there was no file; `undoes` names the changes that it undid. With `--session`, a change in another workspace has its root in `workspace`.
Checkpoints: `{checkpoint, name, until, session, occasion, commit, files, took_ms, not_kept}`. `until` is when it was last found to be still so,
`files` how many files are not as `commit` has them; `not_kept: [{path, why}]`. Files changed by other programs: `{path, before, after, noticed_by}`; `noticed_by` is a session.
Refusals: `{session, tool, path, code, repeat}`. Rescued files: `{path, file, size, dropped}`, and once applied or dropped `{session, path, version, dropped}`.",
    },
    Documented {
        name: "show",
        ends: "",
        json: "An object: the entry as in `surehand log`, with `diffs: [{path, diff}]`; `diff` is null if it cannot be shown. Of a checkpoint they lead from its commit to the checkpoint,
of a rescued file from what is there now to what was rescued. Of a run: as in `surehand runs`, with `events` (those of
[surehand run --json](run-events.md), as they were recorded), or for one turn with `turn: {turn, prompt, events}`;
`prompt: {system, messages, tools}` is null if it was not recorded.",
    },
    Documented {
        name: "runs",
        ends: "",
        json: "An array, the latest first: `[{run, state, last_active, prompts, story, turns, usage, seconds, model, mode, session}]`. `state`: `running`,
`interrupted` (its process was killed), or why it stopped: `done`, `budget`, `stuck`, `cancelled`, `model`. `usage`: `{input, cached, output, cost}`.
`prompts` says whether prompts were recorded. If `run.json` cannot be read, `damaged` says why, and the fields after `prompts` are missing.",
    },
    Documented {
        name: "sessions",
        ends: "",
        json: "An array, the one that was active last first: `[{session, name, client, last_active, changes, seen, stale}]`; `seen` and `stale` are paths, `changes` is a number.",
    },
    Documented {
        name: "rescued",
        ends: "1 if nobody said yes",
        json: "An array: `[{id, at, path, file, size, dropped}]`; `path` is null if it is not known. `show` prints the one object with `diff`, `apply` prints `{applied, path, changes}`
(names for `undo`), `drop` prints `{dropped}`, the names.",
    },
    Documented { name: "checkpoint", ends: "", json: "An object, as in `surehand log`: `{checkpoint, name, at, until, session, occasion, commit, files, took_ms, not_kept: [{path, why}]}`. If nothing has changed since the last one, it is that one." },
    Documented {
        name: "restore",
        ends: "1 when nothing was restored because nobody said yes, or a file could not be restored",
        json: "An object: `to` (the time), `checkpoint` (the one it goes by, or null), `before` (the checkpoint of what was there, null if nothing was done), `files: [{path, act}]` and
`left: [{path, why}]` (what stays though it was different then); `act`: `create`, `overwrite`, `delete`, `set_mode`; `restored` (whether it was done). If so, `changes`
(names for `undo`), `done: [{path, act}]` and `failed: [{path, why}]`.",
    },
    Documented {
        name: "blame",
        ends: "",
        json: "An object: `path`, `total_lines`, `removed_by` (the author, if the file is gone) and `runs`: `[{start, end, lines, by}]`, with what is known of \
               the author. `by` is `session` or `command` (`session`, `name`, `tool`, `command`, `change`, `at`), `outside` (`at`: it was there not later than \
               this) or `commit` (`commit`, `author`, `summary`, `at`).",
    },
    Documented {
        name: "diff",
        ends: "",
        json: "An array of files: `[{path, from, before, after, diff, workspace}]`; `from` is the previous path, `diff` a unified diff, `workspace` the root of the paths. \
               With `--session` also `left`, what of the session cannot be told apart from the work of others: `[{lines, removed, why, others}]`. `lines` is `{start, end}` \
               in the present file, `removed` in the one before; both are null if it is about the whole file. `why` is `replaces_others`, `replaced_by_others`, `among_others`, \
               `not_text`, `removed`, `recreated`, `moved`, `not_committed`, `ignored`, `staged`, `converted`, `not_kept`, `not_a_file` or `submodule`; `others` has authors \
               as in `blame`.",
    },
    Documented {
        name: "commit",
        ends: "1 if nothing was committed: there is nothing to commit, a merge or rebase is in progress, or git or a hook refused. The index is then as it was",
        json: "An object: `commit` (the id, or null), `files: [{path, from, added, removed}]`, `left: [{path, left}]` (as in `diff`), `committed` (the paths of the commit, \
               those that hooks added included) and, with `--dry-run`, `patch`.",
    },
    Documented {
        name: "undo",
        ends: "1 if it is refused, because nothing can be taken back without losing later changes, or because there is nothing to undo",
        json: "A result object (below), with `undone: [change]`, and `partly_undone` and `left` if something was left. With `--session`, if the session has worked in several workspaces, an array of such objects, each with its `workspace`.",
    },
    Documented {
        name: "redo",
        ends: "1 if it is refused, because nothing can be brought back without losing later changes, or because there is no undo to take back",
        json: "A result object, as of `undo`: `undone` names the undos that were taken back, and `redone: [{change, tool, session}]` the changes that are there again.",
    },
    Documented {
        name: "scan",
        ends: "",
        json: "An object: `files` (a count), `first` (whether there was no earlier scan to compare with), `created`, `modified`, `deleted`, `ignored` (paths),
`unreadable: [{path, why}]`, `unnamed`, `hashed`, `bytes_hashed`, `seconds`.",
    },
    Documented {
        name: "board",
        ends: "",
        json: "An object: `repository: {id, origin}` (`origin`: `computed`, `random`, `joined`), `place` (where the board is), `age` (of the local copy, in milliseconds, or null), `trouble` (why it is not
current, or null), `agents: [{name, session, client, alive, seen_ago, host, root, here, branch, story, tasks, claims}]` (`here`: in this checkout; `seen_ago` in milliseconds),
`stories: [{story, tasks: [{id, description, priority, status, by, fence: {timeline, counter}, lasts, abandoned}]}]`, `claims: [{id, pattern, by, lasts}]` (`lasts` in milliseconds),
`changes: [{host, root, here, path, kind, lines: [{start, end}], by}]` (`kind`: `lines`, `deleted`, `binary`), `forecasts: [{agent, branch, path, seconds_ago, forecast}]` (`forecast`: `same_lines`,
`deleted`, `binary` or `unknown`, with the conflicts) and `headlines: [{at, id, checkout, agent, kind, path, summary}]`. With `--watch` such an object per line, for each change.",
    },
    Documented {
        name: "helper",
        ends: "",
        json: "With `--status` an object: `running`, `helper: {process, program, boards: [{repository, place, roots, agents, read_at, trouble}]}` (null if it does not run). With `--stop`: `stopped`.",
    },
    Documented {
        name: "usage",
        ends: "",
        json: "An object: `bytes` (in all), `repositories: [{path, bytes, gone, checkouts, versions, changes, checkpoints, other_entries, views, sessions}]`; kinds are
`{count, bytes}`, `sessions` is how many have the `views`; if the database cannot be read, `unreadable` says why instead. `checkouts: [{checkout, root, is, bytes, rescued, runs, staged}]`,
`is`: `there`, `gone`, `set_aside`. With `--all` also `unreadable: [{path, why}]`, `boards: [{path, bytes, roots, unreadable, gone}]`, `sessions: {count, bytes, gone}` (where sessions worked) and
`hook_log` (bytes).",
    },
    Documented {
        name: "clean",
        ends: "1 when nothing was removed because nobody said yes, or something could not be removed",
        json: "An object of what there is to remove: `before` (the moment of `--older-than`), `versions`, `changes`, `checkpoints`, `other_entries` and `views` (each
`{count, bytes}`), `named_checkpoints` (those among them with a name), `sessions` (how many have these views), `runs: [{run, story, resumable}]`, `busy_runs` (ids of those that stay), `rescued` (as in `surehand rescued`: `[{id, at, path, file, size, dropped}]`),
`gone: [{state, checkout, root, bytes}]` (`checkout` is null for the whole state), `boards: [{path, roots}]`, `gone_sessions` (a number), `removed` (whether it was done). If so, `freed` (bytes) and `failed: [{what, why}]`.",
    },
    Documented { name: "call", ends: "1 if the call is refused", json: "A result object (below)." },
    Documented {
        name: "run",
        ends: "1 if a budget was used up or the run made no progress, 2 also if the model does not answer, 130 if the run was stopped",
        json: "One line per event, each an object with `event`: `started`, `turn`, `text`, `calling`, `again`, `said`, `call`, `result`, `left`, `folded`,
`turn_ended`, `stopped`. The last is `stopped: {stop, text}`, `stop`: `done`, `budget`, `stuck`, `cancelled`, `model`.",
    },
    Documented { name: "ui", ends: "", json: "An object, before the page is served: `{url, workspace, pid}`; `url` has the token. With `--export`: `{file, session, bytes}`." },
    Documented { name: "demo", ends: "", json: "One object: `{modes: {snapshot, history}, plain}`, each with `{turns: [{turn, prompt_tokens}], writes_per_file: {path: count}, lost_updates, refusals, repairs, seconds}`. With `--ui`, as of `surehand ui`." },
    Documented { name: "mcp", ends: "", json: NO_JSON },
    Documented {
        name: "hook",
        ends: "1 if the arguments are wrong; never 2, which clients take as a denial. All other failures are logged, with exit code 0",
        json: NO_JSON,
    },
    Documented { name: "completions", ends: "", json: NO_JSON },
    Documented { name: "man", ends: "", json: NO_JSON },
    Documented {
        name: "self",
        ends: "",
        json: "An object: `version`, `program` (its path), `installed_by` (`npm`, `npx`, `pip`, `uv tool`, `pipx`, `uvx`, `dpkg`, `cargo`, `surehand init` for a copy that it made, or `hand`), `update` and `remove` (commands; `remove` is null if the file is to be removed by hand), `settings` and `state` (the directories of this user).",
    },
];

fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_surehand")).args(words).arg("--help").env("COLUMNS", "100").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The command names in the command list of a help text.
fn commands_of(help: &str) -> Vec<&str> {
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    list.lines().filter(is_name).map(|line| line.split_whitespace().next().unwrap()).filter(|name| *name != "help").collect()
}

#[test]
fn commands() {
    let mut page = String::from(
        "# Commands\n\nGenerated from the help of the commands. Exit codes: 0 done, also if there is nothing to show; 1 the answer is no: it was refused or not confirmed, \
         there was nothing to do it to, or something checked is wrong (see each command); 2 an error: what was named does not exist, or it could not be done; \
         130 stopped by a signal.\n\nStandard output has what was asked for, standard error why not (`error: ...`) and notes.\n\nWith `--json`, standard output contains only JSON. An error is then an object as well, `{\"error\": \"why\"}` with exit code 2; without \
         `--json` it is a line on standard error. Colours appear only on a terminal, and not with `NO_COLOR`.\n",
    );
    let all = help(&[]);
    let mut named: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let mut known = commands_of(&all);
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known, "every command is documented");
    for command in COMMANDS {
        let text = help(&[command.name]);
        assert_eq!(text.contains("--json"), command.json != NO_JSON, "{}", command.name);
        write!(page, "\n## surehand {}\n\n```text\n{}\n```\n", command.name, text.trim_end()).unwrap();
        if !command.ends.is_empty() {
            write!(page, "\nExit code {}.\n", command.ends).unwrap();
        }
        if command.json != NO_JSON {
            write!(page, "\n`--json`: {}\n", command.json).unwrap();
        }
    }
    page.push_str("\n## Result objects\n\nWith `--json`, `call` and `undo` print the [result](tools.md#results) of the tool, with its `text`.\n");
    check("commands.md", &page);
}

/// The output has exactly the fields that the page names.
#[test]
fn json_is_as_it_is_documented() {
    let dir = surehand_testkit::repository();
    let json = |words: &[&str]| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_surehand"));
        let output = command.args(words).args(["--json", "--root"]).arg(dir.path()).env("HOME", dir.path()).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    json(&["call", "write_file", r#"{"path": "a.txt", "content": "x\n"}"#]);
    json(&["tasks", "add", "something"]);
    json(&["checkpoint"]);
    fs::write(dir.path().join("surehand.toml"), "").unwrap();
    for words in [
        &["init", "claude"][..],
        &["doctor"],
        &["status"],
        &["snapshot"],
        &["tasks"],
        &["log"],
        &["sessions"],
        &["rescued"],
        &["diff"],
        &["blame", "a.txt"],
        &["scan"],
        &["checkpoint"],
        &["restore", "--to", "0s", "--dry-run"],
        &["usage"],
        &["clean", "--sessions", "--runs", "--rescued", "--gone", "--versions", "--older-than", "0s", "--dry-run"],
    ] {
        let page = COMMANDS.iter().find(|command| command.name == words[0]).unwrap().json;
        let mut missing = Vec::new();
        fields(&json(words), &mut |name| missing.extend((!has_word(page, name)).then(|| name.to_owned())));
        assert_eq!(missing, Vec::<String>::new(), "{words:?}");
    }
}

fn fields(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            see(name);
            fields(value, see);
        }),
        Value::Array(items) => items.iter().for_each(|item| fields(item, see)),
        _ => {}
    }
}

fn has_word(page: &str, word: &str) -> bool {
    page.split(|c: char| !c.is_alphanumeric() && c != '_').any(|other| other == word)
}
