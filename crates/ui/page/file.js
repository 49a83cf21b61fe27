// A file: who wrote each line, and which sessions have seen it. And the list of files to choose from.

import { h, fill, named, empty, sign, VirtualList } from "./dom.js";
import { ask, store } from "./store.js";
import { ago, count, cut, visible, paths } from "./words.js";
import { actButton } from "./ask.js";
import { STATES, stateOf } from "./map.js";
import { row as entryRow } from "./timeline.js";

const LONGEST = 1000;
const MOST_COLUMNS = 16;

export function files() {
  const search = h("input", { type: "search", placeholder: "Filter files", "aria-label": "Filter files", spellcheck: "false", autocomplete: "off", on: { input: () => draw() } });
  const list = new VirtualList({ label: "Files", height: 30, id: "files", render: fileRow, choose: (file) => (location.hash = `#/file/${encodeURIComponent(file.path)}`) });
  const nothing = h("div", {});
  const element = h("div", { class: "page" }, h("div", { class: "bar" }, h("h2", {}, "Files"), search), list.element, nothing);

  function draw() {
    const known = new Map();
    const put = (path) => known.get(path) ?? known.set(path, { path, status: "", stale: 0, seen: 0 }).get(path);
    for (const status of ["created", "modified", "deleted"]) for (const path of store.state?.files[status] ?? []) put(path).status = status;
    for (const session of store.sessions.values()) {
      for (const [path, file] of session.files) {
        const entry = put(path);
        entry.seen++;
        entry.stale += file.stale ? 1 : 0;
      }
    }
    const wanted = search.value.trim().toLowerCase();
    const items = [...known.values()].filter((file) => file.path.toLowerCase().includes(wanted)).sort((a, b) => (a.path < b.path ? -1 : 1));
    list.set(items, (file) => file.path);
    list.element.hidden = !items.length;
    fill(nothing, items.length ? null : empty(wanted ? "No file fits." : "No session has touched a file yet."));
  }

  draw();
  return { element, update: (changed) => (changed.has("all") || changed.has("sessions") || changed.has("state")) && draw() };
}

function fileRow(file) {
  return h(
    "div",
    { class: "file-row" },
    named(file.path, { class: "what" }),
    h("span", { class: `status ${file.status}` }, file.status),
    h("span", { class: "quiet" }, file.seen ? `seen by ${count(file.seen, "session")}` : "not seen"),
    file.stale ? h("span", { class: "stale-word" }, sign("stale", "▲"), `stale for ${file.stale}`) : h("span", {}),
  );
}

