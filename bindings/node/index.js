// The classes of @surehand/sdk over its native module. index.d.ts documents them.
"use strict";

const native = require("./native.js");

class SurehandError extends Error {
  constructor(code, message) {
    super(message);
    this.name = this.constructor.name;
    this.code = code;
  }
}

class Refusal extends SurehandError {
  constructor(report) {
    super(report.code, report.text);
    const { path, affectedRanges, remaps, remedy, repeat, text, details } = report;
    Object.assign(this, { path, affectedRanges, remaps, remedy, repeat, text, details });
  }
}

class UnreadRefusal extends Refusal {}
class StaleRefusal extends Refusal {}
class DeletedRefusal extends Refusal {}
class PartialRefusal extends Refusal {}
class NotFoundRefusal extends Refusal {}
class AmbiguousRefusal extends Refusal {}
class NoChangeRefusal extends Refusal {}
class AnchorMismatchRefusal extends Refusal {}
class OverlapRefusal extends Refusal {}
class ExistsRefusal extends Refusal {}
class BinaryRefusal extends Refusal {}
class EncodingRefusal extends Refusal {}
class BadPatchRefusal extends Refusal {}
class TooLargeRefusal extends Refusal {}
class OutsideWorkspaceRefusal extends Refusal {}
class ProtectedRefusal extends Refusal {}
class BadRangeRefusal extends Refusal {}
class BadArgumentsRefusal extends Refusal {}
class ConflictRefusal extends Refusal {}
class IoRefusal extends Refusal {}

class InvalidArgumentError extends SurehandError {}
class SettingsError extends SurehandError {}
class OpenError extends SurehandError {}
class ClosedError extends SurehandError {}
class BrokenSessionError extends SurehandError {}

const REFUSALS = {
  unread: UnreadRefusal,
  stale: StaleRefusal,
  deleted: DeletedRefusal,
  partial: PartialRefusal,
  not_found: NotFoundRefusal,
  ambiguous: AmbiguousRefusal,
  no_change: NoChangeRefusal,
  anchor_mismatch: AnchorMismatchRefusal,
  overlap: OverlapRefusal,
  exists: ExistsRefusal,
  binary: BinaryRefusal,
  encoding: EncodingRefusal,
  bad_patch: BadPatchRefusal,
  too_large: TooLargeRefusal,
  outside_workspace: OutsideWorkspaceRefusal,
  protected: ProtectedRefusal,
  bad_range: BadRangeRefusal,
  bad_arguments: BadArgumentsRefusal,
  conflict: ConflictRefusal,
  io: IoRefusal,
};

const ERRORS = {
  bad_argument: InvalidArgumentError,
  bad_settings: SettingsError,
  cannot_open: OpenError,
  closed: ClosedError,
  broken: BrokenSessionError,
};

// A newer native module may have codes that this file does not know.
const refusalOf = (report) => new (REFUSALS[report.code] ?? Refusal)(report);
const errorOf = ({ code, message }) => new (ERRORS[code] ?? SurehandError)(code, message);

/** The value of an answer of the native module, or its error. */
function valueOf(json) {
  const answer = JSON.parse(json);
  if (answer.refused) throw refusalOf(answer.refused);
  if (answer.error) throw errorOf(answer.error);
  return answer.ok;
}

function replyOf(reply) {
  return { ...reply, refusal: reply.refusal ? refusalOf(reply.refusal) : undefined };
}

function invalid(why) {
  return new InvalidArgumentError("bad_argument", why);
}

/** A path as text. The native module takes no other. */
function pathOf(path) {
  if (path instanceof URL) return require("node:url").fileURLToPath(path);
  if (typeof path !== "string") throw invalid(`a path must be a string or a file URL, not ${typeof path}`);
  return path;
}

