// Rescued work and tasks.

import { h, fill, named, sign, empty, code } from "./dom.js";
import { ask, store } from "./store.js";
import { ago, figure, size } from "./words.js";
import { diffs } from "./diff.js";
import { rescueButtons } from "./timeline.js";

export function rescued() {
  const list = h("div", { class: "stack" });
  const element = h("div", { class: "page" }, h("div", { class: "bar" }, h("h2", {}, "Rescued work")), list);
  let shown = "";

  async function draw() {
    const key = store.rescues.map((rescue) => rescue.id).join();
    if (key === shown && list.childNodes.length) return;
    shown = key;
    if (!store.rescues.length) {
      fill(list, empty("Nothing was rescued.", "If another program writes to a file while an edit replaces it, its text is kept here, to be written back or dropped."));
      return;
    }
    const parts = store.rescues.map((rescue) => ({ rescue, body: h("div", {}, h("p", { class: "quiet" }, "Comparing …")) }));
    fill(
      list,
      parts.map(({ rescue, body }) =>
        h(
          "article",
          { class: "box" },
          h("h3", {}, sign("rescue", "◆"), rescue.path ? h("a", { href: `#/file/${encodeURIComponent(rescue.path)}` }, named(rescue.path)) : "a file", " ", h("span", { class: "id" }, rescue.id)),
          h("p", { class: "quiet" }, `${size(rescue.size)} that another program wrote while the file was replaced, ${ago(Date.parse(rescue.at))}`),
          h("div", { class: "buttons" }, rescueButtons(rescue)),
          body,
        ),
      ),
    );
    for (const { rescue, body } of parts) {
      try {
        const whole = await ask("entry", { id: rescue.id });
        fill(body, h("p", { class: "quiet" }, "What would change if it were written to the file:"), ...diffs(whole.diffs));
      } catch (error) {
        fill(body, h("p", { class: "trouble" }, error.message));
      }
    }
  }

  draw();
  return { element, update: (changed) => (changed.has("all") || changed.has("rescues")) && draw() };
}

export const STATUS = {
  in_progress: { title: "In progress", sign: "▶" },
  pending: { title: "Open", sign: "○" },
  completed: { title: "Completed", sign: "✓" },
  cancelled: { title: "Cancelled", sign: "✕" },
};

const plan = () => store.state?.tasks ?? { story_id: "", tasks: [] };

// Those of others included.
export const openTasks = () => [...plan().tasks.filter(({ status }) => ["pending", "in_progress"].includes(status)), ...(plan().tasks_of_others ?? [])];

// The story of a run has the id of the run, and is no name.
const RUN = /^[0-9a-f]+-[0-9a-f]{16}$/;

function belongsTo({ owner, story }) {
  if (owner?.startsWith("run ")) return "of another run";
  if (owner) return ["of ", named(owner)];
  return story ? ["of story ", named(story)] : "of no story";
}

export function tasks() {
  const list = h("div", { class: "stack" });
  const story = h("span", { class: "quiet" });
  const element = h("div", { class: "page" }, h("div", { class: "bar" }, h("h2", {}, "Tasks"), story), list);

  const task = ({ status, id, description }) => h("li", { class: status }, sign(`task ${status}`, STATUS[status]?.sign ?? "○"), h("span", { class: "id" }, `${id}.`), " ", h("span", {}, description));
  const taskOfOthers = (one) => {
    const row = task(one);
    row.append(" ", h("span", { class: "quiet" }, belongsTo(one)));
    return row;
  };

  function draw() {
    const { story_id, tasks, tasks_of_others: others = [] } = plan();
    fill(story, RUN.test(story_id) ? "of the last run" : story_id ? ["of story ", named(story_id)] : "");
    if (!tasks.length && !others.length) {
      fill(list, empty("There are no tasks.", h("span", {}, "Agents add them with update_tasks, you with ", code("surehand tasks add"), ".")));
      return;
    }
    fill(
      list,
      Object.entries(STATUS).map(([status, words]) => {
        const chosen = tasks.filter((task) => task.status === status).sort((a, b) => a.priority - b.priority || a.id - b.id);
        return chosen.length
          ? h("section", { class: "box" }, h("h3", {}, `${words.title}, ${figure(chosen.length)}`), h("ul", { class: "tasks" }, chosen.map(task)))
          : null;
      }),
      others.length ? h("section", { class: "box" }, h("h3", {}, `Open in other stories and runs, ${figure(others.length)}`), h("ul", { class: "tasks" }, others.map(taskOfOthers))) : null,
    );
  }

  draw();
  return { element, update: (changed) => (changed.has("all") || changed.has("state")) && draw() };
}
