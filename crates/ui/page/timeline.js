// Everything that happened, newest first, with filters and the details of one entry.

import { h, fill, named, sign, empty, code, VirtualList } from "./dom.js";
import { ask, store, entryKey } from "./store.js";
import { KINDS, kindOf, what, clock, exact, ago, paths, count, figure } from "./words.js";
import { actButton } from "./ask.js";
import { diffs } from "./diff.js";

export const by = (entry) => entry.by ?? (entry.kind === "outside" ? "another program" : entry.kind === "rescue" ? "Surehand" : "");

export function row(entry) {
  const kind = kindOf(entry);
  const words = KINDS[kind];
  return h(
    "div",
    { class: `entry ${entry.undone ? "undone" : ""}` },
    h("time", { title: `${exact(entry.ms)}, ${ago(entry.ms)}` }, clock(entry.ms)),
    sign(kind, words.sign),
    h("span", { class: `kind ${kind}` }, words.one),
    named(by(entry), { class: "who" }),
    named(what(entry), { class: "what" }),
  );
}

export function timeline() {
  const filter = { kinds: new Set(), session: "", path: "" };
  let chosen = "";
  const list = new VirtualList({ label: "Timeline, newest first", height: 30, id: "timeline", render: row, choose: (entry) => go(entry) });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Kinds" });
  const sessions = h("select", { "aria-label": "Session", on: { change: () => ((filter.session = sessions.value), draw()) } });
  const path = h("input", { type: "search", placeholder: "File or directory", "aria-label": "File or directory", spellcheck: "false", autocomplete: "off", on: { input: () => ((filter.path = path.value.trim()), draw()) } });
  const shown = h("p", { class: "quiet", role: "status" });
  const nothing = h("div", { class: "nothing" });
  const detail = h("section", { class: "detail", "aria-label": "Details" });
  const redo = actButton("Redo the last undo", { act: "redo" });
  const element = h(
    "div",
    { class: "split timeline" },
    h("div", { class: "side-a" }, h("div", { class: "bar" }, chips, sessions, path, redo, shown), list.element, nothing),
    detail,
  );
  hint();

  function hint() {
    fill(detail, h("p", { class: "quiet" }, "Choose an entry to see its diff and what can be taken back."));
  }

  const fits = (entry, isForCount) =>
    (isForCount || !filter.kinds.size || filter.kinds.has(kindOf(entry))) &&
    (!filter.session || entry.session === filter.session) &&
    (!filter.path || paths(entry).some((path) => path === filter.path || path.startsWith(filter.path.endsWith("/") ? filter.path : `${filter.path}/`) || path.includes(filter.path)));

  function drawChips() {
    const counts = {};
    for (const entry of store.entries) if (fits(entry, true)) counts[kindOf(entry)] = (counts[kindOf(entry)] ?? 0) + 1;
    const focused = chips.contains(document.activeElement) ? document.activeElement.dataset.kind : undefined;
    fill(
      chips,
      Object.entries(KINDS).map(([kind, words]) =>
        h(
          "button",
          { type: "button", class: "chip", "aria-pressed": String(filter.kinds.has(kind)), "data-kind": kind, on: { click: () => toggle(kind) } },
          sign(kind, words.sign),
          words.many,
          h("span", { class: "number" }, figure(counts[kind] ?? 0)),
        ),
      ),
    );
    if (focused) chips.querySelector(`[data-kind="${focused}"]`)?.focus();
  }

  function toggle(kind) {
    if (!filter.kinds.delete(kind)) filter.kinds.add(kind);
    draw();
  }

  function drawSessions() {
    const options = [["", "All sessions"], ...store.order.map((id) => [id, store.sessions.get(id)?.name ?? id])];
    fill(sessions, options.map(([id, name]) => h("option", { value: id, selected: id === filter.session }, name)));
  }

  function draw() {
    drawChips();
    const entries = store.entries.filter((entry) => fits(entry, false));
    list.set(entries, entryKey);
    const all = store.entries.length;
    redo.hidden = !store.entries.some((entry) => entry.kind === "undo");
    fill(shown, entries.length === all ? count(all, "entry", "entries") : `${figure(entries.length)} of ${count(all, "entry", "entries")}`);
    const isNew = all === 0;
    fill(
      nothing,
      entries.length
        ? null
        : isNew
          ? empty("Nothing has happened here yet.", h("span", {}, "Set up your agent with ", code("surehand init"), ", and work with it. What it does appears here at once."))
          : empty("No entry fits.", h("button", { type: "button", on: { click: clear } }, "Show everything")),
    );
    list.element.hidden = !entries.length;
  }

  function clear() {
    filter.kinds.clear();
    filter.session = filter.path = path.value = "";
    drawSessions();
    draw();
  }

  async function go(entry) {
    if (!entry) return hint();
    chosen = entryKey(entry);
    fill(detail, ...heading(entry));
    // On a narrow screen it is below the list.
    if (matchMedia("(max-width: 760px)").matches) detail.scrollIntoView({ block: "start" });
    if (entry.kind === "read") return;
    try {
      const whole = await ask("entry", { id: entry.id });
      if (chosen === entryKey(entry)) fill(detail, ...heading(entry), ...facts(whole), ...diffs(whole.diffs));
    } catch (error) {
      if (chosen === entryKey(entry)) fill(detail, ...heading(entry), h("p", { class: "trouble" }, error.message));
    }
  }

  drawSessions();
  draw();
  return {
    element,
    update(changed) {
      if (changed.has("all") || changed.has("sessions")) drawSessions();
      if (changed.has("all") || changed.has("entries")) draw();
    },
    show(parameters) {
      if (parameters.session !== undefined || parameters.kind !== undefined || parameters.path !== undefined) {
        filter.session = parameters.session ?? "";
        filter.kinds = new Set(parameters.kind ? [parameters.kind] : []);
        filter.path = path.value = parameters.path ?? "";
        drawSessions();
        draw();
      }
      if (parameters.id) {
        const at = list.items.findIndex((entry) => entry.id === parameters.id);
        if (at >= 0) list.pick(at);
      }
    },
  };
}

