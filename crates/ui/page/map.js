// Sessions and files as a map: what each session has seen of each file, and what of that is stale.

import { h, fill, named, empty, code, sign } from "./dom.js";
import { store } from "./store.js";
import { ago, count, figure, oneLine, KINDS, kindOf, what, clock } from "./words.js";
import { by } from "./timeline.js";
import { actButton } from "./ask.js";

// The size of a cell, as in the style sheet. Only the cells in view are in the page.
const HEIGHT = 26;
const WIDTH = 30;

// So many cells more than are in view are drawn on each side.
const SPARE = 4;

function visible(scrolled, room, size, count) {
  const first = Math.min(count, Math.floor(scrolled / size));
  return [first, Math.min(count, first + Math.ceil(room / size) + 1)];
}

export const STATES = {
  seen: { sign: "●", words: "seen as it is now" },
  part: { sign: "◐", words: "seen in part" },
  stale: { sign: "▲", words: "changed since it was seen" },
  unseen: { sign: "·", words: "not seen" },
};

export function stateOf(file) {
  if (!file) return "unseen";
  return file.stale ? "stale" : file.part ? "part" : "seen";
}

// The files of all sessions: stale ones first, then by path.
function filesOf(sessions) {
  const files = new Map();
  for (const session of sessions) {
    for (const [path, file] of session.files) {
      const known = files.get(path) ?? { path, stale: 0, seen: 0 };
      known.seen++;
      known.stale += file.stale ? 1 : 0;
      files.set(path, known);
    }
  }
  return [...files.values()].sort((a, b) => Number(b.stale > 0) - Number(a.stale > 0) || (a.path < b.path ? -1 : 1));
}

