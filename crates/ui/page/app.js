// The frame of the page: views by the address, the connection, the theme.

import { h, fill, named, empty, code } from "./dom.js";
import { store, listen, takeToken } from "./store.js";
import { map } from "./map.js";
import { timeline } from "./timeline.js";
import { files, file } from "./file.js";
import { rescued, tasks, openTasks } from "./lists.js";
import { board } from "./board.js";
import { runs } from "./runs.js";
import { figure } from "./words.js";

const VIEWS = [
  { path: "", title: "Overview", make: map },
  { path: "timeline", title: "Timeline", make: timeline, keeps: true, number: () => store.entries.length },
  { path: "files", title: "Files", make: files },
  { path: "rescued", title: "Rescued", make: rescued, number: () => store.rescues.length },
  { path: "tasks", title: "Tasks", make: tasks, number: () => openTasks().length },
  { path: "board", title: "Board", make: board },
  { path: "runs", title: "Runs", make: runs },
];

const main = document.getElementById("main");
const views = document.getElementById("views");
const connection = document.getElementById("connection");
const theme = document.getElementById("theme");

let current = null;
let isStarted = false;

function route() {
  if (/^#token=/.test(location.hash)) {
    takeToken();
    location.reload();
    return;
  }
  if (location.hash === "#main") return;
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = Object.fromEntries(new URLSearchParams(query));
  const [name, ...rest] = path.split("/");
  const isSame = current?.view.keeps && current.view.path === name;
  if (!isStarted) return;
  if (!isSame) {
    current?.shown.close?.();
    const view = name === "file" ? { path: "files", title: "", make: () => file(decode(rest.join("/")), parameters) } : (VIEWS.find((view) => view.path === name) ?? VIEWS[0]);
    const shown = view.make(parameters);
    current = { view, shown };
    fill(main, shown.element);
  }
  document.title = `${current.view.title || decode(rest.join("/"))} · Surehand`.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  drawViews();
  showCurrentView();
  current.shown.show?.(parameters);
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function drawViews() {
  const focused = views.contains(document.activeElement) ? document.activeElement.getAttribute("href") : undefined;
  fill(
    views,
    VIEWS.map((view) => {
      const number = view.number?.();
      const isCurrent = current?.view.path === view.path;
      return h("li", {}, h("a", { href: `#/${view.path}`, "aria-current": isCurrent ? "page" : null }, view.title, number ? [" ", h("span", { class: "number" }, figure(number))] : null));
    }),
  );
  if (focused) views.querySelector(`[href="${focused}"]`)?.focus();
}

// On a phone the views are a row that is wider than the screen.
function showCurrentView() {
  const link = views.querySelector("[aria-current]");
  if (link) views.parentElement.scrollLeft = link.offsetLeft - (innerWidth - link.offsetWidth) / 2;
}

const CONNECTION = { connecting: "connecting", live: "live", lost: "no connection; trying again", refused: "no valid token" };

function drawFrame() {
  fill(document.getElementById("workspace"), named(store.workspace), store.readOnly ? h("span", { class: "quiet" }, " (read-only)") : null);
  connection.className = store.trouble ? "lost" : store.connection;
  fill(connection, h("span", { class: "sign", "aria-hidden": "true" }, store.connection === "live" && !store.trouble ? "●" : "○"), store.trouble || CONNECTION[store.connection]);
}

function drawTheme() {
  const chosen = localStorage.getItem("theme") ?? "auto";
  document.documentElement.dataset.theme = chosen;
  fill(theme, { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[chosen]);
}

theme.addEventListener("click", () => {
  const next = { auto: "light", light: "dark", dark: "auto" }[localStorage.getItem("theme") ?? "auto"];
  localStorage.setItem("theme", next);
  drawTheme();
});

function needToken() {
  isStarted = false;
  fill(main, empty("This page needs its address with the token.", h("span", {}, "Run ", code("surehand ui --open"), ", or open the address that ", code("surehand ui"), " has printed. A token ends with its server.")));
}

// Updates of many events are drawn once for each frame.
let changes = new Set();
let frame = 0;

function hear(changed) {
  if (changed.has("connection") || changed.has("all") || changed.has("trouble")) drawFrame();
  if (store.connection === "refused") return needToken();
  changed.forEach((name) => changes.add(name));
  if (document.hidden) setTimeout(drawChanges, 500);
  else frame ||= requestAnimationFrame(drawChanges);
}

function drawChanges() {
  frame = 0;
  const changed = changes;
  changes = new Set();
  if (!changed.size) return;
  if (changed.has("all") && !isStarted) {
    isStarted = true;
    route();
  } else {
    current?.shown.update(changed);
  }
  if (changed.has("all") || changed.has("entries") || changed.has("state") || changed.has("rescues")) drawViews();
}

drawTheme();
drawFrame();
drawViews();
window.addEventListener("hashchange", route);
listen(hear);
// The store began before.
if (store.state || store.connection === "refused") hear(new Set(["all", "connection"]));