/** JSON as the native module takes it. What JSON would turn into null or leave out is an error. */
function jsonOf(value) {
  return JSON.stringify(value, (key, part) => {
    const isOdd = ["bigint", "function", "symbol"].includes(typeof part);
    if (isOdd || (typeof part === "number" && !Number.isFinite(part))) throw invalid(`${key}: ${String(part)} is not JSON`);
    return part;
  });
}

class Edit {
  constructor(tool, toolArguments) {
    if (typeof tool !== "string") throw invalid("the tool of an edit must be a string");
    this.tool = tool;
    this.arguments = toolArguments;
    Object.freeze(this);
  }

  static replace(path, oldText, newText, { all = false } = {}) {
    return new Edit("edit_file", { path: pathOf(path), old_string: oldText, new_string: newText, replace_all: all });
  }

  static replaceMany(replacements) {
    const edit = ({ path, oldText, newText }) => ({ path: pathOf(path), old_string: oldText, new_string: newText });
    return new Edit("multi_edit", { edits: replacements.map(edit) });
  }

  static lines(path, edits) {
    return new Edit("edit_lines", { path: pathOf(path), edits });
  }

  static patch(patch) {
    return new Edit("apply_patch", { patch });
  }

  static write(path, content) {
    return new Edit("write_file", { path: pathOf(path), content });
  }

  static delete(path) {
    return new Edit("delete_file", { path: pathOf(path) });
  }

  static move(source, target) {
    return new Edit("move_file", { from: pathOf(source), to: pathOf(target) });
  }
}

function editJson(edit) {
  if (!(edit instanceof Edit)) throw invalid("an edit must be an Edit");
  return jsonOf({ tool: edit.tool, arguments: edit.arguments });
}

class RepoState {
  #state;

  constructor(state) {
    this.#state = state;
  }

  formatForPrompt() {
    return this.#state.prompt;
  }

  toJSON() {
    return JSON.parse(this.#state.json);
  }

  toString() {
    return this.formatForPrompt();
  }
}

// The constructors of the next classes are for this file only.
const INTERNAL = Symbol("internal");

function checkInternal(key, how) {
  if (key !== INTERNAL) throw new TypeError(`use ${how}`);
}

class Permit {
  #session;

  constructor(key, session, note) {
    checkInternal(key, "session.judge");
    this.#session = session;
    this.note = note;
  }

  async adopt() {
    return this.#session.adopt(this);
  }
}

/** The handles of the native module, which people do not see. */
const permits = new WeakMap();

class Session {
  #native;
  #workspace;
  #last = Promise.resolve();

  constructor(key, workspace, handle, id) {
    checkInternal(key, "workspace.session");
    // Held, so that it is closed at the end of the process.
    this.#workspace = workspace;
    this.#native = handle;
    this.id = id;
  }

  /** Runs one call at a time: others would only wait for it on threads that all of Node shares. */
  async #run(call) {
    const answer = this.#last.then(call, call);
    this.#last = answer;
    return valueOf(await answer);
  }