function heading(entry) {
  const kind = kindOf(entry);
  const files = [...new Set(paths(entry))];
  const [only, ...others] = files;
  return [
    h("h2", {}, sign(kind, KINDS[kind].sign), KINDS[kind].one, " ", h("span", { class: "id" }, entry.kind === "read" ? "" : entry.id)),
    h("p", {}, named(what(entry))),
    h("p", { class: "quiet" }, by(entry) ? [named(by(entry)), ", "] : null, `${exact(entry.ms)}, ${ago(entry.ms)}`),
    entry.repairs ? h("p", { class: "quiet" }, "It repairs ", h("a", { href: `#/timeline?id=${entry.repairs}` }, "a refused edit"), ".") : null,
    files.length ? h("p", { class: "links" }, files.slice(0, 20).map((path) => [h("a", { href: `#/file/${encodeURIComponent(path)}` }, named(path)), " "])) : null,
    h("div", { class: "buttons" }, buttons(entry, others.length ? undefined : only)),
  ];
}

function buttons(entry, file) {
  switch (entry.kind) {
    case "change":
    case "undo":
    case "restore":
      return [
        entry.undone ? null : actButton("Undo this change", { act: "undo", what: { change: entry.id } }),
        file ? actButton("Restore this file to right after this", { act: "restore", to: entry.id, paths: [file] }) : null,
        actButton("Restore all files to right after this", { act: "restore", to: entry.id }),
      ];
    case "checkpoint":
      return [actButton("Restore all files to this", { act: "restore", to: entry.id })];
    case "rescue":
      return rescueButtons(entry);
    default:
      return [];
  }
}

export const rescueButtons = (rescue) => [
  rescue.path ? actButton("Write it to the file", { act: "apply", rescue: rescue.id }) : null,
  rescue.dropped ? null : actButton("Drop it", { act: "drop", rescue: rescue.id }),
];

function facts(whole) {
  const rows = [];
  if (whole.tool?.startsWith?.("command: ")) rows.push(["Command", whole.tool.slice(9)]);
  else if (whole.tool) rows.push(["Tool", whole.tool]);
  if (whole.kind === "refusal") rows.push(["Code", whole.code]);
  if (whole.commit) rows.push(["Commit", whole.commit.slice(0, 12)]);
  if (whole.kind === "checkpoint") rows.push(["Occasion", whole.occasion]);
  return rows.length ? [h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, code(value))]))] : [];
}
