// Code that TypeScript must accept or reject; it is compiled by `tsc --strict` and never run.
import {
  type Edit as AnyEdit,
  Edit,
  Refusal,
  type Reply,
  type RepoStateJson,
  type Session,
  StaleRefusal,
  SurehandError,
  type ToolSpec,
  Workspace,
  version,
} from "@surehand/sdk";

export async function everything(): Promise<string> {
  const root: URL = new URL(import.meta.url);
  const workspace: Workspace = await Workspace.open(root, {
    settings: { "policy.on_change": "rebase" },
    stateDir: "/state",
    inMemory: true,
    watch: false,
  });
  await using session: Session = workspace.session({ id: "a", shared: true, tools: { read_file: "view" } });
  workspace.session({ tools: ["read_file", "edit_file"] });
  const tools: ToolSpec[] = session.tools();
  const reply: Reply = await session.read("a", { offset: -1, limit: 2, anchors: true });
  const edits: AnyEdit[] = [
    Edit.replace("a", "b", "c", { all: true }),
    Edit.replaceMany([{ path: "a", oldText: "b", newText: "c" }]),
    Edit.lines("a", [{ op: "append", text: "x" }]),
    Edit.patch(""),
    Edit.write(root, ""),
    Edit.delete("a"),
    Edit.move("a", "b"),
  ];
  try {
    for (const edit of edits) await session.edit(edit);
  } catch (error) {
    if (error instanceof StaleRefusal) {
      const code: "stale" = error.code;
      return code + error.affectedRanges.map(({ start, end }) => start + end).join();
    }
    if (error instanceof Refusal) return error.text + String(error.details["code"]);
    if (error instanceof SurehandError) return error.code;
    throw error;
  }
  const { value, note } = await session.guard(Edit.write("a", ""), async () => 7);
  const seven: number = value;
  const permit = await session.judge(Edit.write("a", ""));
  const told: string = await permit.adopt();
  const count: number = await session.shown("a", "b", { start: 2 });
  const state: RepoStateJson = (await session.repoState()).toJSON();
  const instructions: string | undefined = await session.instructionsIfNew("a");
  await session.forget(["a", root]);
  await session.undo({ path: root, force: true });
  const refused: Refusal | undefined = (await session.call(tools[0]?.name ?? "read_file", {})).refusal;
  await workspace.close();
  return [seven, note, told, count, state.files[0]?.status, instructions, refused?.remedy, reply.text, version].join();
}

export async function mistakes(session: Session): Promise<void> {
  // @ts-expect-error a path is not a number
  await session.read(7);
  // @ts-expect-error no such option
  await session.read("a", { lines: 1 });
  // @ts-expect-error an edit is an Edit
  await session.edit({ tool: "write_file" });
  // @ts-expect-error no such tool
  (await Workspace.open()).session({ tools: ["fly"] });
  // @ts-expect-error no such operation
  Edit.lines("a", [{ op: "fly" }]);
  // @ts-expect-error the constructor is private
  new Workspace();
}