  tools() {
    return valueOf(this.#native.tools());
  }

  async call(tool, toolArguments) {
    const call = jsonOf({ tool, arguments: toolArguments ?? {} });
    return replyOf(await this.#run(() => this.#native.call(call)));
  }

  async read(path, options = {}) {
    const read = jsonOf({ ...options, path: pathOf(path) });
    return replyOf(await this.#run(() => this.#native.read(read)));
  }

  async edit(edit) {
    const call = editJson(edit);
    return replyOf(await this.#run(() => this.#native.edit(call)));
  }

  async judge(edit) {
    const call = editJson(edit);
    const handle = new native.NativePermit();
    const note = await this.#run(() => this.#native.judge(handle, call));
    const permit = new Permit(INTERNAL, this, note);
    permits.set(permit, handle);
    return permit;
  }

  async adopt(permit) {
    const handle = permits.get(permit);
    if (!handle) throw invalid("adopt takes a permit that judge gave");
    const told = await this.#run(() => this.#native.adopt(handle));
    permit.note += told;
    return told;
  }

  async guard(edit, write) {
    const permit = await this.judge(edit);
    let value;
    try {
      value = await write();
    } finally {
      // An edit that was not made is not recorded, so this is right after an error as well.
      await permit.adopt();
    }
    return { value, note: permit.note };
  }

  async shown(path, content, { start = 1 } = {}) {
    const shown = jsonOf({ path: pathOf(path), content, start });
    return this.#run(() => this.#native.shown(shown));
  }

  async forget(paths) {
    if (paths !== undefined && !Array.isArray(paths)) throw invalid("paths must be an array of paths");
    const forgotten = jsonOf(paths?.map(pathOf) ?? null);
    return replyOf(await this.#run(() => this.#native.forget(forgotten)));
  }

  async undo(options = {}) {
    const path = options.path === undefined ? undefined : pathOf(options.path);
    const what = jsonOf({ ...options, path });
    return replyOf(await this.#run(() => this.#native.undo(what)));
  }

  async changedSinceRead(path) {
    const of = jsonOf(pathOf(path));
    return this.#run(() => this.#native.changedSinceRead(of));
  }

  async instructionsIfNew(path) {
    const of = jsonOf(pathOf(path));
    return (await this.#run(() => this.#native.instructionsIfNew(of))) ?? undefined;
  }

  async repoState() {
    return new RepoState(await this.#run(() => this.#native.repoState()));
  }

  async close() {
    await this.#run(() => this.#native.close());
  }

  async [Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]() {
    await this.close();
  }
}

/** The workspaces to close at the end of the process, so that everything is written. */
const open = new Set();
process.once("exit", () => open.forEach((reference) => reference.deref()?.closeNow()));

class Workspace {
  #native;
  #reference;

  constructor(key, handle, path) {
    checkInternal(key, "Workspace.open");
    this.#native = handle;
    this.#reference = new WeakRef(handle);
    open.add(this.#reference);
    dropped.register(this, this.#reference);
    this.path = path;
  }

  static async open(root = ".", options = {}) {
    const stateDir = options.stateDir === undefined ? undefined : pathOf(options.stateDir);
    const opening = jsonOf({ ...options, stateDir, root: pathOf(root) });
    const handle = new native.NativeWorkspace();
    return new Workspace(INTERNAL, handle, valueOf(await handle.open(opening)));
  }

  session(options = {}) {
    const { tools } = options;
    const isMapping = tools && !Array.isArray(tools) && typeof tools === "object";
    const pairs = isMapping ? Object.entries(tools) : Array.isArray(tools) ? tools.map((name) => [name, name]) : tools;
    const handle = new native.NativeSession();
    return new Session(INTERNAL, this.#native, handle, valueOf(this.#native.session(handle, jsonOf({ ...options, tools: pairs }))));
  }

  async repoState() {
    return new RepoState(valueOf(await this.#native.repoState()));
  }

  async close() {
    open.delete(this.#reference);
    valueOf(await this.#native.close());
  }

  async [Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]() {
    await this.close();
  }
}

const dropped = new FinalizationRegistry((reference) => open.delete(reference));

module.exports = {
  version: native.version(),
  Workspace,
  Session,
  Permit,
  RepoState,
  Edit,
  SurehandError,
  Refusal,
  UnreadRefusal,
  StaleRefusal,
  DeletedRefusal,
  PartialRefusal,
  NotFoundRefusal,
  AmbiguousRefusal,
  NoChangeRefusal,
  AnchorMismatchRefusal,
  OverlapRefusal,
  ExistsRefusal,
  BinaryRefusal,
  EncodingRefusal,
  BadPatchRefusal,
  TooLargeRefusal,
  OutsideWorkspaceRefusal,
  ProtectedRefusal,
  BadRangeRefusal,
  BadArgumentsRefusal,
  ConflictRefusal,
  IoRefusal,
  InvalidArgumentError,
  SettingsError,
  OpenError,
  ClosedError,
  BrokenSessionError,
};