export function map() {
  const cards = h("ul", { class: "cards" });
  const head = h("thead");
  const body = h("tbody");
  const table = h("table", { class: "map", role: "grid", tabindex: "0", "aria-label": "What each session has seen of each file" }, head, body);
  const scroller = h("div", { class: "scroller" }, table);
  const legend = h("p", { class: "legend" });
  const search = h("input", { type: "search", placeholder: "Filter files", "aria-label": "Filter files", spellcheck: "false", autocomplete: "off", on: { input: () => draw() } });
  const news = h("ol", { class: "news" });
  const nothing = h("div", {});
  const element = h(
    "div",
    { class: "overview" },
    h("section", { class: "sessions", "aria-labelledby": "sessions-title" }, h("h2", { id: "sessions-title" }, "Sessions"), cards),
    h("section", { class: "map-part", "aria-labelledby": "map-title" }, h("div", { class: "bar" }, h("h2", { id: "map-title" }, "What they have seen"), search, legend), scroller, nothing),
    h("section", { class: "latest", "aria-labelledby": "news-title" }, h("div", { class: "bar" }, h("h2", { id: "news-title" }, "Latest"), h("a", { href: "#/timeline" }, "all")), news),
  );
  fill(
    legend,
    Object.entries(STATES).map(([state, { sign: shape, words }]) => h("span", {}, sign(state, shape), words)),
    h("span", {}, h("span", { class: "sign edited", "aria-hidden": "true" }, "●"), "framed: edited by the session"),
  );

  let sessions = [];
  let files = [];
  let active = { row: 0, column: 0 };
  let drawn = { first: 0, last: 0, left: 0, right: 0 };
  const rows = new Map();
  const above = h("tr", { "aria-hidden": "true" }, h("td", {}));
  const below = h("tr", { "aria-hidden": "true" }, h("td", {}));

  scroller.addEventListener("scroll", () => requestAnimationFrame(drawCells), { passive: true });
  new ResizeObserver(drawCells).observe(scroller);
  table.addEventListener("keydown", key);
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("[data-column]");
    if (cell) open(Number(cell.closest("tr").dataset.row), Number(cell.dataset.column));
  });

  function open(row, column) {
    const session = sessions[column];
    if (files[row]) location.hash = `#/file/${encodeURIComponent(files[row].path)}${session ? `?session=${encodeURIComponent(session.session)}` : ""}`;
  }

  function key(event) {
    const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], Home: [0, -Infinity], End: [0, Infinity], PageDown: [15, 0], PageUp: [-15, 0] };
    if (event.key === "Enter") return open(active.row, active.column);
    if (!(event.key in steps) || !files.length) return;
    event.preventDefault();
    const clamp = (value, most) => Math.min(most, Math.max(0, value));
    const [down, right] = steps[event.key];
    active = { row: clamp(active.row + down, files.length - 1), column: clamp(active.column + right, sessions.length - 1) };
    reveal("scrollTop", active.row * HEIGHT, scroller.clientHeight - head.offsetHeight - HEIGHT);
    reveal("scrollLeft", active.column * WIDTH, scroller.clientWidth - head.querySelector(".corner").offsetWidth - WIDTH);
    drawCells();
    mark();
  }

  function reveal(side, place, room) {
    if (place < scroller[side]) scroller[side] = place;
    else if (place > scroller[side] + room) scroller[side] = place - room;
  }

  function mark() {
    table.querySelector(".active")?.classList.remove("active");
    table.querySelector("#map-active")?.removeAttribute("id");
    table.removeAttribute("aria-activedescendant");
    const cell = rows.get(active.row)?.querySelector(`[data-column="${active.column}"]`);
    if (!cell) return;
    cell.classList.add("active");
    cell.id = "map-active";
    table.setAttribute("aria-activedescendant", cell.id);
  }

  function drawCards() {
    fill(
      cards,
      sessions.map((session) => {
        const stale = session.stale.length;
        return h(
          "li",
          { class: "card" },
          h("a", { href: `#/timeline?session=${encodeURIComponent(session.session)}` }, named(session.name, { class: "name" })),
          h("span", { class: "quiet" }, session.ms ? ago(session.ms) : "no activity"),
          h(
            "span",
            { class: "figures" },
            h("span", {}, count(session.seen.length, "file"), " seen"),
            stale ? h("span", { class: "stale-word" }, sign("stale", "▲"), `${figure(stale)} stale`) : null,
            session.changes ? h("span", {}, count(session.changes, "change")) : null,
          ),
          session.changes ? actButton("Undo all", { act: "undo", what: { session: session.session } }, { class: "small", "aria-label": `Undo all changes of ${session.name}` }) : null,
        );
      }),
    );
  }

  // The cells of the sessions in view, between gaps as wide as the others.
  function inView(cellOf) {
    const { left, right } = drawn;
    return [gap(left), sessions.slice(left, right).map((session, index) => cellOf(session, left + index)), gap(sessions.length - right)];
  }

  function gap(columns) {
    if (!columns) return null;
    const cell = h("td", { "aria-hidden": "true" });
    cell.style.minWidth = `${columns * WIDTH}px`;
    return cell;
  }

  function drawHead() {
    const title = (session, column) => h("th", { scope: "col", title: session.name, "aria-colindex": column + 2 }, h("span", {}, named(session.name)));
    fill(head, h("tr", { role: "row" }, h("th", { scope: "col", class: "corner" }, "File"), inView(title)));
  }

  function rowOf(index) {
    const file = files[index];
    const name = oneLine(file.path);
    const slash = name.lastIndexOf("/") + 1;
    return h(
      "tr",
      { "data-row": index, role: "row", "aria-rowindex": index + 2 },
      h("th", { scope: "row", title: file.path }, h("a", { href: `#/file/${encodeURIComponent(file.path)}`, tabindex: "-1" }, h("bdi", {}, h("span", { class: "directory" }, name.slice(0, slash)), name.slice(slash)))),
      inView((session, column) => cellOf(session, session.files.get(file.path), column)),
    );
  }

  function cellOf(session, known, column) {
    const state = stateOf(known);
    const part = known?.part ? `, ${known.part[0]} of ${known.part[1]} lines` : "";
    const words = `${session.name}: ${STATES[state].words}${part}${known?.edited ? ", edited" : ""}`;
    return h("td", { class: `${state}${known?.edited ? " edited" : ""}`, role: "gridcell", "aria-colindex": column + 2, "data-column": column, title: words, "aria-label": words }, STATES[state].sign);
  }

  function drawCells() {
    // Before the map is in the page, its size is a guess.
    const [height, width] = [scroller.clientHeight || innerHeight * 0.85, scroller.clientWidth || innerWidth * 0.55];
    const [top, bottom] = visible(scroller.scrollTop, height, HEIGHT, files.length);
    const [start, end] = visible(scroller.scrollLeft, width, WIDTH, sessions.length);
    const isWide = rows.size > 0 && drawn.left <= start && end <= drawn.right;
    if (isWide && drawn.first <= top && bottom <= drawn.last) return;
    const [first, last] = [Math.max(0, top - SPARE), Math.min(files.length, bottom + SPARE)];
    if (!isWide) {
      drawn = { left: Math.max(0, start - SPARE), right: Math.min(sessions.length, end + SPARE) };
      rows.clear();
      drawHead();
    }
    Object.assign(drawn, { first, last });
    for (const [index] of rows) if (index < first || index >= last) rows.delete(index);
    for (let index = first; index < last; index++) if (!rows.has(index)) rows.set(index, rowOf(index));
    above.firstChild.style.height = `${first * HEIGHT}px`;
    below.firstChild.style.height = `${(files.length - last) * HEIGHT}px`;
    body.replaceChildren(above, ...[...rows.keys()].sort((a, b) => a - b).map((index) => rows.get(index)), below);
    table.setAttribute("aria-rowcount", files.length + 1);
    table.setAttribute("aria-colcount", sessions.length + 1);
    mark();
  }

  function draw() {
    sessions = store.order.map((id) => store.sessions.get(id)).filter(Boolean);
    const wanted = search.value.trim().toLowerCase();
    files = filesOf(sessions).filter((file) => file.path.toLowerCase().includes(wanted));
    drawCards();
    rows.clear();
    active = { row: Math.min(active.row, Math.max(0, files.length - 1)), column: Math.min(active.column, Math.max(0, sessions.length - 1)) };
    drawCells();
    scroller.hidden = !files.length;
    fill(
      nothing,
      files.length
        ? null
        : wanted
          ? empty("No file fits.")
          : empty("No session has seen a file yet.", h("span", {}, "Set up your agent with ", code("surehand init"), ", or play ", code("surehand demo --ui"), "."), "Every file that a session reads or edits gets a row here, every session a column."),
    );
  }

  function drawNews() {
    const latest = store.entries.slice(0, 40);
    fill(
      news,
      latest.map((entry) => {
        const kind = kindOf(entry);
        return h(
          "li",
          {},
          h("a", { href: `#/timeline?id=${encodeURIComponent(entry.id)}` }, sign(kind, KINDS[kind].sign), h("span", { class: `kind ${kind}` }, KINDS[kind].one), named(what(entry), { class: "what" })),
          h("span", { class: "quiet" }, h("time", {}, clock(entry.ms)), by(entry) ? [" ", named(by(entry))] : null),
        );
      }),
    );
    if (!latest.length) fill(news, h("li", { class: "quiet" }, "Nothing yet."));
  }

  draw();
  drawNews();
  // How long ago something was changes by itself.
  const timer = setInterval(() => document.hidden || cards.contains(document.activeElement) || drawCards(), 15000);
  return {
    element,
    close: () => clearInterval(timer),
    update(changed) {
      if (changed.has("all") || changed.has("sessions")) draw();
      if (changed.has("all") || changed.has("entries")) drawNews();
    },
  };
}
