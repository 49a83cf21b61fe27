// Asks before anything is changed, with a preview of what would be, and says what was done.

import { h, fill, named } from "./dom.js";
import { send, store } from "./store.js";
import { diffs } from "./diff.js";
import { count, span } from "./words.js";

const dialog = document.getElementById("ask");
const said = document.getElementById("said");

let quiet;

export function say(text) {
  fill(said, text);
  clearTimeout(quiet);
  quiet = setTimeout(() => fill(said), 12000);
}

// A button that asks for something to be done.
export function actButton(label, request, properties = {}) {
  const why = store.readOnly ? "The state of this workspace cannot be written, so nothing can be changed here." : undefined;
  return h("button", { type: "button", disabled: store.readOnly, title: why, ...properties, on: { click: () => confirm(label, request) } }, label);
}

export async function confirm(title, request) {
  const body = h("div", { class: "preview" }, h("p", { class: "quiet" }, "Looking what this would do …"));
  const go = h("button", { type: "button", class: "primary", disabled: true }, title);
  const cancel = h("button", { type: "button", on: { click: () => dialog.close() } }, request.act === "cancel_claim" ? "Keep claim" : "Cancel");
  fill(dialog, h("h2", { id: "ask-title" }, `${title}?`), body, h("div", { class: "buttons" }, cancel, go));
  dialog.showModal();
  cancel.focus();
  try {
    const preview = await send("preview", request);
    fill(body, ...previewOf(preview, request));
    const isPossible = !preview.refused && (preview.files.length > 0 || ["drop", "cancel_claim"].includes(request.act));
    go.disabled = !isPossible;
    if (preview.refused && request.act === "undo" && !request.force) {
      const force = h("button", { type: "button", on: { click: () => confirm("Undo, and overwrite later changes", { ...request, force: true }) } }, "Overwrite later changes …");
      dialog.querySelector(".buttons").prepend(force);
    }
    go.addEventListener("click", () => carryOut(title, request, go));
    if (isPossible) go.focus();
  } catch (error) {
    fill(body, h("p", { class: "trouble" }, error.message));
  }
}

async function carryOut(title, request, go) {
  go.disabled = true;
  try {
    const done = await send("act", request);
    if (done.success === false) {
      fill(dialog.querySelector(".preview"), h("p", { class: "trouble" }, "Nothing was changed."), h("pre", { class: "answer" }, done.text));
      return;
    }
    dialog.close();
    say(report(title, done));
  } catch (error) {
    fill(dialog.querySelector(".preview"), h("p", { class: "trouble" }, error.message));
  }
}

const WORDS = { create: "comes back", overwrite: "becomes what it was", delete: "is deleted", set_mode: "gets its permissions back" };

function previewOf(preview, request) {
  if (preview.refused) return [h("p", { class: "trouble" }, "This cannot be done as it is."), h("pre", { class: "answer" }, preview.refused)];
  if (request.act === "restore") {
    if (!preview.files.length) return [h("p", {}, "There is nothing to do: the files are as they were.")];
    const left = preview.left.map((file) => h("li", {}, named(file.path), ` stays as it is: ${file.why}`));
    return [
      h("p", {}, `${count(preview.files.length, "file")} will change. What is there now is kept first, so this can be taken back.`),
      h("ul", {}, preview.files.slice(0, 200).map((file) => h("li", {}, named(file.path), ` ${WORDS[file.act] ?? file.act}`)), left),
      preview.files.length > 200 ? h("p", { class: "quiet" }, `and ${preview.files.length - 200} more`) : null,
    ];
  }
  if (request.act === "cancel_claim") {
    const { pattern, by, lasts } = preview.claim;
    return [
      h("p", {}, named(by), " has claimed ", named(pattern, { class: "id" }), `, for another ${span(lasts)}.`),
      h("p", {}, "The claim ends at once: any agent may then edit these paths, and claim them. No file changes."),
    ];
  }
  const words = {
    undo: "These lines change. Redo takes that back.",
    redo: "These lines change.",
    apply: "The rescued text replaces what is there now. Undo takes that back.",
    drop: "The rescued text is removed from the list. While its content is kept, surehand rescued apply still finds it.",
  };
  const none = preview.files.length ? words[request.act] : "There is nothing to take back.";
  return [h("p", {}, none), ...diffs(preview.files)];
}

function report(title, done) {
  if (done.restored) return `Restored ${count(done.done.length, "file")}.${done.failed.length ? ` Not restored: ${done.failed.length}.` : ""}`;
  if (done.applied) return "Wrote what was rescued.";
  if (done.dropped) return "Dropped.";
  if (done.released) return `Cancelled the claim of ${done.by} on ${done.released}.`;
  return `${title}: done.`;
}
