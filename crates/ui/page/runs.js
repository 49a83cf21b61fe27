// The runs of the agent: tokens of each turn as a plot, and what a turn was made of.

import { h, fill, named, svg, empty, code } from "./dom.js";
import { ask } from "./store.js";
import { ago, count, tokens, cut } from "./words.js";
import { diffOf } from "./diff.js";

const STATE = { done: "done", budget: "out of budget", stuck: "stopped in a loop", cancelled: "stopped by you", model: "stopped without an answer of the model" };
const LONGEST = 200_000;
const EVERY = 2000;

export function runs(parameters) {
  const list = h("ul", { class: "cards runs" });
  const detail = h("section", { class: "stack", "aria-label": "Run" });
  const element = h("div", { class: "runs-page" }, h("section", { class: "sessions", "aria-labelledby": "runs-title" }, h("h2", { id: "runs-title" }, "Runs"), list), detail);
  let chosen = parameters.run ?? "";
  let last = "";
  const turn = Number(parameters.turn ?? 0);

  async function load() {
    try {
      const all = await ask("runs");
      if (JSON.stringify(all) === last) return;
      last = JSON.stringify(all);
      chosen = all.some((run) => run.run === chosen) ? chosen : all[0]?.run ?? "";
      if (!all.length) {
        fill(list);
        fill(detail, empty("There are no runs.", h("span", {}, code('surehand run "STORY"'), " begins one; with ", code("--record-prompts"), " its prompts can be read here.")));
        return;
      }
      fill(list, all.map(card));
      await show(chosen);
    } catch (error) {
      fill(detail, h("p", { class: "trouble" }, error.message));
    }
  }

  const card = (run) =>
    h(
      "li",
      { class: "card" },
      h("a", { href: `#/runs?run=${run.run}`, "aria-current": run.run === chosen ? "true" : null }, named(run.story ?? run.run, { class: "name", title: cut(run.story ?? run.run, 400) })),
      h("span", { class: "quiet" }, `${STATE[run.state] ?? run.state}, ${ago(Date.parse(run.last_active))}`),
      run.damaged ? h("span", { class: "trouble" }, `damaged: ${run.damaged}`) : h("span", { class: "figures" }, count(run.turns, "turn"), run.usage.input ? `, ${tokens(run.usage.input)} tokens in, ${tokens(run.usage.output)} out` : null),
    );

  async function show(id) {
    const run = await ask("run", { id });
    const focused = document.activeElement?.dataset?.turn;
    // A run that goes on is drawn again: what is open stays open, and a complete turn that is shown stays as it is.
    const wasOpen = detail.querySelector(".turns")?.open;
    const scrolled = [detail.scrollTop, detail.querySelector(".table")?.scrollTop ?? 0];
    const shownTurn = detail.querySelector("#turn");
    fill(
      detail,
      h("h3", {}, named(cut(run.story ?? run.run, 400))),
      h("p", { class: "quiet" }, [run.model, run.mode, `${count(run.turn_figures.length, "turn")}`, run.prompts ? "prompts recorded" : "prompts not recorded"].filter(Boolean).join(" · ")),
      plot(run.turn_figures),
      table(run),
      shownTurn ?? h("div", { id: "turn" }),
    );
    if (wasOpen !== undefined) {
      detail.querySelector(".turns").open = wasOpen;
      [detail.scrollTop, detail.querySelector(".table").scrollTop] = scrolled;
    }
    if (focused) detail.querySelector(`[data-turn="${focused}"]`)?.focus({ preventScroll: true });
    if (turn && !(shownTurn?.hasChildNodes() && turn < run.turn_figures.length)) await showTurn(run, turn);
  }

  async function showTurn(run, number) {
    const place = detail.querySelector("#turn");
    const isNew = !place.hasChildNodes();
    try {
      const whole = await ask("turn", { id: run.run, turn: number });
      fill(place, h("h3", {}, `Turn ${number}`), ...turnParts(whole, run));
      if (isNew) place.scrollIntoView({ block: "start" });
    } catch (error) {
      fill(place, h("p", { class: "trouble" }, error.message));
    }
  }

  load();
  const timer = setInterval(() => document.hidden || load(), EVERY);
  return { element, update: () => {}, close: () => clearInterval(timer) };
}

