/**
 * Guards the file edits of a coding agent.
 *
 * Surehand tracks which lines of each file a model has seen. An edit that rests on stale content is refused, and the
 * refusal shows the model what it missed. Commits are atomic, and everything can be undone.
 *
 * ```js
 * import { Edit, Workspace } from "@surehand/sdk";
 *
 * const workspace = await Workspace.open(".");
 * const session = workspace.session();
 * await session.read("src/app.ts");
 * await session.edit(Edit.replace("src/app.ts", "colour", "color"));
 * await workspace.close();
 * ```
 *
 * Every call that may touch the disk runs on another thread, so the event loop goes on.
 *
 * @packageDocumentation
 */

/** The version of this package. */
export const version: string;

/** A path relative to the workspace, an absolute one, or a `file:` URL. */
export type PathLike = string | URL;

/** A range of lines, both ends included; the first line of a file is 1. */
export interface LineRange {
  start: number;
  end: number;
}

/** How to open a workspace. */
export interface OpenOptions {
  /** Settings such as `{"policy.on_change": "rebase"}`. They win over the user's file and the environment. */
  settings?: Record<string, unknown>;
  /** Another directory for the state. */
  stateDir?: PathLike;
  /** Views and changes end with the workspace, and no other process sees them. */
  inMemory?: boolean;
  /** Watches the tree, for a long-running program. */
  watch?: boolean;
}

/** How to begin a session. */
export interface SessionOptions {
  /** Continues the session with this id, or begins it. */
  id?: string;
  /** Other processes may use the session at the same time. Each call then reads from the store what they did. */
  shared?: boolean;
  /**
   * The tools of Surehand that the model has, or a mapping to the names that the model knows, such as
   * `{ read_file: "view" }`. No text for the model names another tool. By default it has all of them.
   */
  tools?: readonly ToolName[] | Partial<Record<ToolName, string>>;
}

/** The tools of Surehand. */
export type ToolName =
  | "read_file"
  | "list_files"
  | "search_files"
  | "edit_file"
  | "multi_edit"
  | "edit_lines"
  | "apply_patch"
  | "write_file"
  | "delete_file"
  | "move_file"
  | "undo"
  | "restore"
  | "repo_state"
  | "update_tasks"
  | "forget";

/** A tool as a model gets it. */
export interface ToolSpec {
  /** The name that the model calls. */
  name: string;
  /** What it does and when to use it. */
  description: string;
  /** The JSON schema of its arguments. */
  inputSchema: Record<string, unknown>;
}

/** The reply to a call. */
export interface Reply {
  /** The text for the model. */
  text: string;
  /** The result as an object. The reference of the tools lists its fields. */
  result: Record<string, unknown>;
  /** Why the call was refused. Only {@link Session.call} returns it; the other calls reject with it. */
  refusal: Refusal | undefined;
}

/** Which lines a read shows. */
export interface ReadOptions {
  /** The first line, from 1; from the end if negative. */
  offset?: number;
  /** The number of lines. */
  limit?: number;
  /** Several ranges instead. */
  ranges?: readonly LineRange[];
  /** Each line comes as `LINE#HASH|text`, for {@link Edit.lines}. */
  anchors?: boolean;
}

/** What to undo; by default the last change of the session. */
export interface UndoOptions {
  /** The last change of this file. */
  path?: PathLike;
  /** This change, with all its files. */
  change?: string;
  /** Everything that the session changed. */
  all?: boolean;
  /** The last undo. */
  redo?: boolean;
  /** Overwrites what others wrote since. */
  force?: boolean;
}

/** One edit by anchors. */
export interface LineEdit {
  op: "replace" | "delete" | "insert_before" | "insert_after" | "append" | "prepend";
  /** The first line, as `LINE#HASH`; not for `append` and `prepend`. */
  at?: string;
  /** The last line, for `replace` and `delete` of several. */
  to?: string;
  /** New lines without anchors; not for `delete`. */
  text?: string;
}

/**
 * An edit, for {@link Session.edit} or {@link Session.judge}. It is the call of one of the edit tools.
 */
