// The board of the fleet: who works in which checkout, shared tasks, claims, changed lines, what will conflict, and the
// last headlines.

import { h, fill, named, sign, empty, code } from "./dom.js";
import { ask } from "./store.js";
import { ago, clock, exact, span, count, cut } from "./words.js";
import { actButton } from "./ask.js";
import { STATUS } from "./lists.js";

const ASK_EVERY = 5000;
const ASK_AGAIN = 1000;
// The most rows of a part that are shown at first.
const MOST = 100;
const MOST_HEADLINES = 20;

export function board() {
  const status = h("span", { class: "quiet", id: "board-status" });
  const trouble = h("div", { class: "stack" });
  const list = h("div", { class: "stack" });
  const element = h("div", { class: "page" }, h("div", { class: "bar" }, h("h2", {}, "Board"), status), trouble, list);
  let last = "";
  let said = "";
  let readAt = null;
  let place = "";
  let timer;
  let isAsking = false;
  let isAskedAgain = false;
  let isClosed = false;

  async function load() {
    if (isAsking) {
      isAskedAgain = true;
      return;
    }
    clearTimeout(timer);
    if (document.hidden && last) {
      timer = setTimeout(load, ASK_EVERY);
      return;
    }
    isAsking = true;
    let next = ASK_EVERY;
    try {
      const answer = await ask("board");
      if (answer.reading) next = ASK_AGAIN;
      if (!isClosed) draw(answer);
    } catch (error) {
      drawTrouble(error.message);
    }
    isAsking = false;
    if (isClosed) return;
    timer = setTimeout(load, isAskedAgain ? 0 : next);
    isAskedAgain = false;
  }

  function draw(answer) {
    const shown = answer.board;
    readAt = shown && shown.age !== null ? Date.now() - shown.age : null;
    place = shown?.place ?? "";
    drawAge();
    const why = shown?.trouble ?? answer.trouble;
    drawTrouble(why ? `The board cannot be reached, so what is shown may be old: ${cut(why, 2000)}` : "");
    const key = JSON.stringify({ ...answer, reading: !shown && answer.reading, board: shown && withoutTimes(shown) });
    if (key === last) return;
    last = key;
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const open = new Set([...list.querySelectorAll("details[open]")].map((part) => part.dataset.key));
    fill(list, parts(answer));
    for (const part of list.querySelectorAll("details")) part.open = open.has(part.dataset.key);
    if (focused) [...list.querySelectorAll("[data-key]")].find((element) => element.dataset.key === focused)?.focus();
  }

  // A screen reader says it again whenever it is drawn.
  function drawTrouble(why) {
    if (why === said) return;
    said = why;
    fill(trouble, why ? h("p", { class: "trouble", role: "status" }, named(why)) : null);
  }

  function drawAge() {
    fill(status, place ? [named(place), readAt === null ? ", never read" : `, read ${ago(readAt)}`] : "");
  }

  load();
  const clock = setInterval(drawAge, 1000);
  return {
    element,
    update: (changed) => changed.has("board") && load(),
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      clearInterval(clock);
    },
  };
}

// Times in whole minutes, so that the parts are not drawn again each second.
const withoutTimes = (board) => ({
  ...board,
  age: board.age === null ? null : 0,
  agents: board.agents.map((agent) => ({ ...agent, seen_ago: agent.alive ? 0 : Math.floor(agent.seen_ago / 60_000) })),
  claims: board.claims.map((claim) => ({ ...claim, lasts: minutes(claim.lasts) })),
  stories: board.stories.map((story) => ({ ...story, tasks: story.tasks.map((task) => ({ ...task, lasts: minutes(task.lasts) })) })),
  forecasts: [],
});

const minutes = (ms) => Math.ceil(ms / 60_000);

function parts({ enabled, reading, board, forecasts, trouble }) {
  if (!enabled) return empty("There is no board here.", h("span", {}, code("board.enabled = true"), " in your settings switches it on. The demo has none."));
  if (!board && reading) return h("p", { class: "quiet" }, "Reading the board …");
  const isEmpty = !board || [board.agents, board.stories, board.claims, board.changes, board.headlines].every((part) => !part.length);
  if (isEmpty && (board?.trouble ?? trouble) && typeof board?.age !== "number") return empty("What is on the board is not known.");
  if (isEmpty) {
    return empty(
      "Nothing is on the board yet.",
      h("span", {}, "Make a second worktree with ", code("git worktree add ../b"), ", and start an agent there that ", code("surehand init"), " has set up. It appears here with its first call."),
      h("span", {}, code('surehand board add "TASK"'), " adds a task for all agents, ", code("surehand board claim 'src/**'"), " claims paths."),
    );
  }
  return [
    part("Forecast of conflicts", forecasts, forecast),
    part("Agents", board.agents, agent),
    part("Claims on paths", board.claims, claim),
    board.stories.map((story) => part(story.story ? ["Shared tasks of story ", named(cut(story.story, 200))] : "Shared tasks", story.tasks, task, `story ${story.story}`)),
    ...checkouts(board.changes),
    part("Last headlines", [...board.headlines].reverse(), headline(board.agents), "headlines", MOST_HEADLINES),
  ];
}

