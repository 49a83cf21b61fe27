/**
 * An agent of the Vercel AI SDK whose file tools are guarded.
 *
 * `fileTools` gives the model the tools of Surehand. `sortImports` shows the other way: a tool of one's own, which writes
 * the file itself and is judged before and recorded after. A refusal is an answer like any other: its text goes to the
 * model, which repairs the call with the lines that it shows.
 *
 *     npm install @surehand/sdk ai
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { Edit, Refusal, type Session, type ToolName, type Workspace } from "@surehand/sdk";
import { type LanguageModel, type ToolSet, dynamicTool, generateText, jsonSchema, stepCountIs, tool } from "ai";

export const READ_AND_EDIT: ToolName[] = ["read_file", "list_files", "search_files", "edit_file", "write_file", "undo"];

/** The tools of Surehand, as this framework takes them. */
export function fileTools(session: Session): ToolSet {
  const tools = session.tools().map(({ name, description, inputSchema }) => [
    name,
    dynamicTool({
      description,
      inputSchema: jsonSchema(inputSchema),
      execute: async (input) => (await session.call(name, input)).text,
    }),
  ]);
  return Object.fromEntries(tools) as ToolSet;
}

/** A tool of one's own. */
export function sortImports(workspace: Workspace, session: Session): ToolSet[string] {
  return tool({
    description: "Sort the imports of a file to its top. The whole file must have been read.",
    inputSchema: jsonSchema<{ path: string }>({
      type: "object",
      properties: { path: { type: "string" } },
      required: ["path"],
    }),
    execute: async ({ path }) => {
      const file = join(workspace.path, path);
      const lines = (await readFile(file, "utf8")).split(/(?<=\n)/);
      const isImport = (line: string) => line.startsWith("import ");
      const text = [...lines.filter(isImport).sort(), ...lines.filter((line) => !isImport(line))].join("");
      try {
        const { note } = await session.guard(Edit.write(path, text), () => writeFile(file, text));
        return `Sorted.\n${note}`;
      } catch (error) {
        if (error instanceof Refusal) return error.text;
        throw error;
      }
    },
  });
}

/** Lets a model work on a task, and returns its last words. */
export async function work(workspace: Workspace, model: LanguageModel, task: string): Promise<string> {
  const session = workspace.session({ tools: READ_AND_EDIT });
  const instructions = await session.instructionsIfNew(".");
  const state = (await session.repoState()).formatForPrompt();
  const { text } = await generateText({
    model,
    system: ["You work on the files of a repository with the given tools.", instructions, state].filter(Boolean).join("\n\n"),
    prompt: task,
    tools: { ...fileTools(session), sort_imports: sortImports(workspace, session) },
    stopWhen: stepCountIs(50),
  });
  await session.close();
  return text;
}