export class Edit {
  /** The tool that makes this edit. */
  readonly tool: string;
  /** Its arguments. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The edit that a call of an edit tool means, such as `edit_lines` with its arguments. */
  constructor(tool: string, toolArguments: Record<string, unknown>);
  /** Replaces the only occurrence of an exact text, or every one with `all`. */
  static replace(path: PathLike, oldText: string, newText: string, options?: { all?: boolean }): Edit;
  /** Replaces several texts, in one file or more: all or none of them. */
  static replaceMany(replacements: readonly { path: PathLike; oldText: string; newText: string }[]): Edit;
  /** Edits lines by their anchors. */
  static lines(path: PathLike, edits: readonly LineEdit[]): Edit;
  /** Applies a patch: `*** Begin Patch`, or a unified diff. */
  static patch(patch: string): Edit;
  /** Writes a whole file. */
  static write(path: PathLike, content: string): Edit;
  /** Deletes a file. */
  static delete(path: PathLike): Edit;
  /** Moves or renames a file. */
  static move(source: PathLike, target: PathLike): Edit;
}

/** A directory tree with its state, which it shares with all processes on the same tree. */
export class Workspace {
  private constructor();
  /** The root. */
  readonly path: string;
  /**
   * Opens a workspace. The state is in `.git/surehand`, or in `~/.local/state/surehand` without a git repository. One
   * tree may be open several times.
   */
  static open(root?: PathLike, options?: OpenOptions): Promise<Workspace>;
  /** Begins a session, or continues one. This touches no file. */
  session(options?: SessionOptions): Session;
  /** The state of the repository, as a person sees it. */
  repoState(): Promise<RepoState>;
  /**
   * Ends all sessions, writes what is not yet stored, and releases the state. Waits for calls that are running; later
   * ones reject with {@link ClosedError}.
   */
  close(): Promise<void>;
  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** One model's context window in a workspace. Its calls run one after the other. */
export class Session {
  private constructor();
  /** Its id, under which it can be continued. */
  readonly id: string;
  /** The tools to give to the model. {@link Session.call} takes their calls. */
  tools(): ToolSpec[];
  /**
   * Carries out a tool call of the model. It does not reject with a refusal: that is in the reply, whose `text` goes to
   * the model in either case.
   */
  call(tool: string, toolArguments?: unknown): Promise<Reply>;
  /** Reads a file. The lines in the reply's `text` count as read, so give it to the model. */
  read(path: PathLike, options?: ReadOptions): Promise<Reply>;
  /**
   * Makes an edit, or rejects with the {@link Refusal}. The file is replaced atomically, and only if it is as the
   * session saw it.
   */
  edit(edit: Edit): Promise<Reply>;
  /**
   * Judges an edit that your own code is about to make, or rejects with the {@link Refusal}. It refuses only what the
   * gate knows: that a file was not read, is stale, was deleted, or was seen in part.
   */
  judge(edit: Edit): Promise<Permit>;
  /** Records an edit that your own code has made: the same as {@link Permit.adopt}. */
  adopt(permit: Permit): Promise<string>;
  /**
   * Judges an edit, lets `write` make it, and adopts it. Returns what `write` returned, and the note for the model.
   *
   * ```js
   * const { note } = await session.guard(Edit.write(path, text), () => fs.writeFile(path, text));
   * ```
   */
  guard<T>(edit: Edit, write: () => T | Promise<T>): Promise<{ value: T; note: string }>;
  /**
   * Records lines that your own code has shown to the model, beginning with line `start` (1). Only lines that are in
   * the file count. Returns their number.
   */
  shown(path: PathLike, content: string, options?: { start?: number }): Promise<number>;
  /** Records that the model has lost these files from its context, or everything: after a compaction, say. */
  forget(paths?: readonly PathLike[]): Promise<Reply>;
  /** Takes back changes of this session. What others wrote since is kept, unless `force`. */
  undo(options?: UndoOptions): Promise<Reply>;
  /** Whether a file has changed since the session saw it. One that it never saw counts as unchanged. */
  changedSinceRead(path: PathLike): Promise<boolean>;
  /** The instructions of the repository (`AGENTS.md`) for a file or directory, each given once to a session. */
  instructionsIfNew(path: PathLike): Promise<string | undefined>;
  /** The state of the repository, with the tasks that this session sees. */
  repoState(): Promise<RepoState>;
  /** Ends the session after the calls that are under way. A session with the same id can continue it. */
  close(): Promise<void>;
  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The permission for an edit that your own code makes. It counts as running until it is adopted, or garbage. */
export class Permit {
  private constructor();
  /**
   * What the model should know; empty if nothing. At first: what else changed in the file since it was read. Give it to
   * the model even if the edit fails, because the lines in it count as read.
   */
  readonly note: string;
  /** Records the edit that was made. Returns what the model should know about it, and adds that to `note`. */
  adopt(): Promise<string>;
}

/** The state of a repository at one moment: open tasks, and the files that sessions touched. */
export class RepoState {
  private constructor();
  /** The state in fewer than 500 tokens, for a prompt. Everything left out is counted. */
  formatForPrompt(): string;
  /** The whole state, as in `.surehand/repostate.json`. */
  toJSON(): RepoStateJson;
  toString(): string;
}

/** The state of a repository as an object. */
export interface RepoStateJson {
  work_dir: string;
  story_id: string;
  files: {
    path: string;
    hash: string;
    size: number;
    mod_time: string;
    type: string;
    status: "created" | "modified" | "unchanged" | "deleted";
    changed_outside?: boolean;
  }[];
  open_tasks: { description: string; status: "pending" | "in_progress"; priority: number }[];
  last_updated: string;
}

/** The base of all errors of this package. */
export class SurehandError extends Error {
  /** The stable name of the error. */
  readonly code: string;
}

/**
 * A call was refused: nothing was changed, and `text` tells the model what to do. The lines that `text` shows count as
 * read, so give it to the model.
 */
export class Refusal extends SurehandError {
  /** The file, relative to the workspace, if the refusal is about one. */
  readonly path: string | null;
  /** The lines to look at, in current numbers. */
  readonly affectedRanges: LineRange[];
  /** For an edit by anchors: the current anchor for each that is out of date. */
  readonly remaps: Record<string, string>;
  /** What to do next, in a few words. */
  readonly remedy: string;
  /** How often this exact call has been refused, including this time. */
  readonly repeat: number;
  /** The text for the model. */
  readonly text: string;
  /** The whole refusal, as `--json` gives it. */
  readonly details: Record<string, unknown>;
}

/** The session has not seen the file. */
export class UnreadRefusal extends Refusal {
  readonly code: "unread";
}
/** The file has changed since the session saw it. */
export class StaleRefusal extends Refusal {
  readonly code: "stale";
}
/** The file was deleted after the session saw it. */
export class DeletedRefusal extends Refusal {
  readonly code: "deleted";
}
/** The call would replace lines that were never seen. */
export class PartialRefusal extends Refusal {
  readonly code: "partial";
}
/** The file, or the text in it, does not exist. */
export class NotFoundRefusal extends Refusal {
  readonly code: "not_found";
}
/** The text to replace occurs more than once. */
export class AmbiguousRefusal extends Refusal {
  readonly code: "ambiguous";
}
/** The call would change nothing. */
export class NoChangeRefusal extends Refusal {
  readonly code: "no_change";
}
/** Anchors do not name the lines that the session saw. */
export class AnchorMismatchRefusal extends Refusal {
  readonly code: "anchor_mismatch";
}
/** Two edits of one call touch the same lines. */
export class OverlapRefusal extends Refusal {
  readonly code: "overlap";
}
/** A file exists where the call would create one. */
export class ExistsRefusal extends Refusal {
  readonly code: "exists";
}
/** The file is binary. */
export class BinaryRefusal extends Refusal {
  readonly code: "binary";
}
/** The bytes are not valid in their encoding, or the new text does not fit it. */
export class EncodingRefusal extends Refusal {
  readonly code: "encoding";
}
/** The patch has invalid syntax. */
export class BadPatchRefusal extends Refusal {
  readonly code: "bad_patch";
}
/** Something exceeds a limit. */
export class TooLargeRefusal extends Refusal {
  readonly code: "too_large";
}
/** The path is outside the workspace. */
export class OutsideWorkspaceRefusal extends Refusal {
  readonly code: "outside_workspace";
}
/** The path belongs to git or to Surehand. */
export class ProtectedRefusal extends Refusal {
  readonly code: "protected";
}
/** The range of lines is invalid. */
export class BadRangeRefusal extends Refusal {
  readonly code: "bad_range";
}
/** The arguments do not fit the tool. */
export class BadArgumentsRefusal extends Refusal {
  readonly code: "bad_arguments";
}
/** Other programs kept changing the file during the attempts. */
export class ConflictRefusal extends Refusal {
  readonly code: "conflict";
}
/** A system call failed. */
export class IoRefusal extends Refusal {
  readonly code: "io";
}

/** An argument that no call could use. */
export class InvalidArgumentError extends SurehandError {
  readonly code: "bad_argument";
}
/** A setting that does not exist, or a value that does not fit. */
export class SettingsError extends SurehandError {
  readonly code: "bad_settings";
}
/** The workspace cannot be opened. */
export class OpenError extends SurehandError {
  readonly code: "cannot_open";
}
/** The workspace or the session was closed. */
export class ClosedError extends SurehandError {
  readonly code: "closed";
}
/** An earlier call of the session failed half-way. Open a new session. */
export class BrokenSessionError extends SurehandError {
  readonly code: "broken";
}