// Tokens of the prompt and of the answer of each turn.
function plot(turns) {
  if (!turns.length) return h("p", { class: "quiet" }, "No turn is complete yet.");
  const [width, height, left, bottom, top] = [720, 190, 48, 22, 10];
  const input = (turn) => turn.usage?.input || turn.prompt_tokens;
  const most = Math.max(1, ...turns.map((turn) => input(turn) + (turn.usage?.output ?? 0)));
  const step = (width - left) / turns.length;
  const bar = Math.max(0.6, step * 0.78);
  const y = (value) => top + (height - top - bottom) * (1 - value / most);
  const shapes = [];
  for (const part of [0, 0.5, 1]) {
    shapes.push(svg("line", { x1: left, x2: width, y1: y(most * part), y2: y(most * part), class: "gridline" }));
    shapes.push(svg("text", { x: left - 6, y: y(most * part) + 4, "text-anchor": "end" }, tokens(Math.round(most * part))));
  }
  turns.forEach((turn, index) => {
    const [x, answer] = [left + index * step, turn.usage?.output ?? 0];
    shapes.push(svg("rect", { x, width: bar, y: y(input(turn)), height: y(0) - y(input(turn)), class: "prompt" }, svg("title", {}, `turn ${turn.turn}: ${tokens(input(turn))} tokens in${answer ? `, ${tokens(answer)} out` : ""}`)));
    if (answer) shapes.push(svg("rect", { x, width: bar, y: y(input(turn) + answer), height: y(0) - y(answer), class: "answer" }));
  });
  shapes.push(svg("text", { x: left, y: height - 6 }, `turn ${turns[0].turn}`), svg("text", { x: width, y: height - 6, "text-anchor": "end" }, String(turns.at(-1).turn)));
  const label = `Tokens of each turn. ${turns.length} turns, the longest has ${tokens(most)} tokens.`;
  return h("figure", {}, h("figcaption", {}, "Tokens per turn ", h("span", { class: "key prompt" }, "prompt"), " ", turns.some((turn) => turn.usage?.output) ? h("span", { class: "key answer" }, "answer") : null), svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "plot" }, shapes));
}

function table(run) {
  const head = ["Turn", "Task", "Prompt", "Answer", "Calls", "Refused", "Seconds"].map((title, index) => h("th", { scope: "col", class: index > 1 ? "number" : null }, title));
  const row = (turn) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: `#/runs?run=${run.run}&turn=${turn.turn}`, "data-turn": turn.turn }, String(turn.turn))),
      h("td", { class: "task-name" }, turn.task ? named(cut(turn.task, 120)) : ""),
      [tokens(turn.usage?.input || turn.prompt_tokens), turn.usage?.output ? tokens(turn.usage.output) : "–", turn.calls, turn.refused, turn.seconds === null ? "" : turn.seconds.toFixed(1)].map((value) => h("td", { class: "number" }, String(value))),
    );
  return h("details", { class: "turns", open: run.turn_figures.length <= 40 }, h("summary", {}, "Turns"), h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Turns" }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, run.turn_figures.map(row)))));
}

const part = (title, text, isOpen = false) => h("details", { class: "fold", open: isOpen }, h("summary", {}, title, " ", h("span", { class: "quiet" }, count(text.length, "character"))), h("pre", { tabindex: "0" }, cut(text, LONGEST)));

function turnParts(turn, run) {
  const parts = [];
  if (turn.prompt) {
    parts.push(part("Prompt: system", turn.prompt.system));
    for (const message of turn.prompt.messages) parts.push(...messageParts(message));
    parts.push(part("Prompt: tools", turn.prompt.tools.map((tool) => `${tool.name}: ${tool.description}`).join("\n\n")));
  } else {
    parts.push(h("p", { class: "quiet" }, run.prompts ? "The prompt of this turn was not recorded." : "Prompts were not recorded: surehand run --record-prompts keeps them."));
  }
  for (const event of turn.events) {
    if (event.event === "said" && event.text.trim()) parts.push(part("Answer", event.text, true));
    else if (event.event === "call") parts.push(part(`Call of ${event.tool}${event.repair ? ", to repair a refused edit" : ""}`, JSON.stringify(event.arguments, null, 2), true));
    else if (event.event === "note") parts.push(part("Note to the model", event.text));
    else if (event.event === "result") {
      parts.push(part(`Result of ${event.tool}${event.is_error ? ", refused" : ""}`, event.text, event.is_error));
      if (event.diff) parts.push(diffOf({ path: "Diff", diff: event.diff }));
    }
  }
  return parts;
}

function messageParts(message) {
  const [kind, content] = typeof message === "string" ? [message, ""] : Object.entries(message)[0];
  if (kind.toLowerCase() === "user") return [part("Prompt: user", String(content), true)];
  if (kind.toLowerCase() === "results") return content.map((result) => part("Prompt: result", result.text));
  return [part("Prompt: model", content.text ?? ""), ...(content.calls ?? []).map((call) => part(`Prompt: call of ${call.name}`, call.arguments))];
}