function part(title, items, row, key = title, most = MOST) {
  if (!items.length) return null;
  const rest = items.slice(most);
  return h(
    "section",
    { class: "box" },
    h("h3", {}, title, `, ${items.length}`),
    h("ul", { class: "rows-of-board" }, items.slice(0, most).map(row)),
    rest.length ? h("details", { "data-key": key }, h("summary", {}, count(rest.length, "more row")), h("ul", { class: "rows-of-board" }, rest.slice(0, 2000).map(row)), rest.length > 2000 ? h("p", { class: "quiet" }, "surehand board --json lists all.") : null) : null,
  );
}

const fileLink = (path) => h("a", { href: `#/file/${encodeURIComponent(path)}`, "data-key": `file ${path}` }, named(path));

const forecast = ({ path, text }) => h("li", {}, sign("stale", "▲"), fileLink(path), ": ", named(cut(text, 1000)));

function agent(agent) {
  const facts = [agent.client, agent.here ? "here" : [agent.host, ":", agent.root].join("")];
  if (agent.branch !== null) facts.push(["branch ", named(cut(agent.branch, 200))]);
  if (agent.story !== null) facts.push(["story ", named(cut(agent.story, 200))]);
  if (agent.tasks.length) facts.push(`holds task ${agent.tasks.join(", ")}`);
  if (agent.claims.length) facts.push(["has claimed ", named(cut(agent.claims.join(", "), 300))]);
  return h(
    "li",
    { class: agent.alive ? "alive" : "gone" },
    sign(agent.alive ? "completed" : "gone", agent.alive ? "●" : "○"),
    named(agent.name, { class: "name" }),
    " ",
    h("span", {}, agent.alive ? "alive" : `gone, seen ${ago(Date.now() - agent.seen_ago)}`),
    facts.map((fact) => [", ", typeof fact === "string" ? named(fact) : fact]),
  );
}

const headline = (agents) => {
  const names = new Map(agents.map((agent) => [agent.session, agent.name]));
  return ({ at, agent, summary }) =>
    h("li", {}, h("time", { class: "quiet", title: exact(at) }, clock(at)), " ", agent === null ? null : [named(names.get(agent) ?? cut(agent, 40), { class: "name" }), " "], named(cut(summary, 500)));
};

const claim = (claim) =>
  h(
    "li",
    {},
    sign("change", "■"),
    named(claim.pattern, { class: "id" }),
    " ",
    h("span", {}, "claimed by ", named(claim.by), `, for another ${span(claim.lasts)} `),
    actButton("Cancel claim", { act: "cancel_claim", claim: claim.id }, { class: "small", "data-key": `claim ${claim.id}`, "aria-label": `Cancel claim on ${claim.pattern}` }),
  );

function task(task) {
  const words = STATUS[task.status];
  let holder = "";
  if (task.by !== null) holder = task.abandoned ? [", but ", named(task.by), " is gone, so it is free"] : [", held by ", named(task.by), `, for another ${span(task.lasts)} unless renewed`];
  return h("li", { class: task.status }, sign(`task ${task.status}`, words.sign), h("span", { class: "id" }, `${task.id}.`), " ", named(cut(task.description, 500)), " ", h("span", { class: "quiet" }, words.title.toLowerCase(), holder));
}

// The changed files by checkout, this one first, as the board has them.
function checkouts(changes) {
  const groups = new Map();
  for (const change of changes) {
    const key = JSON.stringify([change.host, change.root]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(change);
  }
  return [...groups].map(([key, files]) => {
    const [{ here, host, root }] = files;
    return part(here ? "Changed here since the fork point" : ["Changed in ", named(`${host}:${root}`), " since the fork point"], files, change, key);
  });
}

function change({ here, path, kind, lines, by }) {
  const ranges = lines.map(({ start, end }) => (start === end ? start : `${start}–${end}`));
  const what = kind !== "lines" ? kind : ranges.length ? `${lines.length === 1 && lines[0].start === lines[0].end ? "line" : "lines"} ${cut(ranges.join(", "), 300)}` : "lines removed";
  return h("li", {}, here ? fileLink(path) : named(path), " ", h("span", {}, what), by === null ? null : h("span", { class: "quiet" }, ", ", named(by)));
}
