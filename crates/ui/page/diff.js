// Shows unified diffs. The signs stay, so that nothing depends on colour.

import { h, named } from "./dom.js";
import { cut, count } from "./words.js";

const MOST_LINES = 2000;
const LONGEST = 2000;

const CLASSES = { "+": "added", "-": "removed", "@": "hunk", "\\": "note" };

// A diff of one file, folded under its name.
export function diffOf({ path, diff }, isOpen = true) {
  if (diff === null || diff === undefined) return h("p", { class: "quiet" }, named(path), ": its diff cannot be shown, because a version is no longer kept.");
  const lines = diff.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const body = lines.slice(lines.findIndex((line) => line.startsWith("@@")));
  const added = lines.filter((line) => line.startsWith("+") && !line.startsWith("+++ ")).length;
  const removed = lines.filter((line) => line.startsWith("-") && !line.startsWith("--- ")).length;
  const hasHunks = lines.some((line) => line.startsWith("@@"));
  const heading = lines.find((line) => /^(new file|deleted file|rename to|Binary)/.test(line))?.replace(/ mode \d+$/, "") ?? "";
  const shown = hasHunks ? body : [];
  const rest = shown.length - MOST_LINES;
  return h(
    "details",
    { class: "diff", open: isOpen },
    h("summary", {}, named(path), " ", h("span", { class: "plus" }, `+${added}`), " ", h("span", { class: "minus" }, `−${removed}`), heading ? ` ${heading}` : ""),
    shown.length
      ? h("div", { class: "lines", tabindex: "0", role: "region", "aria-label": `Diff of ${path}` }, h("pre", {}, shown.slice(0, MOST_LINES).map(row)))
      : h("p", { class: "quiet" }, heading || "It is the same."),
    rest > 0 ? h("p", { class: "quiet" }, `${count(rest, "more line")}; surehand show has all of them.`) : null,
  );
}

const row = (line) => h("span", { class: CLASSES[line[0]] ?? "same" }, `${cut(line, LONGEST)}\n`);

export const diffs = (files) => files.map((file, index) => diffOf(file, files.length <= 3 || index < 3));