export function file(path, parameters) {
  const head = h("div", { class: "bar" });
  const note = h("div", {});
  const columns = h("div", { class: "line columns", "aria-hidden": "true" });
  let data = null;
  let shown = [];
  let failed = "";
  const list = new VirtualList({ label: `Lines of ${path}`, height: 20, id: "lines", render: lineRow, choose: choose, content: "code" });
  const about = h("section", { class: "detail", "aria-label": "Details" });
  const element = h("div", { class: "split file" }, h("div", { class: "side-a" }, head, note, columns, list.element), about);
  load();

  async function load() {
    try {
      data = await ask("file", { path });
      failed = "";
    } catch (error) {
      data = null;
      failed = error.message;
    }
    draw();
  }

  function draw() {
    fill(
      head,
      h("h2", {}, named(path)),
      data ? h("span", { class: "quiet" }, count(data.total_lines, "line")) : null,
      actButton("Undo its last change", { act: "undo", what: { file: path } }),
      h("a", { href: `#/timeline?path=${encodeURIComponent(path)}` }, "its entries"),
    );
    fill(
      note,
      failed ? h("p", { class: "trouble" }, failed) : null,
      data?.removed_by ? h("p", { class: "trouble" }, "The file is gone; these are its last lines.") : null,
      data?.git_trouble ? h("p", { class: "quiet" }, `git cannot say which commits wrote lines: ${data.git_trouble}`) : null,
    );
    list.element.hidden = columns.hidden = !data;
    if (!data) return drawAbout();
    const wanted = data.seen_by.filter((seen) => seen.session === parameters.session);
    shown = [...wanted, ...data.seen_by.filter((seen) => seen.session !== parameters.session)].slice(0, MOST_COLUMNS);
    fill(columns, h("span", { class: "author" }, "Written by"), h("span", { class: "number" }, "Line"), shown.map((seen, index) => h("span", { class: "mark", title: seen.name }, String(index + 1))), h("span", { class: "text" }, shown.length ? "Seen by the sessions on the right, by number" : ""));
    const lines = [];
    for (const run of data.runs) run.lines.forEach((text, index) => lines.push({ text, number: run.start + index, run, isFirst: index === 0 }));
    list.set(lines, (line) => line.number);
    drawAbout();
  }

  function isSeen(seen, number) {
    return seen.lines?.some(([start, end]) => start <= number && number <= end);
  }

  function lineRow(line) {
    const { run } = line;
    return h(
      "div",
      { class: `line ${run.by}` },
      line.isFirst ? named(authorOf(run), { class: "author", title: authorTitle(run) }) : h("span", { class: "author" }),
      h("span", { class: "number" }, String(line.number)),
      shown.map((seen) => {
        const state = isSeen(seen, line.number) ? "seen" : "unseen";
        return h("span", { class: `mark ${state}`, title: `${seen.name}: ${STATES[state].words}` }, h("span", { class: "sr" }, `${seen.name}: ${STATES[state].words}. `), h("span", { "aria-hidden": "true" }, STATES[state].sign));
      }),
      h("span", { class: "text" }, cut(visible(line.text), LONGEST)),
    );
  }

  function drawAbout() {
    const entries = store.entries.filter((entry) => paths(entry).includes(path)).slice(0, 30);
    fill(
      about,
      h("h3", {}, "Sessions"),
      data?.seen_by.length
        ? h(
            "ol",
            { class: "seen-by" },
            shown.map((seen) => {
              const known = store.sessions.get(seen.session)?.files.get(path);
              const state = seen.stale ? "stale" : stateOf(known ?? { part: !isWhole(seen) });
              return h("li", {}, named(seen.name), " ", h("span", { class: `${state}-word` }, sign(state, STATES[state].sign), STATES[state].words), seen.lines === null ? h("span", { class: "quiet" }, " (the version it saw is no longer kept)") : null);
            }),
          )
        : h("p", { class: "quiet" }, "No session has seen this file."),
      h("h3", {}, "What happened to it"),
      entries.length ? h("ul", { class: "news" }, entries.map((entry) => h("li", {}, h("a", { href: `#/timeline?id=${encodeURIComponent(entry.id)}` }, entryRow(entry))))) : h("p", { class: "quiet" }, "Nothing on record."),
    );
  }

  const isWhole = (seen) => seen.lines?.length === 1 && seen.lines[0][0] === 1 && seen.lines[0][1] === data.total_lines;

  function choose(line) {
    drawAbout();
    const { run } = line;
    about.prepend(
      h("h3", {}, `Line ${line.number}`),
      h("p", {}, named(authorTitle(run))),
      ...(run.change ? [h("p", {}, h("a", { href: `#/timeline?id=${encodeURIComponent(run.change)}` }, `change ${run.change}`))] : []),
    );
  }

  let later;
  return {
    element,
    update(changed) {
      if (!(changed.has("all") || changed.has("entries") || changed.has("sessions"))) return;
      clearTimeout(later);
      later = setTimeout(load, 60);
    },
  };
}

function authorOf(run) {
  if (run.by === "commit") return run.author ?? "commit";
  return run.by === "outside" ? "another program" : run.name;
}

function authorTitle(run) {
  const when = run.at ? `, ${ago(Date.parse(run.at))}` : "";
  switch (run.by) {
    case "commit":
      return `${run.author ?? "a commit"}: ${run.summary ?? ""} (${(run.commit ?? "").slice(0, 8)})${when}`;
    case "outside":
      return `another program${when}`;
    case "command":
      return `${run.name}, by the command ${run.command}${when}`;
    default:
      return `${run.name}, with ${run.tool}${when}`;
  }
}
